"""Sorts over subtasks, through the whole engine: the order of rows, wherever they go afterwards."""

import random
import time

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from engine import Environment, JobCancelledError, JobExecutionError, col, count, first, last, sum_
from engine.client import job_listener
from engine.minicluster.mini_cluster import MiniCluster
from engine.optimizer import sort_planning

ROWS = 3_000


@pytest.fixture(autouse=True)
def small_inputs_are_sorted_in_ranges_too(monkeypatch):
    monkeypatch.setattr(sort_planning, "SMALL_SORT_BYTES", 0)


@pytest.fixture(scope="module")
def rows():
    rng = random.Random(5)
    keys = [None if rng.random() < 0.05 else rng.randrange(-500, 500) for _ in range(ROWS)]
    texts = [None if rng.random() < 0.05 else "a beginning that all of them share " + rng.choice("xyz") for _ in keys]
    floats = [rng.choice([None, float("nan"), 0.0, -0.0, rng.random()]) for _ in keys]
    return pa.table({"a": keys, "b": texts, "c": floats, "n": list(range(ROWS))})


def in_order(table, *columns):
    """The rows sorted by DuckDB, every column a key, so that the order is one."""
    with duckdb.connect() as connection:
        connection.register("rows", table)
        return connection.sql(f"select * from rows order by {', '.join(columns)}").to_arrow_table().to_pylist()


def same(found, wanted):
    return repr(found.to_pylist() if isinstance(found, pa.Table) else found) == repr(wanted)


BY = ["a", "b", "n"]
DESCENDING = [False, True, False]


def sorted_by_keys(data):
    return data.sort(BY, descending=DESCENDING, nulls_last=False)


def wanted_rows(rows):
    return in_order(rows, "a nulls first", "b desc nulls first", "n")


MODES = {
    "1": {"parallelism.default": 1},
    "2": {},
    "3, spilling": {"parallelism.default": 3, "debug.force-spill": True},
    "8": {"parallelism.default": 8},
    "2, BATCH": {"execution.mode": "BATCH"},
    "3, six pages": {"parallelism.default": 3, "taskmanager.memory.managed.size": "100kb"},
    "2, PIPELINED_FORCED": {"execution.mode": "PIPELINED_FORCED"},
}


@pytest.mark.quick
@pytest.mark.parametrize("mode", MODES)
def test_rows_are_in_order_however_many_subtasks_sort(open_environment, rows, mode):
    data = open_environment(**MODES[mode]).from_arrow(rows).rebalance()
    assert same(sorted_by_keys(data).to_arrow(), wanted_rows(rows))


@pytest.mark.sample("values")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("limit", [0, 1, 7, 1_999, 10 * ROWS])
def test_order_survives_select_and_filter_and_limit_takes_the_first(open_environment, rows, mode, limit):
    data = sorted_by_keys(open_environment(**MODES[mode]).from_arrow(rows).rebalance())
    narrow = data.filter(col("n") % 3 != 0).select("n", (col("n") * 2).alias("m"))
    ordered = wanted_rows(rows)
    wanted = [{"n": row["n"], "m": row["n"] * 2} for row in ordered if row["n"] % 3]
    assert same(narrow.to_arrow(), wanted)
    assert same(narrow.limit(limit).to_arrow(), wanted[:limit])
    assert same(data.limit(limit).select("n").to_arrow(), [{"n": row["n"]} for row in ordered[:limit]])


def test_order_survives_functions_of_the_user(open_environment, rows):
    data = sorted_by_keys(open_environment().from_arrow(rows).rebalance())
    schema = pa.schema([("m", pa.int64())])
    mapped = data.map(lambda row: (row.n + 1,), schema)
    wanted = [{"m": row["n"] + 1} for row in wanted_rows(rows)]
    assert same(mapped.to_arrow(), wanted)
    assert same(mapped.filter(lambda row: row.m > 10).limit(50).to_arrow(), [r for r in wanted if r["m"] > 10][:50])


