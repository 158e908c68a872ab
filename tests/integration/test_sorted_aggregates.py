"""Groups in the order of their keys, combined in the sort, against DuckDB."""

import random

import pyarrow as pa
import pytest

from engine import DataError, JobExecutionError, avg, col, count, max_, min_, stddev, sum_
from engine.optimizer import sort_planning, sorted_aggregates
from tests.integration.row_oracle import duck

MODES = {
    "two": {"parallelism.default": 2},
    "three, spilling": {"parallelism.default": 3, "debug.force-spill": True},
    "two, batch": {"parallelism.default": 2, "execution.mode": "BATCH"},
    "three, little memory": {"parallelism.default": 3, "taskmanager.memory.managed.size": "3mb"},
}
#: (rows, distinct keys, share of the first key, share of nulls)
SHAPES = {
    "few groups": (4_000, 7, 0.0, 0.1),
    "many groups": (4_000, 3_000, 0.0, 0.1),
    "skew": (4_000, 600, 0.9, 0.0),
    "nulls": (500, 20, 0.0, 0.9),
    "nothing": (0, 1, 0.0, 0.0),
}


@pytest.fixture(params=MODES)
def data(request, open_environment, table, monkeypatch):
    """The table in an environment that sorts in several subtasks whatever the size, and always combines."""
    monkeypatch.setattr(sort_planning, "SMALL_SORT_BYTES", 0.0)
    monkeypatch.setattr(sorted_aggregates, "_why_dearer", lambda *_: "")
    return open_environment(**MODES[request.param]).from_arrow(table).rebalance()


@pytest.fixture(params=SHAPES)
def table(request):
    """Keys k (int64), f (double), s (string); values x (int32), y (double)."""
    rows, distinct, skew, nulls = SHAPES[request.param]
    chance = random.Random(request.param)

    def some(make):
        return [None if chance.random() < nulls else make() for _ in range(rows)]

    return pa.table(
        {
            "k": pa.array(some(lambda: 0 if chance.random() < skew else chance.randrange(distinct)), pa.int64()),
            "f": pa.array(some(lambda: chance.choice([0.0, -0.0, 1.5, float("nan")])), pa.float64()),
            "s": pa.array(
                some(lambda: chance.choice(["", "a", "the same beginning", "the same beginning b"])), pa.string()
            ),
            "x": pa.array(some(lambda: chance.randrange(-40, 40)), pa.int32()),
            "y": pa.array(some(lambda: chance.randrange(1000) / 8), pa.float64()),
        }
    )


def plain(rows):
    return [tuple("nan" if cell != cell else cell for cell in row) for row in rows]


def rows_in_order(result):
    return plain(zip(*(column.to_pylist() for column in result.to_arrow().columns), strict=True))


@pytest.mark.quick
def test_groups_come_in_the_order_of_their_key(data, table):
    result = (
        data.group_by("k")
        .agg(n=count(), xs=count("x"), total=sum_("x"), mean=avg("x"), least=min_("y"), most=max_("y"), all=sum_("y"))
        .sort("k")
    )
    assert "SORTED_AGGREGATE" in result.explain()
    expected = duck(
        "SELECT k, count(*), count(x), sum(x)::BIGINT, avg(x), min(y), max(y), sum(y) FROM t1 GROUP BY k "
        "ORDER BY k NULLS FIRST",
        t1=table,
    )
    assert rows_in_order(result) == plain(expected)


@pytest.mark.sample("pairs")
def test_the_least_and_largest_strings_and_binaries_of_groups_come_in_order(data, table):
    table = table.append_column("b", table["s"].cast(pa.binary()))
    data = data.with_columns(b=col("s").cast(pa.binary()))
    groups = data.group_by("k").agg(low=min_("s"), n=count(), high=max_("s"), total=sum_("x"), last=max_("b"))
    result = groups.sort("k", descending=True)
    assert "SORTED_AGGREGATE" in result.explain()
    expected = duck(
        "SELECT k, min(s), count(*), max(s), sum(x)::BIGINT, max(b) FROM t1 GROUP BY k ORDER BY k DESC NULLS FIRST",
        t1=table,
    )
    assert rows_in_order(result) == plain(expected)


