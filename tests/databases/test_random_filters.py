"""Random filters over columns of many types: a database and the engine keep the same rows."""

import datetime
import random
from decimal import Decimal

import msgspec
import pyarrow as pa
import pytest

from engine import col
from engine.databases.database_source import database_source
from engine.expressions.evaluate import evaluate
from engine.formats.registry import open_source
from tests.databases.written import do

pytestmark = pytest.mark.thorough
pytest.importorskip("adbc_driver_postgresql.dbapi")
pytest.importorskip("adbc_driver_sqlite.dbapi")
FILTERS = 40
VALUES = {
    "i": [0, 1, -1, 2**63 - 1, -(2**63), 2**53 + 1],
    "f": [0.0, -0.0, 1.5, 1e308, -1e-300, 2.0**53, 3, 2**53],
    "s": ["", "a", "A", "a ", "ä", "it's", "\\", "%"],
    "d": [Decimal("0"), Decimal("1.50"), Decimal("-1.5"), Decimal("99999999.99"), 1, -2],
    "day": [datetime.date(1970, 1, 1), datetime.date(1, 1, 1), datetime.date(9999, 12, 31)],
    "at": [datetime.datetime(1969, 12, 31, 23, 59, 59, 999999), datetime.datetime(2020, 2, 29)],
    "tz": [datetime.datetime(2020, 2, 29, tzinfo=datetime.UTC), datetime.datetime(1, 1, 2, tzinfo=datetime.UTC)],
    "c": ["a", "A", "ä", "b"],
    "loose": ["a", "A", "a ", "b"],
    "padded": ["a", "a  ", "ab", ""],
    "n": ["1.5", "1.50", "NaN", "Infinity", "0"],
    "price": [Decimal("1.50"), Decimal("1.5"), 1, Decimal("-2.25")],
    "u": ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "no uuid"],
    "doc": ['{"a": 1}', '{"a":1}', "null"],
    "mood": ["sad", "ok", "no mood"],
    "bytes": [b"", b"\0", b"\xff"],
}
#: columns that are only looked at for nulls, and a filter of each
NULLS_ONLY = ("many", "clock")
COLLATION = "CREATE COLLATION IF NOT EXISTS loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
TABLE = """CREATE TABLE random_filters AS SELECT
 (ARRAY['a', 'A', 'ä', 'b', NULL])[1 + n % 5] COLLATE "C" AS c,
 (ARRAY['a', 'A', 'a ', NULL])[1 + n / 2 % 4] COLLATE loose AS loose,
 (ARRAY['a', 'ab', '', NULL])[1 + n / 3 % 4]::char(3) AS padded,
 (ARRAY[1.5, 1.50, 'NaN', 'Infinity', 0, NULL]::numeric[])[1 + n % 6] AS n,
 (ARRAY[1.5, 1, -2.25, NULL])[1 + n / 4 % 4]::random_price AS price,
 (ARRAY['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', NULL]::uuid[])[1 + n % 2] AS u,
 (ARRAY['{"a": 1}', 'null', NULL]::json[])[1 + n / 2 % 3] AS doc,
 (ARRAY['sad', 'ok', NULL]::random_mood[])[1 + n / 5 % 3] AS mood,
 (ARRAY['', '\\x00', '\\xff', NULL]::bytea[])[1 + n / 6 % 4] AS bytes,
 CASE WHEN n % 3 > 0 THEN ARRAY[n, NULL] END AS many,
 (ARRAY['00:00', '23:59:59.999999', NULL]::time[])[1 + n / 7 % 3] AS clock,
 (ARRAY[0, 1, -1, 9223372036854775807, -9223372036854775808, NULL])[1 + n % 6] AS i,
 (ARRAY[0, '-0', 1.5, 1e308, -1e-300, 9007199254740992, 'NaN', 'Infinity', NULL]::float8[])[1 + n % 9] AS f,
 (ARRAY['', 'a', 'A', 'a ', 'ä', 'it''s', '\\', NULL])[1 + n % 8] AS s,
 (ARRAY[0, 1.5, -1.5, 99999999.99, 1, NULL])[1 + n / 3 % 6]::numeric(10, 2) AS d,
 (ARRAY['1970-01-01', '0001-01-01', '9999-12-31', NULL]::date[])[1 + n / 5 % 4] AS day,
 (ARRAY['1969-12-31 23:59:59.999999', '2020-02-29', NULL]::timestamp[])[1 + n / 7 % 3] AS at,
 (ARRAY['2020-02-29 01:00+01', '0001-01-02 00:00+00', NULL]::timestamptz[])[1 + n / 2 % 3] AS tz,
 (ARRAY[true, false, NULL])[1 + n / 4 % 3] AS yes FROM generate_series(0, 499) AS n"""


def predicate(chance, names, depth=0):
    if depth < 3 and chance.random() < 0.5:
        one, other = (predicate(chance, names, depth + 1) for _ in range(2))
        return chance.choice([one & other, one | other, ~one])
    name = chance.choice(names)
    if name == "yes":
        return chance.choice([col("yes"), ~col("yes"), col("yes") == True, col("yes").is_null()])  # noqa: E712
    if name in NULLS_ONLY:
        return chance.choice([col(name).is_null, col(name).is_not_null])()
    column, value, other = col(name), *(chance.choice(VALUES[name]) for _ in range(2))
    return chance.choice(
        [
            lambda: column == value,
            lambda: column != value,
            lambda: column < value,
            lambda: column >= value,
            lambda: column.between(value, other),
            lambda: column.is_in([value, other]),
            column.is_null,
            column.is_not_null,
        ]
    )()


def rows_of(spec, wanted=None):
    spec = msgspec.structs.replace(spec, predicate=wanted)
    reader = open_source(spec, spec.splits)
    try:
        return pa.Table.from_batches(list(reader), pa.ipc.read_schema(pa.py_buffer(spec.file_schema_ipc)))
    finally:
        reader.close()


@pytest.fixture(params=["postgresql", "sqlite"])
def spec(request, tmp_path):
    if request.param == "postgresql":
        uri = request.getfixturevalue("postgresql_uri")
        do(
            uri,
            "DROP TABLE IF EXISTS random_filters",
            COLLATION,
            "DROP DOMAIN IF EXISTS random_price",
            "CREATE DOMAIN random_price AS numeric(6, 2)",
            "DROP TYPE IF EXISTS random_mood",
            "CREATE TYPE random_mood AS ENUM ('sad', 'ok')",
            TABLE,
        )
        return database_source("random_filters", uri)[0]
    uri = f"sqlite://{tmp_path}/x.db"
    rows = ", ".join(
        f"({i}, {f!r}, {text})"
        for i in (0, 1, -1, 2**63 - 1, "NULL")
        for f in (0.0, -0.0, 1.5, 1e308, 2.0**53)
        for text in ("''", "'a'", "'A'", "'a '", "'ä'", "'it''s'", "'\\'", "NULL")
    )
    do(uri, "CREATE TABLE t (i INTEGER, f REAL, s TEXT COLLATE NOCASE)", f"INSERT INTO t VALUES {rows}")
    return database_source("t", uri)[0]


def test_the_same_rows_are_kept(spec):
    chance = random.Random(11)
    everything = rows_of(spec)
    names = everything.column_names
    for _ in range(FILTERS):
        wanted = predicate(chance, names)
        found = rows_of(spec, wanted.expression)
        batch = everything.combine_chunks().to_batches()[0]
        expected = pa.Table.from_batches([batch.filter(evaluate(wanted.expression, batch))])
        assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, expected.to_pylist())), repr(wanted)
