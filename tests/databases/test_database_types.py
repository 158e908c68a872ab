"""Types of PostgreSQL: the values of each are right, or it is refused with the cast that reads it."""

import datetime
import math
import re
import zoneinfo
from decimal import Decimal

import pyarrow as pa
import pytest

from engine import Environment, col
from engine.databases.database_source import database_source
from engine.databases.database_types import engine_schema
from engine.errors import DataError, SchemaError
from engine.formats.registry import open_source

dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi")
UTC = zoneinfo.ZoneInfo("UTC")
UUID = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"


@pytest.fixture(scope="module")
def server(postgresql_uri):
    with dbapi.connect(postgresql_uri, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TYPE mood AS ENUM ('sad', 'it''s')")
        cursor.execute("CREATE SCHEMA elsewhere")
        cursor.execute("CREATE TYPE elsewhere.place AS ENUM ('far')")
        cursor.execute("CREATE TYPE pair AS (a int, b text)")
        cursor.execute("CREATE DOMAIN price AS numeric(5, 2)")
    return postgresql_uri


def rows_of(uri, columns):
    spec, _, schema = database_source(f"SELECT {columns}", uri)
    reader = open_source(spec, spec.splits)
    try:
        found = pa.Table.from_batches(list(reader), schema)
    finally:
        reader.close()
    return found


RIGHT = [
    ("true", pa.bool_(), True),
    ("(-32768)::int2", pa.int16(), -32768),
    ("2147483647", pa.int32(), 2**31 - 1),
    ("(-9223372036854775808)::int8", pa.int64(), -(2**63)),
    ("'-0'::float8", pa.float64(), -0.0),
    ("'Infinity'::float4", pa.float32(), math.inf),
    ("5000000000.000001::numeric(20, 6)", pa.decimal128(20, 6), Decimal("5000000000.000001")),
    ("44.123456::numeric(8, 6)", pa.decimal128(8, 6), Decimal("44.123456")),
    ("44.123456", pa.string(), "44.123456"),
    ("'NaN'::numeric", pa.string(), "NaN"),
    ("'-Infinity'::numeric", pa.string(), "-Infinity"),
    ("1.5::price", pa.decimal128(5, 2), Decimal("1.50")),
    ("'ä'", pa.string(), "ä"),
    ("'ab'::char(4)", pa.string(), "ab  "),
    ("'ab'::varchar(4)", pa.string(), "ab"),
    ("'ab'::name", pa.string(), "ab"),
    ("NULL", pa.string(), None),
    ("'it''s'::mood", pa.string(), "it's"),
    (f"'{UUID}'::uuid", pa.string(), UUID),
    ("'{\"a\":  1}'::json", pa.string(), '{"a":  1}'),
    ("'{\"a\":  1}'::jsonb", pa.string(), '{"a": 1}'),
    ("'\\x00ff'::bytea", pa.binary(), b"\x00\xff"),
    ("DATE '2020-02-29'", pa.date32(), datetime.date(2020, 2, 29)),
    ("TIME '23:59:59.999999'", pa.time64("us"), datetime.time(23, 59, 59, 999999)),
    ("TIMESTAMP '0001-01-01'", pa.timestamp("us"), datetime.datetime(1, 1, 1)),
    ("TIMESTAMPTZ '2020-01-01 01:00+01'", pa.timestamp("us", "UTC"), datetime.datetime(2020, 1, 1, tzinfo=UTC)),
    ("ARRAY[1, NULL]", pa.list_(pa.int32()), [1, None]),
    ("ARRAY[]::text[]", pa.list_(pa.string()), []),
    ("NULL::date[]", pa.list_(pa.date32()), None),
    ("'[5:6]={1,2}'::int8[]", pa.list_(pa.int64()), [1, 2]),
    ("ARRAY['sad'::mood]", pa.list_(pa.string()), ["sad"]),
    ("ARRAY['far', NULL]::elsewhere.place[]", pa.list_(pa.string()), ["far", None]),
]


def test_values_are_right(server):
    found = rows_of(server, ", ".join(f"{expression} AS x{number}" for number, (expression, *_) in enumerate(RIGHT)))
    for number, (expression, data_type, value) in enumerate(RIGHT):
        assert found.schema.field(f"x{number}").type == data_type, expression
        assert repr(found.column(f"x{number}").to_pylist()) == repr([value]), expression


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("DATE 'infinity'", "infinity"),
        ("DATE '-infinity'", "infinity"),
        ("TIMESTAMP 'infinity'", "infinity"),
        ("TIMESTAMPTZ '-infinity'", "infinity"),
        ("TIMESTAMP '294276-12-31'", "years beyond 294246"),
        ("TIME '24:00'", "'24:00'"),
        ("ARRAY[DATE 'infinity']", "infinity"),
        ("'NaN'::numeric(5, 1)", "is no decimal128"),
        ("ARRAY[[1, 2], [3, 4]]", "an array of several dimensions: {{1,2},{3,4}}"),
        ("ARRAY[['sad'::mood], ['sad'::mood]]", "an array of several dimensions"),
    ],
)
def test_values_that_would_change_are_errors(server, expression, words):
    with pytest.raises(DataError, match=re.escape(words)):
        rows_of(server, f"{expression} AS x")


REFUSED = [
    ("INTERVAL '1 day'", "text"),
    ("ARRAY[INTERVAL '1 day']", "text"),
    ("TIMETZ '12:00+01'", "text"),
    ("'1.2.3.4'::inet", "text"),
    ("B'101'::bit(3)", "text"),
    ("int4range(1, 3)", "text"),
    ("point(1, 2)", "text"),
    ("'<a/>'::xml", "text"),
    ("'a b'::tsvector", "text"),
    ("ROW(1, 'x')::pair", "text"),
    ("ARRAY[1.5]", "text"),
    ("ARRAY['{}'::jsonb]", "text"),
    (f"ARRAY['{UUID}'::uuid]", "text"),
    ("5::money", "numeric(20, 2)"),
    ("5::oid", "bigint"),
]


def test_types_without_values_are_refused_with_a_cast_that_reads_them(server):
    with dbapi.connect(server, autocommit=True) as connection, connection.cursor() as cursor:
        for expression, cast in REFUSED:
            found = cursor.adbc_execute_schema(f"SELECT {expression} AS x")
            advice = re.escape(f'; select CAST("x" AS {cast})')
            with pytest.raises(SchemaError, match=f"column 'x' is of type .*{advice}"):
                engine_schema(found)
    casts = ", ".join(f"CAST({expression} AS {cast}) AS x{number}" for number, (expression, cast) in enumerate(REFUSED))
    assert all(column.null_count == 0 for column in rows_of(server, casts).columns)


def test_texts_of_other_types_are_filtered_as_texts(server):
    query = (
        f"SELECT * FROM (VALUES ('{UUID}'::uuid, 'sad'::mood, '{{\"a\": 1}}'::json, 1.50, 'ab'::char(4)),"
        " (NULL, 'it''s', NULL, 'NaN', 'b')) AS t (u, m, j, n, c)"
    )
    with Environment({"parallelism.default": "1"}) as env:
        data = env.read_database(query, server)
        local = env.from_arrow(data.to_arrow())
        for predicate in (
            col("u") == UUID.upper(),
            col("u") == UUID,
            col("m") == "no mood",
            col("m") == "it's",
            col("j") == '{"a": 1}',
            col("n") == "1.5",
            col("n") == "1.50",
            col("n") == "NaN",
            col("c") == "ab",
            col("c") == "ab  ",
        ):
            assert data.filter(predicate).collect() == local.filter(predicate).collect()
