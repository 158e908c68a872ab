"""Unions that a join reads itself: the inputs of a union become inputs of the join that probes with its rows.

    sales ──────► union ──FORWARD──► probe side of a join         sales ──────┬──► probe side of the join
    returns ────►   │                                             returns ────┘

A join has two inputs, so no union can be in its task: as a task of its own it takes every row from one thread and
passes it to another. And what the join knows of its build side gets no further than to the tasks that send it rows,
which are now the sources of the branches (``runtime_filter_planning``).

Rows that go from the union to the join by key go there from its inputs, unless they come by ``broadcast()`` or
``partition_custom()``. What has a name stays visible, and so does what
others read, too, or what is stored between tasks. Joins that may run otherwise than planned, when sizes are known
(mode BATCH), keep their two inputs.

Source: Flink, whose unions are edges of their consumer everywhere.
Held by: tests/optimizer/test_union_fusion.py
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec

from engine.graph.operator_descriptor import HashJoinOperator, IdentityOperator
from engine.graph.plan import Plan, Union
from engine.graph.ship_strategy import ShipStrategy
from engine.optimizer.physical_plan import Channel, PhysicalNode

#: strategies that do more than move rows: rows in each subtask, or a column that is removed on the way
_MORE_THAN_ROWS: Final = frozenset({ShipStrategy.BROADCAST, ShipStrategy.PARTITION_CUSTOM})


def fuse_unions(nodes: Sequence[PhysicalNode], plan: Plan) -> list[PhysicalNode]:
    """Return the nodes without the unions that joins read themselves, numbered anew."""
    readers = Counter(channel.source for node in nodes for channel in node.inputs)
    inputs: dict[int, tuple[Channel, ...]] = {}
    gone: set[int] = set()
    for node in nodes:
        operator = node.descriptor.operator
        if not isinstance(operator, HashJoinOperator):
            continue
        for channel in node.inputs:
            union = nodes[channel.source]
            if channel.input_index == operator.first_input or not _is_between(union, channel, readers, plan):
                continue
            direct = [_direct(each, channel) for each in inputs.get(union.id, union.inputs)]
            others = [each for each in node.inputs if each is not channel]
            inputs[node.id] = tuple(sorted([*direct, *others], key=lambda each: each.input_index))
            gone.add(union.id)
    if not gone:
        return list(nodes)
    kept = [node for node in nodes if node.id not in gone]
    position = {node.id: index for index, node in enumerate(kept)}
    return [
        msgspec.structs.replace(
            node,
            id=position[node.id],
            inputs=tuple(
                msgspec.structs.replace(channel, source=position[channel.source])
                for channel in inputs.get(node.id, node.inputs)
            ),
        )
        for node in kept
    ]


def _is_between(union: PhysicalNode, channel: Channel, readers: Counter[int], plan: Plan) -> bool:
    """Whether a node is a union and nothing more, whose rows go nowhere but through a channel."""
    planned = plan.node(union.plan_node)
    is_union = isinstance(union.descriptor.operator, IdentityOperator) and isinstance(planned.operator, Union)
    if not is_union or planned.name or planned.parallelism is not None or readers[union.id] != 1:
        return False
    if channel.ship_strategy is ShipStrategy.PARTITION_HASH:
        is_moved = not any(each.ship_strategy in _MORE_THAN_ROWS for each in union.inputs)
    else:
        is_moved = channel.ship_strategy is ShipStrategy.FORWARD
    return is_moved and channel.is_pipelined and all(each.is_pipelined for each in union.inputs)


def _direct(into_union: Channel, behind: Channel) -> Channel:
    """Return the channel from an input of a union to what reads the union."""
    if behind.ship_strategy is ShipStrategy.FORWARD:
        return msgspec.structs.replace(into_union, input_index=behind.input_index)
    return msgspec.structs.replace(behind, source=into_union.source)
