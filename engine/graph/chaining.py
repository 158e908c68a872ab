"""Chaining: which edges of a StreamGraph become a call inside one task instead of an exchange.

    source ──FORWARD──► filter ──FORWARD──► project ──HASH──► aggregate ──FORWARD──► sink
    └────────────── vertex 0 ────────────────────┘            └──────── vertex 1 ───────┘

An edge is chained when every condition of ``CHAIN_CONDITIONS`` holds (a stage of Spark ends at the same places). A
chain is linear: a node with two consumers ends its chain, and a node with two inputs begins one.

Source: Flink's StreamingJobGraphGenerator.isChainable; slot sharing groups and chaining strategies of single
operators do not exist here.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.graph.exchange_mode import DataExchangeMode
from engine.graph.operator_descriptor import (
    HashJoinOperator,
    IdentityOperator,
    MergeRunsOperator,
    SinkOperator,
    SortMergeJoinOperator,
    SourceOperator,
)
from engine.graph.ship_strategy import ShipStrategy
from engine.graph.stream_graph import StreamEdge, StreamGraph, StreamNode

#: operators that are always the first of their vertex: they read gates or splits themselves
HEAD_ONLY = (SourceOperator, HashJoinOperator, SortMergeJoinOperator, MergeRunsOperator, IdentityOperator)

Condition = Callable[[StreamGraph, StreamEdge, StreamNode, StreamNode], bool]

#: what must hold for an edge (graph, edge, producer, consumer), with the words that explain it
CHAIN_CONDITIONS: tuple[tuple[str, Condition], ...] = (
    ("the consumer has one input", lambda graph, edge, producer, consumer: len(consumer.in_edges) == 1),
    ("the producer has one consumer", lambda graph, edge, producer, consumer: len(graph.out_edges(producer.id)) == 1),
    ("rows stay in their subtask", lambda graph, edge, producer, consumer: not edge.ship_strategy.is_network),
    (
        "the ship strategy is FORWARD",
        lambda graph, edge, producer, consumer: edge.ship_strategy is ShipStrategy.FORWARD,
    ),
    (
        "the exchange is pipelined",
        lambda graph, edge, producer, consumer: edge.exchange_mode is not DataExchangeMode.BATCH,
    ),
    ("the parallelism is equal", lambda graph, edge, producer, consumer: producer.parallelism == consumer.parallelism),
    (
        "the consumer takes batches",
        lambda graph, edge, producer, consumer: not isinstance(consumer.descriptor.operator, HEAD_ONLY),
    ),
    (
        "the producer emits rows",
        lambda graph, edge, producer, consumer: not isinstance(producer.descriptor.operator, SinkOperator),
    ),
)


def chain_break(graph: StreamGraph, edge: StreamEdge) -> str | None:
    """Return the first condition that an edge does not meet, or None when it is chained."""
    producer, consumer = graph.nodes[edge.source], graph.nodes[edge.target]
    for words, holds in CHAIN_CONDITIONS:
        if not holds(graph, edge, producer, consumer):
            return words
    return None


def chains(graph: StreamGraph) -> tuple[tuple[int, ...], ...]:
    """Return the node ids of every chain, chains in topological order of their heads."""
    chained_into: dict[int, int] = {}
    heads = []
    for node in graph.nodes:
        if len(node.in_edges) == 1 and chain_break(graph, node.in_edges[0]) is None:
            chained_into[node.in_edges[0].source] = node.id
        else:
            heads.append(node.id)
    result = []
    for head in heads:
        chain = [head]
        while chain[-1] in chained_into:
            chain.append(chained_into[chain[-1]])
        result.append(tuple(chain))
    return tuple(result)
