"""Types of columns of a database as the engine has them, and what is asked for in their place.

    numeric(p, s)                 decimal(p, s), by the type modifier
    numeric, json, uuid, enums    text
    arrays of one dimension       lists; an array of several is an error of the database, since the driver flattens it
    date, timestamp, time         as they are; infinity, and what 64 bits of microseconds do not hold, is an error
    others                        refused with the cast that reads them

The driver says PostgreSQL's name of a type in the metadata of a field. Where a column is cast, the source asks for it
in a subquery, so that filters compare what is read.

Held by: tests/databases/test_database_types.py
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from engine.databases.database_queries import TEXTS, quoted
from engine.errors import DataError, SchemaError
from engine.records.plain_types import plain_schema

#: digits that a decimal has at most
_DIGITS_MAX: Final = 76
#: types of PostgreSQL that the driver gives as numbers which are not theirs
_MISREAD: Final = {"oid": "bigint", "money": "numeric(20, 2)"}
#: types that a text constant is compared with as a text
_COMPARED_AS_TEXTS: Final = frozenset({"text", "varchar", "bpchar", "name", "char"})
#: the first day of PostgreSQL's calendar, in days and microseconds since 1970: what is below is infinity, or an
#: overflow of the driver
FIRST_DAY: Final = -2_440_588
_DAY_US: Final = 86_400_000_000


def engine_schema(found: pa.Schema) -> pa.Schema:
    """Return the engine's types of the driver's columns. Raises: SchemaError."""
    names = [name for name in found.names if found.names.count(name) > 1]
    if names or not found.names:
        raise SchemaError(f"read_database: no columns, or one twice: {', '.join(names)}; name them apart by AS")
    return plain_schema(pa.schema([pa.field(field.name, _type(field)) for field in found]))


def place_of_types(place: str, found: pa.Schema) -> str:
    """Return the text behind FROM with casts for those columns of PostgreSQL that need one."""
    columns = [_asked_for(field) for field in found]
    if not any(" AS " in column for column in columns):
        return place
    return f"(SELECT {', '.join(columns)} FROM {place} AS q)"


def _name(field: pa.Field) -> str:
    """Return PostgreSQL's name of a column's type, "" in other databases."""
    said: bytes = (field.metadata or {}).get(b"POSTGRESQL:type", b"")
    return said.decode().strip("'")


def _asked_for(field: pa.Field) -> str:
    column, name, data_type = f"q.{quoted(field.name)}", _name(field), _type(field)
    if data_type in TEXTS and name not in _COMPARED_AS_TEXTS:
        return f"CAST({column} AS text) AS {quoted(field.name)}"
    if pa.types.is_list(data_type):
        # A slice has the array's type, whatever that is called, and counts from 1, as the driver wants it.
        several = f"CAST('an array of several dimensions: ' || CAST({column} AS text) AS integer)"
        first = f"CASE WHEN array_ndims({column}) > 1 THEN {several} ELSE array_lower({column}, 1) END"
        return f"({column})[coalesce({first}, 1):] AS {quoted(field.name)}"
    return column


def _type(field: pa.Field) -> pa.DataType:
    """Return the engine's type of a column."""
    name = _name(field)
    if name == "numeric":
        return _decimal(int(field.metadata.get(b"POSTGRESQL:typmod", b"-1").decode().strip("'")))
    if name in ("json", "jsonb", "uuid"):
        return pa.string()
    if name not in _MISREAD and _is_taken(field.type):
        return field.type
    column = quoted(field.name)
    raise SchemaError(
        f"read_database: column '{field.name}' is of type {name or field.type}, which the driver does not give as"
        f" values of Arrow; select CAST({column} AS {_MISREAD.get(name, 'text')}) AS {column} in the query"
    )


def _is_taken(data_type: pa.DataType) -> bool:
    if pa.types.is_list(data_type):
        return _is_taken(data_type.value_type)
    is_foreign = isinstance(data_type, pa.BaseExtensionType) or pa.types.is_interval(data_type)
    return not is_foreign and not pa.types.is_nested(data_type)


def _decimal(modifier: int) -> pa.DataType:
    """Return the type of NUMERIC by its modifier: ((precision << 16) | scale of 11 bits) + 4, -1 for none."""
    if modifier < 0:
        return pa.string()
    precision, scale = (modifier - 4) >> 16, ((((modifier - 4) & 0x7FF) ^ 0x400) - 0x400)
    digits = max(precision, scale) if scale >= 0 else precision - scale
    if digits > _DIGITS_MAX:
        return pa.string()
    return pa.decimal128(digits, max(0, scale)) if digits <= 38 else pa.decimal256(digits, max(0, scale))


def typed(values: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Return values of the driver as those of the engine's type. Raises: DataError, which begins with "has"."""
    stored = values.storage if isinstance(values, pa.ExtensionArray) else values
    if stored.type in TEXTS and (pa.types.is_integer(data_type) or pa.types.is_floating(data_type)):
        # Where rows of SQLite differ, the driver makes texts of all of them.
        raise DataError(f"has a value that is no {data_type}; cast it in the query")
    try:
        found = stored if stored.type == data_type else stored.cast(data_type)
    except pa.ArrowException as error:
        raise DataError(
            f"has a value that is no {data_type} ({error}); cast it in the query, NaN and infinity to double precision"
        ) from None
    _check_times(found.flatten() if pa.types.is_list(data_type) else found)
    return found


def _check_times(values: pa.Array) -> None:
    """Raise DataError for moments that PostgreSQL has and the engine has not."""
    data_type = values.type
    if pa.types.is_date32(data_type):
        lowest, highest = FIRST_DAY, None
    elif pa.types.is_timestamp(data_type):
        lowest, highest = FIRST_DAY * _DAY_US, None
    elif pa.types.is_time64(data_type):
        lowest, highest = 0, _DAY_US - 1
    else:
        return
    found = pc.min_max(values.view(pa.int32() if pa.types.is_date32(data_type) else pa.int64())).as_py()
    if found["min"] is not None and (found["min"] < lowest or (highest is not None and found["max"] > highest)):
        raise DataError(
            "has infinity, or a moment that no Arrow type of its width holds ('24:00', years beyond 294246); cast it"
            " in the query: nullif(c, 'infinity'), or to text"
        )
