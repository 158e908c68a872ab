"""Tables that jobs write, in PostgreSQL and SQLite: all rows once or none, values exact, what does not fit refused."""

import threading
from decimal import Decimal

import pyarrow as pa
import pytest

from engine import Environment, col
from engine.databases.database_connection import connected
from engine.errors import ConfigurationError, DataError, EngineError, PlanError, ResourceError, SchemaError
from tests.databases.written import WrittenJob, do, rows_of

pytestmark = pytest.mark.integration
pytest.importorskip("adbc_driver_postgresql.dbapi")
ROWS = pa.table({"i": pa.array(range(10), pa.int64()), "s": [f"text {i % 3}" for i in range(10)]})


@pytest.fixture
def env():
    with Environment({"parallelism.default": "2"}) as environment:
        yield environment


def written(env, place, rows=ROWS, **options):
    uri, table = place
    env.from_arrow(rows).write_database(table, uri, **options)
    return env.execute()


def read(env, place):
    uri, table = place
    return sorted(map(tuple, env.read_database(table, uri).collect()), key=str)


def is_clean(uri, schema="public"):
    """Whether no table of an attempt is left, or no folder."""
    if uri.startswith("sqlite"):
        from pathlib import Path

        return [path.name for path in Path(uri[len("sqlite://") :]).parent.iterdir() if ".drey-" in path.name] == []
    tables = f"SELECT count(*) FROM pg_tables WHERE schemaname = '{schema}' AND tablename ~ '^drey_[0-9a-f]{{16}}_'"
    return rows_of(uri, tables) == [(0,)]


@pytest.mark.quick
def test_a_table_is_made_once_and_then_added_to_replaced_and_merged(env, place):
    result = written(env, place)
    assert [output.facts for output in result.outputs] == [{"rows": 10}]
    assert read(env, place) == list(zip(range(10), ROWS["s"].to_pylist(), strict=True))
    with pytest.raises(PlanError, match="already exists; pass mode='overwrite'"):
        written(env, place)
    written(env, place, mode="append")
    assert len(read(env, place)) == 20
    written(env, place, ROWS.slice(0, 3), mode="overwrite")
    assert [row[0] for row in read(env, place)] == [0, 1, 2]
    written(env, place, ROWS.slice(0, 0), mode="overwrite")
    assert read(env, place) == []
    assert is_clean(place[0])


def test_rows_are_merged_by_key(env, place):
    for _ in range(2):
        written(env, place, ROWS, mode="upsert", on="i")
    later = pa.table({"i": pa.array([9, 10], pa.int64()), "s": ["later", None]})
    written(env, place, later, mode="upsert", on=["i"])
    assert len(read(env, place)) == 11
    assert dict(read(env, place))[9] == "later"
    for keys in ([1, 1], [None, 2]):
        wrong = pa.table({"i": pa.array(keys, pa.int64()), "s": ["a", "b"]})
        with pytest.raises(DataError, match=rf"one row for each key of \(i\).* i = {keys[0]}"):
            written(env, place, wrong, mode="upsert", on="i")
    assert len(read(env, place)) == 11
    assert is_clean(place[0])


def test_a_table_that_is_there_keeps_what_it_is(env, place):
    uri, table = place
    do(uri, f"CREATE TABLE \"{table}\" (i BIGINT UNIQUE, s TEXT, made TEXT DEFAULT 'made')")
    written(env, place, mode="overwrite")
    written(env, place, pa.table({"i": pa.array([0], pa.int64())}), mode="upsert", on="i")
    assert read(env, place)[0] == (0, "text 0", "made")
    with pytest.raises(DataError, match=r"(?i)unique"):
        written(env, place, mode="append")
    assert len(read(env, place)) == 10
    assert is_clean(uri)


