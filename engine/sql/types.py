"""Types and constants of Substrait as Arrow's.

    i64 ─► int64      decimal(15, 2) ─► decimal128(15, 2)      precision_timestamp(6) ─► timestamp[us]

A type that a table may have and that is not here is refused by name. Source: substrait.io/types.

Held by: tests/sql/test_expressions.py
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from engine.errors import NotYetSupportedError, SchemaError
from engine.expressions.decimal_widths import decimal_type
from engine.records.plain_scalars import scalar_of
from engine.records.plain_types import is_foreign

if TYPE_CHECKING:
    from substrait.algebra_pb2 import Expression
    from substrait.type_pb2 import NamedStruct, Type

_PLAIN: Final = {
    "bool": pa.bool_(),
    "boolean": pa.bool_(),
    "i8": pa.int8(),
    "i16": pa.int16(),
    "i32": pa.int32(),
    "i64": pa.int64(),
    "fp32": pa.float32(),
    "fp64": pa.float64(),
    "string": pa.string(),
    "varchar": pa.string(),
    "fixed_char": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamp_tz": pa.timestamp("us", "UTC"),
}
_UNITS: Final = {0: "s", 3: "ms", 6: "us", 9: "ns"}
_EPOCH: Final = date(1970, 1, 1)
#: unsigned integers, which Substrait has as variations of signed ones
_UNSIGNED: Final = {"i8": pa.uint8(), "i16": pa.uint16(), "i32": pa.uint32(), "i64": pa.uint64()}


def arrow_type(substrait_type: Type) -> pa.DataType:
    """Return the Arrow type; NotYetSupportedError for one that has none here."""
    kind = substrait_type.WhichOneof("kind")
    message = getattr(substrait_type, str(kind))
    if kind in _UNSIGNED and message.type_variation_reference == 1:
        return _UNSIGNED[kind]
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind == "decimal":
        return decimal_type(message.precision, message.scale)
    if kind in ("precision_timestamp", "precision_timestamp_tz") and message.precision in _UNITS:
        return pa.timestamp(_UNITS[message.precision], "UTC" if kind.endswith("_tz") else None)
    if kind == "interval_day":
        return pa.duration(_UNITS.get(message.precision, "us"))
    if kind == "precision_time":
        return pa.time64("ns" if message.precision == 9 else "us")
    if kind == "struct":
        return pa.struct([(f"c{number}", arrow_type(one)) for number, one in enumerate(message.types)])
    if kind == "user_defined":
        # the one that the planner has: the type of NULL
        return pa.null()
    if kind == "list":
        return pa.list_(arrow_type(message.type))
    raise NotYetSupportedError(f"the SQL type {kind}")


def told_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema that the planner is told of a table.

    Lists of a fixed size are lists, decimals have 128 bits at least, tensors are what is stored of them, and times have
    nanoseconds: those of constants have, and no others meet them there. Raises: SchemaError for a union.
    """
    for field in schema:
        if is_foreign(field.type):
            raise SchemaError(
                f"sql: column {field.name!r} is {field.type}, for which SQL has no type; register "
                f"data.drop({field.name!r})"
            )
    return pa.schema([field.with_type(_told_type(field.type)) for field in schema])


def _told_type(data_type: pa.DataType) -> pa.DataType:
    if isinstance(data_type, pa.FixedShapeTensorType):
        return _told_type(data_type.storage_type)
    if pa.types.is_decimal(data_type) and data_type.bit_width < 128:
        return pa.decimal128(data_type.precision, data_type.scale)
    if pa.types.is_fixed_size_list(data_type) or pa.types.is_list(data_type):
        return pa.list_(_told_type(data_type.value_type))
    if pa.types.is_struct(data_type):
        return pa.struct([field.with_type(_told_type(field.type)) for field in data_type])
    return pa.time64("ns") if pa.types.is_time(data_type) else data_type


def own_names(schema: NamedStruct) -> list[str]:
    """Return the names of a table's columns, among which those of the fields of structs stand behind their column."""
    names, place = [], 0
    for one in schema.struct.types:
        names.append(str(schema.names[place]))
        place += 1 + _field_count(one)
    return names


def _field_count(substrait_type: Type) -> int:
    """Return the number of fields there are in a type, and in those below it."""
    match substrait_type.WhichOneof("kind"):
        case "struct":
            return sum(1 + _field_count(one) for one in substrait_type.struct.types)
        case "list":
            return _field_count(substrait_type.list.type)
        case "map":
            return _field_count(substrait_type.map.key) + _field_count(substrait_type.map.value)
    return 0


def constant(literal: Expression.Literal) -> pa.Scalar:
    """Return a literal as a scalar of its exact type; NotYetSupportedError for a kind that has none here."""
    kind = str(literal.WhichOneof("literal_type"))
    value = getattr(literal, kind)
    if kind == "null":
        return scalar_of(None, arrow_type(value))
    if kind in _READERS:
        return _READERS[kind](value)
    if kind in _UNSIGNED and literal.type_variation_reference == 1:
        data_type = _UNSIGNED[kind]
        return scalar_of(value % 2**data_type.bit_width, data_type)
    if kind in _PLAIN:
        return scalar_of(value, _PLAIN[kind])
    raise NotYetSupportedError(f"the SQL constant of type {kind}")


def _decimal(value: Expression.Literal.Decimal) -> pa.Scalar:
    unscaled = int.from_bytes(value.value, "little", signed=True)
    # without a context, which has fewer digits than a decimal may have
    sign, digits, _ = Decimal(unscaled).as_tuple()
    return scalar_of(Decimal((sign, digits, -value.scale)), pa.decimal128(value.precision, value.scale))


def in_microseconds(value: pa.Scalar) -> pa.Scalar:
    """Return a moment that has no nanoseconds in microseconds: what is beside it may be of a year after 2262."""
    data_type = value.type
    is_fine = pa.types.is_timestamp(data_type) and data_type.unit == "ns" and value.is_valid
    return value.cast(pa.timestamp("us", data_type.tz)) if is_fine and value.value % 1000 == 0 else value


def _timestamp(zone: str | None) -> Callable[[Expression.Literal.PrecisionTimestamp], pa.Scalar]:
    return lambda value: in_microseconds(scalar_of(value.value, pa.timestamp(_UNITS[value.precision], zone)))


def _interval(value: Expression.Literal.IntervalCompound) -> pa.Scalar:
    calendar, elapsed = value.interval_year_to_month, value.interval_day_to_second
    fraction = elapsed.subseconds * 10 ** (9 - elapsed.precision)
    months = 12 * calendar.years + calendar.months
    # the planner writes date + 3 as 72 hours; a day has 24 of them, for moments have no zone of their own here
    days, seconds = divmod(elapsed.seconds, 86400) if not fraction and elapsed.seconds >= 0 else (0, elapsed.seconds)
    return scalar_of(pa.MonthDayNano([months, elapsed.days + days, seconds * 10**9 + fraction]))


_READERS: Final[dict[str, Callable[..., pa.Scalar]]] = {
    "decimal": _decimal,
    "date": lambda days: scalar_of(_EPOCH + timedelta(days=days), pa.date32()),
    "var_char": lambda value: scalar_of(value.value, pa.string()),
    "fixed_char": lambda value: scalar_of(value, pa.string()),
    "interval_compound": _interval,
    "precision_timestamp": _timestamp(None),
    "precision_timestamp_tz": _timestamp("UTC"),
}
