"""Which order ties of a sort have: that of the files, that of a sort before, or that of the other columns."""

import msgspec
import pytest

from engine.graph.operator_descriptor import MergeRunsOperator, SortOperator, SortRunsOperator
from engine.graph.plan import Partition
from engine.graph.plan_schema import PlanSchema
from engine.graph.sort_key import SortKey
from engine.memory.page_budget import PageBudget
from engine.optimizer.optimizer import optimize
from engine.optimizer.settings import OptimizerSettings
from tests.optimizer.plan_building import Builder, call, column, lit, schema

LARGE = 10_000_000
COLUMNS = schema(k="int64", f="double", v="int64")


def planned(build, rows=LARGE, columns=COLUMNS, **settings):
    builder = Builder()
    source = builder.source(columns, rows, 24.0 * rows)
    builder.sink(build(builder, source))
    optimized = optimize(builder.plan(), OptimizerSettings(parallelism=4, **settings))
    optimized.validate()
    return optimized


def sorts(optimized):
    """Return (operator, whether it reads subtasks in turn) for each sort."""
    kinds = (SortOperator, SortRunsOperator, MergeRunsOperator)
    found = [node for node in optimized.nodes if isinstance(node.descriptor.operator, kinds)]
    return [(node.descriptor.operator, node.inputs[0].partitioner.in_order) for node in found]


def keys_of(optimized):
    return [",".join(key.column for key in operator.keys) for operator, _ in sorts(optimized)]


def mixed(builder, source):
    """Return rows whose order nobody knows."""
    return builder.add(Partition("REBALANCE"), (source,), builder.schema(source))


def test_ties_of_a_top_over_files_are_in_the_order_of_the_files():
    def build(builder, source):
        return builder.limit(builder.sort(builder.filter(source, call("greater", "v", lit(1))), "k"), 10)

    optimized = planned(build)
    assert keys_of(optimized) == ["k", "k"]
    assert [in_order for _, in_order in sorts(optimized)] == [False, True]


@pytest.mark.parametrize("build", [mixed, lambda builder, source: builder.union(source, source)])
def test_ties_of_a_top_over_other_rows_are_in_the_order_of_the_other_columns_floats_last(build):
    optimized = planned(lambda builder, source: builder.limit(builder.sort(build(builder, source), "k"), 10))
    assert keys_of(optimized) == ["k,v,f", "k,v,f"]


def test_the_first_rows_of_ranges_are_ordered_so_too():
    def build(builder, source):
        return builder.limit(builder.sort(mixed(builder, source), "k"), LARGE // 2)

    optimized = planned(build, page_budget=PageBudget(64 << 20))
    assert keys_of(optimized) == ["k,v,f", "k,v,f"]
    assert isinstance(sorts(optimized)[-1][0], MergeRunsOperator)


def test_a_sort_whose_rows_are_all_taken_leaves_ties_as_they_come():
    optimized = planned(lambda builder, source: builder.sort(mixed(builder, source), "k"))
    assert keys_of(optimized) == ["k", "k"]


def test_a_small_sort_of_files_reads_them_in_order():
    optimized = planned(lambda builder, source: builder.sort(source, "k"), rows=1000)
    assert sorts(optimized) == [(SortOperator((SortKey("k"),)), True)]


@pytest.mark.parametrize("kind", ["map", "filter"])
def test_a_limit_behind_functions_is_one_of_the_sort(kind):
    def build(builder, source):
        return builder.limit(builder.python(builder.sort(mixed(builder, source), "k"), kind), 10)

    assert set(keys_of(planned(build))) == {"k,v,f"}


def test_a_sort_that_others_read_too_is_paged():
    builder = Builder()
    both = builder.sort(mixed(builder, builder.source(COLUMNS, LARGE, 24.0 * LARGE)), "k")
    builder.sink(both)
    builder.sink(builder.limit(both, 10))
    assert set(keys_of(optimize(builder.plan(), OptimizerSettings(parallelism=4)))) == {"k,v,f"}


def test_rows_that_are_numbered_by_their_place_are_paged():
    def build(builder, source):
        place = (column("place"), call("row_place"))
        return builder.project(builder.sort(mixed(builder, source), "k"), *COLUMNS.names, place)

    assert set(keys_of(planned(build))) == {"k,v,f"}


def test_a_sort_of_sorted_rows_keeps_their_order_and_settles_it():
    def build(builder, source):
        return builder.limit(builder.sort(builder.sort(mixed(builder, source), "v"), "k"), 10)

    optimized = planned(build)
    assert keys_of(optimized) == ["v,k,f", "v,k,f", "k", "k"]
    assert sorts(optimized)[-1][1]


def test_groups_that_are_sorted_by_all_of_their_keys_have_no_ties():
    def build(builder, source, *keys):
        groups = builder.aggregate(mixed(builder, source), ("k", "v"), ("sum", "f"))
        return builder.limit(builder.sort(groups, *keys), 10)

    assert set(keys_of(planned(lambda builder, source: build(builder, source, "v", "k")))) == {"v,k"}
    assert set(keys_of(planned(lambda builder, source: build(builder, source, "v")))) == {"v,k,sum2_0"}


def test_columns_without_an_order_do_not_count():
    columns = PlanSchema(tuple(msgspec.structs.replace(one, is_key_type=one.name != "v") for one in COLUMNS.columns))
    optimized = planned(lambda builder, source: builder.sort(mixed(builder, source), "k", limit=3), columns=columns)
    assert set(keys_of(optimized)) == {"k,f"}
