"""Whole jobs whose sizes the planner gets wrong: decisions at run time, and rows that stay those of DuckDB."""

import time
from io import StringIO

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from engine import Environment, JoinHint, col, count, sum_
from engine.cli.progress import progress_table
from engine.client import job_listener
from engine.errors import JobCancelledError, JobExecutionError, PlanError
from engine.gateways.messages import JobProgress, VertexProgress
from engine.graph.deployment import TaskCounters
from engine.graph.run_time_decision import BuildSide, RunTimeDecision
from engine.ids import JobId, JobVertexId
from engine.jobmaster import run_time_planner
from engine.minicluster.mini_cluster import MiniCluster
from tests.integration.conftest import left_over

BATCH = {"parallelism.default": 4, "execution.mode": "BATCH"}
#: parallelism stays as planned, so that decisions about joins are seen alone
JOINS = {**BATCH, "execution.batch.adaptive.auto-parallelism.enabled": False}

BIG = pa.table({"k": [index % 1000 for index in range(30_000)], "v": range(30_000)})
OTHER = pa.table({"k": [index * 7 % 1500 for index in range(30_000)], "w": range(30_000)})
FEW = pa.table({"k": [index * 3 for index in range(60)], "w": range(60)})


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Return folders of four Parquet files for each table: four splits."""
    folder = tmp_path_factory.mktemp("adaptive")
    for name, table in (("big", BIG), ("other", OTHER), ("few", FEW)):
        (folder / name).mkdir()
        step = -(-table.num_rows // 4)
        for part in range(4):
            pq.write_table(table.slice(part * step, step), folder / name / f"part-{part}.parquet")
    return folder


def rarely(row):
    return row.w < 40


def often(row):
    return [(row.k + 3 * shift, row.w) for shift in range(400)]


def expected(sql, **tables):
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        return sorted(connection.sql(sql).fetchall(), key=repr)


def rows_of(folder):
    return sorted(
        (tuple(row.values()) for path in folder.glob("*.parquet") for row in pq.read_table(path).to_pylist()), key=repr
    )


def kinds(result):
    return [decision.kind for decision in result.decisions]


def vertex(result, text):
    return next(each for each in result.vertices if text in each.name)


SQL = {
    "inner": "JOIN r USING (k)",
    "left": "LEFT JOIN r USING (k)",
    "right": "RIGHT JOIN r USING (k)",
    "full": "FULL JOIN r USING (k)",
    "semi": "SEMI JOIN r USING (k)",
    "anti": "ANTI JOIN r USING (k)",
}
GROWN = pa.table(
    {
        "k": [key + 3 * shift for key in FEW["k"].to_pylist() for shift in range(400)],
        "w": [w for w in FEW["w"].to_pylist() for _ in range(400)],
    }
)
FILTERED = OTHER.filter(pa.compute.less(OTHER["w"], 40))


@pytest.mark.parametrize("how", SQL)
@pytest.mark.parametrize("small_is_left", [False, True])
def test_a_really_small_input_is_broadcast_where_that_is_right(open_environment, data, tmp_path, how, small_is_left):
    environment = open_environment(**JOINS, **{"debug.force-spill": small_is_left})
    big = environment.read_parquet(str(data / "big"))
    small = environment.read_parquet(str(data / "other")).filter(rarely)
    left, right = (small, big) if small_is_left else (big, small)
    left.join(right, on="k", how=how).write_parquet(str(tmp_path / "out"))
    result = environment.execute(f"{how} join")
    tables = {"l": FILTERED, "r": BIG} if small_is_left else {"l": BIG, "r": FILTERED}
    assert rows_of(tmp_path / "out") == expected(f"SELECT * FROM l {SQL[how]}", **tables)
    broadcastable = {"inner", "right"} if small_is_left else {"inner", "left", "semi", "anti"}
    # of the right of a semi or anti join only the key is read: a broadcast was planned already
    decided = how in broadcastable and how not in ("semi", "anti")
    assert ("BROADCAST" in kinds(result)) == decided, result.report
    shuffled = vertex(result, "source big").network_buffers_peak > 0
    assert shuffled == (how not in broadcastable)


@pytest.mark.quick
def test_a_large_input_is_repartitioned_although_a_broadcast_was_planned(open_environment, data, tmp_path):
    environment = open_environment(**JOINS)
    big = environment.read_parquet(str(data / "big"))
    grown = environment.read_parquet(str(data / "few")).flat_map(often, FEW.schema)
    joined = big.join(grown, on="k").group_by("k").agg(n=count(), w=sum_(col("w")))
    assert "may become repartitioned when right > " in joined.explain()
    joined.write_parquet(str(tmp_path / "out"))
    result = environment.execute("grown")
    assert kinds(result) == ["REPARTITION"]
    (decision,) = result.decisions
    assert "broadcast right -> repartition both inputs" in decision.text
    assert decision.expected_bytes < 5000 < decision.real_bytes
    sql = "SELECT k, count(*), sum(w)::BIGINT FROM l JOIN r USING (k) GROUP BY k"
    assert rows_of(tmp_path / "out") == expected(sql, l=BIG, r=GROWN)
    built = [subtask.rows_in for subtask in vertex(result, "join").subtasks]
    assert sum(built) == BIG.num_rows + GROWN.num_rows and max(built) < 0.4 * sum(built)


def test_a_table_with_other_readers_is_streamed_into_its_broadcast_join(open_environment, data, tmp_path):
    environment = open_environment(**JOINS)
    big = environment.read_parquet(str(data / "big"))
    small = environment.read_parquet(str(data / "other")).filter(rarely)
    totals = big.group_by("v").agg(total=sum_(col("k")))
    joined = big.join(small, on="k")
    joined.join(totals, on="v").write_parquet(str(tmp_path / "met"))
    big.filter(col("v") % 2 == 0).write_parquet(str(tmp_path / "even"))
    joined.group_by("w").agg(n=count()).write_parquet(str(tmp_path / "counted"))
    result = environment.execute("readers")
    assert "BROADCAST" in kinds(result)
    tables = {"l": BIG, "r": FILTERED}
    totals_sql = "(SELECT v, sum(k)::BIGINT AS total FROM l GROUP BY v)"
    met = f"SELECT * FROM l JOIN r USING (k) JOIN {totals_sql} USING (v)"
    assert rows_of(tmp_path / "met") == expected(met, **tables)
    assert rows_of(tmp_path / "even") == expected("SELECT * FROM l WHERE v % 2 = 0", **tables)
    counted = "SELECT w, count(*) FROM l JOIN r USING (k) GROUP BY w"
    assert rows_of(tmp_path / "counted") == expected(counted, **tables)


@pytest.mark.quick
def test_the_really_smaller_side_is_built(open_environment, data, tmp_path):
    environment = open_environment(**JOINS)
    # a full join repartitions, whatever the sizes
    large = environment.read_parquet(str(data / "few")).flat_map(often, FEW.schema)
    small = environment.read_parquet(str(data / "big")).filter(lambda row: row.v < 40)
    large.join(small, on="k", how="full").write_parquet(str(tmp_path / "out"))
    result = environment.execute("build")
    assert kinds(result) == ["BUILD_SIDE"], result.report
    assert "build left -> build right" in result.decisions[0].text
    assert rows_of(tmp_path / "out") == expected(
        "SELECT * FROM l FULL JOIN r USING (k)", l=GROWN, r=BIG.filter(pa.compute.less(BIG["v"], 40))
    )


def test_right_estimates_change_nothing(open_environment, data, tmp_path):
    environment = open_environment(**JOINS)
    big = environment.read_parquet(str(data / "big"))
    other = environment.read_parquet(str(data / "other")).filter(lambda row: row.w % 2 == 0)
    big.join(other, on="k").group_by("k").agg(n=count()).write_parquet(str(tmp_path / "out"))
    assert environment.execute("right").decisions == ()


def test_an_option_and_a_hint_turn_decisions_off(open_environment, data, tmp_path):
    def run(environment, folder, hint):
        big = environment.read_parquet(str(data / "big"))
        small = environment.read_parquet(str(data / "other")).filter(rarely)
        big.join(small, on="k", hint=hint).write_parquet(str(tmp_path / folder))
        return environment.execute(folder)

    off = open_environment(**{**BATCH, "execution.batch.adaptive.enabled": False})
    assert run(off, "off", JoinHint.OPTIMIZER_CHOOSES).decisions == ()
    hinted = run(open_environment(**JOINS), "hinted", JoinHint.REPARTITION_HASH_FIRST)
    assert hinted.decisions == ()
    assert rows_of(tmp_path / "off") == rows_of(tmp_path / "hinted")


def test_readers_of_small_results_get_fewer_subtasks(open_environment, data, tmp_path):
    settings = {**BATCH, "execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task": "1mb"}
    environment = open_environment(**settings)
    big = environment.read_parquet(str(data / "big"))
    other = environment.read_parquet(str(data / "other"))
    joined = big.join(other, on="k", hint=JoinHint.REPARTITION_HASH_SECOND)
    # sums that may overflow are not made before the join, which is to get all rows
    joined.group_by("w").agg(n=count(), total=sum_("k")).write_parquet(str(tmp_path / "out"))
    result = environment.execute("fewer")
    assert "PARALLELISM" in kinds(result)
    join = vertex(result, "join")
    assert len(join.subtasks) == 2
    share = [subtask.rows_in for subtask in join.subtasks]
    assert sum(share) == 60_000 and max(share) < 1.3 * sum(share) / len(share)
    sql = "SELECT w, count(*), sum(k) FROM l JOIN r USING (k) GROUP BY w"
    assert rows_of(tmp_path / "out") == expected(sql, l=BIG, r=OTHER)
    assert len(list((tmp_path / "out").iterdir())) == len(result.vertices[-1].subtasks)


def test_a_parallelism_that_the_user_set_stays(open_environment, data, tmp_path):
    environment = open_environment(**BATCH)
    grouped = environment.read_parquet(str(data / "big")).group_by("k").agg(n=count()).set_parallelism(3)
    grouped.write_parquet(str(tmp_path / "out"))
    result = environment.execute("set")
    assert [len(each.subtasks) for each in result.vertices] == [4, 3]
    assert result.decisions == ()


def test_a_failure_after_a_decision_is_the_jobs(open_environment, data, tmp_path):
    def fail(row):
        raise ValueError(f"no {row.v}")

    environment = open_environment(**JOINS)
    big = environment.read_parquet(str(data / "big")).map(fail, BIG.schema)
    small = environment.read_parquet(str(data / "other")).filter(rarely)
    big.join(small, on="k").write_parquet(str(tmp_path / "out"))
    with pytest.raises(JobExecutionError, match="no "):
        environment.execute("fails")
    assert not (tmp_path / "out").exists() and not left_over(tmp_path)


class Watcher(job_listener.SilentListener):
    """Remembers progress, and cancels a job once something was decided."""

    wants_progress = True

    def __init__(self, cluster):
        self.cluster = cluster
        self.decided = ()

    def on_progress(self, progress):
        if progress.decisions and not self.decided:
            self.decided = progress.decisions
            self.cluster.cancel(progress.job_id)


@pytest.fixture
def own_cluster(monkeypatch):
    """Return a function (slots) -> the cluster on which the next environment's jobs run; it has just so many slots."""
    clusters = []

    def open_one(settings, slots):
        texts = {**{key: str(value) for key, value in settings.items()}, "taskmanager.numberOfTaskSlots": str(slots)}
        clusters.append(MiniCluster(texts, slots_follow_job=False))
        monkeypatch.setattr("engine.targets.local.mini_cluster", lambda *_, **__: clusters[-1])
        return clusters[-1]

    yield open_one
    for cluster in clusters:
        cluster.close()


