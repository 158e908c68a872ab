"""Types of SQL as Arrow's, and Arrow's as SQL calls them.

    DECIMAL(9, 2) ─► decimal128(9, 2)     TIMESTAMP ─► timestamp[us]     INT[] ─► list<int32>     STRUCT(a INT)

Held by: tests/sql/test_expressions.py
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from sqlglot import exp

from engine.dialects.parser import sentence
from engine.errors import NotYetSupportedError, PlanError
from engine.expressions.decimal_widths import decimal_type
from engine.near_names import did_you_mean

_TYPE: Final = exp.DataType.Type
_PLAIN: Final = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "UTINYINT": pa.uint8(),
    "USMALLINT": pa.uint16(),
    "UINT": pa.uint32(),
    "UBIGINT": pa.uint64(),
    "INT128": pa.decimal128(38, 0),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "VARCHAR": pa.string(),
    "NVARCHAR": pa.string(),
    "CHAR": pa.string(),
    "NCHAR": pa.string(),
    "TEXT": pa.string(),
    "NAME": pa.string(),
    "VARBINARY": pa.binary(),
    "BINARY": pa.binary(),
    "BLOB": pa.binary(),
    "DATE": pa.date32(),
    "TIME": pa.time64("us"),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMPNTZ": pa.timestamp("us"),
    "DATETIME": pa.timestamp("us"),
    "TIMESTAMPTZ": pa.timestamp("us", "UTC"),
    "TIMESTAMPLTZ": pa.timestamp("us", "UTC"),
    "TIMESTAMP_S": pa.timestamp("s"),
    "TIMESTAMP_MS": pa.timestamp("ms"),
    "TIMESTAMP_NS": pa.timestamp("ns"),
    "INTERVAL": pa.month_day_nano_interval(),
    "NULL": pa.null(),
}
#: names of types, for near names
_NAMES: Final = (
    *["INT", "INTEGER", "BIGINT", "SMALLINT", "TINYINT", "DOUBLE", "FLOAT", "REAL", "DECIMAL", "NUMERIC"],
    *["VARCHAR", "TEXT", "STRING", "CHAR", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIME", "INTERVAL", "BYTEA"],
)
#: precision and scale of DECIMAL alone
_DECIMAL: Final = (18, 3)
_SHOWN: Final = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.uint8(): "UTINYINT",
    pa.uint16(): "USMALLINT",
    pa.uint32(): "UINTEGER",
    pa.uint64(): "UBIGINT",
    pa.float32(): "REAL",
    pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR",
    pa.large_string(): "VARCHAR",
    pa.string_view(): "VARCHAR",
    pa.binary(): "BLOB",
    pa.date32(): "DATE",
    pa.null(): "NULL",
    pa.month_day_nano_interval(): "INTERVAL",
}
#: digits behind the seconds of TIMESTAMP(n), and its unit
_UNITS: Final = {0: "s", 3: "ms", 6: "us", 9: "ns"}


def arrow_type(node: exp.DataType) -> pa.DataType:
    """Return the Arrow type of a type of SQL. Raises: PlanError for one that is not there."""
    kind, inner = node.this, node.expressions
    if not isinstance(kind, _TYPE):
        return arrow_type(kind)
    if kind in (_TYPE.ARRAY, _TYPE.LIST) and inner:
        return pa.list_(arrow_type(inner[0]))
    if kind is _TYPE.STRUCT:
        return pa.struct([(one.this.name, arrow_type(one.args["kind"])) for one in inner])
    if kind is _TYPE.MAP and len(inner) == 2:
        return pa.map_(*map(arrow_type, inner))
    numbers = [int(one.this.name) for one in inner if isinstance(one, exp.DataTypeParam)]
    if kind in (_TYPE.DECIMAL, _TYPE.BIGDECIMAL):
        precision, scale = (*numbers, 0)[:2] if numbers else _DECIMAL
        if not 1 <= precision <= 38 or not 0 <= scale <= precision:
            raise PlanError(sentence(node.parent or node, f"DECIMAL({precision}, {scale}) has 1 to 38 digits"))
        return decimal_type(precision, scale)
    name = "USERDEFINED" if kind is _TYPE.USERDEFINED else kind.name
    if name in _PLAIN:
        found = _PLAIN[name]
        return pa.timestamp(_UNITS[numbers[0]], found.tz) if _has_digits(found, numbers) else found
    name = str(node.args.get("kind") or name)
    if name.upper() in ("UUID", "JSON", "TIMETZ", "BIT", "VARIANT", "ENUM", "GEOMETRY"):
        raise NotYetSupportedError(sentence(node.parent or node, f"the type {name.upper()} in SQL"))
    raise PlanError(sentence(node.parent or node, f"no type {name}{did_you_mean(name, _NAMES)}"))


def _has_digits(found: pa.DataType, numbers: list[int]) -> bool:
    return bool(pa.types.is_timestamp(found)) and bool(numbers) and numbers[0] in _UNITS


def shown_type(data_type: pa.DataType) -> str:
    """Return a type as SQL writes it."""
    if data_type in _SHOWN:
        return _SHOWN[data_type]
    if pa.types.is_decimal(data_type):
        return f"DECIMAL({data_type.precision}, {data_type.scale})"
    if pa.types.is_timestamp(data_type):
        return "TIMESTAMP" if data_type.tz is None else "TIMESTAMPTZ"
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        return f"{shown_type(data_type.value_type)}[]"
    return str(data_type).partition("[")[0].upper()
