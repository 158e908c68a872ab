"""Window functions through the whole engine against DuckDB: parallelism, modes, memory, and what is around them."""

import random
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

from engine import (
    DataError,
    SchemaError,
    avg,
    col,
    count,
    cume_dist,
    dense_rank,
    first_value,
    lag,
    last_value,
    lead,
    max_,
    min_,
    ntile,
    percent_rank,
    rank,
    row_number,
    stddev,
    sum_,
)  # fmt: skip
from engine.optimizer import sort_planning, window_planning
from tests.window.duckdb_windows import values_differ

ROWS = 4_000


@pytest.fixture(autouse=True)
def small_inputs_are_moved_too(monkeypatch):
    monkeypatch.setattr(sort_planning, "SMALL_SORT_BYTES", 0)
    monkeypatch.setattr(window_planning, "SMALL_SORT_BYTES", 0)


@pytest.fixture(scope="module")
def rows():
    rng = random.Random(11)
    return pa.table(
        {
            "k": [rng.choice([None, "a", "b", "c" * 40]) for _ in range(ROWS)],
            "j": [rng.choice([None, *range(40)]) for _ in range(ROWS)],
            "day": pa.array([rng.choice([None, *range(100)]) for _ in range(ROWS)], pa.date32()),
            "f": [rng.choice([None, float("nan"), 0.0, -0.0, rng.random()]) for _ in range(ROWS)],
            "id": list(range(ROWS)),
        }
    )


#: name -> (expression, SQL)
FUNCTIONS = {
    "n": (row_number().over(["k", "j"], order_by="id"), "row_number() over (partition by k, j order by id)"),
    "r": (
        rank().over("k", order_by="j", descending=True, nulls_last=True),
        "rank() over (partition by k order by j desc nulls last)",
    ),
    "dr": (dense_rank().over(order_by="j"), "dense_rank() over (order by j nulls first)"),
    "pr": (percent_rank().over("k", order_by="f"), "percent_rank() over (partition by k order by f nulls first)"),
    "cd": (cume_dist().over("k", order_by="f"), "cume_dist() over (partition by k order by f nulls first)"),
    "nt": (ntile(7).over("j", order_by="id"), "ntile(7) over (partition by j order by id)"),
    "lg": (lag("k", 2, "none").over("j", order_by="id"), "lag(k, 2, 'none') over (partition by j order by id)"),
    "ld": (lead("f").over("k", order_by="id"), "lead(f) over (partition by k order by id)"),
    "fv": (
        first_value("day").over("k", order_by="id", rows=(-3, 3)),
        "first_value(day) over (partition by k order by id rows between 3 preceding and 3 following)",
    ),
    "lv": (
        last_value("id").over("k", order_by="id", rows=(None, None)),
        "last_value(id) over (partition by k order by id rows between unbounded preceding and unbounded following)",
    ),
    "share": (col("id") / sum_("id").over("k"), "id / sum(id) over (partition by k)"),
    "run": (sum_("j").over("k", order_by="day"), "sum(j) over (partition by k order by day nulls first)"),
    "week": (
        count().over("k", order_by="day", range=("-7 days", "0 days")),
        "count(*) over (partition by k order by day nulls first "
        "range between interval 7 day preceding and interval 0 day following)",
    ),
    "slide": (
        avg(col("j") * 2).over("k", order_by="id", rows=(-100, 0)),
        "avg(j * 2) over (partition by k order by id rows between 100 preceding and current row)",
    ),
    "least": (
        min_("f").over("k", order_by="id", rows=(-9, 9)),
        "min(f) over (partition by k order by id rows between 9 preceding and 9 following)",
    ),
    "most": (max_("k").over("j"), "max(k) over (partition by j)"),
    "sd": (stddev("id").over("j", order_by="id"), "stddev_samp(id) over (partition by j order by id)"),
}
MODES = {
    "1": {"parallelism.default": 1},
    "2": {},
    "2, BATCH": {"execution.mode": "BATCH"},
    "2, spilling": {"debug.force-spill": True},
    "5, six pages": {"parallelism.default": 5, "taskmanager.memory.managed.size": "125kb"},
}


def wanted(rows, what, rest=""):
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        return connection.sql(f"select {what} from rows {rest} order by id").to_arrow_table()


def assert_same(found, expected):
    found = found.sort_by("id")
    assert found.column_names == expected.column_names
    for name in found.column_names:
        pairs = zip(found.column(name).to_pylist(), expected.column(name).to_pylist(), strict=True)
        assert [pair for pair in pairs if values_differ(*pair)][:3] == [], name


@pytest.mark.quick
@pytest.mark.parametrize("mode", MODES)
def test_all_functions_in_one_select_agree_with_duckdb(open_environment, rows, mode):
    data = open_environment(**MODES[mode]).from_arrow(rows).rebalance()
    found = data.select("id", *(made.alias(name) for name, (made, _) in FUNCTIONS.items())).to_arrow()
    assert_same(found, wanted(rows, ", ".join(["id", *(f"{text} as {name}" for name, (_, text) in FUNCTIONS.items())])))


