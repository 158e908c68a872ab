"""Whole jobs on servers of every vendor: each format, each mode, SQL; a store without conditions; two at one time."""

import threading

import pyarrow as pa
import pytest

from drey import Environment, PlanError, col, sum_
from engine.cli.sql_session import SqlSession
from engine.storage.file_systems import file_system_of
from engine.storage.store_client import use_store_settings
from tests.storage.moto_server import running
from tests.storage.store_servers import SERVERS, s3rver

pytestmark = [pytest.mark.integration]

ROWS = pa.table({"k": [index % 3 for index in range(3000)], "v": range(3000), "s": [f"ü{i}" for i in range(3000)]})


@pytest.fixture(scope="module", params=["azurite", "google", "moto"])
def server(request):
    with SERVERS[request.param]() as found:
        yield found


@pytest.fixture
def env(server):
    with Environment(config={**server.settings, "parallelism.default": 2}) as found:
        yield found


def ordered(data):
    return sorted(data.to_arrow().to_pylist(), key=lambda row: row["v"])


@pytest.mark.parametrize("name", ["csv", "json", "ipc", "orc", "parquet", "text"])
def test_rows_of_each_writer_come_back(env, server, name):
    options = {"header": True} if name == "csv" else {}
    rows, path = env.from_arrow(ROWS if name != "text" else ROWS.select(["s"])), f"{server.root}/each/{name}"
    for _ in range(2):
        getattr(rows, f"write_{name}")(path, overwrite=True, **options)
        env.execute()
    found = getattr(env, f"read_{name}")(path, **options, **({"schema": ROWS.schema} if name == "csv" else {}))
    if name == "text":
        assert sorted(found.to_arrow().column(0).to_pylist()) == sorted(ROWS["s"].to_pylist())
    else:
        assert ordered(found) == ROWS.to_pylist()
    assert len(list(file_system_of(path).below(path))) == 3, "of the first output there is nothing"


def test_every_mode_and_folders_of_values(env, server):
    rows, path = env.from_arrow(ROWS), f"{server.root}/modes/out"
    rows.filter(col("k") == 0).write_parquet(path, partition_by=["k"])
    env.execute()
    with pytest.raises(PlanError, match="already exists"):
        rows.write_parquet(path)
        env.execute()
    rows.filter(col("k") > 0).write_parquet(path, partition_by=["k"], mode="append")
    env.execute()
    assert ordered(env.read_parquet(path).select("k", "v", "s")) == ROWS.to_pylist()
    changed = rows.filter(col("k") == 1).select("k", "v", s=col("s") + "!")
    changed.write_parquet(path, partition_by=["k"], mode="overwrite_partitions")
    env.execute()
    expected = [{**row, "s": row["s"] + "!" * (row["k"] == 1)} for row in ROWS.to_pylist()]
    assert ordered(env.read_parquet(path).select("k", "v", "s")) == expected
    assert env.read_parquet(f"{path}/k=[01]/*.parquet").count() == 2000
    rows.limit(5).write_parquet(path, mode="overwrite")
    env.execute()
    assert env.read_parquet(path).count() == 5
    names = [name for name, _, _ in file_system_of(server.root).below(f"{server.root}/modes")]
    assert not [name for name in names if ".drey" in name], "staging, and what tried the store"


def test_a_file_in_parts_comes_back(env, server):
    path = f"{server.root}/large"
    env.from_arrow(pa.table({"v": range(3_000_000)})).write_csv(path, header=True)
    env.execute()
    assert max(size for _, size, _ in file_system_of(path).below(path)) > 9 << 20
    assert env.read_csv(path, header=True).agg(total=sum_("v")).collect()[0]["total"] == 3_000_000 * 2_999_999 // 2


def test_copy_insert_and_from_of_sql(env, server):
    session, path = SqlSession(env, "json"), f"{server.root}/sql/out"
    session.run(
        f"COPY (SELECT 1 AS k, 'a' AS s UNION ALL SELECT 2, 'b') TO '{path}' (FORMAT parquet, PARTITION_BY (k))"
    )
    session.run(f"INSERT INTO '{path}' SELECT 'c', 3")
    found = env.sql(f"SELECT k, s FROM '{path}' ORDER BY k").to_arrow().to_pylist()
    assert found == [{"k": 1, "s": "a"}, {"k": 2, "s": "b"}, {"k": 3, "s": "c"}]


@pytest.mark.parametrize("mode", ["error", "append", "overwrite"])
def test_a_store_that_ignores_conditions_is_read_and_refuses_outputs_before_the_job(mode):
    with s3rver() as server, Environment(config=server.settings) as env:
        use_store_settings(server.settings)
        file_system_of("s3://data").replace("s3://data/in/a.csv", b"v\n1\n2\n")
        rows = env.read_csv("s3://data/in/a.csv", header=True)
        assert rows.count() == 2
        rows.write_csv("s3://data/out", mode=mode)
        with pytest.raises(PlanError, match="s3://data ignores the conditions of puts"):
            env.execute()
        assert [name for name, _, _ in file_system_of("s3://data").below("s3://data")] == ["in/a.csv"]


def test_environments_in_threads_use_each_its_own_store_and_keys():
    problems = []

    def work(store, marker):
        try:
            config = {**store.settings, "parallelism.default": 2}
            for turn in range(6):
                with Environment(config=config) as env:
                    rows = env.read_csv("s3://data/in", header=True)
                    rows.write_parquet("s3://data/out", mode="overwrite")
                    env.execute()
                    found = env.read_parquet("s3://data/out").to_arrow()["who"].to_pylist()
                    if set(found) != {marker} or len(found) != 400:
                        problems.append((marker, turn, set(found)))
        except BaseException as error:
            problems.append((marker, error))

    with running("data") as first, running("data") as second:
        for store, marker in ((first, "first"), (second, "second")):
            for part in range(4):
                store.put(f"in/{part}.csv", b"who\n" + f"{marker}\n".encode() * 100)
        threads = [threading.Thread(target=work, args=each) for each in ((first, "first"), (second, "second"))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not problems
