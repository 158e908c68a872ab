"""Aggregates of different values and of two arguments over windows: against DuckDB, and what is refused."""

import random

import duckdb
import pyarrow as pa
import pytest

from engine import (
    avg,
    bit_or,
    col,
    collect_list,
    corr,
    count_distinct,
    covar,
    covar_pop,
    max_,
    max_by,
    median,
    min_by,
    quantile,
    skewness,
    stddev,
    string_agg,
    sum_,
)
from engine import mode as mode_of
from engine.errors import NotYetSupportedError, SchemaError
from engine.optimizer import sort_planning, window_planning
from tests.window.duckdb_windows import values_differ

ROWS = 1_500
MODES = {
    "1": {"parallelism.default": 1},
    "3": {"parallelism.default": 3},
    "3, spilling": {"parallelism.default": 3, "debug.force-spill": True},
    "2, six pages": {"taskmanager.memory.managed.size": "250kb"},
}
#: window of ours -> SQL
WINDOWS = {
    "whole": ({"partition_by": "k"}, "partition by k"),
    "all": ({}, ""),
    "peers": ({"partition_by": "k", "order_by": "j"}, "partition by k order by j nulls first"),
    "peers of all": ({"order_by": "j"}, "order by j nulls first"),
    "rows": (
        {"partition_by": "k", "order_by": "id", "descending": True, "rows": (None, 0)},
        "partition by k order by id desc rows between unbounded preceding and current row",
    ),
    "whole in order": (
        {"partition_by": "k", "order_by": "id", "rows": (None, None)},
        "partition by k order by id rows between unbounded preceding and unbounded following",
    ),
}
SLIDING = {
    "sliding": (
        {"partition_by": "k", "order_by": "id", "rows": (-7, 2)},
        "partition by k order by id rows between 7 preceding and 2 following",
    ),
    "distances": (
        {"partition_by": "k", "order_by": "id", "range": (-40, 0)},
        "partition by k order by id range between 40 preceding and current row",
    ),
    "before": (
        {"partition_by": "k", "order_by": "id", "rows": (None, -1)},
        "partition by k order by id rows between unbounded preceding and 1 preceding",
    ),
    "behind": (
        {"partition_by": "k", "order_by": "id", "rows": (1, None)},
        "partition by k order by id rows between 1 following and unbounded following",
    ),
}
ANY_FRAME = {
    "covar": (covar("x", "y"), "covar_samp(x, y)"),
    "covar_pop": (covar_pop("x", "y"), "covar_pop(x, y)"),
    "corr": (corr("x", "y"), "corr(x, y)"),
    "of_far": (covar("far", "x"), "covar_samp(far, x)"),
    "kept": (covar("x", "y", filter=col("j") > 3), "covar_samp(case when j > 3 then x end, y)"),
    "latest": (max_by("text", "u"), "max_by(text, case when text is not null then u end)"),
    "first": (min_by("x", "u"), "min_by(x, case when x is not null then u end)"),
    "by_text": (min_by("u", "name"), "min_by(u, case when u is not null then name end)"),
}
FUNCTIONS = {
    **ANY_FRAME,
    "kinds": (count_distinct("j"), "count(distinct j)"),
    "texts": (count_distinct("text"), "count(distinct text)"),
    "total": (sum_("j", distinct=True), "sum(distinct j)"),
    "mean": (avg("j", distinct=True), "avg(distinct j)"),
    "most": (max_("j", distinct=True), "max(j)"),
    "spread": (stddev("j", distinct=True), "stddev_samp(distinct j)"),
    "some": (count_distinct("j", filter=col("x") > 0), "count(distinct case when x > 0 then j end)"),
}
OF_GROUPS = {
    "middle": (median("j"), "median(j)"),
    "high": (quantile("x", 0.9), "quantile_cont(x, 0.9)"),
    "positive": (median("x", filter=col("x") > 0), "median(case when x > 0 then x end)"),
    "total": (sum_("j"), "sum(j)"),
}


@pytest.fixture(autouse=True)
def small_inputs_are_moved_too(monkeypatch):
    monkeypatch.setattr(sort_planning, "SMALL_SORT_BYTES", 0)
    monkeypatch.setattr(window_planning, "SMALL_SORT_BYTES", 0)


@pytest.fixture(scope="module")
def rows():
    rng = random.Random(3)
    unique = rng.sample(range(10 * ROWS), ROWS)
    return pa.table(
        {
            "id": list(range(ROWS)),
            "k": [rng.choice([None, "a", "b", "c", "alone"][: 4 if number else 5]) for number in range(ROWS)],
            "j": [rng.choice([None, *range(12)]) for _ in range(ROWS)],
            "x": [rng.choice([None, rng.gauss(0, 1), 2.0]) for _ in range(ROWS)],
            "y": [rng.choice([None, rng.gauss(5, 3), 2.0]) for _ in range(ROWS)],
            "far": [1e6 + rng.random() for _ in range(ROWS)],
            "text": [rng.choice([None, "", "a", "ab", "long" * 20]) for _ in range(ROWS)],
            "u": [None if number % 11 == 0 else number for number in unique],
            "name": [None if number % 7 == 0 else f"ü{number}" for number in unique],
        }
    )


def assert_agree(data, rows, functions, window):
    arguments, sql = window
    found = data.select("id", **{name: made.over(**arguments) for name, (made, _) in functions.items()}).to_arrow()
    found = found.sort_by("id")
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        what = ", ".join(["id", *(f"{text} over ({sql}) as {name}" for name, (_, text) in functions.items())])
        wanted = connection.sql(f"select {what} from rows order by id").to_arrow_table()
    for name in functions:
        pairs = zip(found.column(name).to_pylist(), wanted.column(name).to_pylist(), strict=True)
        far = [pair for pair in pairs if values_differ(*pair) and not is_near(*pair)]
        assert far[:3] == [], name


