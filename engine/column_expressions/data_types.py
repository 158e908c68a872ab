"""Types as users write them: pyarrow's, their names, Python's; such as Arrow encodes are those of their values.

Held by: tests/column_expressions/test_expression.py
"""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from typing import Any, Final

import pyarrow as pa

from engine.errors import SchemaError
from engine.expressions.common_type import DECIMAL_DIGITS_MAX
from engine.expressions.schema_bridge import to_plan_schema
from engine.expressions.time_zones import UnknownZoneError, zone_offsets
from engine.records.plain_types import is_foreign, plain_schema, plain_type

_PYTHON_TYPES: Final[dict[Any, pa.DataType]] = {
    **{int: pa.int64(), float: pa.float64(), str: pa.string(), bool: pa.bool_(), bytes: pa.binary()},
    **{date: pa.date32(), datetime: pa.timestamp("us"), time: pa.time64("us"), timedelta: pa.duration("us")},
}
#: names that pyarrow does not have
_NAMES: Final = {
    **{"date": pa.date32(), "datetime": pa.timestamp("us"), "timestamp": pa.timestamp("us")},
    **{"time": pa.time64("us"), "duration": pa.duration("us"), "boolean": pa.bool_()},
}
_DECIMAL: Final = re.compile(r"decimal(?:128)?\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")
#: names that mean one width here and another there
_WIDTHS: Final = {
    **dict.fromkeys(("int", "integer"), "'int64' or 'int32'"),
    **dict.fromkeys(("long", "bigint"), "'int64'"),
    **dict.fromkeys(("varchar", "text", "object"), "'string'"),
    **dict.fromkeys(("decimal", "numeric"), "'decimal(18, 2)'"),
}


def to_data_type(data_type: Any) -> pa.DataType:
    """Return a plain type from one of pyarrow, its name, or a Python type; SchemaError when it is none."""
    if isinstance(data_type, pa.DataType):
        if is_foreign(data_type):
            raise SchemaError(
                f"{data_type}: no values are made of a union; use one type, such as a struct with a field for each "
                "alternative"
            )
        if pa.types.is_timestamp(data_type) and data_type.tz:
            _check_zone(data_type.tz)
        return plain_type(data_type)
    if data_type in _PYTHON_TYPES:
        return _PYTHON_TYPES[data_type]
    name = data_type.lower() if isinstance(data_type, str) else data_type
    if isinstance(name, str) and (found := _DECIMAL.fullmatch(name)):
        return _decimal(int(found[1]), int(found[2] or 0))
    try:
        return _NAMES[name] if name in _NAMES else plain_type(pa.type_for_alias(data_type))
    except (ValueError, TypeError, AttributeError):
        advice = _WIDTHS.get(str(name), "a pyarrow type such as pa.int64(), or its name such as 'int64'")
        raise SchemaError(f"{data_type!r} is no type: use {advice}") from None


def _decimal(precision: int, scale: int) -> pa.DataType:
    if not 0 < precision <= DECIMAL_DIGITS_MAX or scale > precision:
        raise SchemaError(
            f"decimal({precision}, {scale}): a decimal has 1 to {DECIMAL_DIGITS_MAX} digits, behind the point no more"
        )
    return pa.decimal128(precision, scale)


def _check_zone(name: str) -> None:
    try:
        zone_offsets(name)
    except UnknownZoneError as error:
        raise SchemaError(str(error)) from None


def declared_schema(schema: pa.Schema, what: str) -> pa.Schema:
    """Return the plain schema of rows that are made of Python values; SchemaError for a type that has none."""
    for field in schema:
        if is_foreign(field.type):
            raise SchemaError(
                f"{what}: column {field.name!r} is {field.type}, which rows cannot have; use one type, such as "
                "a struct with a field for each alternative"
            )
    return plain_schema(schema)


def output_schema(schema: Any, what: str) -> tuple[pa.Schema, tuple[str, ...]]:
    """Return the schema of what a function returns, without nullability and metadata, and the columns without nulls.

    Raises: SchemaError if it is none.
    """
    what = what.partition(":")[0]
    if not isinstance(schema, pa.Schema) or not schema.names:
        raise SchemaError(f"{what}: schema must be a pyarrow.Schema of what the function returns")
    schema = declared_schema(schema, what)
    to_plan_schema(schema)
    plain = pa.schema([pa.field(field.name, field.type) for field in schema])
    return plain, tuple(field.name for field in schema if not field.nullable)
