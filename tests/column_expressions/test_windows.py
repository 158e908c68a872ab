"""Window functions as they are written: what is allowed where, types, frames and their distances, and the plan made."""

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from engine import (
    Environment,
    SchemaError,
    avg,
    col,
    count,
    first,
    lag,
    last_value,
    lead,
    lit,
    nth_value,
    ntile,
    rank,
    row_number,
    sum_,
)
from engine.column_expressions.windows import WindowFunction
from engine.graph.plan import Window
from engine.graph.sort_key import SortKey

SCHEMA = pa.schema(
    {
        "k": pa.string(),
        "j": pa.int64(),
        "x": pa.int32(),
        "f": pa.float32(),
        "p": pa.decimal128(10, 2),
        "day": pa.date32(),
        "at": pa.timestamp("ms", "UTC"),
        "items": pa.list_(pa.int64()),
    }
)


@pytest.fixture
def data():
    return Environment(config={"parallelism.default": 1}).from_arrow(SCHEMA.empty_table())


def windows_of(data):
    """The Windows of a data set, lowest first."""
    found, nodes = [], [data._node]
    while nodes:
        node = nodes.pop()
        if isinstance(node.operator, Window):
            found.insert(0, node.operator)
        nodes += node.inputs
    return found


def frame_of(expression, data):
    return windows_of(data.select(expression.alias("w")))[0].calls[0].frame


def test_results_have_names_and_types(data):
    made = data.with_columns(
        rank().over("k", order_by="j").alias("r"),
        share=col("f") / sum_("f").over("k"),
        before=lag("items", 2).over("k", order_by="j"),
    )
    assert made.schema.names == [*SCHEMA.names, "r", "share", "before"]
    assert made.schema.types[-3:] == [pa.int64(), pa.float64(), pa.list_(pa.int64())]
    assert data.select(sum_("x").over("k")).columns == ["sum(x) over (partition by k)"]
    assert data.select(sum_("x").alias("t").over("k")).columns == ["t"]


def test_filter_keeps_the_columns(data):
    kept = data.filter((rank().over("k", order_by="x") <= 3) & (col("j") > 1))
    assert kept.schema == data.schema
    assert len(windows_of(kept)) == 1


def test_functions_with_orders_that_do_not_contradict_share_a_window(data):
    made = data.select(
        rank().over("k", order_by=["j", "x"]).alias("a"),
        rank().over("k", order_by="j").alias("b"),
        count().over("k").alias("c"),
        rank().over("k", order_by="x").alias("d"),
        rank().over("k", order_by="j", descending=True).alias("e"),
        count().over(["j", "k"]).alias("f"),
    )
    one, two, three, four = windows_of(made)
    assert (one.partition_by, one.order_by) == (("k",), (SortKey("j"), SortKey("x")))
    assert [(call.function, call.order_count) for call in one.calls] == [("rank", 2), ("rank", 1), ("count_all", 0)]
    assert (two.order_by, three.order_by) == ((SortKey("x"),), (SortKey("j", True),))
    assert (four.partition_by, four.order_by) == (("k", "j"), ())


def test_keys_and_arguments_may_be_expressions_and_equal_ones_are_computed_once(data):
    half = col("x") // 2
    made = data.select(sum_(half).over(half, order_by=half + 1).alias("a"), avg(half).over(half).alias("b"))
    (window,) = windows_of(made)
    assert len(window.partition_by) == 1
    assert {call.argument for call in window.calls} == set(window.partition_by)


def test_an_order_key_that_is_a_partition_key_orders_nothing(data):
    (window,) = windows_of(data.select(rank().over("k", order_by=["k", "j"]).alias("a")))
    assert window.order_by == (SortKey("j"),)


