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
#: values of types in whose place NULL is counted, as texts
_ZEROS: Final = (
    (dt.DataType.is_numeric, "0"), (dt.DataType.is_boolean, "false"), (dt.DataType.is_string, ""),
    (dt.DataType.is_date, "1970-01-01"), (dt.DataType.is_timestamp, "1970-01-01"), (dt.DataType.is_time, "00:00:00"),
    (dt.DataType.is_uuid, ""), (dt.DataType.is_json, ""), (dt.DataType.is_binary, ""),
)  # fmt: skip


class DreySql(DuckDB):
    """Our SQL as text: NULL is the largest value of an order that does not say where it goes."""

    NULL_ORDERING = "nulls_are_large"

    class Generator(DuckDB.Generator):  # type: ignore[misc, valid-type, unused-ignore]
        """A count of different rows is one of several arguments."""

        MULTI_ARG_DISTINCT = True


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
        ops.Hash: "xxhash64",
        ops.MapContains: "map_contains",
    }
    UNSUPPORTED_OPS: ClassVar[tuple[Any, ...]] = (
        *(one for one in get_subclasses(ops.Value) if one.__name__.startswith("Geo")),
        *(ops.UnwrapJSONString, ops.UnwrapJSONInt64, ops.UnwrapJSONFloat64, ops.UnwrapJSONBoolean),
        *(ops.ToJSONArray, ops.ToJSONMap, ops.IntervalFloorDivide, ops.RowID),
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
        if op.arg.dtype.is_time() and to.is_string():
            # The text has six digits behind the point; those of DuckDB end before the last zeros.
            return self.f.anon.rtrim(self.f.anon.rtrim(self.cast(arg, to), "0"), ".")
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

    def visit_TimeAdd(self, op: Any, *, left: Any, right: Any) -> Any:
        """Return a time that is later or earlier, of the next day or the one before too."""
        kind = sge.Add if isinstance(op, ops.TimeAdd) else sge.Sub
        return self.cast(kind(this=self._of_1970(left), expression=right), dt.time)

    visit_TimeSub = visit_TimeAdd

    def visit_TimeTruncate(self, op: Any, *, arg: Any, unit: Any) -> Any:
        """Return the beginning of a time's hour, minute or second."""
        return self.cast(self.visit_TimestampTruncate(op, arg=self._of_1970(arg), unit=unit), dt.time)

    def visit_TimeDelta(self, op: Any, *, part: Any, left: Any, right: Any) -> Any:
        """Return the number of beginnings of hours, minutes or the like between two times."""
        return self.visit_TimestampDelta(op, part=part, left=self._of_1970(left), right=self._of_1970(right))

    def _of_1970(self, time: Any) -> Any:
        """Return the moment of a time on the first day of 1970."""
        behind = sge.paren(sge.Sub(this=time, expression=self.cast("00:00:00", dt.time)))
        return sge.paren(sge.Add(this=self.cast("1970-01-01", dt.timestamp), expression=behind))

    def visit_DateDiff(self, _op: Any, *, left: Any, right: Any) -> Any:
        """Return the duration between two days."""
        return sge.Sub(this=self.cast(left, dt.timestamp), expression=self.cast(right, dt.timestamp))

    def visit_IntervalAdd(self, op: Any, *, left: Any, right: Any) -> Any:
        """Return the sum of durations."""
        return self.binop(sge.Add, self._duration(op.left, left), self._duration(op.right, right))

    def visit_IntervalSubtract(self, op: Any, *, left: Any, right: Any) -> Any:
        """Return the difference of durations."""
        return self.binop(sge.Sub, self._duration(op.left, left), self._duration(op.right, right))

    def visit_IntervalMultiply(self, op: Any, *, left: Any, right: Any) -> Any:
        """Return several times a duration."""
        return self.binop(sge.Mul, self._duration(op.left, left), right)

    def _duration(self, op: Any, arg: Any) -> Any:
        """Return an interval that a date would be moved by as a duration, which can be computed with."""
        if op.dtype.unit.short not in _MICROSECONDS:
            raise com.UnsupportedOperationError("sums and multiples of intervals of months or of nanoseconds")
        begin = self.cast("1970-01-01", dt.timestamp)
        return sge.paren(sge.Sub(this=sge.Add(this=begin, expression=sge.paren(arg)), expression=begin))

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

    def visit_CountDistinctStar(self, op: Any, *, where: Any, arg: Any) -> Any:
        """Return the number of different rows; NULL is a value of its own here, which SQL would leave out."""
        parts = []
        for name, dtype in op.arg.schema.items():
            zero = next((text for is_one, text in _ZEROS if is_one(dtype)), None)
            if zero is None:
                raise com.OperationNotDefinedError(f"CountDistinctStar of {name}, a column of {dtype}")
            column = sg.column(name, quoted=self.quoted)
            parts += [self.f.coalesce(column, self.cast(zero, dtype)), column.is_(NULL)]
        return self.agg.count(sge.Distinct(expressions=parts), where=where)

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

    def visit_ArrayZip(self, op: Any, *, arg: Any) -> Any:
        """Return a list of structs; NULL where a list is, which SQL takes for an empty one."""
        both = sg.to_identifier("both")
        fields = [
            sge.PropertyEQ(this=sge.convert(name), expression=self.f.struct_extract(both, f"c{place}"))
            for place, name in enumerate(op.dtype.value_type.names)
        ]
        named = sge.Lambda(this=sge.Struct.from_arg_list(fields), expressions=[both])
        zipped = self.f.list_transform(self.f.anon.list_zip(*arg), named)
        return self.if_(sg.or_(*(one.is_(NULL) for one in arg)), NULL, zipped)

    def visit_ArrayMode(self, _op: Any, *, arg: Any) -> Any:
        """Return the most frequent value of a list, the first of equally frequent ones."""
        one, other = (sg.to_identifier(name) for name in ("one", "other"))
        equal = self.f.list_filter(arg, sge.Lambda(this=other.eq(one), expressions=[other]))
        values = self.f.list_distinct(arg)
        counts = self.f.list_transform(values, sge.Lambda(this=self.f.anon.len(equal), expressions=[one]))
        return self.f.list_extract(values, self.f.anon.list_position(counts, self.f.list_max(counts)))

    def visit_ArrayStringJoin(self, _op: Any, *, arg: Any, sep: Any) -> Any:
        """Return the values of a list as one text, NULL where it has none."""
        return self.if_(self.f.anon.len(arg) > 0, self.f.array_to_string(arg, sep), NULL)

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

    def visit_MapMerge(self, op: Any, *, left: Any, right: Any) -> Any:
        """Return the entries of two maps; those of the second replace those of the first."""
        key, value = (sg.to_identifier(name) for name in ("key", "value"))
        is_only_left = sge.Lambda(this=sg.not_(self.f.anon.map_contains(right, key)), expressions=[key, value])
        return super().visit_MapMerge(op, left=self.f.anon.map_filter(left, is_only_left), right=right)

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