def is_near(found, wanted):
    """Differences of sums of numbers around 1 have no digits of their own where they are almost nothing."""
    return None not in (found, wanted) and abs(found - wanted) <= 1e-9


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("mode", MODES)
def test_all_of_them_agree_with_duckdb(open_environment, rows, mode, window):
    data = open_environment(**MODES[mode]).from_arrow(rows).rebalance()
    assert_agree(data, rows, FUNCTIONS, WINDOWS[window])


@pytest.mark.parametrize("window", SLIDING)
def test_pairs_in_frames_that_slide_agree_with_duckdb(open_environment, rows, window):
    data = open_environment(**MODES["3"]).from_arrow(rows).rebalance()
    assert_agree(data, rows, ANY_FRAME, SLIDING[window])


@pytest.mark.parametrize("window", ["whole", "all", "whole in order"])
@pytest.mark.parametrize("mode", MODES)
def test_what_needs_all_values_agrees_with_duckdb(open_environment, rows, mode, window):
    data = open_environment(**MODES[mode]).from_arrow(rows).rebalance()
    assert_agree(data, rows, OF_GROUPS, WINDOWS[window])


@pytest.mark.parametrize("mode", MODES)
def test_what_is_computed_of_groups_is_the_same_for_each_of_their_rows(open_environment, rows, mode):
    data = open_environment(**MODES[mode]).from_arrow(rows).rebalance()
    made = {
        "often": mode_of("j"),
        "texts": string_agg("text", "|", order_by="id"),
        "all": collect_list("j", order_by="id"),
        "bits": bit_or("j"),
        "bent": skewness("x"),
    }
    odd = col("u") % 2 == 0  # null for some rows: keys are expressions, and null is one of them
    found = data.select("id", g=odd, off=col("x") - median("x").over(odd), **{n: a.over(odd) for n, a in made.items()})
    groups = data.with_columns(g=odd).group_by("g").agg(middle=median("x"), **made)
    wanted = {row.g: row for row in groups.collect()}
    assert len(wanted) == 3
    xs = dict(zip(rows["id"].to_pylist(), rows["x"].to_pylist(), strict=True))
    for row in found.collect():
        group = wanted[row.g]
        assert row[3:7] == group[2:6]
        assert is_near(row.bent, group.bent)
        assert row.off == (None if xs[row.id] is None else xs[row.id] - group.middle)
    assert data.filter(median("j").over(odd) > 100).count() == 0
    assert data.filter(col("id") == median("id").over()).count() == 0
    assert data.filter((col("id") - median("id").over()).abs() < 1).count() == 2


def test_rows_that_are_equal_in_the_order_are_seen_in_one_order(open_environment):
    table = pa.table({"o": [number // 50 for number in range(400)], "x": [number % 7 for number in range(400)]})
    data = open_environment(**MODES["3"]).from_arrow(table).rebalance()
    window = {"order_by": "o", "rows": (None, 0)}
    found = data.select(
        "o", "x", kinds=count_distinct("x").over(**window), most=max_by("x", "x").over(**window)
    ).collect()
    # whatever order the equal ones have: the first row has one kind, each sees itself, and no count falls
    by_kinds = sorted(found, key=lambda row: (row.o, row.kinds))
    assert by_kinds[0].kinds == 1 and by_kinds[-1].kinds == 7
    assert all(row.most >= row.x for row in found)
    assert {row.kinds for row in found if row.o > 0} == {7}


def test_values_of_equal_keys_and_nan_are_as_those_of_groups(open_environment):
    nan = float("nan")
    table = pa.table({"k": [1, 1, 1, 2, 2], "v": ["c", "b", "a", None, "z"], "by": [nan, 5.0, nan, 9.0, 1.0]})
    data = open_environment().from_arrow(table)
    found = data.select("k", a=max_by("v", "by").over("k"), b=min_by("v", "by").over("k")).distinct()
    of_groups = data.group_by("k").agg(a=max_by("v", "by"), b=min_by("v", "by"))
    assert sorted(found.collect()) == sorted(of_groups.collect())


def test_infinities_stay_in_their_frames(open_environment):
    table = pa.table({"id": list(range(6)), "x": [1.0, 2.0, float("inf"), 1.0, 2.0, 4.0]})
    data = open_environment().from_arrow(table)
    found = data.select("id", c=covar_pop("x", "id").over(order_by="id", rows=(-1, 0))).sort("id").collect()
    assert [row.c for row in found][4:] == [0.25, 0.5]


def test_what_has_no_cheap_way_is_refused(open_environment, rows):
    data = open_environment().from_arrow(rows)
    sliding = {"order_by": "id", "rows": (-2, 0)}
    with pytest.raises(
        NotYetSupportedError, match=r"a frame that begins behind the first row is not supported yet; begin it"
    ):
        data.select(a=sum_("j", distinct=True).over(**sliding))
    wide = data.select("id", "u", wide=col("j").cast(pa.decimal256(50, 2)))
    assert wide.select(a=max_by("wide", "u").over(order_by="id")).count() == ROWS
    with pytest.raises(NotYetSupportedError, match="in a frame that does not end with the current row"):
        wide.select(a=max_by("wide", "u").over(order_by="id", rows=(None, -1)))
    for made in (mode_of("j"), skewness("x")):
        with pytest.raises(NotYetSupportedError, match=r"over frames \(of whole partitions alone: leave out order_by="):
            data.select(a=made.over("k", order_by="id"))
        with pytest.raises(NotYetSupportedError, match="over frames"):
            data.select(a=made.over(**sliding))
    with pytest.raises(SchemaError, match="it takes numbers, an argument is string"):
        data.select(a=corr("text", "x").over("k"))
