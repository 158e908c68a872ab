"""Aggregates as columns of Spark: those that give the same value there for every input, else None.

    native_aggregate(function, argument, argument type, result type, how) -> Column | None

    count_all, count   rows, values that are not null
    sum                integers as bigint, which fails where it overflows; doubles; decimals, with the scale of theirs
    avg                a sum and a count; of integers and decimals the sum is exact. Where it has more than 2^53 units
                       the last place of the mean may be another one than the engine's
    min, max           of every carried type but doubles of which NaN is the largest in both

Sums of doubles depend on the order of rows in the last places, as everywhere.

Held by: tests/dataframes/test_places.py
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.types as kinds
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql import types as T  # noqa: N812 - the usual name

#: largest precision of Spark's decimals
_MOST_DIGITS: Final = 38
#: functions that Spark has, for some types at least
NATIVE: Final = frozenset({"count_all", "count", "min", "max", "sum", "avg"})


@dataclass(frozen=True)
class Aggregating:
    """Form in which values are aggregated. ``each``: what is made of each aggregate of Spark, as over a window."""

    each: Callable[[Column], Column] = lambda aggregate: aggregate
    is_distinct: bool = False

    def count(self, argument: Column) -> Column:
        """Return the number of values."""
        return self.each((F.count_distinct if self.is_distinct else F.count)(argument))

    def sum(self, argument: Column) -> Column:
        """Return the sum of values."""
        return self.each((F.sum_distinct if self.is_distinct else F.sum)(argument))


def native_aggregate(
    function: str,
    argument: Column | None,
    data_type: pa.DataType | None,
    result: pa.DataType,
    how: Aggregating = Aggregating(),
) -> Column | None:
    """Return an aggregate of Spark; ``argument`` carries values of ``data_type``, both None for count_all."""
    if function == "count_all":
        return how.count(F.lit(1))
    if argument is None or data_type is None:
        return None
    if function == "count":
        return how.count(argument)
    if function in ("min", "max") and not kinds.is_nested(data_type):
        return how.each((F.min if function == "min" else F.max)(argument))
    if function == "sum":
        return _sum(argument, data_type, result, how)
    if function == "avg":
        return _mean(argument, data_type, how)
    return None


def _sum(argument: Column, data_type: pa.DataType, result: pa.DataType, how: Aggregating) -> Column | None:
    if kinds.is_signed_integer(data_type) and kinds.is_int64(result):
        return how.sum(argument.cast(T.LongType()))
    if kinds.is_float64(data_type) and kinds.is_float64(result):
        return how.sum(argument)
    # Spark's sum has ten digits more than a value, at most 38; one that needs more is an error there.
    digits = min(_MOST_DIGITS, result.precision) if kinds.is_decimal(result) else 0
    if kinds.is_decimal(data_type) and data_type.scale == result.scale and digits >= _sum_digits(data_type):
        return how.sum(argument).cast(T.DecimalType(digits, result.scale))
    return None


def _sum_digits(data_type: pa.DataType) -> int:
    return min(_MOST_DIGITS, int(data_type.precision) + 10)


def _mean(argument: Column, data_type: pa.DataType, how: Aggregating) -> Column | None:
    values = how.count(argument)
    count = F.when(values > 0, values)
    if kinds.is_float64(data_type):
        return how.sum(argument) / count.cast(T.DoubleType())
    if kinds.is_signed_integer(data_type):
        total, scale = how.sum(argument.cast(T.DecimalType(20, 0))), 0
    elif kinds.is_decimal128(data_type) and data_type.precision + 10 <= _MOST_DIGITS and data_type.scale >= 0:
        total, scale = how.sum(argument), data_type.scale
    else:
        return None
    # Whole numbers below 2^53 are doubles: their quotient is rounded once, as the engine's mean is.
    whole = (total * F.lit(10**scale).cast(T.DecimalType(scale + 1, 0))).cast(T.DecimalType(_MOST_DIGITS, 0))
    parts = (count * F.lit(10**scale)).cast(T.DoubleType())
    return whole.cast(T.DoubleType()) / parts
