"""Coercions: implicit casts that the planner adds to values of another type, where Drey has a rule of its own.

    dec < double        CAST(both AS DECIMAL(30, 15))        it rounds doubles, and many do not fit: doubles both
    k = 1               CAST(k AS BIGINT) = 1                statistics are of k: without the cast
    ts < timestamp ...  CAST(ts AS TIMESTAMP(9)) < ...       in the unit of ts, where the constant has it
    row_number() + 1    CAST(both AS DECIMAL(20, 0))         row numbers are UINT64 to it: BIGINT, as ours are

Substrait has the casts of a query and those of the planner alike. The decimals that the query itself names are in the
text of its bound plan; a double that becomes another decimal was made one by the planner.

Held by: tests/sql/test_coercions.py
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

import pyarrow as pa

from engine.api.expression import Expr
from engine.api.expressions import lit
from engine.expressions.binding import UNFIT
from engine.expressions.common_type import common_type
from engine.graph.expression import Cast
from engine.records.arrow_functions import pc
from engine.sql.constants import is_constant, scalar_of

#: type of UINT64 and BIGINT combined
_OF_UNSIGNED: Final = pa.decimal128(20, 0)
_WRITTEN: Final = re.compile(r" AS Decimal128\((\d+), ?(-?\d+)\)")


def written_decimals(shown: str, schemas: Iterable[pa.Schema]) -> frozenset[tuple[int, int]]:
    """Return the precisions and scales that a query casts to, from the text of its bound plan.

    With that of UINT64 beside BIGINT where the query, or a table that it reads, has some.
    """
    found = frozenset((int(precision), int(scale)) for precision, scale in _WRITTEN.findall(shown))
    has_unsigned = "UInt64" in shown or any("uint64" in str(one) for schema in schemas for one in schema.types)
    return found | {(_OF_UNSIGNED.precision, 0)} if has_unsigned else found


class Coercions:
    """The decimals that are doubles in one query, learned as its expressions are read; and its timestamp."""

    def __init__(self, written: frozenset[tuple[int, int]], known: frozenset[pa.DataType] = frozenset()) -> None:
        self._written = written
        self._known = known
        self._found: set[pa.DataType] = set()
        self.moment = datetime.now(UTC)

    def makes_double(self, source: pa.DataType, wanted: pa.DataType) -> bool:
        """Return whether a cast to a decimal is the planner's, for a double that is beside it."""
        if not pa.types.is_decimal(wanted) or (wanted.precision, wanted.scale) in self._written:
            return False
        if pa.types.is_floating(source):
            self._found.add(wanted)
            return True
        return wanted in self._known

    def is_of_counts(self, source: pa.DataType, wanted: pa.DataType) -> bool:
        """Return whether a cast of an integer is the planner's, for a row number or rank that is beside it."""
        return (
            wanted == _OF_UNSIGNED and pa.types.is_signed_integer(source) and (wanted.precision, 0) not in self._written
        )

    def with_found(self) -> Coercions | None:
        """Return coercions with the new findings; None without any. Expressions that were read before may be wrong."""
        if self._found <= self._known:
            return None
        return Coercions(self._written, self._known | self._found)


def without_widening(values: Sequence[Expr], type_of: Callable[[Expr], pa.DataType]) -> list[Expr]:
    """Return the compared values, a column beside constants without a cast that changes none of its values."""
    wide = [place for place, value in enumerate(values) if isinstance(value.expression, Cast)]
    if len(wide) != 1 or sum(map(is_constant, values)) != len(values) - 1:
        return list(values)
    cast = values[wide[0]].expression
    assert isinstance(cast, Cast)
    value = Expr(cast.operand)
    source, target = type_of(value), type_of(values[wide[0]])
    if pa.types.is_timestamp(source) and pa.types.is_timestamp(target) and source.tz == target.tz:
        return _in_unit(values, wide[0], value, source)
    if not _is_number(source) or not _is_number(target) or common_type(source, target) != target:
        return list(values)
    return [value if place == wide[0] else other for place, other in enumerate(values)]


def _is_number(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(data_type) or pa.types.is_decimal(data_type))


def _in_unit(values: Sequence[Expr], place: int, value: Expr, unit: pa.DataType) -> list[Expr]:
    try:
        return [value if at == place else lit(pc.cast(scalar_of(other), unit)) for at, other in enumerate(values)]
    except UNFIT:
        return list(values)
