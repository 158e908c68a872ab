"""Jobs that are kept: a data set that is run again is not planned again, unless something differs."""

import json
import os
import threading
import time

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from engine import DreyWarning, Environment, col, delta, iceberg, sum_
from engine.api.results import read_parts
from engine.graph.source_spec import SinkSpec
from engine.targets import local

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64())])


def rows(count):
    return pa.table({"k": [each % 3 for each in range(count)], "v": list(range(count))}, SCHEMA)


def lines(table, path):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in table.to_pylist()))


WRITERS = {
    "parquet": lambda table, path: pq.write_table(table, path, row_group_size=2),
    "csv": lambda table, path: path.write_text("".join(f"{row['k']},{row['v']}\n" for row in table.to_pylist())),
    "json": lines,
    "ipc": pyarrow.feather.write_feather,
    "text": lines,
}


def read(env, file_format, path):
    call = getattr(env, f"read_{file_format}")
    return call(path, SCHEMA) if file_format in ("csv", "json") else call(path)


@pytest.fixture
def env():
    with Environment(config={"parallelism.default": 2}) as environment:
        yield environment


@pytest.fixture
def planned(monkeypatch):
    """Return the list of plans that were optimized."""
    plans = []
    plan_job = local.plan_job

    def counted(plan, *rest):
        plans.append(plan)
        return plan_job(plan, *rest)

    monkeypatch.setattr(local, "plan_job", counted)
    return plans


def sums(data):
    return data.group_by("k").agg(v=sum_("v")).sort("k")


def test_a_data_set_that_is_run_again_is_not_planned_again(env, planned):
    data = sums(env.from_arrow(rows(10)))
    found = [data.to_arrow() for _ in range(3)]
    assert len(planned) == 1
    assert found[0] == found[1] == found[2]
    assert found[0].to_pydict() == {"k": [0, 1, 2], "v": [18, 12, 15]}


def test_another_data_set_of_the_same_node_is_planned_for_itself(env, planned):
    data = env.from_arrow(rows(10))
    assert data.count() == 10
    assert data.filter(col("v") > 4).count() == 5
    assert data.filter(col("v") > 6).count() == 3
    assert len(planned) == 3


@pytest.mark.parametrize("file_format", WRITERS)
def test_a_file_that_has_changed_is_planned_anew(env, planned, tmp_path, file_format):
    path = tmp_path / "rows"
    WRITERS[file_format](rows(7), path)
    data = read(env, file_format, path)
    assert data.to_arrow().num_rows == data.to_arrow().num_rows == 7
    assert len(planned) == 1
    # The same bytes, written later.
    os.utime(path, ns=(time.time_ns(), time.time_ns() + 10**9))
    assert data.to_arrow().num_rows == 7
    assert len(planned) == 2


@pytest.mark.parametrize("file_format", ["csv", "json", "text"])
def test_rows_that_were_appended_are_read(env, tmp_path, file_format):
    path = tmp_path / "rows"
    WRITERS[file_format](rows(7), path)
    data = read(env, file_format, path)
    assert data.count() == 7
    WRITERS[file_format](rows(9), path)
    assert data.count() == 9
    assert data.to_arrow().num_rows == 9


def test_a_job_of_the_former_files_is_not_kept_as_one_of_the_new(env, tmp_path):
    path = tmp_path / "rows.csv"
    WRITERS["csv"](rows(7), path)
    node = read(env, "csv", path)._node
    before = env._kept_jobs.of(node, "collect", 2)
    WRITERS["csv"](rows(9), path)
    after = env._kept_jobs.of(node, "collect", 2)
    before.keep(b"planned before", None)
    assert after.job is None
    assert env._kept_jobs.of(node, "collect", 2) is after


def test_a_file_that_is_gone_is_the_error_that_it_was(env, tmp_path):
    path = tmp_path / "rows.csv"
    WRITERS["csv"](rows(7), path)
    data = read(env, "csv", path)
    errors = []
    for _ in range(2):
        path.unlink(missing_ok=True)
        with pytest.raises(Exception, match=r"rows\.csv") as raised:
            data.to_arrow()
        errors.append(str(raised.value))
        WRITERS["csv"](rows(7), path)
        assert data.to_arrow().num_rows == 7
    assert errors[0] == errors[1]


def test_what_another_number_of_processors_decides_is_planned_anew(env, planned, monkeypatch):
    data = sums(env.from_arrow(rows(10)))
    first_rows = data.to_arrow()
    monkeypatch.setattr(local, "_conditions", lambda configuration: "others")
    assert data.to_arrow() == first_rows
    assert len(planned) == 2