@pytest.mark.thorough
@pytest.mark.parametrize("slots", [1, 2, 7])
def test_the_large_side_waits_on_any_number_of_slots(own_cluster, data, tmp_path, slots):
    settings = {**JOINS, "taskmanager.memory.process.size": "512mb"}
    own_cluster(settings, slots)
    environment = Environment(config=settings)
    big = environment.read_parquet(str(data / "big"))
    small = environment.read_parquet(str(data / "other")).filter(rarely)
    big.join(small, on="k").write_parquet(str(tmp_path / "out"))
    assert kinds(environment.execute("slots")) == ["BROADCAST"]
    assert rows_of(tmp_path / "out") == expected("SELECT * FROM l JOIN r USING (k)", l=BIG, r=FILTERED)


def test_a_job_is_cancelled_after_a_decision(own_cluster, data, tmp_path, monkeypatch):
    def slow(row):
        time.sleep(0.05)
        return row

    settings = {**JOINS, "taskmanager.memory.process.size": "512mb"}
    watcher = Watcher(own_cluster(settings, 2))
    monkeypatch.setattr("engine.targets.planned_job.listener_of_job", lambda: watcher)
    environment = Environment(config=settings)
    big = environment.read_parquet(str(data / "big")).map(slow, BIG.schema)
    small = environment.read_parquet(str(data / "other")).filter(rarely)
    big.join(small, on="k").write_parquet(str(tmp_path / "out"))
    with pytest.raises(JobCancelledError):
        environment.execute("cancelled")
    assert [decision.kind for decision in watcher.decided] == ["BROADCAST"]
    assert not (tmp_path / "out").exists() and not left_over(tmp_path)


