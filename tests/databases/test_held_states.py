"""All tasks of a job read PostgreSQL as it was when the job began, and nothing is held when it has ended."""

import time

import pytest

from engine import Environment, col
from engine.databases.database_source import database_source
from engine.databases.postgresql_state import held_postgresql
from engine.errors import JobExecutionError, ResourceError
from engine.formats.registry import open_source
from engine.jobmaster import output_steps
from tests.databases.written import do, rows_of

pytest.importorskip("adbc_driver_postgresql")
HOLDERS = "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"
MOVE = "UPDATE changing SET g = 99 - g, n = 1"


@pytest.fixture
def changing(postgresql_uri):
    made = "CREATE TABLE changing AS SELECT 0 AS n, g FROM generate_series(0, 99) AS g"
    do(postgresql_uri, "DROP TABLE IF EXISTS changing", made)
    return postgresql_uri


def assert_nothing_is_held(uri):
    """The server may have sessions of other tests, which end soon; a state that is held stays."""
    deadline = time.monotonic() + 5
    while rows_of(uri, HOLDERS) != [(0,)]:
        assert time.monotonic() < deadline, "a state is held after its job"
        time.sleep(0.05)


def numbers_of(spec, split, state):
    reader = open_source(spec, [split])
    if state:
        reader.read_states({spec.options["uri"]: state})
    try:
        return [n for batch in reader for n in batch.column("n").to_pylist()]
    finally:
        reader.close()


def test_ranges_that_are_read_one_after_the_other_see_one_state(changing):
    spec, _, _ = database_source("changing", changing, "g", 2)
    held = held_postgresql(changing, has_password=False)
    first = numbers_of(spec, spec.splits[0], held.name)
    do(changing, MOVE)
    assert first == [0] * 50 == numbers_of(spec, spec.splits[1], held.name)
    assert numbers_of(spec, spec.splits[1], "") == [1] * 50
    held.close()
    # Another attempt of the task may be told another state.
    with pytest.raises(ResourceError, match="is held no longer"):
        numbers_of(spec, spec.splits[1], held.name)


@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_job_reads_what_was_there_when_it_began(changing, monkeypatch, parallelism):
    def moved(point):
        if point == "job.prepared":
            do(changing, MOVE)

    with Environment({"parallelism.default": str(parallelism)}) as env:
        data = env.read_database("changing", changing, partition_on="g", partitions=2)
        both = data.union(env.read_database("SELECT n, g FROM changing", changing))
        with monkeypatch.context() as patched:
            patched.setattr(output_steps, "reach", moved)
            assert {row["n"] for row in both.collect()} == {0}
        assert {row["n"] for row in both.collect()} == {1}
        assert_nothing_is_held(changing)
        with pytest.raises(JobExecutionError, match="division by zero"):
            env.read_database("SELECT 1 / (n - 1) AS n FROM changing", changing).collect()
        assert_nothing_is_held(changing)


def test_types_that_users_made_are_known_within_a_state(changing):
    do(changing, "DROP TYPE IF EXISTS weather", "CREATE TYPE weather AS ENUM ('dry', 'wet')")
    with Environment({"parallelism.default": "1"}) as env:
        data = env.read_database("SELECT 'wet'::weather AS w, ARRAY['dry'::weather] AS many", changing)
        assert data.filter(col("w") == "wet").to_arrow().to_pylist() == [{"w": "wet", "many": ["dry"]}]


def test_a_server_without_snapshots_is_read_all_the_same(changing, monkeypatch, caplog):
    monkeypatch.setattr("engine.databases.postgresql_state._EXPORT", "SELECT pg_no_such_function()")
    with Environment({"parallelism.default": "1"}) as env:
        assert env.read_database("changing", changing).count() == 100
    assert "may be read in different states" in caplog.text
