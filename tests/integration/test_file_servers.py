"""Whole jobs on a server of files: every format, SQL, what is refused, and no password anywhere."""

import json
import pickle
import traceback

import pyarrow as pa
import pytest

from drey import Environment, PlanError, delta
from engine.cli.sql_session import SqlSession
from engine.graph.plan import encode_plan
from engine.lowering.logical_node import build_plan
from engine.storage.fsspec_client import close_connections
from tests.storage.file_servers import PASSWORD, serving

pytestmark = [pytest.mark.integration]

ROWS = pa.table({"k": [index % 3 for index in range(3000)], "v": range(3000), "s": [f"ü{i}" for i in range(3000)]})


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving("sftp", tmp_path_factory.mktemp("sftp")) as found:
        yield found


@pytest.fixture
def env(server):
    config = {"parallelism.default": 2, "storage.fsspec.options": json.dumps({"sftp": server[1]})}
    with Environment(config=config) as found:
        yield found
    close_connections()


def ordered(data):
    return sorted(data.to_arrow().to_pylist(), key=lambda row: row["v"])


@pytest.mark.parametrize("name", ["csv", "json", "ipc", "orc", "parquet", "text"])
def test_rows_of_each_writer_come_back(env, server, name):
    options = {"header": True} if name == "csv" else {}
    rows, path = env.from_arrow(ROWS if name != "text" else ROWS.select(["s"])), f"{server[0]}/each/{name}"
    for _ in range(2):
        getattr(rows, f"write_{name}")(path, overwrite=True, **options)
        env.execute()
    found = getattr(env, f"read_{name}")(path, **options, **({"schema": ROWS.schema} if name == "csv" else {}))
    if name == "text":
        assert sorted(found.to_arrow().column(0).to_pylist()) == sorted(ROWS["s"].to_pylist())
    else:
        assert ordered(found) == ROWS.to_pylist()


def test_folders_of_values_and_sql(env, server):
    path = f"{server[0]}/hive/out"
    env.from_arrow(ROWS).write_parquet(path, partition_by=["k"])
    result = env.execute()
    assert result.stores[server[0]][2] > 1000, "bytes written"
    counted = env.sql(f"SELECT k, count(*) AS n FROM '{path}' WHERE k > 0 GROUP BY k ORDER BY k")
    assert counted.to_arrow().to_pylist() == [{"k": 1, "n": 1000}, {"k": 2, "n": 1000}]
    session = SqlSession(env, "json")
    session.run(f"COPY (SELECT 1 AS k) TO '{server[0]}/hive/copied' (FORMAT parquet)")
    assert env.read_parquet(f"{server[0]}/hive/copied").count() == 1
    with pytest.raises(PlanError, match="already exists"):
        env.from_arrow(ROWS).write_parquet(path)
        env.execute()


def test_record_data_sets(env, server):
    path = f"{server[0]}/records/out"
    for _ in range(2):
        env.from_arrow(ROWS).write_records(path, overwrite=True)
        env.execute()
    assert ordered(env.read_records(path)) == ROWS.to_pylist()


def test_what_needs_more_of_a_file_system_is_refused_by_name(env, server):
    rows = env.from_arrow(ROWS)
    with pytest.raises(PlanError, match="mode='append' adds files to an output"):
        rows.write_csv(f"{server[0]}/added", mode="append")
        env.execute()
    with pytest.raises(PlanError, match=r"sftp://.*object store"):
        env.read_delta(f"{server[0]}/table")
    with pytest.raises(PlanError, match=r"sftp://.*object store"):
        rows.write_delta(f"{server[0]}/table")
    with pytest.raises(PlanError, match=r"sftp://.*object store"):
        env.optimize(delta(f"{server[0]}/table"))
    with pytest.raises(PlanError, match="no such file or folder"):
        env.read_csv(f"{server[0]}/none.csv")


def test_options_of_a_call_are_nowhere(server, caplog, capsys):
    caplog.set_level("DEBUG")
    url, options = server
    with Environment() as env:
        env.from_arrow(ROWS).write_csv(f"{url}/secret", overwrite=True, header=True, storage_options=options)
        plan = build_plan([*env._sinks], "job")
        result = env.execute()
        data = env.read_csv(f"{url}/secret", header=True, storage_options=options)
        shown = [data.explain(), data.explain(analyze=True), repr(data), repr(env), str(result), repr(result)]
        shown += [str(plan), repr(encode_plan(plan)), repr(pickle.dumps(plan)), result._repr_html_()]
        shown += [repr(env.configuration), str(env.configuration.as_texts())]
        with pytest.raises(PlanError) as caught:
            env.read_csv(f"{url}/none", storage_options={**options, "username": "other"})
        shown += ["".join(traceback.format_exception(caught.value))]
    close_connections()
    shown += [caplog.text, *capsys.readouterr()]
    assert not [text for text in shown if PASSWORD in text]
