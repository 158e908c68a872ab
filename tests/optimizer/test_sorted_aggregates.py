"""Which groups are combined in the sort that follows, and which are not, and why."""

import pytest

from engine.graph.expression import ColumnRef
from engine.graph.operator_descriptor import HashAggregateOperator, MergeRunsOperator, SortRunsOperator
from engine.graph.ship_strategy import SORTED_RUNS, ShipStrategy
from engine.graph.source_spec import ColumnStatistics
from engine.memory.page_budget import PageBudget
from engine.optimizer.explain import explain
from engine.optimizer.optimizer import optimize
from engine.optimizer.settings import OptimizerSettings
from tests.optimizer.plan_building import Builder, call, column, lit, schema

ROWS = 100_000_000


def planned(build, rows=ROWS, distinct=ROWS, **settings):
    builder = Builder()
    columns = {name: ColumnStatistics(distinct_count=distinct) for name in "acds"}
    names = schema(a="int64", b="int64", c="int32", d="int32", s="string")
    source = builder.source(names, rows, 40.0 * rows, columns=columns)
    builder.sink(build(builder, source))
    optimized = optimize(builder.plan(), OptimizerSettings(**{"parallelism": 4, **settings}))
    optimized.validate()
    return optimized


def phases(optimized):
    kinds = HashAggregateOperator | SortRunsOperator | MergeRunsOperator
    operators = [node.descriptor.operator for node in optimized.nodes if isinstance(node.descriptor.operator, kinds)]
    return [getattr(operator, "phase", type(operator).__name__) for operator in operators]


COMBINED = ["partial", "SortRunsOperator", "MergeRunsOperator"]
APART = ["partial", "final", "SortRunsOperator", "MergeRunsOperator"]


def test_groups_sorted_by_their_keys_cross_one_exchange():
    optimized = planned(lambda builder, source: builder.sort(builder.aggregate(source, ("a",), ("sum", "b")), "a"))
    assert phases(optimized) == COMBINED
    merge = next(node for node in optimized.nodes if node.strategy == "SORTED_AGGREGATE")
    (channel,) = merge.inputs
    assert (channel.ship_strategy, channel.partitioner.kind) == (ShipStrategy.PARTITION_RANGE, SORTED_RUNS)
    assert "groups are combined in sorted runs" in explain(optimized)
    partial = optimized.nodes[optimized.nodes[channel.source].inputs[0].source].descriptor.operator
    assert partial.is_sorted_next


@pytest.mark.parametrize(("distinct", "expects_no_fewer"), [(ROWS, True), (1000, False)])
def test_a_partial_knows_whether_the_plan_expects_fewer_states_than_rows(distinct, expects_no_fewer):
    optimized = planned(lambda builder, source: builder.aggregate(source, ("a",), ("sum", "b")), distinct=distinct)
    operators = [node.descriptor.operator for node in optimized.nodes]
    (partial,) = [each for each in operators if isinstance(each, HashAggregateOperator) and each.phase == "partial"]
    assert partial.expects_no_fewer is expects_no_fewer
    assert partial.rows_expected == ROWS // optimized.nodes[0].parallelism


def test_groups_are_sorted_by_all_of_their_keys_those_of_the_sort_first():
    optimized = planned(lambda builder, source: builder.sort(builder.aggregate(source, ("c", "d"), ("sum", "b")), "d"))
    assert phases(optimized) == COMBINED
    for node in optimized.nodes:
        if isinstance(node.descriptor.operator, SortRunsOperator | MergeRunsOperator):
            assert [key.column for key in node.descriptor.operator.keys] == ["d", "c"]
            assert node.descriptor.operator.groups.keys == ("c", "d")


