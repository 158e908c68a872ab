"""Window functions over all rows in ranges of their order: against DuckDB, over types, ties, memory and processes."""

import random
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

from engine import avg, count, last_value, max_, min_, rank, row_number, stddev, sum_, variance
from engine.optimizer import sort_planning
from tests.chaos.cluster import ChaosCluster
from tests.window.duckdb_windows import values_differ

ROWS = 6_000
MODES = {
    "2": {},
    "5": {"parallelism.default": 5},
    "3, spilling": {"parallelism.default": 3, "debug.force-spill": True},
    "4, six pages": {"parallelism.default": 4, "taskmanager.memory.managed.size": "200kb"},
}


@pytest.fixture(autouse=True)
def small_inputs_are_divided_too(monkeypatch):
    monkeypatch.setattr(sort_planning, "SMALL_SORT_BYTES", 0)


@pytest.fixture(scope="module")
def rows():
    rng = random.Random(5)
    return pa.table(
        {
            "id": list(range(ROWS)),
            "j": [rng.choice([None, *range(40)]) for _ in range(ROWS)],
            "skewed": [7 if rng.random() < 0.9 else rng.randrange(50) for _ in range(ROWS)],
            "text": [rng.choice([None, "", "b" * 60, "b" * 60 + "c", str(rng.randrange(99))]) for _ in range(ROWS)],
            "f": [rng.choice([None, rng.random(), -1e3, 1e3]) for _ in range(ROWS)],
            "d": pa.array([rng.choice([None, Decimal(rng.randrange(10**6)) / 100]) for _ in range(ROWS)]),
        }
    )


RANK_ORDERS = ("j", "skewed", "text", "f", "d")
NUMBERS = ("j", "f", "d")


def calls_of(order):
    """Name -> (expression, SQL) of everything that runs in ranges of one order."""
    by = f"order by {order} nulls first"
    made = {"rank": (rank().over(order_by=order), f"rank() over ({by})")}
    made["peers"] = (count().over(order_by=order), f"count(*) over ({by})")
    for name in NUMBERS:
        for function, sql in ((sum_, "sum"), (avg, "avg"), (count, "count"), (stddev, "stddev_samp")):
            made[f"{sql}_{name}"] = (function(name).over(order_by=order), f"{sql}({name}) over ({by})")
    for name in (*NUMBERS, "text"):
        made[f"min_{name}"] = (min_(name).over(order_by=order), f"min({name}) over ({by})")
        made[f"max_{name}"] = (max_(name).over(order_by=order), f"max({name}) over ({by})")
    return made


def exact_calls():
    """Those whose order leaves no choice."""
    by = "over (order by j nulls first, id rows between unbounded preceding and current row)"
    window = {"order_by": ["j", "id"], "rows": (None, 0)}
    return {
        "n": (row_number().over(order_by=["j", "id"]), "row_number() over (order by j nulls first, id)"),
        "total": (sum_("id").over(**window), f"sum(id) {by}"),
        "least": (min_("text").over(**window), f"min(text) {by}"),
        "spread": (variance("f").over(**window), f"var_samp(f) {by}"),
        "last": (last_value("text").over(**window), f"last_value(text) {by}"),
        "here": (count("d").over(**window), f"count(d) {by}"),
        "all": (count().over(**window), f"count(*) {by}"),
    }


def assert_agree(data, rows, calls):
    made = data.select("id", **{name: expression for name, (expression, _) in calls.items()})
    assert "RANGES" in made.explain() or "SORT_RUNS" in made.explain()
    found = made.to_arrow().sort_by("id")
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        what = ", ".join(["id", *(f"{text} as {name}" for name, (_, text) in calls.items())])
        wanted = connection.sql(f"select {what} from rows order by id").to_arrow_table()
    for name in wanted.column_names:
        pairs = zip(found.column(name).to_pylist(), wanted.column(name).to_pylist(), strict=True)
        assert [pair for pair in pairs if values_differ(*pair)][:3] == [], name


@pytest.mark.parametrize("order", RANK_ORDERS)
@pytest.mark.parametrize("mode", MODES)
def test_running_functions_agree_with_duckdb(open_environment, rows, mode, order):
    assert_agree(open_environment(**MODES[mode]).from_arrow(rows).rebalance(), rows, calls_of(order))


@pytest.mark.parametrize("mode", MODES)
def test_functions_of_single_rows_agree_with_duckdb(open_environment, rows, mode):
    assert_agree(open_environment(**MODES[mode]).from_arrow(rows).rebalance(), rows, exact_calls())


@pytest.mark.parametrize("count_", [0, 1, 3])
def test_ranges_without_rows(open_environment, rows, count_):
    few = rows.slice(0, count_)
    assert_agree(open_environment(**MODES["5"]).from_arrow(few).rebalance(), few, exact_calls())


JOB = """
import sys
import pyarrow as pa
from engine import Environment, col, max_, rank, row_number, sum_

env = Environment()
count = 300_000
table = pa.table({"x": [n * 7_919 % count for n in range(count)], "wide": ["t" * 30] * count})
running = {"order_by": "x", "rows": (None, 0)}
found = env.from_arrow(table).rebalance().select(
    "x",
    row_number().over(order_by="x").alias("n"),
    rank().over(order_by="x").alias("r"),
    sum_("x").over(**running).alias("total"),
    max_("wide").over(**running).alias("most"),
)
found.select("x", "n", "r", "total", col("most").str.length().alias("width")).write_csv(sys.argv[1])
env.execute("ranges")
"""


@pytest.mark.processes
def test_rows_below_a_range_are_read_from_other_processes(tmp_path):
    (tmp_path / "job.py").write_text(JOB)
    with ChaosCluster(tmp_path / "cluster", task_managers=2, slots=1) as cluster:
        job = cluster.submit(tmp_path / "job.py", tmp_path / "out", options=("-p", "2"))
        assert job.wait() == 0, job.stderr + cluster.log_tails()
    lines = [line for part in sorted((tmp_path / "out").iterdir()) for line in part.read_text().splitlines()]
    assert len(list((tmp_path / "out").iterdir())) == 2
    assert lines == [f"{x},{x + 1},{x + 1},{x * (x + 1) // 2},30" for x in range(300_000)]