@pytest.mark.quick
@pytest.mark.parametrize("parallelism", [1, 2, 3, 8])
def test_part_files_follow_the_order(open_environment, rows, tmp_path, parallelism):
    env = open_environment(**{"parallelism.default": parallelism})
    sorted_by_keys(env.from_arrow(rows).rebalance()).write_parquet(str(tmp_path / "out"))
    result = env.execute("sorted parts")
    parts = sorted((tmp_path / "out").iterdir())
    assert [part.name for part in parts] == [f"part-{index:05d}.parquet" for index in range(parallelism)]
    table = pa.concat_tables([pq.read_table(part) for part in parts])
    assert same(table, wanted_rows(rows))
    (merge,) = (vertex for vertex in result.vertices if "parquet" in vertex.name)
    shares = [subtask.rows_in for subtask in merge.subtasks]
    assert sum(shares) == ROWS
    assert max(shares) < 1.5 * ROWS / parallelism, "ranges are even"


def test_one_file_was_asked_for_and_is_in_order(open_environment, rows, tmp_path):
    env = open_environment(**{"parallelism.default": 3})
    data = sorted_by_keys(env.from_arrow(rows).rebalance()).filter(col("n") >= 0).set_parallelism(1)
    data.write_parquet(str(tmp_path / "out"))
    env.execute("one file")
    (part,) = (tmp_path / "out").iterdir()
    assert same(pq.read_table(part), wanted_rows(rows))


@pytest.mark.quick
@pytest.mark.parametrize("limit", [1, 40, 2_900])
def test_a_top_of_any_size_takes_the_first(open_environment, rows, limit):
    env = open_environment(**{"parallelism.default": 3, "taskmanager.memory.managed.size": "100kb"})
    data = env.from_arrow(rows).rebalance()
    wanted = in_order(rows, "a desc nulls last", "n desc")[:limit]
    top = data.top(limit, by=["a", "n"])
    assert same(top.to_arrow(), wanted)
    assert ("MERGE_RUNS" in top.explain()) == (limit == 2_900)


@pytest.fixture(scope="module")
def many_rows():
    rng = random.Random(8)
    keys = [rng.randrange(10**9) for _ in range(60_000)]
    return pa.table({"key": keys, "text": [f"{key * 7919:024x}" for key in keys]})


def spilled_bytes(result):
    return [sum(subtask.spilled_bytes for subtask in vertex.subtasks) for vertex in result.vertices]


@pytest.mark.quick
def test_a_sort_over_subtasks_spills_once(open_environment, many_rows, tmp_path):
    """Producers write sorted runs; consumers merge what they need of them, and write nothing."""
    env = open_environment(**{"parallelism.default": 2, "taskmanager.memory.managed.size": "1mb"})
    env.from_arrow(many_rows).sort("key").write_parquet(str(tmp_path / "out"))
    result = env.execute("one spill")
    produced, merged = spilled_bytes(result)
    assert 0 < produced <= sum(subtask.bytes_out for subtask in result.vertices[0].subtasks)
    assert merged == 0
    parts = [pq.read_table(part) for part in sorted((tmp_path / "out").iterdir())]
    assert pa.concat_tables(parts).equals(many_rows.sort_by("key"))


def test_a_top_spills_nothing_and_sends_what_it_returns(open_environment, many_rows, tmp_path):
    env = open_environment(**{"parallelism.default": 2, "taskmanager.memory.managed.size": "1mb"})
    env.from_arrow(many_rows).top(10, by="key").write_parquet(str(tmp_path / "out"))
    result = env.execute("top")
    assert sum(spilled_bytes(result)) == 0
    assert sum(subtask.rows_out for subtask in result.vertices[0].subtasks) <= 20
    (part,) = (tmp_path / "out").iterdir()
    assert pq.read_table(part).equals(many_rows.sort_by([("key", "descending")]).slice(0, 10))


SKEWS = {
    "all equal": lambda rng: 7,
    "all null": lambda rng: None,
    "99 % one key": lambda rng: 7 if rng.random() < 0.99 else rng.randrange(100),
    "two keys": lambda rng: rng.choice([3, 9]),
    "few rows": lambda rng: rng.randrange(10),
}


@pytest.mark.parametrize("skew", SKEWS)
@pytest.mark.parametrize("force_spill", [False, True])
def test_heavy_keys_stay_together_and_nothing_is_lost(open_environment, tmp_path, skew, force_spill):
    rng = random.Random(1)
    size = 5 if skew == "few rows" else 2_000
    table = pa.table({"a": pa.array([SKEWS[skew](rng) for _ in range(size)], pa.int32()), "n": list(range(size))})
    env = open_environment(**{"parallelism.default": 3, "debug.force-spill": force_spill})
    env.from_arrow(table).rebalance().sort("a").write_parquet(str(tmp_path / "out"))
    env.execute("skew")
    parts = [pq.read_table(part) for part in sorted((tmp_path / "out").iterdir())]
    assert len(parts) == 3
    result = pa.concat_tables(parts)
    assert result["a"].to_pylist() == [row["a"] for row in in_order(table, "a nulls first")]
    assert sorted(result["n"].to_pylist()) == list(range(size))
    owners = [set(part["a"].to_pylist()) for part in parts]
    assert all(not one & other for index, one in enumerate(owners) for other in owners[index + 1 :])


