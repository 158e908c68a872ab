"""Which window functions over all rows run in ranges of their order, and which in one subtask."""

import pyarrow as pa
import pytest

from engine import (
    Environment,
    avg,
    col,
    count,
    dense_rank,
    first_value,
    lag,
    last_value,
    max_,
    ntile,
    rank,
    row_number,
    stddev,
    sum_,
)  # fmt: skip
from engine.optimizer import sort_planning, window_planning

TABLE = pa.table({"k": ["a", "b"] * 50, "j": list(range(100)), "x": [1.5] * 100})
RUNNING = {"order_by": "j", "rows": (None, 0)}


@pytest.fixture
def data(monkeypatch):
    monkeypatch.setattr(sort_planning, "SMALL_SORT_BYTES", 0)
    monkeypatch.setattr(window_planning, "SMALL_SORT_BYTES", 0)
    return Environment(config={"parallelism.default": 3}).from_arrow(TABLE)


@pytest.mark.parametrize(
    "made",
    [
        row_number().over(order_by="j"),
        rank().over(order_by=["k", "j"]),
        sum_("x").over(order_by="j"),
        avg("x").over(**RUNNING),
        stddev("x").over(**RUNNING),
        max_("k").over(**RUNNING),
        count().over(**RUNNING),
        last_value("k").over(order_by="j"),
    ],
)
def test_functions_that_begin_anywhere_run_in_ranges(data, made):
    text = data.select(r=made).explain()
    assert "MERGE_RUNS (RANGES_WINDOW), parallelism 3" in text or "MERGE_RUNS, parallelism 3" in text
    assert "SORT_RUNS" in text and "GLOBAL" not in text.split("window in order")[1]


@pytest.mark.parametrize(
    "made",
    [
        dense_rank().over(order_by="j"),
        lag("x").over(order_by="j"),
        ntile(3).over(order_by="j"),
        first_value("x").over(order_by="j"),
        sum_("x").over(order_by="j", rows=(-1, 0)),
        sum_("x").over(order_by="j", rows=(None, None)),
        sum_("x").over(),
        row_number().over("k", order_by="j"),
    ],
)
def test_others_do_not(data, made):
    assert "RUNS" not in data.select(r=made).explain()


def test_peers_in_fewer_keys_than_the_order_has_stay_together(data):
    made = data.select(a=rank().over(order_by="j"), b=row_number().over(order_by=["j", "k"]))
    assert made.explain().count(", WINDOW,") == 1
    assert "RUNS" not in made.explain()


def test_small_inputs_and_those_in_an_order_stay_in_one_subtask(data, monkeypatch):
    ordered = data.sort("j").select(n=row_number().over(order_by="j")).explain()
    assert "window in order of j: row_number(), WINDOW, parallelism 1" in ordered
    assert "sort for window" not in ordered
    monkeypatch.setattr(sort_planning, "SMALL_SORT_BYTES", 1e9)
    assert "RUNS" not in data.select(n=row_number().over(order_by="j")).explain()


def test_the_first_rows_of_all_are_a_top_of_each_subtask(data):
    first = data.with_columns(n=row_number().over(order_by="j")).filter(col("n") <= 3)
    assert "row_number up to 3" in first.explain() and "RUNS" not in first.explain()
