"""Which operators become one vertex, and what breaks a chain."""

from __future__ import annotations

import pytest

from engine.errors import PlanError
from engine.graph.exchange_mode import DataExchangeMode
from engine.graph.operator_descriptor import (
    FilterOperator,
    HashJoinOperator,
    IdentityOperator,
    OperatorDescriptor,
    PhysicalOperator,
    SinkOperator,
    SourceOperator,
)
from engine.graph.plan import Plan
from engine.graph.said_operators import JoinType
from engine.graph.ship_strategy import PartitionerSpec, ShipStrategy
from engine.graph.source_spec import ArrowSource, SinkSpec
from engine.optimizer.chaining import Link, chain_break, chains
from engine.optimizer.physical_plan import Channel, OptimizedPlan, PhysicalNode
from engine.optimizer.settings import OptimizerSettings
from engine.statistics.estimates import Estimates
from tests.optimizer.plan_building import lit, schema

SCHEMA = schema(k="int64")
EMPTY = Plan((), ())
SOURCE = SourceOperator(ArrowSource((), (), ("k",)))
FILTER = FilterOperator(lit(True))
SINK = SinkOperator(0, SinkSpec("csv", "/out"))
JOIN = HashJoinOperator(JoinType.INNER, ("k",), ("k",), False, ((0, 0),))
FORWARD = (ShipStrategy.FORWARD, PartitionerSpec("FORWARD"), DataExchangeMode.PIPELINED)
HASH = (ShipStrategy.PARTITION_HASH, PartitionerSpec("HASH", ("k",)), DataExchangeMode.PIPELINED)
REBALANCE = (ShipStrategy.PARTITION_FORCED_REBALANCE, PartitionerSpec("REBALANCE"), DataExchangeMode.PIPELINED)


def plan_of(*nodes: tuple[PhysicalOperator, int, list[tuple]]) -> OptimizedPlan:
    made = []
    for index, (operator, parallelism, inputs) in enumerate(nodes):
        is_join = isinstance(operator, HashJoinOperator)
        channels = tuple(
            Channel(source, position if is_join else 0, *how[:2], exchange_mode=how[2])
            for position, (source, how) in enumerate(inputs)
        )
        count = len(channels) if is_join else min(1, len(channels))
        descriptor = OperatorDescriptor(index, f"op{index}", operator, (SCHEMA,) * count, SCHEMA)
        made.append(PhysicalNode(index, 0, descriptor, parallelism, channels, Estimates(1, 1, "")))
    result = OptimizedPlan(tuple(made), EMPTY, EMPTY, OptimizerSettings())
    result.validate()
    return result


def graph(*nodes: tuple[PhysicalOperator, int, list[tuple]]) -> tuple[PhysicalNode, ...]:
    return plan_of(*nodes).nodes


def broken(nodes: tuple[PhysicalNode, ...]) -> str | None:
    return chain_break(Link(nodes[0], nodes[1].inputs[0], nodes[1], 1))


def test_source_filter_and_sink_are_one_vertex():
    assert chains(graph((SOURCE, 2, []), (FILTER, 2, [(0, FORWARD)]), (SINK, 2, [(1, FORWARD)]))) == ((0, 1, 2),)


@pytest.mark.parametrize("edge", [HASH, REBALANCE])
def test_a_repartitioning_edge_breaks_the_chain(edge):
    made = graph((SOURCE, 2, []), (FILTER, 2, [(0, edge)]))
    assert chains(made) == ((0,), (1,))
    assert broken(made) == "rows stay in their subtask"


def test_a_batch_exchange_breaks_the_chain():
    made = graph((SOURCE, 2, []), (FILTER, 2, [(0, (*FORWARD[:2], DataExchangeMode.BATCH))]))
    assert chains(made) == ((0,), (1,))


def test_a_node_with_two_consumers_ends_its_chain():
    made = graph((SOURCE, 1, []), (FILTER, 1, [(0, FORWARD)]), (SINK, 1, [(1, FORWARD)]), (SINK, 1, [(1, FORWARD)]))
    assert chains(made) == ((0, 1), (2,), (3,))


def test_a_join_and_a_union_begin_their_chains():
    made = graph((SOURCE, 1, []), (SOURCE, 1, []), (JOIN, 1, [(0, FORWARD), (1, FORWARD)]), (SINK, 1, [(2, FORWARD)]))
    assert chains(made) == ((0,), (1,), (2, 3))
    made = graph((SOURCE, 1, []), (IdentityOperator(), 1, [(0, FORWARD)]))
    assert broken(made) == "the consumer takes batches"


def test_forward_between_different_parallelism_is_refused():
    with pytest.raises(PlanError, match="FORWARD from 2 to 3 subtasks"):
        graph((SOURCE, 2, []), (FILTER, 3, [(0, FORWARD)]))


def test_an_edge_from_a_later_node_is_refused():
    with pytest.raises(PlanError, match="not topological"):
        graph((FILTER, 1, [(1, FORWARD)]), (SOURCE, 1, []))
