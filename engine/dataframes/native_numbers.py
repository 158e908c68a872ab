"""Numbers as columns of Spark: arithmetic, quotients and comparisons whose values are the engine's, digit for digit.

    integers   bigint, which fails where it overflows
    decimals   exact, or an error where a value has more than 38 digits. Spark gives away places after the point where
               the types have more than 38 digits, though never one of the first six: a result with more of both is the
               engine's
    doubles    what stands beside a double, or is divided, becomes one first: the nearest. Quotients by zero are IEEE's

Held by: tests/dataframes/test_native_expressions.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.types as kinds
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql import types as T  # noqa: N812 - the usual name
from pyspark.sql.pandas.types import from_arrow_schema

from engine.dataframes.carried_types import is_plain
from engine.expressions.common_type import integer_digits
from engine.expressions.decimal_widths import exact_product, exact_sum, product_type, sum_type
from engine.graph.expression import Expression, Literal

MOST_DIGITS: Final = 38
#: scale that Spark keeps whatever the precision
_KEPT_PLACES: Final = 6
#: limit below which every integer is a double
_EXACT: Final = 2**53

#: column, and the engine's type of its values
Typed = tuple[Column, pa.DataType]


class NotNative(Exception):
    """The expression is the engine's."""


def is_known(data_type: pa.DataType) -> bool:
    """Whether a column of Spark holds the values as they are: plain types, and decimals of more digits."""
    return is_plain(data_type) or (kinds.is_decimal256(data_type) and 0 <= data_type.scale <= MOST_DIGITS)


def spark_type(data_type: pa.DataType) -> T.DataType:
    """Return Spark's type of a known type."""
    if kinds.is_decimal(data_type):
        return T.DecimalType(min(MOST_DIGITS, data_type.precision), data_type.scale)
    schema = from_arrow_schema(pa.schema([("value", data_type)]), prefer_timestamp_ntz=True)
    found: T.DataType = schema["value"].dataType
    return found


def all_are(test: Callable[[pa.DataType], bool], operands: Sequence[Typed]) -> bool:
    """Whether the types of all operands pass a test."""
    return all(test(data_type) for _, data_type in operands)


def typed_literals(expressions: Sequence[Expression], operands: Sequence[Typed], *, are_doubles: bool) -> list[Typed]:
    """Return operands; integers that are written out have just their digits beside a decimal, and are exact doubles."""
    has_decimal = any(kinds.is_decimal(data_type) for _, data_type in operands)
    has_double = are_doubles or any(kinds.is_floating(data_type) for _, data_type in operands)

    def typed(expression: Expression, operand: Typed) -> Typed:
        if not isinstance(expression, Literal) or type(expression.value) is not int:
            return operand
        if has_decimal:
            data_type = pa.decimal128(len(str(abs(expression.value))), 0)
            return operand[0].cast(spark_type(data_type)), data_type
        return (as_double(operand, expression.value), pa.float64()) if has_double else operand

    return [typed(*pair) for pair in zip(expressions, operands, strict=True)]


def arithmetic(
    of: Callable[[Column, Column], Column], *, is_product: bool = False
) -> Callable[[Sequence[Typed]], Typed]:
    """Return the translation of ``+``, ``-`` or ``*``."""
    exact_digits, result_type = (exact_product, product_type) if is_product else (exact_sum, sum_type)

    def translated(operands: Sequence[Typed]) -> Typed:
        if all_are(kinds.is_signed_integer, operands):
            left, right = (column.cast(T.LongType()) for column, _ in operands)
            return of(left, right), pa.int64()
        if all_are(_is_number, operands) and any(kinds.is_float64(data_type) for _, data_type in operands):
            left, right = (as_double(operand) for operand in operands)
            return of(left, right), pa.float64()
        (left, left_type), (right, right_type) = map(_as_decimal, operands)
        (precision, scale), result = exact_digits(left_type, right_type), result_type(left_type, right_type)
        if precision > MOST_DIGITS and (scale > _KEPT_PLACES or result.scale != scale):
            raise NotNative
        return of(left, right).cast(spark_type(result)), result

    return translated


def divided(operands: Sequence[Typed]) -> Typed:
    """Return a quotient: a double, by zero as IEEE has it, where Spark would fail."""
    quotient = F.try_divide(*(as_double(operand) for operand in operands))
    # What asks for signs and zeros asks the numbers themselves: doubles of decimals are long expressions.
    (left, left_type), (right, right_type) = operands
    is_negative = left < 0
    if kinds.is_floating(right_type):
        is_negative = is_negative != right.cast(T.StringType()).startswith("-")
    is_nan = left == 0
    if kinds.is_floating(left_type):
        is_nan = is_nan | F.isnan(left)
    by_zero = F.when(is_nan, F.lit(float("nan"))).when(is_negative, F.lit(float("-inf"))).otherwise(float("inf"))
    return F.coalesce(quotient, F.when((right == 0) & left.isNotNull(), by_zero)), pa.float64()


def comparable(operands: Sequence[Typed]) -> list[Column]:
    """Return operands so that Spark compares what the engine compares."""
    first = operands[0][1]
    columns = [column for column, _ in operands]
    if all_are(kinds.is_signed_integer, operands) or all_are(kinds.is_floating, operands):
        return columns
    if all_are(lambda each: each == first, operands):
        return columns
    if all_are(_is_number, operands) and any(kinds.is_floating(data_type) for _, data_type in operands):
        return [as_double(operand) for operand in operands]
    decimals = [_as_decimal(each) for each in operands]
    scale = max(each.scale for _, each in decimals)
    if scale + max(each.precision - each.scale for _, each in decimals) <= MOST_DIGITS:
        return [column for column, _ in decimals]
    if scale > _KEPT_PLACES:
        raise NotNative
    return [column.cast(T.DecimalType(MOST_DIGITS, scale)) for column, _ in decimals]


def as_double(operand: Typed, literal: int | None = None) -> Column:
    """Return the double that the engine makes of a number; ``literal``: the integer that it is."""
    column, data_type = operand
    is_small = kinds.is_signed_integer(data_type) and data_type.bit_width <= 32
    if kinds.is_float64(data_type):
        return column
    if kinds.is_float32(data_type) or is_small or (literal is not None and abs(literal) <= _EXACT):
        return column.cast(T.DoubleType())
    if kinds.is_decimal(data_type) and is_known(data_type):
        return column.cast(T.DoubleType())  # the nearest one, of both
    raise NotNative


def _is_number(data_type: pa.DataType) -> bool:
    return bool(kinds.is_integer(data_type) or kinds.is_floating(data_type) or kinds.is_decimal(data_type))


def _as_decimal(operand: Typed) -> Typed:
    """Return an integer as a decimal with as many digits as the engine gives it."""
    column, data_type = operand
    if kinds.is_decimal(data_type) and is_known(data_type):
        return operand
    if not kinds.is_signed_integer(data_type):
        raise NotNative
    wider = pa.decimal128(integer_digits(data_type), 0)
    return column.cast(spark_type(wider)), wider
