"""The client's side of a source of a database: schema, ranges, what the database knows of the size.

    database_source(query, uri, ...) -> (FormatSource, SourceStatistics, pa.Schema)

PostgreSQL says the types of a query without running it. SQLite has types of values: those of the first 10,000 rows are
the columns'. The lowest and the highest value of ``partition_on`` are asked for, and ranges between them are the
splits; the first has what lies below and nulls, the last what lies above, so that no row is in none. Texts have an
order and no distances: parts of them are told apart by a hash.

Held by: tests/databases/test_database.py
"""

from __future__ import annotations

import decimal
import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from engine.databases.database_connection import POSTGRESQL, STANDARD, connected, dialect_of, kept_apart, needs_password
from engine.databases.database_queries import (
    ALL,
    FIRST,
    LAST,
    MIDDLE,
    PART,
    TEXTS,
    from_text,
    quoted,
    sql_literal,
)
from engine.databases.database_types import engine_schema, place_of_types
from engine.errors import ConfigurationError, SchemaError
from engine.graph.source_spec import FormatSource, SourceSplit, SourceStatistics

if TYPE_CHECKING:
    from engine.databases.adbc_connection import AdbcCursor

#: rows of SQLite that decide the types of columns
_TYPED_ROWS: Final = 10_000
#: bytes of a source of which nothing is known
_UNKNOWN_BYTES: Final = 64 << 20
#: days and microseconds since 1970 of the years 1 to 9999
_DAYS: Final = (-719_162, 2_932_896)
_DAY_US: Final = 86_400_000_000
#: context of decimals with all of their digits
_EXACT: Final = decimal.Context(prec=200)


def database_source(
    query: str,
    uri: str,
    partition_on: str | None = None,
    partitions: int = 1,
    batch_rows: int | None = None,
    driver: str | None = None,
) -> tuple[FormatSource, SourceStatistics, pa.Schema]:
    """Return a source of a table or a query, its statistics and its schema.

    Raises: ConfigurationError (arguments, no driver), SchemaError (types), DataError, ResourceError (the database).
    """
    if not query.strip():
        raise ConfigurationError("read_database: the query is empty; pass a table's name or a SELECT")
    for word, value in (("partitions", partitions), ("batch_rows", batch_rows)):
        if value is not None and value < 1:
            raise ConfigurationError(f"read_database: {word}={value}: must be at least 1")
    shown, place = kept_apart(uri, driver), from_text(query)
    dialect = dialect_of(shown)
    has_password = needs_password(shown)
    with connected(shown, has_password=has_password) as connection, connection.cursor() as cursor:
        found = _found_schema(cursor, place, dialect)
        schema = engine_schema(found)
        place = place if dialect == STANDARD else place_of_types(place, found)
        splits, bounds = list[tuple[str, int, int]](), list[str]()
        if partition_on:
            splits, bounds = _splits(cursor, place, schema, partition_on, partitions, dialect)
        rows, width = _estimate(cursor, place) if dialect == POSTGRESQL else (None, None)
    size = None if rows is None or width is None else rows * width
    each = max(1, int((size or _UNKNOWN_BYTES) / max(1, len(splits))))
    sized = [SourceSplit(kind, start, end, each) for kind, start, end in splits or [(ALL, 0, 0)]]
    options: dict[str, Any] = {"uri": shown, "has_password": has_password, "dialect": dialect, "from": place}
    options |= {"partition_on": partition_on, "bounds": json.dumps(bounds)}
    if batch_rows is not None:
        options["batch_rows"] = batch_rows
    spec = FormatSource(
        "database", (), tuple(sized), schema.serialize().to_pybytes(), tuple(schema.names), options=options
    )
    return spec, SourceStatistics(rows, size, "estimate of the database" if rows else "unknown"), schema


