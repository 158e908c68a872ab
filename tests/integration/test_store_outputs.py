"""Whole jobs that write to a store: every format, modes, partitions, SQL; killed ones, and what others see."""

import re
import signal
import subprocess
import sys
import textwrap

import obstore
import pyarrow as pa
import pytest

from drey import DataError, Environment, PlanError, col
from engine.cli.sql_session import SqlSession
from tests.storage.moto_server import running

pytestmark = [pytest.mark.integration]

ROWS = pa.table({"k": [index % 3 for index in range(3000)], "v": range(3000), "s": [f"{i}" for i in range(3000)]})


@pytest.fixture(scope="module")
def store():
    with running("data") as found:
        yield found


@pytest.fixture
def env(store):
    with Environment(config={**store.settings, "parallelism.default": 2}) as found:
        yield found


def names_in(store, prefix):
    found = [each["path"] for chunk in obstore.list(store._client, prefix) for each in chunk]
    return sorted(name.removeprefix(f"{prefix}/") for name in found)


def ordered(data):
    return sorted(data.to_arrow().to_pylist(), key=lambda row: row["v"])


@pytest.mark.quick
def test_record_data_sets_are_written_replaced_and_planned_by_their_manifest(store):
    path = "s3://data/out/records"
    keys = {name: store.settings[f"storage.s3.{name}"] for name in ("endpoint", "region")}
    options = {
        **keys,
        "allow_http": True,
        "access_key_id": store.settings["storage.s3.access-key-id"],
        "secret_access_key": store.settings["storage.s3.secret-access-key"],
    }
    with Environment(config={"parallelism.default": 2}) as env:
        env.from_arrow(ROWS).write_records(path, storage_options=options)
        env.execute()
        found = env.read_records(path)
        assert "3 000 rows" in found.explain() and "manifest" in found.explain()
        assert ordered(found) == ROWS.to_pylist()
    with Environment(config={**store.settings, "parallelism.default": 2}) as env:
        with pytest.raises(PlanError, match="already exists"):
            env.from_arrow(ROWS).write_records(path)
            env.execute()
        env.read_records(path).filter(col("k") == 1).write_records(path, overwrite=True)
        env.execute()
        assert ordered(env.read_records(path)) == [row for row in ROWS.to_pylist() if row["k"] == 1]
        assert env.sql(f"SELECT count(*) AS n FROM '{path}'").to_arrow().to_pylist() == [{"n": 1000}]
        names = names_in(store, "out/records")
        assert {name for name in names if not name.startswith("part-")} == {"_SUCCESS", "_drey.json", "_manifest.json"}
        obstore.delete(store._client, f"out/records/{names[-1]}")
        with pytest.raises(DataError, match=rf"{names[-1]} is missing, although the manifest lists it"):
            env.read_records(path)
        with pytest.raises(PlanError, match="no such folder"):
            env.read_records("s3://data/out/nothing")


@pytest.mark.quick
@pytest.mark.parametrize("form", ["csv", "csv.gz", "json", "parquet", "ipc", "orc", "xlsx"])
def test_a_single_file_has_its_own_name_in_a_store(env, store, form):
    path = f"s3://data/single/{form}/of rows.{form}"
    name = {"csv.gz": "csv", "xlsx": "excel"}.get(form, form)
    header = {"header": True} if name == "csv" else {}
    for rows in (ROWS, ROWS.slice(0, 0), ROWS.slice(7)):
        data = env.from_arrow(rows).sort("v")
        getattr(data, f"write_{name}")(path, single_file=True, overwrite=True, **header)
        env.execute()
        assert names_in(store, f"single/{form}") == [f"of rows.{form}"]
    schema = {"schema": ROWS.schema} if name in ("csv", "json", "excel") else {}
    found = getattr(env, f"read_{name}")(path, **schema, **header)
    assert found.to_arrow().to_pylist() == ROWS.slice(7).to_pylist()
    data = env.from_arrow(ROWS)
    getattr(data, f"write_{name}")(path, single_file=True)
    with pytest.raises(PlanError, match=r"of rows\..* already exists; pass overwrite=True"):
        env.execute()


@pytest.mark.quick
def test_parquet_is_written_appended_replaced_and_nothing_else_is_left(env, store):
    rows, path = env.from_arrow(ROWS), "s3://data/out/parquet"
    rows.filter(col("k") == 0).write_parquet(path, partition_by=["k"])
    env.execute()
    with pytest.raises(PlanError, match="already exists"):
        rows.write_parquet(path)
        env.execute()
    rows.filter(col("k") > 0).write_parquet(path, partition_by=["k"], mode="append")
    result = env.execute()
    assert [each.output for each in result.outputs] == [path]
    assert ordered(env.read_parquet(path).select("k", "v", "s")) == ROWS.to_pylist()
    changed = rows.filter(col("k") == 1).select("k", "v", s=col("s") + "!")
    changed.write_parquet(path, partition_by=["k"], mode="overwrite_partitions")
    job = env.execute()
    expected = [{**row, "s": row["s"] + "!" * (row["k"] == 1)} for row in ROWS.to_pylist()]
    assert ordered(env.read_parquet(path).select("k", "v", "s")) == expected
    names = names_in(store, "out/parquet")
    assert names[:2] == ["_SUCCESS", "_drey.json"]
    assert {re.sub(r"part-\d{5}-[0-9a-f]{32}", "part", name) for name in names[2:]} == {
        f"k={key}/part.parquet" for key in range(3)
    }
    assert all(job.job_id in name for name in names if name.startswith("k=1/"))
    assert names_in(store, "out/.drey-staging") == []


