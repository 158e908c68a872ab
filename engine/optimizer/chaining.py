"""Chaining: which channels of a physical plan become a call inside one task instead of an exchange.

    source ──FORWARD──► filter ──FORWARD──► project ──HASH──► aggregate ──FORWARD──► sink
    └────────────── vertex 0 ────────────────────┘            └──────── vertex 1 ───────┘

A channel is chained when every condition of ``CHAIN_CONDITIONS`` holds (a stage of Spark ends at the same places). A
chain is linear: a node with two consumers ends its chain, and a node with two inputs begins one.

Source: Flink's StreamingJobGraphGenerator.isChainable; slot sharing groups and chaining strategies of single
operators do not exist here, nor a graph of its own between the physical plan and the JobGraph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from engine.graph.operator_descriptor import SinkOperator
from engine.graph.ship_strategy import ShipStrategy
from engine.optimizer.physical_plan import Channel, PhysicalNode


class Link(NamedTuple):
    """A channel with its ends."""

    producer: PhysicalNode
    channel: Channel
    consumer: PhysicalNode
    #: number of channels that leave the producer
    reader_count: int


#: conditions on a channel, with the words that explain them
CHAIN_CONDITIONS: tuple[tuple[str, Callable[[Link], bool]], ...] = (
    ("the consumer has one input", lambda link: len(link.consumer.inputs) == 1),
    ("the producer has one consumer", lambda link: link.reader_count == 1),
    ("rows stay in their subtask", lambda link: not link.channel.ship_strategy.is_network),
    ("the ship strategy is FORWARD", lambda link: link.channel.ship_strategy is ShipStrategy.FORWARD),
    ("the exchange is pipelined", lambda link: link.channel.is_pipelined),
    ("the parallelism is equal", lambda link: link.producer.parallelism == link.consumer.parallelism),
    ("the consumer takes batches", lambda link: not link.consumer.descriptor.operator.traits.is_head),
    ("the producer emits rows", lambda link: not isinstance(link.producer.descriptor.operator, SinkOperator)),
)


def chain_break(link: Link) -> str | None:
    """Return the first condition that a channel does not meet, or None when it is chained."""
    return next((words for words, holds in CHAIN_CONDITIONS if not holds(link)), None)


def chains(nodes: Sequence[PhysicalNode]) -> tuple[tuple[int, ...], ...]:
    """Return the node ids of every chain, chains in topological order of their heads."""
    readers = Counter(channel.source for node in nodes for channel in node.inputs)
    chained_into: dict[int, int] = {}
    heads = []
    for node in nodes:
        if len(node.inputs) == 1 and chain_break(_link(nodes, node.inputs[0], node, readers)) is None:
            chained_into[node.inputs[0].source] = node.id
        else:
            heads.append(node.id)
    result = []
    for head in heads:
        chain = [head]
        while chain[-1] in chained_into:
            chain.append(chained_into[chain[-1]])
        result.append(tuple(chain))
    return tuple(result)


def _link(nodes: Sequence[PhysicalNode], channel: Channel, consumer: PhysicalNode, readers: Counter[int]) -> Link:
    return Link(nodes[channel.source], channel, consumer, readers[channel.source])