def _found_schema(cursor: AdbcCursor, place: str, dialect: str) -> pa.Schema:
    """Return the driver's schema of all columns."""
    text = f"SELECT * FROM {place} AS q"
    if dialect == POSTGRESQL:
        return cursor.schema_of(text)
    if dialect == STANDARD:
        cursor.execute(f"{text} WHERE 1 = 0")
        return cursor.reader().schema
    cursor.set_options(**{"adbc.sqlite.query.batch_rows": str(_TYPED_ROWS)})
    cursor.execute(f"{text} LIMIT {_TYPED_ROWS}")
    return cursor.reader().schema


def _splits(
    cursor: AdbcCursor, place: str, schema: pa.Schema, partition_on: str, partitions: int, dialect: str
) -> tuple[list[tuple[str, int, int]], list[str]]:
    """Return ranges of a column as (kind, number, count), and the literals that are their bounds."""
    if partition_on not in schema.names:
        raise SchemaError(f"read_database: partition_on='{partition_on}': the columns are {', '.join(schema.names)}")
    data_type = schema.field(partition_on).type
    if data_type in TEXTS and dialect == POSTGRESQL:
        return [(PART, number, partitions) for number in range(partitions)], []
    kinds = (pa.types.is_signed_integer, pa.types.is_decimal, pa.types.is_date, pa.types.is_timestamp)
    if not any(is_kind(data_type) for is_kind in kinds):
        raise SchemaError(
            f"read_database: partition_on='{partition_on}' is {data_type}; ranges are of integers, decimals, dates or"
            " timestamps, in PostgreSQL also of texts"
        )
    column = f"q.{quoted(partition_on)}"
    cursor.execute(f"SELECT min({column}) AS low, max({column}) AS high FROM {place} AS q")
    found = cursor.reader().read_all()
    if found.column("low").null_count:
        return [], []
    low, high = (_place_of(found.column(name)[0], data_type) for name in ("low", "high"))
    starts = sorted({low + (high - low + 1) * index // partitions for index in range(partitions)})
    bounds = [_bound(start, data_type, dialect) for start in starts[1:]]
    places = [FIRST, *[MIDDLE] * (len(bounds) - 1), LAST] if bounds else []
    return [(kind, number, len(places)) for number, kind in enumerate(places)], bounds


def _place_of(scalar: pa.Scalar, data_type: pa.DataType) -> int:
    """Return a value as an integer: itself, its digits, or days or microseconds since 1970, of the years 1 to 9999."""
    if pa.types.is_decimal(data_type):
        number = Decimal(scalar.as_py())
        return int(number.scaleb(data_type.scale, _EXACT)) if number.is_finite() else 10**data_type.precision
    is_day = pa.types.is_date32(scalar.type)
    value: int = scalar.cast(pa.int32() if is_day else pa.int64()).as_py()
    if pa.types.is_integer(data_type):
        return value
    lowest, highest = (day if is_day else day * _DAY_US for day in _DAYS)
    return min(max(value, lowest), highest)


def _bound(start: int, data_type: pa.DataType, dialect: str) -> str:
    """Return an integer of ``_place_of`` as a literal."""
    value: Any = start
    if pa.types.is_decimal(data_type):
        value = Decimal(start).scaleb(-data_type.scale, _EXACT)
    elif not pa.types.is_integer(data_type):
        value = pa.scalar(start, pa.int32() if pa.types.is_date(data_type) else pa.int64()).cast(data_type).as_py()
    return sql_literal(value, data_type, dialect)


def _estimate(cursor: AdbcCursor, place: str) -> tuple[float, float]:
    """Return PostgreSQL's estimates of rows, and of the bytes of one."""
    cursor.set_options(**{"adbc.postgresql.use_copy": "false"})
    cursor.execute(f"EXPLAIN (FORMAT JSON) SELECT * FROM {place} AS q")
    plan = json.loads(cursor.rows()[0][0])[0]["Plan"]
    return float(plan["Plan Rows"]), float(plan["Plan Width"])
