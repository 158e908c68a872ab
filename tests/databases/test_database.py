"""Tables and queries of real databases: each row once whatever the ranges, values exact, filters decided there."""

import datetime
import sqlite3
from decimal import Decimal
from urllib.parse import quote

import pyarrow as pa
import pytest

from engine import Environment, col, count, sum_
from engine.databases.database_source import database_source
from engine.errors import ConfigurationError, DataError, EngineError, ResourceError, SchemaError
from engine.formats.registry import open_source
from tests.postgresql_server import GUARDED, PASSWORD

dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi")
pytest.importorskip("adbc_driver_sqlite.dbapi")


@pytest.fixture(scope="module")
def server(postgresql_uri):
    with dbapi.connect(postgresql_uri, autocommit=True) as connection, connection.cursor() as cursor:
        for statement in STATEMENTS:
            cursor.execute(statement)
    return postgresql_uri


STATEMENTS = (
    """CREATE TABLE numbers AS SELECT i, i % 7 AS rest, 'text ' || i % 5 AS "a ""text\""", i / 4.0::float8 AS f,
       (i / 8.0)::numeric(30, 3) AS exact,
       DATE '2020-01-01' + (i / 100)::int AS day, TIMESTAMP '2020-01-01' + i * INTERVAL '1 hour' AS at
       FROM generate_series(1::bigint, 5000) AS i""",
    'INSERT INTO numbers (i, "a ""text""") VALUES (NULL, \'none\'), (-9000, NULL)',
    """CREATE TABLE exact (id int, a numeric(20, 6), b numeric, c numeric(50, 10), d numeric(2, 5),
       e numeric(3, -2))""",
    """INSERT INTO exact VALUES (1, 44.123456, 44.123456, 44.123456, 0.00012, 12345),
       (2, 5000000000.000001, 5000000000.000001, 5000000000.000001, NULL, NULL),
       (3, -0.000001, 'NaN', 1234567890123456789012345678901234567890.0123456789, -0.00099, -99900),
       (4, NULL, NULL, NULL, NULL, NULL), (5, 0, 1e-20, 0, 0, 0)""",
    """CREATE TABLE kinds AS SELECT 1::smallint AS i2, 2::int AS i4, 1.5::real AS r, true AS yes, 'ab'::char(4) AS
       padded, '\\x00ff'::bytea AS bytes, TIMESTAMPTZ '2020-01-01 01:00+01' AS at, TIME '12:30' AS clock,
       ARRAY[1, NULL, 3] AS many,
       '{"a": [1]}'::jsonb AS doc, 'it''s \\ a'::varchar AS v""",
    "CREATE TABLE floats AS SELECT unnest(ARRAY['NaN', 'Infinity', '-0', '1.5', NULL]::float8[]) AS f",
    "CREATE TABLE empty (i int, n numeric(5, 1))",
    f"CREATE ROLE {GUARDED} LOGIN PASSWORD '{PASSWORD}'",
    f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {GUARDED}",
)


@pytest.fixture
def env():
    with Environment({"parallelism.default": "2"}) as environment:
        yield environment


def rows_of(spec):
    """Return the rows of each split."""
    read = []
    for split in spec.splits:
        reader = open_source(spec, [split])
        read.append([row for batch in reader for row in batch.to_pylist()])
        reader.close()
    return read


@pytest.mark.parametrize("partitions", [1, 2, 7])
@pytest.mark.parametrize("column", ["i", "day", "at", "exact", 'a "text"'])
def test_each_row_is_in_one_range(server, column, partitions):
    spec, _, _ = database_source("SELECT * FROM numbers WHERE i IS NULL OR i % 10 < 3", server, column, partitions)
    read = [row["i"] for rows in rows_of(spec) for row in rows]
    assert sorted(read, key=str) == sorted([None, -9000, *(i for i in range(1, 5001) if i % 10 < 3)], key=str)
    assert len(spec.splits) == partitions