def test_an_empty_input_is_sorted(open_environment, rows):
    env = open_environment()
    assert env.from_arrow(rows.slice(0, 0)).rebalance().sort("a").count() == 0
    assert env.from_arrow(rows).filter(col("n") < 0).sort("a").to_arrow().num_rows == 0


@pytest.mark.parametrize("mode", ["2", "3, spilling", "2, BATCH"])
def test_a_sort_follows_and_precedes_joins_and_aggregates(open_environment, rows, mode):
    env = open_environment(**MODES[mode])
    data = env.from_arrow(rows).rebalance()
    groups = data.group_by("a").agg(rows=count(), total=sum_(col("n"))).sort("a", nulls_last=True)
    expected = in_order(rows, "n")
    totals = {}
    for row in expected:
        known = totals.setdefault(row["a"], [0, 0])
        known[0] += 1
        known[1] += row["n"]
    order = [*sorted(key for key in totals if key is not None), None]
    assert same(groups.to_arrow(), [{"a": key, "rows": totals[key][0], "total": totals[key][1]} for key in order])
    joined = data.join(groups, on="a").select("a", "n", "rows").sort("n", descending=True)
    wanted = [
        {"a": row["a"], "n": row["n"], "rows": totals[row["a"]][0]} for row in expected[::-1] if row["a"] is not None
    ]
    assert same(joined.to_arrow(), wanted)
    assert same(joined.limit(5).to_arrow(), wanted[:5])


@pytest.mark.parametrize("mode", ["2", "3, spilling", "2, BATCH"])
def test_first_and_last_see_the_order_of_a_sort(open_environment, rows, mode):
    data = open_environment(**MODES[mode]).from_arrow(rows).rebalance()
    result = data.sort("n").with_columns(g=col("n") % 5).group_by("g").agg(low=first(col("n")), high=last(col("n")))
    wanted = [{"g": g, "low": g, "high": ROWS - 5 + g} for g in range(5)]
    assert sorted(result.to_arrow().to_pylist(), key=lambda row: row["g"]) == wanted


def test_a_sort_is_read_by_two_consumers(open_environment, rows, tmp_path):
    env = open_environment(**{"parallelism.default": 3})
    data = sorted_by_keys(env.from_arrow(rows).rebalance())
    data.select("n").write_parquet(str(tmp_path / "all"))
    data.filter(col("n") < 1000).limit(40).select("n").write_parquet(str(tmp_path / "some"))
    env.execute("two")
    wanted = [row["n"] for row in wanted_rows(rows)]
    for name, expected in (("all", wanted), ("some", [n for n in wanted if n < 1000][:40])):
        parts = [pq.read_table(part) for part in sorted((tmp_path / name).iterdir())]
        assert pa.concat_tables(parts)["n"].to_pylist() == expected


@pytest.mark.parametrize("seed", range(6))
def test_random_orders_by_several_keys_agree_with_duckdb(open_environment, rows, seed):
    rng = random.Random(seed)
    mode = rng.choice(["2", "3, spilling", "8", "2, BATCH"])
    names = [*rng.sample(["a", "b", "c"], rng.randrange(1, 4)), "n"]
    descending = [rng.random() < 0.5 for _ in names]
    nulls_last = rng.random() < 0.5
    # DuckDB keeps -0.0 and 0.0 equal and NaN largest, as keys are here
    clauses = [
        f"{name} {'desc' if down else 'asc'} nulls {'last' if nulls_last else 'first'}"
        for name, down in zip(names, descending, strict=True)
    ]
    data = open_environment(**MODES[mode]).from_arrow(rows).rebalance()
    found = data.sort(names, descending=descending, nulls_last=nulls_last).to_arrow()
    assert found["n"].to_pylist() == [row["n"] for row in in_order(rows, *clauses)]