@pytest.mark.parametrize("name", ["csv", "json", "ipc", "orc", "parquet", "text"])
def test_rows_of_each_writer_come_back(env, store, name):
    options = {"header": True} if name == "csv" else {}
    rows = env.from_arrow(ROWS if name != "text" else ROWS.select(["s"]))
    path = f"s3://data/each/{name}"
    for _ in range(2):
        getattr(rows, f"write_{name}")(path, overwrite=True, **options)
        env.execute()
    if name == "csv":
        options["schema"] = ROWS.schema
    found = getattr(env, f"read_{name}")(path, **options).to_arrow()
    if name == "text":
        assert sorted(found.column(0).to_pylist()) == sorted(ROWS["s"].to_pylist())
    else:
        assert sorted(found.to_pylist(), key=lambda row: row["v"]) == ROWS.to_pylist()
    assert len(names_in(store, f"each/{name}")) == 3, "of the first output there is nothing"


def test_a_small_target_size_makes_several_files(env, store):
    env.from_arrow(pa.table({"v": range(300_000)})).write_csv("s3://data/sized", target_file_size=200_000, header=True)
    env.execute()
    assert len(names_in(store, "sized")) > 5
    assert env.read_csv("s3://data/sized", header=True).count() == 300_000


def test_a_job_that_fails_leaves_nothing(env, store):
    def fail(row):
        raise ValueError("no")

    env.from_arrow(ROWS).map(fail, schema=ROWS.schema).write_parquet("s3://data/failed")
    with pytest.raises(Exception, match="no"):
        env.execute()
    assert names_in(store, "failed") == names_in(store, ".drey-staging") == []


def test_a_bucket_that_is_none_and_keys_that_are_wrong_are_told_before_the_job(env, store):
    env.from_arrow(ROWS).write_csv("s3://nobucket/out")
    with pytest.raises(PlanError, match="output s3://nobucket/out: there is no such bucket"):
        env.execute()
    with store.checked_keys(), pytest.raises(PlanError, match="the credentials are wrong"):
        env.from_arrow(ROWS).write_csv("s3://data/denied")
        env.execute()


KILLED = """
    import os, signal, sys
    import pyarrow as pa
    from drey import Environment
    from engine.storage.object_store import ObjectStore
    settings, kill_at, mode = eval(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    left = [kill_at]
    def dying(name):
        call = getattr(ObjectStore, name)
        def step(self, *arguments):
            answer = call(self, *arguments)
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return answer
        setattr(ObjectStore, name, step)
    for name in ("copy", "put_version", "delete_all", "replace"):
        dying(name)
    with Environment(config={**settings, "parallelism.default": 2}) as env:
        env.from_arrow(pa.table({"v": range(100)})).write_parquet("s3://data/killed/out", mode=mode)
        env.execute()
"""


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_process_that_is_killed_at_any_request_leaves_old_or_new_and_the_next_job_cleans_up(env, store, mode):
    outcomes = set()
    for kill_at in range(0, 40, 3):
        env.from_arrow(pa.table({"v": range(10)})).write_parquet("s3://data/killed/out", overwrite=True)
        env.execute()
        command = [sys.executable, "-c", textwrap.dedent(KILLED), repr(store.settings), str(kill_at), mode]
        ended = subprocess.run(command, check=False, capture_output=True, timeout=120)
        count = env.read_parquet("s3://data/killed/out").count()
        new = 110 if mode == "append" else 100
        assert count in (10, new), kill_at
        outcomes.add(count)
        env.from_arrow(pa.table({"v": range(5)})).write_parquet("s3://data/killed/out", mode="append")
        env.execute()
        assert env.read_parquet("s3://data/killed/out").count() == count + 5
        assert names_in(store, "killed/.drey-staging") == []
        data = [name for name in names_in(store, "killed/out") if name.startswith("part")]
        assert len(data) <= 6, data
        if ended.returncode != -signal.SIGKILL:
            assert ended.returncode == 0, ended.stderr
            break
    assert outcomes == {10, 110 if mode == "append" else 100}


def test_copy_and_insert_of_sql_write_to_a_store(env, store):
    session = SqlSession(env, "json")
    path = "s3://data/sql/out"
    session.run(
        f"COPY (SELECT 1 AS k, 'a' AS s UNION ALL SELECT 2, 'b') TO '{path}' (FORMAT parquet, PARTITION_BY (k))"
    )
    with pytest.raises(PlanError, match="it exists already; write"):
        session.run(f"COPY (SELECT 1 AS k) TO '{path}' (FORMAT parquet)")
    session.run(f"INSERT INTO '{path}' SELECT 'c', 3")
    counted = env.sql(f"SELECT k, s FROM '{path}' ORDER BY k").to_arrow().to_pylist()
    assert counted == [{"k": 1, "s": "a"}, {"k": 2, "s": "b"}, {"k": 3, "s": "c"}]