def test_filters_and_projections_between_groups_and_sort_follow_the_merge():
    def build(builder, source):
        groups = builder.aggregate(source, ("a",), ("sum", "b"))
        total = builder.schema(groups).names[1]
        groups = builder.filter(groups, call("greater", total, lit(3)))
        named = builder.project(groups, (column("key"), ColumnRef("a")), total)
        return builder.sort(named, "key")

    optimized = planned(build)
    assert phases(optimized) == COMBINED
    names = [type(node.descriptor.operator).__name__ for node in optimized.nodes]
    assert names[-4:-1] == ["MergeRunsOperator", "FilterOperator", "ProjectOperator"]
    (merge,) = [node for node in optimized.nodes if node.strategy == "SORTED_AGGREGATE"]
    assert [key.column for key in merge.descriptor.operator.keys] == ["a"]


def test_a_sort_by_what_a_projection_computes_stays_apart():
    def build(builder, source):
        groups = builder.aggregate(source, ("a",), ("sum", "b"))
        return builder.sort(builder.project(groups, (column("a"), call("add", "a", lit(1)))), "a")

    assert phases(planned(build)) == APART


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (lambda b, s: b.sort(b.aggregate(s, ("a",), ("first", "b")), "a"), "first depends on the order of rows"),
        (lambda b, s: b.sort(b.aggregate(s, ("a",), ("sum", "c")), "a"), "1.6 GB of groups fit in memory"),
        (
            lambda b, s: b.sort(b.aggregate(s, ("a",), ("sum", "c"), parallelism=2), "a"),
            "groups are wanted in 2 subtasks, the sort in 4",
        ),
    ],
)
def test_groups_that_stay_apart_say_why(build, reason):
    optimized = planned(build, page_budget=PageBudget(4 << 30))
    assert phases(optimized) == APART
    assert "not SORTED_AGGREGATE: " + reason in explain(optimized)


def test_the_least_and_largest_strings_are_combined_unless_they_are_wide():
    def phases_for(width):
        builder = Builder()
        columns = {"a": ColumnStatistics(distinct_count=ROWS), "s": ColumnStatistics(average_width_bytes=width)}
        source = builder.source(schema(a="int64", s="string"), ROWS, ROWS * (8.0 + width), columns=columns)
        builder.sink(builder.sort(builder.aggregate(source, ("a",), ("max", "s")), "a"))
        optimized = optimize(builder.plan(), OptimizerSettings(parallelism=4))
        return phases(optimized), explain(optimized)

    assert phases_for(30.0)[0] == COMBINED
    apart, text = phases_for(5000.0)
    assert apart == APART
    assert "not SORTED_AGGREGATE: values of 's' are wide, 5 KB each" in text


def test_groups_that_others_read_stay_apart():
    builder = Builder()
    source = builder.source(schema(a="int64", b="int64"), ROWS, 16.0 * ROWS)
    sums = builder.aggregate(source, ("a",), ("sum", "b"))
    builder.sink(builder.sort(sums, "a"))
    builder.sink(sums)
    text = explain(optimize(builder.plan(), OptimizerSettings(parallelism=4)))
    assert "not SORTED_AGGREGATE: others read the groups too" in text


@pytest.mark.parametrize("key", ["a", "s"])
def test_groups_are_combined_where_they_are_many_and_larger_than_the_memory(key):
    def build(builder, source):
        return builder.sort(builder.aggregate(source, (key,), ("sum", "b")), key)

    assert phases(planned(build, distinct=ROWS // 2, page_budget=PageBudget(40 << 20))) == COMBINED
    fitting = planned(build, distinct=ROWS // 2, page_budget=PageBudget(4 << 30))
    assert phases(fitting) == APART
    assert "B of groups fit in memory" in explain(fitting)
    few = planned(build, distinct=ROWS // 5, page_budget=PageBudget(4 << 20))
    assert phases(few) == APART
    assert "not SORTED_AGGREGATE: groups are only 20% of the rows" in explain(few)


def test_other_sorts_are_as_they_were():
    for build in (
        lambda b, s: b.sort(b.aggregate(s, ("a",), ("sum", "b")), "a", limit=10),
        lambda b, s: b.sort(s, "a"),
    ):
        assert "SORTED_AGGREGATE" not in explain(planned(build))
    one = planned(lambda b, s: b.sort(b.aggregate(s, ("a",), ("sum", "b")), "a"), parallelism=1)
    assert "SORTED_AGGREGATE" not in explain(one)