def test_rows_that_do_not_fit_are_refused_before_the_job(env, place):
    uri, table = place
    is_sqlite = uri.startswith("sqlite")
    do(uri, f'CREATE TABLE "{table}" (i INTEGER NOT NULL, s VARCHAR(9), f REAL)')
    for rows, options, words in (
        (pa.table({"i": pa.array([1], pa.int32()), "other": [1]}), {}, "has no column 'other'"),
        (pa.table({"s": ["x"]}), {}, "needs values for i, which have no default"),
        (pa.table({"i": ["x"]}), {}, "column 'i' is (?i:integer), which"),
        (pa.table({"i": pa.array([1], pa.int32())}), {"mode": "upsert", "on": "i"}, r"no unique index of \(i\)"),
        (pa.table({"i": pa.array([1], pa.int32()), "f": pa.array([1], pa.int64())}), {}, "column 'f' is (?i:real)"),
    ):
        with pytest.raises((SchemaError, PlanError), match=words):
            written(env, place, rows, **{"mode": "append", **options})
    with pytest.raises(PlanError, match=r"is no table|is a view"):
        do(uri, f'CREATE VIEW "v{table}" AS SELECT 1 AS i')
        written(env, (uri, f"v{table}"), mode="append")
    if is_sqlite:
        with pytest.raises(ConfigurationError, match="SQLite has no schemas"):
            written(env, (uri, "main.t"))
        with pytest.raises(PlanError, match="there is no folder /nowhere"):
            written(env, ("sqlite:///nowhere/x.db", "t"))
    else:
        with pytest.raises(PlanError, match="there is no schema 'nowhere'"):
            written(env, (uri, "nowhere.t"))


def test_names_are_quoted(env, place):
    uri, table = place
    names = ['a "b"; DROP TABLE x', "SELECT", "{}", "ä'"]
    rows = pa.table([pa.array([1, 2]), pa.array(["x", "y"]), pa.array([0.5, 1.5]), pa.array([b"", b"\0"])], names=names)
    place = (uri, f"{table} 'x' \"y\"".replace(".", ""))
    written(env, place, rows)
    found = env.read_database(f'SELECT * FROM "{place[1].replace(chr(34), chr(34) * 2)}"', uri)
    assert found.schema.names == names
    assert sorted(map(tuple, found.collect())) == [(1, "x", 0.5, b""), (2, "y", 1.5, b"\0")]


def test_a_name_in_quotes_may_have_a_dot(env, place):
    uri, table = place
    name = f'"{table}.of ""ours"""'
    written(env, (uri, name), pa.table({"i": [1]}))
    written(env, (uri, name), pa.table({"i": [2]}), mode="append")
    assert sorted(map(tuple, env.read_database(name, uri).collect())) == [(1,), (2,)]
    with pytest.raises(ConfigurationError, match="a name with a dot is in quotes"):
        written(env, (uri, f"{table}.of.ours"))


def test_a_job_that_fails_leaves_the_table_as_it_was(env, place):
    uri, table = place
    written(env, place)

    def broken(row):
        if row.i == 7:
            raise ValueError("seven")
        return row

    data = env.from_arrow(ROWS).map(broken, schema=ROWS.schema)
    data.write_database(table, uri, mode="overwrite")
    with pytest.raises(EngineError, match="seven"):
        env.execute()
    assert len(read(env, place)) == 10
    assert is_clean(uri)