@pytest.mark.parametrize(
    ("key", "bounds", "wanted"),
    [
        ("x", (-7, 0), (-7, 0)),
        ("x", (None, 3.0), (None, 3)),
        ("f", (-1, 0.5), (-1.0, 0.5)),
        ("p", (Decimal("-1.5"), 2), (-150, 200)),
        ("day", ("-7 days", "0 days"), (-7, 0)),
        ("day", ("-1 week", "48 hours"), (-7, 2)),
        ("at", ("-1 hour 30 min", "5s"), (-5_400_000, 5_000)),
        ("at", (-datetime.timedelta(days=1), None), (-86_400_000, None)),
    ],
)
def test_distances_are_units_of_the_order_key(data, key, bounds, wanted):
    frame = frame_of(sum_("x").over("k", order_by=key, range=bounds), data)
    assert (frame.kind, frame.start, frame.end) == ("range", *wanted)


def refused(data):
    """What is written wrong, and a part of what is said."""
    yield lambda: data.select(sum_("x").over("k", order_by="k2")), "k2"
    yield lambda: data.select(sum_("k").over("k")), "takes numbers"
    yield lambda: data.select(rank().over("k")), "order"
    yield lambda: data.select(lead("x").over("k")), "order"
    yield lambda: data.select(rank().over("k", order_by="x", rows=(0, 1))), "whole partition"
    yield lambda: data.select(count().over("items")), "cannot be a key"
    yield lambda: data.select(count().over("k", order_by="items")), "cannot be a key"
    yield lambda: data.select(count().over("k", order_by="x", rows=(1, 0))), "behind its end"
    yield lambda: data.select(count().over("k", order_by="x", rows=(1.5, 2))), "number of rows"
    yield lambda: data.select(count().over("k", order_by="x", rows=3)), "pair"
    yield lambda: data.select(count().over("k", rows=(0, 1))), "counts in an order"
    yield lambda: data.select(count().over("k", order_by="x", rows=(0, 1), range=(0, 1))), "not in several"
    yield lambda: data.select(count().over("k", order_by=["x", "j"], range=(-1, 0))), "one order key"
    yield lambda: data.select(count().over("k", order_by="k", range=(-1, 0))), "number"
    yield lambda: data.select(count().over("j", order_by="j", range=(-2, -1))), "same order key"
    yield lambda: data.select(count().over("k", order_by="x", range=(-0.5, 0))), "no distance"
    yield lambda: data.select(count().over("k", order_by="day", range=(-7, 0))), "say which unit"
    yield lambda: data.select(count().over("k", order_by="x", range=(-(10**19), 0))), "too far; leave it out"
    yield lambda: data.select(count().over("k", order_by="day", range=("-1 h", 0))), "whole days"
    yield lambda: data.select(count().over("k", order_by="at", range=("-1 month", 0))), "no one length"
    yield lambda: data.select(count().over("k", order_by="x", range=("1 days", 0))), "no number"
    yield lambda: data.select(count().over("k", order_by="x", descending=[True, False])), "one for each of x"
    yield lambda: data.select(sum_(sum_("x").over("k")).over("k")), "within another"
    yield lambda: data.select(lag("x", 1, lit("a")).over("k", order_by="x")), "default"
    yield lambda: data.group_by(count().over("k").alias("n")).agg(m=count()), "select, with_columns and filter only"
    yield lambda: data.group_by("k").agg(m=sum_(col("x") + count().over("k"))), "select, with_columns and filter only"
    yield lambda: data.filter(sum_("x").over("k")), "must be a bool"
    yield lambda: data.select(row_number()), "needs a window"
    yield lambda: data.select(col("x") + row_number()), "over"
    yield lambda: data.select(col("x") + sum_("x")), "over"
    yield lambda: ntile(0), "ntile"
    yield lambda: nth_value("x", 0), "nth_value"
    yield lambda: lag("x", -1), "lag"
    yield lambda: bool(rank()), "is a window function"


def test_what_is_not_allowed_is_said_when_it_is_written(data):
    for number, (write, text) in enumerate(refused(data)):
        try:
            write()
        except SchemaError as error:
            assert text in str(error), number
        else:
            raise AssertionError(f"{number}: {text}")


def test_first_is_first_value_and_functions_wait_for_their_window(data):
    (window,) = windows_of(data.select(first("x").over("k", order_by="j").alias("a")))
    assert window.calls[0].function == "first_value"
    assert repr(last_value("x")) == "<WindowFunction last_value>"
    assert isinstance(last_value("x"), WindowFunction)