@pytest.mark.parametrize("before_shipping", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_filters_on_ranks_keep_the_first_rows_of_each_group(open_environment, monkeypatch, rows, mode, before_shipping):
    monkeypatch.setattr(window_planning, "TOP_SHARE", 1e9 if before_shipping else 0)
    data = open_environment(**MODES[mode]).from_arrow(rows).rebalance()
    for function, text in ((row_number(), "row_number()"), (rank(), "rank()"), (dense_rank(), "dense_rank()")):
        order = ["j", "id"] if text == "row_number()" else "j"
        found = data.filter(function.over("k", order_by=order) <= 5).select("id", "k", "j").to_arrow()
        by = "j nulls first, id" if text == "row_number()" else "j nulls first"
        assert_same(found, wanted(rows, "id, k, j", f"qualify {text} over (partition by k order by {by}) <= 5"))


def test_windows_among_other_operators(open_environment, rows):
    data = open_environment(**MODES["2"]).from_arrow(rows).rebalance()
    best = data.with_columns(r=row_number().over("j", order_by="id")).filter(col("r") == 1)
    found = data.join(best.select("j", col("id").alias("best")), on="j").group_by("j").agg(n=count(), b=min_("best"))
    expected = wanted(rows, "j as id, count(*) as n, min(id) as b", "where j is not null group by j")
    assert_same(found.select(col("j").alias("id"), "n", "b").to_arrow(), expected)


def test_one_partition_of_many_times_the_memory(open_environment):
    table = pa.table({"id": range(200_000), "x": [number % 1_000 for number in range(200_000)]})
    data = open_environment(**{"taskmanager.memory.managed.size": "400kb"}).from_arrow(table)
    found = data.select(
        "id",
        ntile(4).over(order_by="id").alias("quarter"),
        sum_("x").over().alias("total"),
        cume_dist().over(order_by="x").alias("share"),
        avg("x").over(order_by="id", rows=(-50_000, 0)).alias("mean"),
    ).to_arrow()
    text = (
        "id, ntile(4) over (order by id) as quarter, sum(x) over () as total, cume_dist() over (order by x) as share, "
    )
    text += "avg(x) over (order by id rows between 50000 preceding and current row) as mean"
    assert_same(found, wanted(table, text))


@pytest.mark.parametrize(
    "data_type",
    [pa.decimal128(10, 2), pa.decimal128(38, 18), pa.decimal128(38, 30), pa.decimal256(50, 5), pa.decimal256(20, 2)],
    ids=str,
)
def test_frames_over_decimals_of_any_width(environment, data_type):
    prices = [Decimal(each) for each in ("1", "2.5", "2.5", "5", "90")] + [None]
    data = environment.from_arrow(pa.table({"o": pa.array(prices, data_type), "v": [1, 2, 4, 8, 16, 32]}))
    found = data.select(
        "v",
        near=sum_("v").over(order_by="o", range=(Decimal("-2.5"), 0)),
        far=sum_("v").over(order_by="o", range=(-1000, 1000)),
        total=sum_("o").over(order_by="v", rows=(-1, 0)),
        least=min_("o").over(order_by="v", rows=(-1, 0)),
        mean=avg("o").over(order_by="v", rows=(-1, 0)),
    ).sort("v")
    columns = found.to_arrow().to_pydict()
    assert columns["near"] == [1, 7, 7, 14, 16, 32]
    assert columns["far"] == [31, 31, 31, 31, 31, 32]
    assert columns["total"] == [Decimal(each) for each in ("1", "3.5", "5", "7.5", "95", "90")]
    assert columns["least"] == [Decimal(each) for each in ("1", "1", "2.5", "2.5", "5", "90")]
    assert columns["mean"] == [1.0, 1.75, 2.5, 3.75, 47.5, 90.0]
    assert found.schema.field("total").type == pa.decimal128(38, data_type.scale)


def test_decimals_that_windows_have_no_room_for_are_named(environment):
    wide = pa.table({"o": pa.array([Decimal("1" * 45)], pa.decimal256(50, 2)), "v": [1]})
    data = environment.from_arrow(wide)
    for expression in (sum_("v").over(order_by="o", range=(-1, 0)), sum_("o").over(order_by="v")):
        with pytest.raises(DataError, match=r"1{45}\.00 does not fit into decimal128\(38, 2\)"):
            data.select(y=expression).to_arrow()
    tiny = environment.from_arrow(pa.table({"o": pa.array([Decimal("0.5")], pa.decimal256(50, 45)), "v": [1]}))
    with pytest.raises(SchemaError, match="in which no distances are measured; cast it"):
        tiny.select(sum_("v").over(order_by="o", range=(-1, 0)).alias("y"))
