"""Exchange modes of a physical plan: which channels are BATCH, and why.

    1  closed branches   a node whose branches meet again in a join: every channel out of it is BREAKING. Local
                         phases (arguments, partial aggregates) stay with the node; the channel after them breaks.
    2  execution mode    the table of engine.graph.exchange_mode
    3  waiting cycles    build sides that would wait for themselves through back-pressure become BATCH
    4  memory            regions whose operators do not fit into a slot together are cut (memory_plan.py)
    5  region cycles     channels that would make regions wait for each other become BATCH

Waiting (3): the node N *ends* when its inputs end and its output can *drain*; its output drains when every consumer
takes it: an absorbing input (sort, final aggregate, build side) always does, a probe side when the build side is
*built*, all others when their own output drains. A build side is built when its producer ends; the left of a sort-merge
join counts as one, because its right is not taken before. A cycle among these is
a job that hangs; every such cycle passes through a build side, and making that BATCH breaks it. Step 1 makes this
rare; it remains for branches that meet crosswise in two joins.

PIPELINED_FORCED skips 1 and refuses a plan with a waiting cycle instead of hanging.

Source: step 1 is Flink's markAllOutgoingConnectionsAsPipelineBreaking; 3 and 5 have no counterpart there.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from engine.errors import PlanError
from engine.graph.exchange_mode import DataExchangeMode, ExecutionMode, exchange_mode
from engine.graph.operator_descriptor import JoinOperator
from engine.graph.pipelined_regions import RegionEdge, acyclic_cuts
from engine.graph.ship_strategy import SORTED_RUNS
from engine.memory.page_budget import PageBudget
from engine.optimizer.function_planning import broadcast_channels
from engine.optimizer.memory_plan import memory_cuts
from engine.optimizer.physical_plan import Channel, PhysicalNode

#: id of the consuming node, and position among its inputs
ChannelKey = tuple[int, int]

MEMORY_REASON = "the operators do not fit into a slot's memory together"
REGION_REASON = "keeps pipelined regions in order"


def assign_exchange_modes(
    nodes: list[PhysicalNode], mode: ExecutionMode, budget: PageBudget
) -> tuple[PhysicalNode, ...]:
    """Return the nodes with the exchange mode of every channel decided; PlanError when PIPELINED_FORCED cannot run."""
    mode = ExecutionMode(mode)
    breaking = _closed_branches(nodes)
    planned = []
    for node in nodes:
        channels = []
        for position, channel in enumerate(node.inputs):
            breaks = (node.id, position) in breaking
            decided = exchange_mode(mode, channel.ship_strategy, breaks_pipeline=breaks)
            reason = ""
            if channel.partitioner.kind == SORTED_RUNS:
                decided, reason = DataExchangeMode.BATCH, "a range begins when all runs are sorted"
            elif decided is DataExchangeMode.BATCH:
                reason = "its producer's branches meet again" if breaks else f"execution mode {mode.value}"
            channels.append(msgspec.structs.replace(channel, exchange_mode=decided, exchange_reason=reason))
        planned.append(msgspec.structs.replace(node, inputs=tuple(channels)))
    for key in broadcast_channels(planned):
        cut(planned, key, "a broadcast data set is complete before the function starts")
    _break_waiting_cycles(planned, mode)
    while True:
        _cut_region_cycles(planned)
        cuts = memory_cuts(planned, budget)
        if not cuts:
            return tuple(planned)
        for key in cuts:
            cut(planned, key, MEMORY_REASON)


def waits_for_itself(nodes: Sequence[PhysicalNode]) -> bool:
    """Return whether a job of nodes with exchange modes would hang."""
    return bool(_waiting_cycle(nodes))


def region_edges(nodes: Sequence[PhysicalNode]) -> list[RegionEdge]:
    """Return the channels of all nodes, as they decide what runs together."""
    return [RegionEdge(channel.source, node.id, channel.is_pipelined) for node in nodes for channel in node.inputs]


def cut(nodes: list[PhysicalNode], key: ChannelKey, reason: str) -> None:
    """Have the rows of a channel stored before they are read."""
    node_id, position = key
    node = nodes[node_id]
    changed = msgspec.structs.replace(
        node.inputs[position], exchange_mode=DataExchangeMode.BATCH, exchange_reason=reason
    )
    inputs = (*node.inputs[:position], changed, *node.inputs[position + 1 :])
    nodes[node_id] = msgspec.structs.replace(node, inputs=inputs)


def _out_channels(nodes: list[PhysicalNode]) -> list[list[tuple[ChannelKey, Channel]]]:
    """Return the outgoing channels of each node."""
    outgoing: list[list[tuple[ChannelKey, Channel]]] = [[] for _ in nodes]
    for node in nodes:
        for position, channel in enumerate(node.inputs):
            outgoing[channel.source].append(((node.id, position), channel))
    return outgoing


def _closed_branches(nodes: list[PhysicalNode]) -> set[ChannelKey]:
    """Return the channels that leave nodes whose branches meet again in a join."""
    outgoing = _out_channels(nodes)
    reached: list[set[ChannelKey]] = [set() for _ in nodes]
    for node in reversed(nodes):
        for key, channel in outgoing[node.id]:
            reached[node.id] |= _join_inputs(nodes, key, channel, reached)
    breaking: set[ChannelKey] = set()
    for node in nodes:
        branches = [_join_inputs(nodes, key, channel, reached) for key, channel in outgoing[node.id]]
        if any(_meet(first, second) for index, first in enumerate(branches) for second in branches[index + 1 :]):
            breaking.update(_after_local_phases(nodes, outgoing, key) for key, _ in outgoing[node.id])
    return breaking


def _join_inputs(
    nodes: list[PhysicalNode], key: ChannelKey, channel: Channel, reached: list[set[ChannelKey]]
) -> set[ChannelKey]:
    """Return the (join, input) pairs that a channel leads to."""
    consumer = nodes[key[0]]
    if isinstance(consumer.descriptor.operator, JoinOperator):
        return reached[consumer.id] | {(consumer.id, channel.input_index)}
    return reached[consumer.id]


def _meet(first: set[ChannelKey], second: set[ChannelKey]) -> bool:
    return any((join, 1 - side) in second for join, side in first)


def _after_local_phases(
    nodes: list[PhysicalNode], outgoing: list[list[tuple[ChannelKey, Channel]]], key: ChannelKey
) -> ChannelKey:
    while nodes[key[0]].is_local_phase:
        key = outgoing[key[0]][0][0]
    return key


Wait = tuple[str, int]


def _break_waiting_cycles(nodes: list[PhysicalNode], mode: ExecutionMode) -> None:
    while True:
        cycle = _waiting_cycle(nodes)
        if not cycle:
            return
        join = next(node_id for what, node_id in cycle if what == "built")
        if mode is ExecutionMode.PIPELINED_FORCED:
            raise PlanError(
                f"with execution.mode PIPELINED_FORCED the job would wait for itself at "
                f"{nodes[join].descriptor.name!r}: its inputs come from the same operator; use PIPELINED"
            )
        for position, channel in enumerate(nodes[join].inputs):
            if nodes[join].absorbs(channel.input_index):
                cut(nodes, (join, position), "its build side would wait for itself")


def _waits_for(nodes: Sequence[PhysicalNode]) -> dict[Wait, list[Wait]]:
    waits: dict[Wait, list[Wait]] = {}
    for node in nodes:
        ends = waits.setdefault(("ends", node.id), [("drains", node.id)])
        waits.setdefault(("drains", node.id), [])
        is_join = isinstance(node.descriptor.operator, JoinOperator)
        if is_join:
            waits[("built", node.id)] = []
            ends.append(("built", node.id))
        for channel in node.inputs:
            if not channel.is_pipelined:
                continue
            ends.append(("ends", channel.source))
            if node.absorbs(channel.input_index):
                if is_join:
                    waits[("built", node.id)].append(("ends", channel.source))
                continue
            waits[("drains", channel.source)].append(("drains", node.id))
            if is_join:
                waits[("drains", channel.source)].append(("built", node.id))
    return waits


def _waiting_cycle(nodes: Sequence[PhysicalNode]) -> list[Wait]:
    """Return a cycle of waits, or an empty list."""
    waits = _waits_for(nodes)
    done: set[Wait] = set()
    for start in waits:
        path: list[Wait] = []
        on_path: set[Wait] = set()
        stack: list[tuple[Wait, bool]] = [(start, False)]
        while stack:
            wait, leaving = stack.pop()
            if leaving:
                path.pop()
                on_path.discard(wait)
                done.add(wait)
            elif wait in on_path:
                return path[path.index(wait) :]
            elif wait not in done:
                path.append(wait)
                on_path.add(wait)
                stack.append((wait, True))
                stack.extend((other, False) for other in waits[wait])
    return []


def _cut_region_cycles(nodes: list[PhysicalNode]) -> None:
    keys = [(node.id, position) for node in nodes for position in range(len(node.inputs))]
    for index in sorted(acyclic_cuts(len(nodes), region_edges(nodes))):
        cut(nodes, keys[index], REGION_REASON)