def test_progress_on_a_terminal_shows_what_was_decided():
    change = BuildSide(JobVertexId(0), build_left=True, memory_weight=1.0)
    decided = RunTimeDecision(
        "BUILD_SIDE", JobVertexId(0), "join [k]", "build left", "build right", 9.0, 9, "why", change
    )
    vertices = (VertexProgress("join [k]", 2, TaskCounters(), {}),)
    shown = Console(width=200, file=StringIO())
    shown.print(progress_table(JobProgress(JobId("a" * 32), "job", "RUNNING", 1, vertices, (decided,)), 100))
    assert "decided: join [k]: build left -> build right" in " ".join(shown.file.getvalue().split())


def test_verbose_tells_each_vertex_and_each_decision(run, data, tmp_path):
    (tmp_path / "job.py").write_text(
        f"""
from engine import Environment
env = Environment()
small = env.read_parquet({str(data / "other")!r}).filter(lambda row: row.w < 40)
env.read_parquet({str(data / "big")!r}).join(small, on="k").write_csv("out")
env.execute("told")
"""
    )
    settings = [each for key, value in JOINS.items() for each in ("-D", f"{key}={value}")]
    told = run("-m", "engine.cli.main", "job", "submit", "--verbose", *settings, "job.py").stdout
    (decided,) = [line for line in told.splitlines() if line.startswith("decided: ")]
    assert "inner join on k" in decided and "repartition both inputs -> broadcast right (right has " in decided
    (source,) = [line for line in told.splitlines() if line.startswith("parquet source big: 4 subtasks, 30,000 rows")]
    assert "network buffer" not in source and "spilled" in source
    (join,) = [line for line in told.splitlines() if line.startswith("inner join")]
    assert " managed" in join