def test_there_are_no_more_ranges_than_values(server):
    spec, _, _ = database_source("SELECT * FROM numbers WHERE i BETWEEN 8 AND 10", server, "i", 50)
    assert [[row["i"] for row in rows] for rows in rows_of(spec)] == [[8], [9], [10]]
    assert len(database_source("SELECT i FROM numbers WHERE i IS NULL", server, "i", 50)[0].splits) == 1


def test_rows_that_come_later_are_in_a_range_too(server):
    spec, _, _ = database_source("SELECT i FROM numbers WHERE i BETWEEN 100 AND 200", server, "i", 3)
    wider = {**spec.options, "from": "(SELECT i FROM numbers)"}
    later = type(spec)(*(wider if name == "options" else getattr(spec, name) for name in spec.__struct_fields__))
    assert sum(len(rows) for rows in rows_of(later)) == 5002


def test_values_of_numeric_are_exact(env, server):
    data = env.read_database("exact", server)
    assert data.schema == pa.schema(
        {
            "id": pa.int32(),
            "a": pa.decimal128(20, 6),
            "b": pa.string(),
            "c": pa.decimal256(50, 10),
            "d": pa.decimal128(5, 5),
            "e": pa.decimal128(5, 0),
        }
    )
    rows = sorted(data.collect())
    assert [row.a for row in rows] == [
        Decimal("44.123456"), Decimal("5000000000.000001"), Decimal("-0.000001"), None, Decimal(0)
    ]  # fmt: skip
    assert [row.b for row in rows] == ["44.123456", "5000000000.000001", "NaN", None, "0.00000000000000000001"]
    assert rows[2].c == Decimal("1234567890123456789012345678901234567890.0123456789")
    assert [row.d for row in rows[:3]] == [Decimal("0.00012"), None, Decimal("-0.00099")]
    assert [row.e for row in rows[:3]] == [12300, None, -99900]
    cast = env.read_database("SELECT id, b::numeric(20, 6) AS b FROM exact WHERE id < 3", server)
    assert sorted(cast.collect()) == [(1, Decimal("44.123456")), (2, Decimal("5000000000.000001"))]
    assert env.read_database("exact", server).agg(s=sum_("a")).collect() == [(Decimal("5000000044.123456"),)]


def test_a_number_that_is_no_decimal_is_an_error_with_its_column(env, server):
    with pytest.raises(DataError, match=r"column 'n' has a value that is no decimal128\(5, 1\).*cast it in the query"):
        env.read_database("SELECT 'NaN'::numeric(5, 1) AS n", server).collect()


def test_types_are_those_of_the_table(env, server):
    row = env.read_database("kinds", server).collect()[0]
    assert row == (
        1, 2, 1.5, True, "ab  ", b"\x00\xff", datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
        datetime.time(12, 30), [1, None, 3], '{"a": [1]}', "it's \\ a",
    )  # fmt: skip
    assert env.read_database("empty", server).collect() == []


def test_filters_and_columns_are_those_of_the_engine(env, server):
    text = 'a "text"'
    data = env.read_database("numbers", server, partition_on="i", partitions=3)
    local = env.from_arrow(data.to_arrow())
    for predicate in (
        (col("i") > 4990) & (col("rest") == 3),
        (col(text) == "text 3") & (col("f") <= 10.25),
        col(text).is_null() | col("i").is_null(),
        col("i").is_not_null() & (col("f") >= 1249.0) & (col(text) != "text 1"),
        col("i") == -9000,
        (col("exact") > Decimal("624.5")) | (col("exact") == 1) | (col("f") == 2),
        ~col("i").between(5, 4998) & ~(col("rest") == 3),
        col("i").is_in([1, 2, -9000]) | col(text).is_in(["text 1", "none"]),
        (col("day") >= datetime.date(2020, 2, 20)) & (col("at") < datetime.datetime(2020, 7, 27, 3)),
    ):
        kept = data.filter(predicate).select("i", text).collect()
        assert sorted(kept, key=str) == sorted(local.filter(predicate).select("i", text).collect(), key=str)
    assert data.filter(col("i") > 4990).select("rest").count() == 10
    assert data.filter(col("i") > 4000).agg(n=count()).collect() == [(1000,)]
    assert data.agg(n=count()).collect() == [(5002,)]


