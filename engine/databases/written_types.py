"""Types of rows as a database keeps them: each value comes back as it was, or the job is refused before it runs.

    PostgreSQL   all integers (uint64 as numeric(20)), floats, decimals as numeric(p, s), text, bytea, dates, times and
                 timestamps of microseconds, lists of those that arrays are read as
    SQLite       integers of 64 bits and booleans (0, 1), floats without NaN, text, blob

``sent_type`` is the type in which the driver gets the values: it knows no unsigned integers, which it writes as
negative ones, and drops nanoseconds.

Held by: tests/databases/test_written_types.py
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.types as kinds

from engine.databases.database_connection import SQLITE
from engine.errors import SchemaError


class SentType(NamedTuple):
    """The type of a column in SQL, and the type of the values that are sent."""

    sql: str
    sent: pa.DataType


_POSTGRESQL: Final[dict[pa.DataType, SentType]] = {
    pa.bool_(): SentType("boolean", pa.bool_()),
    pa.int8(): SentType("smallint", pa.int16()),
    pa.uint8(): SentType("smallint", pa.int16()),
    pa.int16(): SentType("smallint", pa.int16()),
    pa.uint16(): SentType("integer", pa.int32()),
    pa.int32(): SentType("integer", pa.int32()),
    pa.uint32(): SentType("bigint", pa.int64()),
    pa.int64(): SentType("bigint", pa.int64()),
    pa.uint64(): SentType("numeric(20,0)", pa.decimal128(20, 0)),
    pa.float16(): SentType("real", pa.float32()),
    pa.float32(): SentType("real", pa.float32()),
    pa.float64(): SentType("double precision", pa.float64()),
    pa.string(): SentType("text", pa.string()),
    pa.large_string(): SentType("text", pa.large_string()),
    pa.binary(): SentType("bytea", pa.binary()),
    pa.large_binary(): SentType("bytea", pa.large_binary()),
    pa.date32(): SentType("date", pa.date32()),
    pa.date64(): SentType("date", pa.date32()),
    pa.time32("s"): SentType("time without time zone", pa.time64("us")),
    pa.time32("ms"): SentType("time without time zone", pa.time64("us")),
    pa.time64("us"): SentType("time without time zone", pa.time64("us")),
}
_INTEGER: Final = SentType("INTEGER", pa.int64())
_REAL: Final = SentType("REAL", pa.float64())
_SQLITE: Final[dict[pa.DataType, SentType]] = {
    pa.bool_(): _INTEGER,
    **dict.fromkeys((pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()), _INTEGER),
    **dict.fromkeys((pa.float16(), pa.float32(), pa.float64()), _REAL),
    **{kind: SentType("TEXT", kind) for kind in (pa.string(), pa.large_string())},
    **{kind: SentType("BLOB", kind) for kind in (pa.binary(), pa.large_binary())},
}
#: types of which arrays are written, and read back
_ELEMENTS: Final = frozenset(
    {
        *(pa.bool_(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary()),
        *(pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")),
    }
)


def sent_type(name: str, data_type: pa.DataType, dialect: str) -> SentType:
    """Return the types of a column. Raises: SchemaError, with what to do."""
    found = _SQLITE.get(data_type) if dialect == SQLITE else _of_postgresql(data_type)
    if found is None and kinds.is_fixed_size_binary(data_type):
        found = SentType("BLOB" if dialect == SQLITE else "bytea", pa.binary())
    if found is not None:
        return found
    remedy = "cast it to a text, or to integers"
    if kinds.is_timestamp(data_type) or kinds.is_time(data_type):
        remedy = "cast it to a text" if dialect == SQLITE else "cast it to microseconds, which drops digits"
    elif kinds.is_decimal(data_type) or kinds.is_null(data_type):
        remedy = "cast it to a text or a float" if dialect == SQLITE else "cast it to another type"
    elif kinds.is_nested(data_type):
        remedy = "write its elements as columns, or cast it to a text"
    raise SchemaError(f"write_database: column '{name}' is {data_type}, which {dialect} does not keep; {remedy}")


def _of_postgresql(data_type: pa.DataType) -> SentType | None:
    if kinds.is_timestamp(data_type) and data_type.unit != "ns":
        zone = "with" if data_type.tz else "without"
        return SentType(f"timestamp {zone} time zone", pa.timestamp("us", "UTC" if data_type.tz else None))
    if kinds.is_decimal(data_type) and 0 <= data_type.scale <= data_type.precision:
        wide = pa.decimal256 if data_type.precision > 38 else pa.decimal128
        return SentType(f"numeric({data_type.precision},{data_type.scale})", wide(data_type.precision, data_type.scale))
    if kinds.is_list(data_type) or kinds.is_large_list(data_type) or kinds.is_fixed_size_list(data_type):
        element = _of_postgresql(data_type.value_type)
        if element is not None and element.sent in _ELEMENTS:
            return SentType(f"{element.sql}[]", pa.list_(element.sent))
    return _POSTGRESQL.get(data_type)


# ---- tables that are there

_TEXT_COLUMNS: Final = re.compile(r"text|character varying(\(\d+\))?|character(\(\d+\))?")
#: types whose values a text is cast to
_CAST_FROM_TEXT: Final = frozenset({"json", "jsonb", "uuid", "xml", "inet", "cidr", "macaddr"})
_NUMERIC: Final = re.compile(r"numeric(?:\((\d+),(-?\d+)\))?")
_INTEGER_DIGITS: Final = {"smallint": 5, "integer": 10, "bigint": 19}
_INTEGERS: Final = list(_INTEGER_DIGITS)


def assigned_to(sql_type: str, column_type: str, *, is_enum: bool) -> str | None:
    """Return the text that makes a value one of a column of PostgreSQL, None where the value may change.

    column_type: as ``format_type`` writes it.
    """
    if sql_type == column_type:
        return "{}"
    if sql_type == "text":
        if _TEXT_COLUMNS.fullmatch(column_type):
            return "{}"
        return f"CAST({{}} AS {column_type})" if is_enum or column_type in _CAST_FROM_TEXT else None
    if sql_type == "real" and column_type == "double precision":
        return "{}"
    if sql_type in _INTEGER_DIGITS and column_type in _INTEGER_DIGITS:
        return "{}" if _INTEGERS.index(sql_type) < _INTEGERS.index(column_type) else None
    wide, narrow = _NUMERIC.fullmatch(column_type), _NUMERIC.fullmatch(sql_type)
    if wide is None or (narrow is None and sql_type not in _INTEGER_DIGITS):
        return None
    if wide[1] is None:
        return "{}"
    digits, scale = (int(narrow[1]), int(narrow[2])) if narrow else (_INTEGER_DIGITS[sql_type], 0)
    return "{}" if scale <= int(wide[2]) and digits - scale <= int(wide[1]) - int(wide[2]) else None


def affinity_of(declared: str) -> str:
    """Return the affinity of a declared type of SQLite, by its documented rules."""
    upper = declared.upper()
    for words, affinity in (
        (("INT",), "INTEGER"),
        (("CHAR", "CLOB", "TEXT"), "TEXT"),
        (("BLOB",), "BLOB"),
        (("REAL", "FLOA", "DOUB"), "REAL"),
    ):
        if any(word in upper for word in words):
            return affinity
    return "NUMERIC" if upper else "BLOB"


def is_kept_by(sql_type: str, declared: str) -> bool:
    """Whether a column of SQLite keeps values of a type as they are: an affinity converts those of others."""
    affinity = affinity_of(declared)
    if affinity == "BLOB" or sql_type == "BLOB":
        return True
    return affinity == sql_type or (sql_type == "INTEGER" and affinity == "NUMERIC")
