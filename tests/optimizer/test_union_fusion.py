"""Joins read the inputs of a union that they probe with, where nobody else does and nothing lies between."""

from __future__ import annotations

import pytest

from engine.graph.exchange_mode import ExecutionMode
from engine.graph.operator_descriptor import HashJoinOperator, IdentityOperator, SourceOperator
from engine.graph.said_operators import JoinHint, JoinType
from engine.graph.ship_strategy import ShipStrategy
from engine.optimizer.explain import explain
from engine.optimizer.optimizer import optimize
from engine.optimizer.settings import OptimizerSettings
from tests.optimizer.plan_building import Builder, schema
from tests.optimizer.test_runtime_filters import BROADCAST_SECOND, KEYS, dimension

FACTS = schema(k="int64", a="int64")


def union_of(builder: Builder, *rows: float, splits: int = 4, **rest: object) -> int:
    sources = [
        builder.source(FACTS, each, columns=KEYS, path=f"facts{place}.parquet", splits=splits)
        for place, each in enumerate(rows)
    ]
    return builder.union(*sources, **rest)


def nodes_of(builder: Builder, **settings: object):
    plan = optimize(builder.plan(), OptimizerSettings(parallelism=2, **settings))
    plan.validate()
    return plan.nodes


def joined(how: JoinType = JoinType.INNER, hint: JoinHint = BROADCAST_SECOND, **rest: object) -> Builder:
    builder = Builder()
    left = union_of(builder, 1e6, 2e6, **rest)
    builder.sink(builder.join(left, dimension(builder), how=how, hint=hint, left_on="k", right_on="d"))
    return builder


def has_union(nodes) -> bool:
    return any(isinstance(node.descriptor.operator, IdentityOperator) for node in nodes)


def test_a_join_reads_the_inputs_of_a_union_itself() -> None:
    nodes = nodes_of(joined())
    assert not has_union(nodes)
    (join,) = [node for node in nodes if isinstance(node.descriptor.operator, HashJoinOperator)]
    assert [channel.input_index for channel in join.inputs] == [0, 0, 1]
    assert [channel.ship_strategy for channel in join.inputs[:2]] == [ShipStrategy.FORWARD] * 2


def test_rows_that_go_to_the_join_by_key_go_there_from_the_inputs() -> None:
    nodes = nodes_of(joined(hint=JoinHint.REPARTITION_HASH_SECOND))
    assert not has_union(nodes)
    (join,) = [node for node in nodes if isinstance(node.descriptor.operator, HashJoinOperator)]
    assert [channel.ship_strategy for channel in join.inputs] == [ShipStrategy.PARTITION_HASH] * 3


def test_each_source_of_a_union_leaves_out_rows() -> None:
    nodes = nodes_of(joined())
    applied = {
        node.descriptor.operator.spec.paths: [each.column for each in node.descriptor.operator.filters]
        for node in nodes
        if isinstance(node.descriptor.operator, SourceOperator)
    }
    assert applied == {("facts0.parquet",): ["k"], ("facts1.parquet",): ["k"], ("dimension.parquet",): []}
    text = explain(optimize(joined().plan(), OptimizerSettings(parallelism=2)))
    assert text.count("run-time filter on k from join") == 2


@pytest.mark.parametrize(
    "builder",
    [
        joined(name="both"),
        joined(parallelism=2),
        joined(hint=JoinHint.BROADCAST_HASH_FIRST),
        joined(hint=JoinHint.REPARTITION_SORT_MERGE),
    ],
    ids=["named", "parallelism", "build side", "sort-merge"],
)
def test_a_union_stays_where_it_is_more_than_rows_to_probe_with(builder: Builder) -> None:
    assert has_union(nodes_of(builder))


def test_a_union_that_others_read_stays() -> None:
    builder = Builder()
    both = union_of(builder, 1e6, 2e6)
    builder.sink(builder.join(both, dimension(builder), hint=BROADCAST_SECOND, left_on="k", right_on="d"))
    builder.sink(both)
    assert has_union(nodes_of(builder))


def test_a_join_whose_inputs_are_stored_keeps_two() -> None:
    assert has_union(nodes_of(joined(), execution_mode=ExecutionMode.BATCH))
