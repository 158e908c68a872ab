"""Which sources are filtered by keys of build sides that are stored: who makes the filters, and what they may cost."""

from __future__ import annotations

import msgspec
import pytest

from engine.expressions.schema_bridge import to_column_info
from engine.graph.exchange_mode import DataExchangeMode, ExecutionMode
from engine.graph.operator_descriptor import HashJoinOperator, KeyFilterOperator, SourceOperator
from engine.graph.runtime_filter import FILTER_ROWS
from engine.graph.said_operators import JoinHint, JoinType
from engine.graph.ship_strategy import ShipStrategy
from engine.ids import JobId
from engine.optimizer.explain import explain
from engine.optimizer.job_graph_generator import generate_job_graph
from engine.optimizer.optimizer import optimize
from engine.optimizer.settings import OptimizerSettings
from engine.optimizer.stored_filter_planning import with_stored_filters
from tests.optimizer.plan_building import Builder, call, lit, schema
from tests.optimizer.test_runtime_filters import BROADCAST_SECOND, KEYS, dimension, facts, joined

pa = pytest.importorskip("pyarrow")

BATCH = ExecutionMode.BATCH
HASH_SECOND = JoinHint.REPARTITION_HASH_SECOND


def optimized(builder, mode=BATCH, **settings):
    plan = optimize(builder.plan(), OptimizerSettings(parallelism=2, execution_mode=mode, **settings))
    plan.validate()
    generate_job_graph(plan, JobId.random(), "job")
    return plan


def stored(builder, *arguments, **settings):
    """(columns of the build side, column of the source) of each filter; those that read name those that make."""
    nodes = optimized(builder, *arguments, **settings).nodes
    made = []
    for node in nodes:
        operator = node.descriptor.operator
        if not isinstance(operator, SourceOperator):
            continue
        for each in operator.filters:
            if each.is_stored:
                maker = nodes[each.join].descriptor.operator
                assert maker.number == each.join in {channel.source for channel in node.inputs}
                made.append((maker.columns[each.key], each.column))
    assert len(made) == sum(
        len(node.descriptor.operator.columns)
        for node in nodes
        if isinstance(node.descriptor.operator, KeyFilterOperator)
    )
    return made


@pytest.mark.parametrize(
    ("how", "hint", "is_filtered"),
    [
        (JoinType.INNER, HASH_SECOND, True),
        (JoinType.SEMI, HASH_SECOND, True),
        (JoinType.RIGHT, HASH_SECOND, True),
        (JoinType.LEFT, HASH_SECOND, False),
        (JoinType.FULL, HASH_SECOND, False),
        (JoinType.INNER, BROADCAST_SECOND, False),
        (JoinType.INNER, JoinHint.REPARTITION_SORT_MERGE, False),
    ],
)
@pytest.mark.parametrize("mode", [ExecutionMode.BATCH, ExecutionMode.BATCH_FORCED])
def test_rows_are_filtered_where_they_are_stored_for_a_join_that_drops_those_without_match(
    mode, how, hint, is_filtered
):
    if (hint, mode) == (BROADCAST_SECOND, ExecutionMode.BATCH_FORCED):
        is_filtered = True  # its probe rows are stored as well
    assert stored(joined(how, hint), mode) == ([("d", "k")] if is_filtered else [])


@pytest.mark.parametrize("mode", [ExecutionMode.PIPELINED, ExecutionMode.PIPELINED_FORCED])
def test_what_runs_together_stores_no_filters(mode):
    assert stored(joined(hint=HASH_SECOND), mode) == []


def test_the_join_itself_makes_no_filter_where_a_stored_one_is_read():
    nodes = optimized(joined(hint=HASH_SECOND)).nodes
    (join,) = (node.descriptor.operator for node in nodes if isinstance(node.descriptor.operator, HashJoinOperator))
    assert join.filters == ()


def test_filters_reach_the_source_through_joins_whose_rows_are_stored():
    builder = Builder()
    other = builder.source(schema(c="int64", f="int64"), 900, path="other.parquet")
    first = builder.join(facts(builder), other, hint=HASH_SECOND, left_on="a", right_on="c")
    builder.sink(builder.join(first, dimension(builder), hint=HASH_SECOND, left_on="k", right_on="d"))
    assert ("d", "k") in stored(builder)


