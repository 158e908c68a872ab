"""Aggregates by what agg() makes of them: types, operators, errors."""

import pyarrow as pa
import pytest

import engine
from engine import (
    NotYetSupportedError,
    SchemaError,
    all_,
    any_,
    approx_count_distinct,
    approx_quantile,
    bit_or,
    col,
    corr,
    count,
    count_distinct,
    count_if,
    first,
    max_by,
    median,
    mode,
    stddev_pop,
    sum_,
    when,
)
from engine.column_expressions.aggregates import Aggregate
from engine.lowering.logical_node import build_plan


@pytest.fixture(scope="module")
def env():
    with engine.Environment() as environment:
        yield environment


@pytest.fixture(scope="module")
def data(env):
    return env.from_arrow(pa.table({"k": ["a", None], "x": [1, 2], "f": [0.5, None], "l": [[1], None]}))


def operators(data_set):
    return [type(node.operator).__name__ for node in build_plan([data_set._node], "").nodes]


def test_aggregates_with_states_are_one_operator(data):
    found = data.group_by("k").agg(a=sum_("x", filter=col("f") > 0), b=count_if(col("x") > 1), c=any_(col("f") > 1))
    assert operators(found) == ["Source", "Aggregate"]
    assert found.schema.names == ["k", "a", "b", "c"]
    assert found.schema.types[1:] == [pa.int64(), pa.int64(), pa.bool_()]


def test_equal_parts_of_expressions_are_computed_once(data):
    found = data.group_by("k").agg(
        share=sum_("x") / count(), more=sum_("x") + 1, k2=col("k").str.length() + count(), total=sum_("x")
    )
    assert operators(found) == ["Source", "Aggregate", "Project"]
    assert len(build_plan([found._node], "").nodes[1].operator.calls) == 2
    assert found.schema.names == ["k", "share", "more", "k2", "total"]


def test_different_values_of_one_argument_are_found_once(data):
    found = data.agg(a=count_distinct("x"), b=sum_("x", distinct=True), c=count("x", distinct=True))
    assert operators(found) == ["Source", "Project", "Aggregate", "Aggregate"]


def test_a_first_row_that_a_filter_leaves_out_does_not_take_its_group_with_it(data):
    found = data.group_by("k").agg(a=first("x", filter=col("x") > 1))
    assert operators(found).count("Filter") == 1
    assert operators(found)[-2:] == ["Union", "Aggregate"]


def test_agg_without_groups_is_one_row(data):
    assert operators(data.agg(a=count())) == ["Source", "Aggregate"]
    assert build_plan([data.agg(a=count())._node], "").nodes[1].operator.keys == ()


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"a": col("x") + sum_("x")}, "column 'x' is neither a key nor in an aggregate"),
        ({"a": col("x")}, "is no aggregate"),
        ({"a": 1}, "is no aggregate"),
        ({"a": sum_("x", filter="x")}, "must be a bool"),
        ({"a": count_if("x")}, "must be a bool"),
        ({"a": all_("x")}, "must be a bool"),
        ({"a": mode("l")}, r"mode\(l\): values of list<.*> have no order"),
        ({"a": max_by("x", "l")}, "values of list<.*> have no order"),
        ({"a": count_distinct("l")}, "cannot be compared"),
        ({"a": approx_count_distinct("l")}, "cannot be compared"),
        ({"a": approx_quantile("k", 0.5)}, "approx_quantile takes numbers, the argument is string"),
        ({"a": corr("x", "k")}, r"corr\(x, k\) takes numbers, k is string"),
        ({"a": bit_or("f")}, "bit_or takes integers"),
        ({"a": sum_("k") / count()}, "takes numbers"),
    ],
)
def test_what_agg_refuses(data, named, message):
    with pytest.raises(SchemaError, match=message):
        data.group_by("k").agg(**named)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sum_(count() + 1), "an aggregate of an aggregate"),
        (lambda: sum_("x", filter=count() > 1), "an aggregate of an aggregate"),
        (lambda: approx_quantile("x", 1.5), "is no share of the values"),
        (lambda: count(distinct=True), "different values of what"),
        (lambda: sum_("x", distinct="yes"), "True or False"),
        (lambda: bool(sum_("x") / 2), "is an aggregate; use it in group_by"),
    ],
)
def test_what_aggregates_refuse(make, message):
    with pytest.raises(SchemaError, match=message):
        make()


def test_aggregates_stand_in_agg_only(data):
    with pytest.raises(SchemaError, match=r"sum\(x\) is an aggregate: it stands in group_by"):
        data.with_columns(a=sum_("x"))
    with pytest.raises(SchemaError, match="is an aggregate"):
        data.filter(when(sum_("x") > 1).then(True))


def test_windows_of_expressions_of_aggregates(data):
    found = data.with_columns(
        a=(sum_("x") / count()).over("k"), b=any_(col("x") > 1).over(), c=count_if(col("x") > 0).over()
    )
    assert found.schema.types[-3:] == [pa.float64(), pa.bool_(), pa.int64()]
    assert operators(found).count("Window") == 2


def test_windows_that_are_not_there_yet(data):
    with pytest.raises(NotYetSupportedError, match="over a window"):
        data.with_columns(a=first("x", filter=col("x") > 1).over("k"))
    with pytest.raises(NotYetSupportedError, match="over frames"):
        data.with_columns(a=mode("x").over("k", order_by="x"))


def test_aggregates_of_whole_partitions_are_computed_once_for_each_partition(data):
    found = data.with_columns(a=median("x").over("k"), b=mode("x").over("k"), c=median("f").over())
    assert operators(found).count("Join") == 2
    assert found.schema.names == [*data.schema.names, "a", "b", "c"]
    with pytest.raises(SchemaError, match=r"no column 'y'. There are: k, x, f, l$"):
        data.with_columns(a=mode("x").over("k"), b=median("y").over())


def test_names_and_texts():
    one = (sum_("x", filter=col("y") > 1) / count()).alias("share")
    assert isinstance(one, Aggregate)
    assert one.named().name == "share"
    assert repr(one) == "<Aggregate sum(x) filter (where y > 1) / count()>"
    assert repr(approx_quantile("x", 0.25)) == "<Aggregate approx_quantile(x, 0.25)>"
    assert repr(stddev_pop("x")).startswith("<Aggregate sqrt(when(count(x) > 1)")
    assert repr(approx_count_distinct("x")) == "<Aggregate approx_count_distinct(x)>"