def test_floats_have_one_order(env, server):
    data = env.read_database("floats", server)
    local = env.from_arrow(data.to_arrow())
    for predicate in (col("f") > 1.0, col("f") < 2.0, col("f") != 1.5, col("f") == 0.0, col("f") >= 1.5):
        assert sorted(map(str, data.filter(predicate).collect())) == sorted(map(str, local.filter(predicate).collect()))


def test_what_is_filtered_there_does_not_travel(server):
    spec, _, _ = database_source("numbers", server)
    narrow = {"columns": ("i",), "predicate": ((col("i") > 4990) & (col("rest") >= 0)).expression}
    wanted = type(spec)(*(narrow.get(name, getattr(spec, name)) for name in spec.__struct_fields__))
    reader = open_source(wanted, wanted.splits)
    assert sum(batch.num_rows for batch in reader) == 10
    assert reader.bytes_read < 1000


def test_batches_are_bounded_and_a_reader_ends_in_the_middle(server):
    query = "SELECT i, repeat('x', 1000) AS t FROM generate_series(1, 200000) AS i"
    spec, _, _ = database_source(query, server, batch_rows=100)
    reader = open_source(spec, spec.splits)
    rows = iter(reader)
    assert next(rows).num_rows == 100
    assert reader.bytes_read < 4 << 20
    reader.close()
    reader.close()
    assert next(rows, None) is None


def test_explain_has_estimates_ranges_and_filters(env, server):
    data = env.read_database("numbers", server, partition_on="i", partitions=3)
    text = data.filter(col("rest") == 3).explain()
    assert "of postgresql://tester@/postgres" in text
    assert "3 ranges of i" in text
    assert "filter rest = 3" in text.replace("(", "").replace(")", "").replace("==", "=")
    assert "estimate of the database" in text
    assert "sends SELECT" in text
    assert """FROM "numbers" AS q WHERE (q."i" <""" in text


def test_arguments_that_do_not_fit_are_errors(env, server):
    for arguments, words in (
        ({"partition_on": "nope"}, "partition_on='nope': the columns are i, rest"),
        ({"partition_on": "f"}, "is double; ranges are of integers, decimals, dates"),
        ({"partitions": 0}, "partitions=0: must be at least 1"),
        ({"batch_rows": 0}, "batch_rows=0: must be at least 1"),
    ):
        with pytest.raises((SchemaError, ConfigurationError), match=words):
            env.read_database("numbers", server, **arguments)
    with pytest.raises(DataError, match='relation "nope" does not exist'):
        env.read_database("nope", server)
    with pytest.raises(SchemaError, match="one twice: i"):
        env.read_database("SELECT 1 AS i, 2 AS i", server)
    with pytest.raises(DataError, match="syntax error"):
        env.read_database("DELETE FROM numbers", server)
    with pytest.raises(DataError, match="division by zero"):
        env.read_database("SELECT 1 / (i - i) AS x FROM numbers", server).collect()


def test_passwords_are_nowhere(env, server):
    place = server.replace("tester@", f"{GUARDED}:{quote(PASSWORD, safe='')}@")
    data = env.read_database("SELECT i FROM numbers", place, partition_on="i")
    assert data.agg(n=count()).collect() == [(5002,)]
    texts = [data.explain(), repr(database_source("numbers", place)[0])]
    wrong = server.replace("tester@", f"{GUARDED}:wr0ng@")
    with pytest.raises(ResourceError, match="password authentication failed") as caught:
        env.read_database("numbers", wrong)
    for text in [*texts, str(caught.value)]:
        assert not any(secret in text for secret in (PASSWORD, quote(PASSWORD, safe=""), "s3cret", "wr0ng"))