def shuffled_twice(build_rows):
    """A build side that lies as its join needs it, and runs together with it; the other side is read for it alone."""
    builder = Builder()
    small = builder.source(schema(s="int64", v="int64"), build_rows, path="small.parquet", columns={"s": KEYS["k"]})
    other = builder.source(schema(t="int64"), 1e6, path="other.parquet", columns={"t": KEYS["k"]})
    first = builder.join(
        small, other, how=JoinType.SEMI, hint=JoinHint.REPARTITION_HASH_FIRST, left_on="s", right_on="t"
    )
    second = builder.join(first, facts(builder), hint=JoinHint.REPARTITION_HASH_FIRST, left_on="s", right_on="k")
    builder.sink(second)
    return builder


def test_a_build_side_that_would_run_with_the_join_is_stored_where_that_costs_little():
    builder = shuffled_twice(4000)
    assert stored(builder) == [("s", "t"), ("s", "k")]
    nodes = optimized(builder).nodes
    join = next(node for node in reversed(nodes) if isinstance(node.descriptor.operator, HashJoinOperator))
    (build,) = (channel for channel in join.inputs if join.absorbs(channel.input_index))
    assert (build.ship_strategy, build.is_pipelined) == (ShipStrategy.FORWARD, False)
    assert "its keys filter the other input's source" in explain(optimized(builder))


def test_a_build_side_is_not_stored_for_a_filter_that_spares_little():
    assert stored(shuffled_twice(900_000)) == []


def test_what_would_wait_for_itself_is_left_out():
    builder = Builder()
    other = builder.source(schema(c="int64", f="int64"), 900, path="other.parquet")
    first = builder.join(facts(builder), other, hint=BROADCAST_SECOND, left_on="a", right_on="c")
    small = builder.filter(dimension(builder), call("less", "b", lit(900)))
    builder.sink(builder.join(first, small, hint=HASH_SECOND, left_on="k", right_on="d"))
    nodes = list(optimized(builder, runtime_filters=False).nodes)
    assert any(isinstance(each.descriptor.operator, KeyFilterOperator) for each in with_stored_filters(nodes, BATCH))
    # as if the first join built of rows that its own region makes, of which the other build side is made, too
    joins = [node for node in nodes if isinstance(node.descriptor.operator, HashJoinOperator)]
    build = {join.id: next(each for each in join.inputs if join.absorbs(each.input_index)) for join in joins}
    last = build[joins[1].id]
    beside = msgspec.structs.replace(build[joins[0].id], source=last.source, exchange_mode=DataExchangeMode.PIPELINED)
    nodes[joins[0].id] = msgspec.structs.replace(joins[0], inputs=(*joins[0].inputs[:1], beside))
    assert with_stored_filters(nodes, BATCH) == tuple(nodes)


@pytest.mark.parametrize(("parallelism", "is_filtered"), [(2, True), (4000, True), (10_000, False)])
def test_a_filter_that_many_subtasks_read_must_be_small_beside_what_they_read(parallelism, is_filtered):
    builder = joined(hint=HASH_SECOND, probe=lambda each: facts(each, 1e6, splits=10_000))
    settings = OptimizerSettings(parallelism=parallelism, execution_mode=BATCH)
    operators = [node.descriptor.operator for node in optimize(builder.plan(), settings).nodes]
    assert any(isinstance(each, KeyFilterOperator) for each in operators) is is_filtered


def test_filters_can_be_switched_off():
    assert stored(joined(hint=HASH_SECOND), runtime_filters=False) == []


def test_explain_shows_the_filter_below_its_source():
    text = explain(optimized(joined(hint=HASH_SECOND)))
    assert "run-time filter on k, stored by [1] for inner join on k" in text
    assert "BROADCAST, BATCH (filters are complete before the source is read)" in text


def test_the_type_of_stored_filters_is_arrows():
    (column,) = FILTER_ROWS.columns
    assert column == to_column_info(pa.field("filter", pa.binary(), nullable=False))