def test_cached_rows_and_those_of_a_database_are_planned_each_time(env, planned, tmp_path):
    import sqlite3

    with sqlite3.connect(tmp_path / "d.sqlite") as connection:
        connection.execute("CREATE TABLE t (k INTEGER)")
        connection.execute("INSERT INTO t VALUES (1)")
    cached = env.from_arrow(rows(10)).cache().filter(col("v") > 4)
    table = env.read_database("SELECT k FROM t", f"sqlite://{tmp_path / 'd.sqlite'}")
    for data in (cached, table):
        before = len(planned)
        data.to_arrow()
        data.to_arrow()
        assert len(planned) - before >= 2
    assert env._kept_jobs._jobs == {}


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_version_of_a_table_is_planned_once(env, planned, tmp_path, kind):
    catalog = SqlCatalog("lake", uri=f"sqlite:///{tmp_path / 'lake.db'}", warehouse=tmp_path.as_uri())
    catalog.create_namespace("db")
    if kind == "delta":
        env.from_arrow(rows(10)).write_delta(str(tmp_path / "t"))
    else:
        env.from_arrow(rows(10)).write_iceberg("db.t", catalog)
    env.execute()

    def table():
        return env.read_delta(str(tmp_path / "t")) if kind == "delta" else env.read_iceberg("db.t", catalog)

    data = table().filter(col("v") > 4)
    target = delta(str(tmp_path / "t")) if kind == "delta" else iceberg("db.t", catalog)
    before = len(planned)
    assert [data.to_arrow().num_rows for _ in range(2)] == [5, 5]
    assert len(planned) == before + 1
    env.from_arrow(rows(20)).merge_into(target, on=["v"])
    assert data.to_arrow().num_rows == 5
    assert table().filter(col("v") > 4).to_arrow().num_rows == 15


def test_a_data_set_that_is_built_again_is_not_planned_again(env, planned, tmp_path):
    WRITERS["parquet"](rows(10), tmp_path / "rows")

    def built(least):
        return sums(env.read_parquet(tmp_path / "rows").filter(col("v") >= least))

    found = [built(4).to_arrow() for _ in range(3)]
    assert len(planned) == 1
    assert found[0] == found[1] == found[2]
    assert built(5).to_arrow().to_pydict() == {"k": [0, 1, 2], "v": [15, 7, 13]}
    assert len(planned) == 2


def test_data_sets_that_differ_by_a_function_a_type_or_an_input_are_planned_for_themselves(env, planned):
    one, two = env.from_arrow(rows(10)), env.from_arrow(rows(10))
    found = [
        data.to_arrow().column("v").to_pylist()
        for data in (
            one.filter(lambda row: row["v"] > 7),
            one.filter(lambda row: row["v"] > 8),
            one.map(lambda row: {"v": row["v"]}, pa.schema([("v", pa.int64())])).filter(col("v") > 8),
            one.map(lambda row: {"v": row["v"]}, pa.schema([("v", pa.float64())])).filter(col("v") > 8),
            one.union(two).filter(col("v") > 8),
            two.union(two).filter(col("v") > 8),
        )
    ]
    assert found == [[8, 9], [9], [9], [9.0], [9, 9], [9, 9]]
    assert len(planned) == 6


def test_jobs_that_were_not_run_for_longest_go_first(env, planned):
    data = [sums(env.from_arrow(rows(count))) for count in (3, 5, 7)]
    data[0].to_arrow()
    (one,) = env._kept_jobs._jobs.values()
    env._kept_jobs._bytes_max = 2 * one.size_bytes + 100
    data[1].to_arrow()
    data[0].to_arrow()
    data[2].to_arrow()
    assert sum(each.size_bytes for each in env._kept_jobs._jobs.values()) <= env._kept_jobs._bytes_max
    assert len(planned) == 3
    data[0].to_arrow()
    assert len(planned) == 3
    data[1].to_arrow()
    assert len(planned) == 4


def test_an_environment_that_is_closed_keeps_none(planned):
    env = Environment()
    data = sums(env.from_arrow(rows(10)))
    data.to_arrow()
    env.close()
    assert len(env._kept_jobs._jobs) == 0
    with pytest.raises(Exception, match="closed"):
        data.to_arrow()


def test_threads_that_run_one_data_set_have_its_rows(env):
    data = sums(env.from_arrow(rows(1000)))
    wanted = data.to_arrow()
    found = []
    threads = [threading.Thread(target=lambda: found.extend(data.to_arrow() for _ in range(3))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 18
    assert all(each == wanted for each in found)


def test_a_function_is_called_for_each_run(env, tmp_path):
    log = tmp_path / "calls"

    def noted(row):
        with log.open("a") as file:
            file.write(".")
        return row["v"] > 4

    data = env.from_arrow(rows(10)).filter(noted)
    assert data.to_arrow().num_rows == data.to_arrow().num_rows == 5
    assert log.read_text() == "." * 20


def test_warnings_about_rows_come_each_time(env, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("1,2\nbad\n3,4\n")
    data = env.read_csv(path, SCHEMA, on_bad_row="skip")
    for _ in range(2):
        with pytest.warns(DreyWarning, match="1 malformed"):
            assert data.to_arrow().num_rows == 2


def test_each_run_is_a_job_with_an_output_of_its_own(env, planned, tmp_path):
    node = sums(env.from_arrow(rows(10)))._node
    results = [env.run_to_sink(node, SinkSpec("arrow", str(tmp_path / name)), "collect") for name in ("one", "two")]
    assert len(planned) == 1
    assert results[0].job_id != results[1].job_id
    one, two = (read_parts(tmp_path / name, node.schema) for name in ("one", "two"))
    assert one == two
    assert one.num_rows == 3