@pytest.mark.quick
def test_explain_says_how_a_sort_runs_and_why(open_environment, rows, monkeypatch):
    data = open_environment().from_arrow(rows).rebalance()
    text = data.sort("a").explain()
    assert "PARTITION_RANGE(a) (bounds from samples of the sorted runs), BATCH (a range begins when all" in text
    assert "MERGE_RUNS" in text and "SORT_RUNS" in text
    monkeypatch.setattr(sort_planning, "SMALL_SORT_BYTES", 1e6)
    assert "are sorted in one subtask, as up to 1 MB" in data.sort("a").explain()
    assert "MERGE_RUNS, parallelism 3" in data.sort("a").set_parallelism(3).explain()


def test_a_failure_behind_a_sort_is_reported_and_leaves_nothing(open_environment, rows):
    env = open_environment()

    def fails(row):
        if row.n == 1_234:
            raise ValueError("row 1234")
        return (row.n,)

    data = sorted_by_keys(env.from_arrow(rows).rebalance()).map(fails, pa.schema([("n", pa.int64())]))
    with pytest.raises(JobExecutionError, match="row 1234"):
        data.to_arrow()
    assert same(sorted_by_keys(env.from_arrow(rows)).to_arrow(), wanted_rows(rows))


def test_memory_that_runs_keep_is_given_to_the_next_operator(open_environment):
    table = pa.table({"k": list(range(40_000, 0, -1)), "text": [f"{index:060}" for index in range(40_000)]})
    env = open_environment(**{"taskmanager.memory.managed.size": "12mb", "parallelism.default": 2})
    data = env.from_arrow(table).rebalance().sort("k").with_columns(g=col("k") % 30_000)
    # the aggregate takes the memory of a slot, in which the runs lie
    result = data.group_by("g").agg(low=first(col("k")), rows=count())
    found = result.to_arrow()
    assert found.num_rows == 30_000
    assert pc.sum(found["rows"]).as_py() == 40_000
    assert all(row["low"] == (row["g"] or 30_000) for row in found.to_pylist())


class Canceller(job_listener.SilentListener):
    """Cancels a job once its merges have begun."""

    wants_progress = True

    def __init__(self, cluster):
        self.cluster = cluster
        self.is_done = False

    def on_progress(self, progress):
        merging = [vertex for vertex in progress.vertices if vertex.name.startswith("sort by")]
        if not self.is_done and merging and merging[0].counters.rows_in:
            self.is_done = True
            self.cluster.cancel(progress.job_id)


@pytest.fixture
def own_cluster(monkeypatch):
    """Return a function (slots, settings) -> (cluster of just so many slots, an environment on it)."""
    clusters = []

    def open_one(slots, **settings):
        texts = {
            "taskmanager.memory.process.size": "256mb",
            "taskmanager.numberOfTaskSlots": str(slots),
            "slot.request.timeout": "60s",
            **settings,
        }
        clusters.append(MiniCluster(texts, slots_follow_job=False))
        monkeypatch.setattr("engine.targets.local.mini_cluster", lambda *_, **__: clusters[-1])
        return clusters[-1], Environment(config={"parallelism.default": 3, **texts})

    yield open_one
    for cluster in clusters:
        cluster.close()


@pytest.mark.parametrize("slots", [1, 2, 4])
def test_a_sort_of_any_parallelism_ends_on_any_number_of_slots(own_cluster, rows, slots):
    _, env = own_cluster(slots, **{"taskmanager.memory.managed.size": "3mb", "execution.mode": "BATCH"})
    assert same(sorted_by_keys(env.from_arrow(rows).rebalance()).to_arrow(), wanted_rows(rows))


def test_a_sort_that_is_cancelled_while_it_merges_ends_and_leaves_nothing(own_cluster, rows, tmp_path, monkeypatch):
    spill = tmp_path / "spill"
    spill.mkdir()
    cluster, env = own_cluster(3, **{"io.tmp.dirs": str(spill), "debug.force-spill": "true"})
    canceller = Canceller(cluster)
    monkeypatch.setattr("engine.targets.planned_job.listener_of_job", lambda: canceller)

    def slow(row):
        time.sleep(0.02)
        return (row.n,)

    sorted_by_keys(env.from_arrow(rows).rebalance()).map(slow, pa.schema([("n", pa.int64())])).write_parquet(
        str(tmp_path / "out")
    )
    with pytest.raises(JobCancelledError):
        env.execute("cancelled")
    assert canceller.is_done
    assert not (tmp_path / "out").exists()
    assert not list(spill.rglob("*.spill"))
