"""DreyCompiler: operations of Ibis as our SQL, which is near DuckDB's; what it lacks is refused by its name.

Our SQL differs from DuckDB's where this class says so: ``/`` of whole numbers is one, 1.5 is a decimal, NULL is the
largest value, and there is no type JSON or UUID: columns of these are texts.

Held by: tests/ibis_backend/test_operations.py
"""

from __future__ import annotations

import math
from datetime import UTC
from typing import Any, ClassVar, Final

import ibis.common.exceptions as com
import ibis.expr.datatypes as dt
import ibis.expr.operations as ops
import sqlglot as sg
import sqlglot.expressions as sge
from ibis.backends.sql.compilers.base import NULL, STAR, AggGen
from ibis.backends.sql.compilers.duckdb import DuckDBCompiler
from ibis.backends.sql.datatypes import DuckDBType
from ibis.expr.rewrites import lower_stringslice
from ibis.util import get_subclasses
from sqlglot.dialects.duckdb import DuckDB

from engine.dialects.parser import Drey

_TEXT: Final = sge.DataType(this=sge.DataType.Type.VARCHAR)
#: lengths of units of time that have one, in microseconds
_MICROSECONDS: Final = {
    "us": 1, "ms": 10**3, "s": 10**6, "m": 60 * 10**6, "h": 3600 * 10**6, "D": 86400 * 10**6, "W": 7 * 86400 * 10**6,
}  # fmt: skip


class DreySql(DuckDB):
    """Our SQL as text: NULL is the largest value of an order that does not say where it goes."""

    NULL_ORDERING = "nulls_are_large"


class _Written(Drey):
    """A parser of texts of users, whose functions stay what they are called."""

    INDEX_OFFSET = 1


class DreyType(DuckDBType):
    """Types of Ibis as those of our SQL."""

    @classmethod
    def _from_ibis_JSON(cls, _dtype: dt.JSON) -> sge.DataType:
        return _TEXT

    _from_ibis_UUID = _from_ibis_INET = _from_ibis_JSON