@pytest.mark.parametrize("how", ["cross", "inner"])
@pytest.mark.parametrize("parallelism", [2, 8])
@pytest.mark.parametrize("is_parquet", [False, True])
def test_a_join_of_a_table_with_itself_ends_where_its_subtasks_become_fewer(tmp_path, how, parallelism, is_parquet):
    table = pa.table({"a": ["x" * 40000] * 20, "b": ["y"] * 20})
    pq.write_table(table, tmp_path / "table.parquet")
    with Environment(config={"parallelism.default": parallelism}) as env:
        # with a rate a source is read once, and what it gives is stored
        path = tmp_path / "table.parquet"
        data = env.read_parquet(path, rate_limit=1e9) if is_parquet else env.from_arrow(table, rate_limit=1e9)
        if how == "cross":
            joined = data.join(data.rename(a="a2", b="b2"), how="cross")
        else:
            joined = data.join(data.rename(a="a2"), on="b", hint=JoinHint.BROADCAST_HASH_SECOND)
        assert joined.count() == 400


def test_a_decision_after_which_somebody_would_wait_for_ever_ends_the_job(monkeypatch):
    def found(_):
        raise PlanError("nobody reads number 4")

    monkeypatch.setattr(run_time_planner, "check_readers", found)
    with Environment(config={"parallelism.default": 2}) as env:
        # with a rate a source is read once, and what it gives is stored
        data = env.from_arrow(pa.table({"a": ["x" * 40000] * 20, "b": ["y"] * 20}), rate_limit=1e9)
        with pytest.raises(PlanError, match="nobody reads number 4"):
            data.join(data.rename(a="a2", b="b2"), how="cross").count()