@pytest.mark.sample("values")
@pytest.mark.parametrize("kept", ["filter", "projection", "both"])
def test_filters_and_projections_between_groups_and_sort(data, table, kept):
    groups = data.group_by("k", "s").agg(n=count(), total=sum_("x"), high=max_("y"))
    if kept != "projection":
        groups = groups.filter((col("n") > 1) & col("k").is_not_null())
    columns = "k, s, n, total, high"
    if kept != "filter":
        groups = groups.select("s", "k", (col("total") + col("n")).alias("both"))
        columns = "s, k, total + n"
    result = groups.sort(["k", "s"])
    having = "" if kept == "projection" else "WHERE n > 1 AND k IS NOT NULL"
    assert "SORTED_AGGREGATE" in result.explain()
    expected = duck(
        f"WITH g AS (SELECT k, s, count(*) n, sum(x)::BIGINT total, max(y) high FROM t1 GROUP BY k, s) "
        f"SELECT {columns} FROM g {having} ORDER BY k NULLS FIRST, s NULLS FIRST",
        t1=table,
    )
    assert rows_in_order(result) == plain(expected)


@pytest.mark.parametrize("descending", [False, True])
def test_groups_of_several_keys_are_sorted_in_any_order_of_them(data, table, descending):
    groups = data.group_by("k", "s", "f").agg(n=count(), total=sum_("x"), spread=stddev("y"))
    result = groups.sort(["f", "s", "k"], descending=[descending, not descending, descending], nulls_last=True)
    assert "SORTED_AGGREGATE" in result.explain()
    down, up = ("DESC", "ASC") if descending else ("ASC", "DESC")
    # DuckDB groups -0.0 with 0.0, and NaN is one value and the largest, as here
    expected = duck(
        "SELECT k, s, f, count(*), sum(x)::BIGINT, stddev_samp(y) FROM t1 GROUP BY k, s, f "
        f"ORDER BY f {down} NULLS LAST, s {up} NULLS LAST, k {down} NULLS LAST",
        t1=table,
    )
    found = rows_in_order(result)
    assert [row[:5] for row in found] == [row[:5] for row in plain(expected)]
    for row, wanted in zip(found, expected, strict=True):
        assert row[5] == (None if wanted[5] is None else pytest.approx(wanted[5], rel=1e-6, abs=1e-6))


@pytest.mark.thorough
def test_a_sort_by_some_of_the_keys_has_every_group_once(data, table):
    result = data.group_by("k", "s").agg(n=count()).sort("s")
    assert "SORTED_AGGREGATE" in result.explain()
    found = rows_in_order(result)
    texts = [row[1] for row in found]
    assert texts == sorted(texts, key=lambda text: (text is not None, text or ""))
    expected = duck("SELECT k, s, count(*) FROM t1 GROUP BY k, s", t1=table)
    assert sorted(map(repr, found)) == sorted(map(repr, plain(expected)))


@pytest.mark.thorough
def test_distinct_rows_come_in_order(data, table):
    result = data.select("k", "s").distinct().sort(["s", "k"])
    assert "SORTED_AGGREGATE" in result.explain()
    expected = duck("SELECT DISTINCT k, s FROM t1 ORDER BY s NULLS FIRST, k NULLS FIRST", t1=table)
    assert rows_in_order(result) == plain(expected)


@pytest.mark.thorough
def test_what_follows_keeps_the_order(data, table):
    groups = data.group_by("k").agg(total=sum_("x")).sort("k", descending=True, nulls_last=True)
    result = groups.filter(col("total") > 0).limit(10)
    expected = duck(
        "SELECT k, sum(x)::BIGINT AS total FROM t1 GROUP BY k HAVING total > 0 ORDER BY k DESC NULLS LAST LIMIT 10",
        t1=table,
    )
    assert rows_in_order(result) == plain(expected)


@pytest.mark.parametrize("mode", MODES)
def test_a_sum_that_overflows_says_which_one(open_environment, monkeypatch, mode):
    monkeypatch.setattr(sort_planning, "SMALL_SORT_BYTES", 0.0)
    monkeypatch.setattr(sorted_aggregates, "_why_dearer", lambda *_: "")
    numbers = pa.table({"k": [1, 1, *range(2, 2000)], "x": [2**63 - 1, 1, *range(1998)]})
    data = open_environment(**MODES[mode]).from_arrow(numbers).rebalance()
    with pytest.raises(JobExecutionError, match="overflows") as failure:
        data.group_by("k").agg(total=sum_("x")).sort("k").to_arrow()
    assert DataError.__name__ in repr(failure.value) or "sum(" in str(failure.value)
