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
FILTERS = 30
VALUES = {
    "i": [0, 1, -1, 2**63 - 1, -(2**63), 2**53 + 1],
    "f": [0.0, -0.0, 1.5, 1e308, -1e-300, 2.0**53, 3, 2**53],
    "s": ["", "a", "A", "a ", "ä", "it's", "\\", "%"],
    "d": [Decimal("0"), Decimal("1.50"), Decimal("-1.5"), Decimal("99999999.99"), 1, -2],
    "day": [datetime.date(1970, 1, 1), datetime.date(1, 1, 1), datetime.date(9999, 12, 31)],
    "at": [datetime.datetime(1969, 12, 31, 23, 59, 59, 999999), datetime.datetime(2020, 2, 29)],
    "tz": [datetime.datetime(2020, 2, 29, tzinfo=datetime.UTC), datetime.datetime(1, 1, 2, tzinfo=datetime.UTC)],
}
TABLE = """CREATE TABLE random_filters AS SELECT
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
        do(uri, "DROP TABLE IF EXISTS random_filters", TABLE)
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