def test_passwords_of_files_are_found_by_each_process(env, server, monkeypatch, tmp_path):
    """Files of PostgreSQL's own, which clusters have where their processes run; nothing of them is in a plan."""
    folder = server.partition("host=")[2]
    guarded = server.replace("tester@", f"{GUARDED}@")
    monkeypatch.setenv("PGPASSFILE", f"{tmp_path}/none")
    with pytest.raises(ResourceError, match="no password supplied"):
        env.read_database("numbers", guarded)
    passwords, services = tmp_path / "passwords", tmp_path / "services"
    passwords.write_text(f"*:*:*:{GUARDED}:{PASSWORD}\n")
    passwords.chmod(0o600)
    services.write_text(f"[shop]\nhost={folder}\ndbname=postgres\nuser={GUARDED}\npassword={PASSWORD}\n")
    for name, path, uri in (
        ("PGPASSFILE", passwords, guarded),
        ("PGSERVICEFILE", services, "postgresql://?service=shop"),
    ):
        with monkeypatch.context() as patched:
            patched.setenv(name, str(path))
            data = env.read_database("SELECT i FROM numbers", uri, partition_on="i")
            assert data.agg(n=count()).collect() == [(5002,)]
            assert PASSWORD not in data.explain()


def test_a_uri_of_the_environment(env, server, monkeypatch):
    monkeypatch.setenv("NUMBERS_URI", server)
    data = env.read_database("SELECT i FROM numbers", "env:NUMBERS_URI")
    assert data.agg(n=count()).collect() == [(5002,)]
    assert server not in data.explain()


@pytest.fixture
def file(tmp_path):
    place = tmp_path / "a b?.db"
    with sqlite3.connect(place) as connection:
        connection.execute('CREATE TABLE t (i INTEGER, "s" TEXT COLLATE NOCASE, f REAL, anything, b BLOB)')
        rows = [(i, None if i % 3 else f"Text {i}", i / 4, None, b"z") for i in range(3000)]
        rows += [(None, "it's", None, "x", None), (5000, "5", 2.0, 7, b""), (5001, "TEXT 3", 1.0, 0.1234567890123, b"")]
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", rows)
    connection.close()
    return f"sqlite://{place}"


def test_sqlite_rows_are_read_once(env, file):
    data = env.read_database("t", file, partition_on="i", partitions=4, batch_rows=1)
    assert data.schema == pa.schema(
        {"i": pa.int64(), "s": pa.string(), "f": pa.float64(), "anything": pa.string(), "b": pa.binary()}
    )
    rows = data.collect()
    assert sorted((row.i for row in rows), key=str) == sorted([None, *range(3000), 5000, 5001], key=str)
    assert {row.i: row.anything for row in rows if row.anything} == {None: "x", 5000: "7", 5001: "0.1234567890123"}


def test_sqlite_filters_are_those_of_the_engine(env, file):
    data = env.read_database("SELECT * FROM t", file)
    local = env.from_arrow(data.to_arrow())
    for predicate in (
        (col("s") == "Text 3"),
        (col("s") == "it's") | (col("i") == 5),
        (col("anything") == "7"),
        (col("i") > 2990) & (col("f") <= 748.5) & col("s").is_not_null(),
        col("f").is_null(),
        ~(col("f") > 2) | (col("i").is_in([5, 7]) & col("s").is_null()),
        col("i").between(3, 5) | col("s").is_in(["it's", "5"]),
    ):
        kept = data.filter(predicate).select("i", "s").collect()
        assert sorted(kept, key=str) == sorted(local.filter(predicate).select("i", "s").collect(), key=str)
        assert kept
    assert data.agg(n=count()).collect() == [(3003,)]


def test_sqlite_values_of_another_type_and_files_that_are_missing_are_errors(env, file, tmp_path):
    many = "SELECT CASE WHEN i < 20000 THEN i ELSE 'text' END AS x FROM n"
    query = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20001) {many}"
    rounded = f"SELECT 0.5 AS x UNION ALL SELECT {2**53 + 1}"
    for each in (query, rounded):
        with pytest.raises(DataError, match=r"Type mismatch in column 0|column 'x' has a value that is no double"):
            env.read_database(each, file).collect()
    assert env.read_database(f"SELECT 0.5 AS x UNION ALL SELECT {2**53}", file).collect() == [(0.5,), (2.0**53,)]
    with pytest.raises(ConfigurationError, match="there is no file"):
        env.read_database("t", f"sqlite://{tmp_path}/none.db")
    with pytest.raises(EngineError, match="no such table: u"):
        env.read_database("u", file)