def test_jobs_that_add_at_once_all_do(place):
    uri, table = place

    def add(number):
        with Environment({"parallelism.default": "2"}) as own:
            rows = pa.table({"i": pa.array(range(number * 100, number * 100 + 100), pa.int64())})
            written(own, place, rows, mode="append")

    with Environment({"parallelism.default": "2"}) as own:
        # The first one of them makes the table.
        threads = [threading.Thread(target=add, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [row[0] for row in sorted(own.read_database(table, uri).collect())] == list(range(300))


class Stopped(Exception):
    """A process that is gone."""


@pytest.mark.parametrize("mode", [pytest.param("append", marks=pytest.mark.quick), "overwrite", "upsert"])
def test_a_publication_that_stops_anywhere_is_repeated_to_one_result(place, mode):
    uri, table = place
    old = pa.table({"i": pa.array([-1], pa.int64()), "s": ["old"]})
    on = ("i",) if mode == "upsert" else ()
    first = WrittenJob(ROWS.schema, uri, table, "upsert", ("i",), number=0).prepare().attempt(old)
    first.publish(first.decide())
    expected = [-1] * (mode != "overwrite")
    number = 1
    for stop in ("note", "insert", "drop", "commit", "clean", ""):
        job = WrittenJob(ROWS.schema, uri, table, mode, on, number=number).prepare()
        rows = ROWS.set_column(0, "i", pa.array(range(number * 10, number * 10 + 10), pa.int64()))
        job.attempt(rows.slice(0, 6), is_decided=True).attempt(rows.slice(6))
        job.attempt(rows, nonce="late", is_decided=False)
        output = job.decide()

        def after_step(step, stop=stop):
            if step == stop:
                raise Stopped

        before = sorted(row[0] for row in rows_of(uri, f'SELECT i FROM "{table}"'))
        try:
            job.publish(output, after_step)
        except Stopped:
            found = sorted(row[0] for row in rows_of(uri, f'SELECT i FROM "{table}"'))
            assert found == before or stop in ("commit", "clean")
        for _ in range(2):
            assert job.publish(output) == {"rows": 10}
            job.target.abort(job.staging, job.job_id)
        expected = ([] if mode == "overwrite" else expected) + list(range(number * 10, number * 10 + 10))
        assert sorted(row[0] for row in rows_of(uri, f'SELECT i FROM "{table}"')) == expected
        number += 1
    assert is_clean(uri)


@pytest.mark.quick
def test_a_job_that_was_aborted_is_never_published(place):
    uri, table = place
    # The second leader that prepares the job knows nothing of the first one.
    job = WrittenJob(ROWS.schema, uri, table).prepare().prepare().attempt(ROWS)
    output = job.decide()
    assert job.target.is_there(job.staging)
    job.target.abort(job.staging, job.job_id)
    assert not job.target.is_there(job.staging)
    with pytest.raises(EngineError, match="the rows of the job are gone"):
        job.publish(output)
    assert is_clean(uri)


@pytest.mark.quick
def test_what_dead_jobs_left_goes_with_the_next_one(place, monkeypatch):
    uri, table = place
    with monkeypatch.context() as patched:
        from engine.commit import staging

        gone = staging.this_process()
        patched.setattr(staging, "this_process", lambda: type(gone)(gone.host, "another boot", 1, 1.0))
        patched.setattr("engine.databases.postgresql_target.this_process", staging.this_process)
        WrittenJob(ROWS.schema, uri, table, number=1).prepare().attempt(ROWS)
    of_cluster = WrittenJob(ROWS.schema, uri, table, number=2).prepare("cluster").attempt(ROWS)
    alive = WrittenJob(ROWS.schema, uri, table, number=3).prepare().attempt(ROWS)
    assert of_cluster.target.is_of_cluster(of_cluster.staging, "cluster")
    assert not of_cluster.target.is_of_cluster(of_cluster.staging, "other")
    WrittenJob(ROWS.schema, uri, table, number=4).prepare("cluster", lambda job_id: job_id == of_cluster.job_id)
    for number, is_there in ((1, False), (2, False), (3, True), (4, True)):
        job = WrittenJob(ROWS.schema, uri, table, number=number)
        assert job.target.is_there(job.staging) is is_there, number
    for job in (alive, WrittenJob(ROWS.schema, uri, table, number=4)):
        job.target.abort(job.staging, job.job_id)
    assert is_clean(uri)


def test_a_table_that_appeared_meanwhile_is_left_as_it_is(place):
    uri, table = place
    job = WrittenJob(ROWS.schema, uri, table).prepare().attempt(ROWS)
    do(uri, f'CREATE TABLE "{table}" (x INTEGER)')
    with pytest.raises(EngineError, match="was created by another program while the job ran"):
        job.publish(job.decide())
    job.target.abort(job.staging, job.job_id)
    assert rows_of(uri, f'SELECT count(*) FROM "{table}"') == [(0,)]
    assert is_clean(uri)


def test_a_lost_connection_is_made_again(postgresql_uri, monkeypatch):
    monkeypatch.setattr("engine.databases.repeated_publication.PAUSES_S", (0.01, 0.01))
    job = WrittenJob(ROWS.schema, postgresql_uri, "lost_connection").prepare().attempt(ROWS)
    lost = []

    def after_step(step):
        if len(lost) < 2 and step == "insert":
            others = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE state = 'idle in transaction'"
            lost.append(rows_of(postgresql_uri, others))

    assert job.publish(job.decide(), after_step) == {"rows": 10}
    assert lost == [[(True,)], [(True,)]]
    assert rows_of(postgresql_uri, "SELECT count(*) FROM lost_connection") == [(10,)]


def test_a_database_that_is_being_written_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr("engine.databases.repeated_publication.PAUSES_S", (0.01,))
    uri = f"sqlite://{tmp_path}/busy.db"
    job = WrittenJob(ROWS.schema, uri, "t").prepare().attempt(ROWS)
    output = job.decide()
    with connected(uri, in_transaction=True) as other, other.cursor() as cursor:
        cursor.execute("CREATE TABLE o (i)")
        with pytest.raises(ResourceError, match="database is locked"):
            job.publish(output)
    assert job.publish(output) == {"rows": 10}


def test_texts_of_a_database_in_another_encoding_are_the_same(env, postgresql_uri):
    import adbc_driver_postgresql.dbapi as dbapi

    with dbapi.connect(postgresql_uri, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    uri = postgresql_uri.replace("/postgres?", "/latin?")
    written(env, (uri, "t"), pa.table({"s": ["ä", "b"]}))
    assert rows_of(uri, "SELECT ascii(s) FROM t ORDER BY s") == [(98,), (228,)]
    assert env.read_database("t", uri).filter(col("s") == "ä").collect() == [("ä",)]
    with pytest.raises(DataError, match="has no equivalent in encoding"):
        written(env, (uri, "t"), pa.table({"s": ["€"]}), mode="append")
    assert rows_of(uri, "SELECT count(*) FROM t") == [(2,)]


def test_tables_of_late_attempts_go_with_the_next_job(postgresql_uri):
    job = WrittenJob(ROWS.schema, postgresql_uri, "late", "append").prepare().attempt(ROWS)
    job.publish(job.decide())
    job.attempt(ROWS, nonce="late")
    assert not is_clean(postgresql_uri)
    with connected(postgresql_uri, in_transaction=True) as other, other.cursor() as cursor:
        # A job whose publication takes its time is not waited for.
        slow = WrittenJob(ROWS.schema, postgresql_uri, "late", "append", number=2).prepare()
        cursor.execute(f"UPDATE drey_jobs SET state = 'published' WHERE staging = '{slow.staging.path}' RETURNING 1")
        cursor.rows()
        third = WrittenJob(ROWS.schema, postgresql_uri, "late", "append", number=3).prepare()
    assert is_clean(postgresql_uri)
    for each in (slow, third):
        each.target.abort(each.staging, each.job_id)


def test_a_database_that_is_away_hinders_nobody_else(postgresql_uri, monkeypatch):
    monkeypatch.setenv("AWAY_URI", postgresql_uri)
    job = WrittenJob(ROWS.schema, "env:AWAY_URI", "away").prepare()
    assert job.target.is_there(job.staging)
    monkeypatch.setenv("AWAY_URI", "postgresql:///postgres?host=/nowhere")
    assert not job.target.is_there(job.staging)
    with pytest.raises(OSError, match="is the server there"):
        job.target.abort(job.staging, job.job_id)
    monkeypatch.setenv("AWAY_URI", postgresql_uri)
    job.target.abort(job.staging, job.job_id)


def test_a_table_has_a_call_of_its_own(env):
    with pytest.raises(ConfigurationError, match="a call of their own, write_database"):
        env.from_arrow(ROWS).write("database", "t")


def test_rows_that_were_lost_are_missed(postgresql_uri):
    job = WrittenJob(ROWS.schema, postgresql_uri, "lost").prepare().attempt(ROWS)
    output = job.decide()
    (staged,) = rows_of(postgresql_uri, f"SELECT tablename FROM pg_tables WHERE tablename LIKE '{job.staging.path}%'")
    do(postgresql_uri, f"DELETE FROM {staged[0]} WHERE i = 3")
    with pytest.raises(EngineError, match="has 9 rows, and 10 were written"):
        job.publish(output)
    job.target.abort(job.staging, job.job_id)
    assert rows_of(postgresql_uri, "SELECT to_regclass('lost')") == [(None,)]


def test_schemas_enumerations_and_documents_of_postgresql(env, postgresql_uri):
    do(
        postgresql_uri,
        'CREATE SCHEMA "My schema"',
        "CREATE TYPE colour AS ENUM ('red', 'blue')",
        'CREATE TABLE "My schema"."T" (id int GENERATED ALWAYS AS IDENTITY, c colour, j jsonb, u uuid, n numeric)',
    )
    place = (postgresql_uri, "My schema.T")
    rows = pa.table(
        {
            "c": ["red", "blue"],
            "j": ['{"a":1}', None],
            "u": [None, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
            "n": pa.array([Decimal("1.50"), None], pa.decimal128(5, 2)),
        }
    )
    written(env, place, rows, mode="append")
    query = 'SELECT c, j, u, n FROM "My schema"."T" ORDER BY id'
    assert sorted(map(tuple, env.read_database(query, postgresql_uri).collect())) == [
        ("blue", None, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", None),
        ("red", '{"a": 1}', None, "1.50"),
    ]
    with pytest.raises(SchemaError, match="makes the values of column 'id' itself"):
        written(env, place, pa.table({"id": pa.array([1], pa.int32())}), mode="append")
    with pytest.raises(DataError, match="invalid input value for enum colour"):
        written(env, place, pa.table({"c": ["green"]}), mode="append")
    assert len(rows_of(postgresql_uri, query)) == 2
    assert is_clean(postgresql_uri, "My schema")


def test_passwords_are_in_no_plan_note_or_error(env, postgresql_uri):
    from urllib.parse import quote

    from tests.postgresql_server import PASSWORD

    do(
        postgresql_uri,
        f"CREATE ROLE writer LOGIN PASSWORD '{PASSWORD}'",
        "CREATE SCHEMA writers AUTHORIZATION writer",
    )
    uri = postgresql_uri.replace("tester@", f"writer:{quote(PASSWORD, safe='')}@")
    data = env.from_arrow(ROWS)
    data.write_database("writers.t", uri)
    texts = [repr(env.execute())]
    job = WrittenJob(ROWS.schema, uri, "writers.t", "append").prepare().attempt(ROWS)
    output = job.decide()
    texts += [repr(job.spec), repr(job.staging), repr(output)]
    texts += map(repr, rows_of(postgresql_uri, "SELECT * FROM writers.drey_jobs"))
    job.publish(output)
    with pytest.raises(EngineError) as caught:
        data.write_database("public.t", uri.replace("writer:", "nobody:"))
    texts.append(str(caught.value))
    assert rows_of(postgresql_uri, "SELECT count(*) FROM writers.t") == [(20,)]
    assert not [text for text in texts if PASSWORD in text or quote(PASSWORD, safe="") in text]


def test_columns_are_checked_when_the_call_is_made(env, postgresql_uri):
    data = env.from_arrow(pa.table({"at": pa.array([1000], pa.timestamp("ns"))}))
    with pytest.raises(SchemaError, match="column 'at' is timestamp"):
        data.write_database("t", postgresql_uri)
    cast = data.select(col("at").cast(pa.timestamp("us")))
    cast.write_database("cast_times", postgresql_uri)
    env.execute()
    assert len(env.read_database("cast_times", postgresql_uri).collect()) == 1
