"""The client's side of a source of a database: schema, ranges, what the database knows of the size.

    database_source(query, uri, ...) -> (FormatSource, SourceStatistics, pa.Schema)

PostgreSQL says the types of a query without running it. NUMERIC(p, s) is decimal(p, s), by the type modifier of its
column; NUMERIC without it may have any number of digits, and is text. SQLite has types of values: those of the first
10,000 rows are the columns'. The lowest and the highest value of ``partition_on`` are asked for, and ranges between
them are the splits; the first has what lies below and nulls, the last what lies above, so that no row is in none.

Held by: tests/connectors/test_database.py
"""

from __future__ import annotations

import json
from typing import Any, Final

import pyarrow as pa

from engine.connectors.database_connection import POSTGRESQL, connected, dialect_of, kept_apart, needs_password
from engine.connectors.database_queries import ALL, FIRST, LAST, MIDDLE, from_text, quoted
from engine.errors import ConfigurationError, SchemaError
from engine.graph.source_spec import FormatSource, SourceSplit, SourceStatistics
from engine.records.plain_types import plain_schema

#: rows of SQLite that decide the types of columns
_TYPED_ROWS: Final = 10_000
#: bytes of a source of which nothing is known
_UNKNOWN_BYTES: Final = 64 << 20
#: digits that a decimal has at most
_DIGITS_MAX: Final = 76
#: types of PostgreSQL that the driver gives as numbers which are not theirs
_MISREAD: Final = {"oid": "bigint", "money": "numeric(20, 2)"}
#: days and microseconds since 1970 of the years 1 to 9999
_DAYS: Final = (-719_162, 2_932_896)
_DAY_US: Final = 86_400_000_000


def database_source(
    query: str,
    uri: str,
    partition_on: str | None = None,
    partitions: int = 1,
    batch_rows: int | None = None,
) -> tuple[FormatSource, SourceStatistics, pa.Schema]:
    """Return a source of a table or a query, its statistics and its schema.

    Raises: ConfigurationError (arguments, no driver), SchemaError (types), DataError, ResourceError (the database).
    """
    if not query.strip():
        raise ConfigurationError("read_database: the query is empty; pass a table's name or a SELECT")
    for word, value in (("partitions", partitions), ("batch_rows", batch_rows)):
        if value is not None and value < 1:
            raise ConfigurationError(f"read_database: {word}={value}: must be at least 1")
    shown, place = kept_apart(uri), from_text(query)
    dialect = dialect_of(shown)
    has_password = needs_password(shown)
    with connected(shown, has_password=has_password) as connection, connection.cursor() as cursor:
        found = _found_schema(cursor, place, dialect)
        schema = _schema(found)
        splits = _splits(cursor, place, schema, partition_on, partitions) if partition_on else []
        rows, width = _estimate(cursor, place) if dialect == POSTGRESQL else (None, None)
    size = None if rows is None or width is None else rows * width
    each = max(1, int((size or _UNKNOWN_BYTES) / max(1, len(splits))))
    sized = [SourceSplit(kind, start, end, each) for kind, start, end in splits or [(ALL, 0, 0)]]
    options: dict[str, Any] = {"uri": shown, "has_password": has_password, "from": place, "partition_on": partition_on}
    if batch_rows is not None:
        options["batch_rows"] = batch_rows
    spec = FormatSource(
        "database", (), tuple(sized), schema.serialize().to_pybytes(), tuple(schema.names), options=options
    )
    return spec, SourceStatistics(rows, size, "estimate of the database" if rows else "unknown"), schema


def _found_schema(cursor: Any, place: str, dialect: str) -> pa.Schema:
    """Return the driver's schema of all columns."""
    text = f"SELECT * FROM {place} AS q"
    if dialect == POSTGRESQL:
        return cursor.adbc_execute_schema(text)
    cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": str(_TYPED_ROWS)})
    cursor.execute(f"{text} LIMIT {_TYPED_ROWS}")
    return cursor.fetch_record_batch().schema


def _schema(found: pa.Schema) -> pa.Schema:
    names = [name for name in found.names if found.names.count(name) > 1]
    if names or not found.names:
        raise SchemaError(f"read_database: no columns, or one twice: {', '.join(names)}; name them apart by AS")
    return plain_schema(pa.schema([pa.field(field.name, _type(field)) for field in found]))


def _type(field: pa.Field) -> pa.DataType:
    """Return the engine's type of a column."""
    said = {key.decode(): value.decode().strip("'") for key, value in (field.metadata or {}).items()}
    name = said.get("POSTGRESQL:type", "")
    if name == "numeric":
        return _decimal(int(said.get("POSTGRESQL:typmod", "-1")))
    found = field.type.storage_type if getattr(field.type, "extension_name", "") == "arrow.json" else field.type
    if name not in _MISREAD and _is_taken(found):
        return found
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


def _splits(
    cursor: Any, place: str, schema: pa.Schema, partition_on: str, partitions: int
) -> list[tuple[str, int, int]]:
    """Return ranges of a column as (kind, start, end)."""
    if partition_on not in schema.names:
        raise SchemaError(f"read_database: partition_on='{partition_on}': the columns are {', '.join(schema.names)}")
    data_type = schema.field(partition_on).type
    is_day = pa.types.is_date(data_type)
    if not (pa.types.is_signed_integer(data_type) or is_day or pa.types.is_timestamp(data_type)):
        raise SchemaError(
            f"read_database: partition_on='{partition_on}' is {data_type}; ranges are of integers, dates or timestamps"
        )
    column = f"q.{quoted(partition_on)}"
    cursor.execute(f"SELECT min({column}) AS low, max({column}) AS high FROM {place} AS q")
    found = cursor.fetch_arrow_table()
    if found.column("low").null_count:
        return []
    low, high = (_place_of(found.column(name)[0]) for name in ("low", "high"))
    if not pa.types.is_integer(data_type):
        lowest, highest = (day if is_day else day * _DAY_US for day in _DAYS)
        low, high = (min(max(value, lowest), highest) for value in (low, high))
    starts = sorted({low + (high - low + 1) * index // partitions for index in range(partitions)})
    if len(starts) < 2:
        return []
    kinds = [FIRST, *[MIDDLE] * (len(starts) - 2), LAST]
    return list(zip(kinds, starts, [*starts[1:], starts[-1]], strict=True))


def _place_of(scalar: pa.Scalar) -> int:
    """Return an integer, or days or microseconds since 1970."""
    whole = scalar.cast(pa.int32()) if pa.types.is_date32(scalar.type) else scalar.cast(pa.int64())
    value: int = whole.as_py()
    return value


def _estimate(cursor: Any, place: str) -> tuple[float, float]:
    """Return PostgreSQL's estimates of rows, and of the bytes of one."""
    cursor.adbc_statement.set_options(**{"adbc.postgresql.use_copy": "false"})
    cursor.execute(f"EXPLAIN (FORMAT JSON) SELECT * FROM {place} AS q")
    plan = json.loads(cursor.fetchone()[0])[0]["Plan"]
    return float(plan["Plan Rows"]), float(plan["Plan Width"])