class DreyCompiler(DuckDBCompiler):
    """Our SQL for each operation of Ibis."""

    __slots__ = ()

    dialect = DreySql
    type_mapper = DreyType
    agg = AggGen(supports_filter=True, supports_order_by=True)

    LOWERED_OPS: ClassVar[dict[Any, Any]] = {ops.StringSlice: lower_stringslice}
    SIMPLE_OPS: ClassVar[dict[Any, str]] = {
        ops.ArrayDistinct: "list_distinct",
        ops.ExtractDayOfYear: "dayofyear",
        ops.MapContains: "map_contains",
    }
    UNSUPPORTED_OPS: ClassVar[tuple[Any, ...]] = (
        *(one for one in get_subclasses(ops.Value) if one.__name__.startswith("Geo")),
        *(ops.UnwrapJSONString, ops.UnwrapJSONInt64, ops.UnwrapJSONFloat64, ops.UnwrapJSONBoolean),
        *(ops.ToJSONArray, ops.ToJSONMap, ops.RandomUUID, ops.Hash),
        *(ops.ArrayMode, ops.ArrayZip, ops.MapMerge, ops.CountDistinctStar),
        *(ops.TimeTruncate, ops.TimeDelta, ops.TimeAdd, ops.TimeSub, ops.TimeDiff, ops.DateDiff),
        *(ops.IntervalAdd, ops.IntervalSubtract, ops.IntervalMultiply, ops.IntervalFloorDivide, ops.RowID),
    )

    # values ----------------------------------------------------------------------------------------------------

    def visit_NonNullLiteral(self, op: Any, *, value: Any, dtype: dt.DataType) -> Any:
        """Return a constant, which has the type that it says."""
        if dtype.is_floating() and math.isfinite(value):
            text = repr(float(value))
            return sge.Literal.number(text if "e" in text else f"{text}e0")
        if dtype.is_decimal():
            if not value.is_finite():
                raise com.UnsupportedOperationError(f"{value} as a decimal, which has no such value")
            return self.cast(str(value), dtype)
        if dtype.is_binary():
            return self.f.from_hex(value.hex())
        if dtype.is_time():
            return self.cast(value.isoformat(), dtype)
        if dtype.is_timestamp():
            moment = value if value.tzinfo is None else value.astimezone(UTC)
            return self.cast(moment.isoformat(sep=" "), dtype)
        if dtype.is_json() or dtype.is_uuid():
            return sge.convert(str(value))
        found = super().visit_NonNullLiteral(op, value=value, dtype=dtype)
        if found is None and (dtype.is_array() or dtype.is_map()):
            return self.cast(self.visit_DefaultLiteral(op, value=value, dtype=dtype), dtype)
        return found

    def visit_Divide(self, _op: Any, *, left: Any, right: Any) -> Any:
        """Return a quotient with a fraction, of whole numbers too."""
        if _op.left.dtype.is_integer() and _op.right.dtype.is_integer():
            left = self.cast(left, dt.float64)
        return self.binop(sge.Div, left, right)

    def visit_FloorDivide(self, op: Any, *, left: Any, right: Any) -> Any:
        """Return the whole number below a quotient; that of whole numbers is exact."""
        if op.left.dtype.is_integer() and op.right.dtype.is_integer():
            past = sge.paren(sge.paren(sge.paren(left) % sge.paren(right) + sge.paren(right)) % sge.paren(right))
            return self.binop(sge.IntDiv, sge.paren(left) - past, right)
        return self.cast(self.f.floor(self.binop(sge.Div, left, right)), op.dtype)

    def visit_Cast(self, op: Any, *, arg: Any, to: dt.DataType) -> Any:
        """Return a value as one of another type; a moment is a number of seconds since 1970."""
        if to.is_timestamp() and op.arg.dtype.is_numeric():
            return self._moment(arg, 10**6, to)
        if op.arg.dtype.is_timestamp() and to.is_numeric():
            seconds = self.f.epoch(arg)
            return self.cast(self.f.floor(seconds) if to.is_integer() else seconds, to)
        return super().visit_Cast(op, arg=arg, to=to)

    def visit_TryCast(self, op: Any, *, arg: Any, to: dt.DataType) -> Any:
        """Return a value as one of another type, NULL where it is none."""
        if op.arg.dtype.is_timestamp() and to.is_numeric():
            return self.visit_Cast(op, arg=arg, to=to)
        return super().visit_TryCast(op, arg=arg, to=to)

    def visit_TimestampFromUNIX(self, op: Any, *, arg: Any, unit: Any) -> Any:
        """Return a moment of its distance from 1970."""
        if unit.short == "ns":
            raise com.UnsupportedOperationError("moments of nanoseconds since 1970")
        return self._moment(arg, _MICROSECONDS[unit.short], op.dtype)

    def _moment(self, arg: Any, unit: int, dtype: dt.DataType) -> Any:
        microseconds = self.cast(self.binop(sge.Mul, arg, sge.convert(unit)), dt.int64)
        found = self.f.anon.make_timestamp(microseconds)
        return self.cast(found, dtype) if dtype.timezone else found

    def visit_ExtractEpochSeconds(self, op: Any, *, arg: Any) -> Any:
        """Return whole seconds since 1970."""
        return self.cast(self.f.floor(self.f.epoch(self.cast(arg, dt.timestamp))), op.dtype)

    def visit_TimestampFromYMDHMS(
        self, op: Any, *, year: Any, month: Any, day: Any, hours: Any, minutes: Any, seconds: Any, **_: Any
    ) -> Any:
        """Return a moment of its parts."""
        midnight = self.cast(self.f.anon.make_date(year, month, day), dt.timestamp)
        found = sge.Add(this=midnight, expression=self._of_day(hours, minutes, seconds))
        return self.cast(found, op.dtype) if op.dtype.timezone else found

    def visit_TimeFromHMS(self, _op: Any, *, hours: Any, minutes: Any, seconds: Any) -> Any:
        """Return a time of its parts."""
        midnight = self.cast("1970-01-01", dt.timestamp)
        return self.cast(sge.Add(this=midnight, expression=self._of_day(hours, minutes, seconds)), dt.time)

    def _of_day(self, hours: Any, minutes: Any, seconds: Any) -> Any:
        return self.f.anon.to_seconds(sge.paren(hours) * 3600 + sge.paren(minutes) * 60 + sge.paren(seconds))

    def visit_TimestampBucket(self, op: Any, *, arg: Any, interval: Any, offset: Any) -> Any:
        """Return the beginning of the span of time that a moment is in."""
        steps = [one for one in (op.interval, op.offset) if one is not None]
        if not all(isinstance(one, ops.Literal) and one.dtype.unit.short in _MICROSECONDS for one in steps):
            raise com.UnsupportedOperationError("spans of time that are no constants, or have months")
        width, begin = (*(one.value * _MICROSECONDS[one.dtype.unit.short] for one in steps), 0)[:2]
        at = self.f.epoch_us(arg)
        past = sge.paren(sge.paren(sge.paren(at - begin) % width + width) % width)
        return self.f.anon.make_timestamp(at - past)

    def visit_ArgMin(self, op: Any, *, arg: Any, key: Any, where: Any) -> Any:
        """Return the value, which may be NULL, where a key is lowest or highest."""
        cond = key.is_(sg.not_(NULL))
        order = sge.Ordered(this=key, desc=isinstance(op, ops.ArgMax))
        return self.agg.first(arg, where=cond if where is None else sg.and_(where, cond), order_by=[order])

    visit_ArgMax = visit_ArgMin

    def visit_Kurtosis(self, op: Any, *, arg: Any, where: Any, how: str) -> Any:
        """Return the kurtosis of a sample."""
        if how != "sample":
            raise com.OperationNotDefinedError("kurtosis(how='pop')")
        return super().visit_Kurtosis(op, arg=arg, where=where, how=how)

    def visit_Correlation(self, op: Any, *, left: Any, right: Any, how: str, where: Any) -> Any:
        """Return the correlation, which is the same of a sample."""
        return super().visit_Correlation(op, left=left, right=right, how="pop", where=where)

    def visit_Quantile(self, op: Any, *, arg: Any, quantile: Any, where: Any) -> Any:
        """Return a quantile of numbers."""
        if not op.arg.dtype.is_numeric():
            raise com.OperationNotDefinedError(f"{type(op).__name__} of {op.arg.dtype}; there are those of numbers")
        return self.agg.quantile_cont(arg, quantile, where=where)

    def visit_MultiQuantile(self, op: Any, *, arg: Any, quantile: Any, where: Any) -> Any:
        """Return a list of quantiles, a call for each."""
        if not isinstance(op.quantile, ops.Literal):
            raise com.OperationNotDefinedError("MultiQuantile of shares that are no constants")
        is_exact = isinstance(op, ops.MultiQuantile)
        one = self.visit_Quantile if is_exact else self.visit_ApproxQuantile
        return self.f.array(*(one(op, arg=arg, quantile=sge.convert(each), where=where) for each in op.quantile.value))

    visit_ApproxMultiQuantile = visit_MultiQuantile

    # lists and maps --------------------------------------------------------------------------------------------

    def visit_Array(self, op: Any, *, exprs: Any) -> Any:
        """Return a list of values, which have one type."""
        return self.cast(self.f.array(*(self.cast(one, op.dtype.value_type) for one in exprs)), op.dtype)

    def visit_ArrayPosition(self, _op: Any, *, arg: Any, other: Any) -> Any:
        """Return the place of a value, 0 where a list has none."""
        return self.if_(
            arg.is_(NULL) | other.is_(NULL), NULL, self.f.coalesce(self.f.anon.list_position(arg, other), 0)
        )

    def visit_ArrayUnion(self, _op: Any, *, left: Any, right: Any) -> Any:
        """Return the different values of two lists."""
        return self.f.list_distinct(self.f.list_concat(left, right))

    def visit_ArraySlice(self, op: Any, *, arg: Any, start: Any, stop: Any) -> Any:
        """Return a part of a list; -1 is its last value."""
        return super().visit_ArraySlice(op, arg=arg, start=start, stop=stop) if stop else self._behind(op, arg, start)

    def _behind(self, op: Any, arg: Any, start: Any) -> Any:
        begin = 1 if start is None else op.start.value if isinstance(op.start, ops.Literal) else start
        return self.f.list_slice(arg, begin + (begin >= 0) if start is not None else begin, -1)

    def visit_IntegerRange(self, op: Any, *, start: Any, stop: Any, step: Any) -> Any:
        """Return a list of numbers, which are none for a step of 0."""
        if isinstance(op.step, ops.Literal) and op.step.value == 0:
            return self.cast(self.f.array(), op.dtype)
        return self.f.range(start, stop, step)

    def visit_MapGet(self, op: Any, *, arg: Any, key: Any, default: Any) -> Any:
        """Return the value of a key, a default where the map has none."""
        found = self.f.anon.element_at(arg, key)
        if isinstance(op.default, ops.Literal) and op.default.value is None:
            return found
        return self.if_(arg.is_(NULL), NULL, self.if_(self.f.anon.map_contains(arg, key), found, default))

    # relations -------------------------------------------------------------------------------------------------

    def visit_TableUnnest(
        self, op: Any, *, parent: Any, column: Any, column_name: str, offset: str | None, keep_empty: bool
    ) -> Any:
        """Return a row for each value of a list."""
        names = [sg.to_identifier(one, quoted=True) for one in ("value", "place")]
        value, place = (sg.column(one, table="unnested", quoted=True) for one in names)
        star = sge.Column(this=STAR, table=sg.to_identifier(parent.alias_or_name, quoted=True))
        columns: list[Any]
        if column_name in op.parent.schema:
            replaced = sge.Star(replace=[value.as_(column_name, quoted=True)])
            columns = [sge.Column(this=replaced, table=star.args["table"])]
        else:
            columns = [star, value.as_(column_name, quoted=True)]
        if offset is not None:
            columns.append((place - 1).as_(offset, quoted=True))
        alias = sge.TableAlias(this=sg.to_identifier("unnested", quoted=True), columns=names)
        unnested = sge.Unnest(expressions=[column], alias=alias, offset=True)
        kind = {"join_type": "LEFT", "on": sge.true()} if keep_empty else {"join_type": "CROSS"}
        return sg.select(*columns).from_(parent).join(unnested, **kind)

    def visit_JoinLink(self, op: Any, *, how: str, table: Any, predicates: Any) -> Any:
        """Return a join of a kind that there is."""
        if how in ("any_inner", "any_left", "positional"):
            raise com.OperationNotDefinedError(f"a join of the kind {how}")
        return super().visit_JoinLink(op, how=how, table=table, predicates=predicates)

    def visit_Limit(self, op: Any, *, parent: Any, n: Any, offset: Any) -> Any:
        """Return the first rows, whose number is a constant."""
        if not (n is None or isinstance(n, int)) or not isinstance(offset, int):
            raise com.OperationNotDefinedError("Limit of a number that is computed")
        return super().visit_Limit(op, parent=parent, n=n, offset=offset)

    def visit_SQLQueryResult(self, _op: Any, *, query: str, schema: Any, source: Any) -> Any:
        """Return a query that was written by hand."""
        written: Any = sg.parse_one(query, read=_Written)
        return written.subquery(copy=False)

    def visit_SQLStringView(self, _op: Any, *, query: str, parent: Any, schema: Any) -> Any:
        """Return a query that was written by hand, of an expression that has a name."""
        return sg.parse_one(query, read=_Written)


compiler = DreyCompiler()
