"""Managed memory: who runs at the same time in a slot, and what share of its pages each one gets.

    slot ── one subtask of every operator of one pipelined region ── pages

Operators of a pipelined region run together, one subtask of each in a slot; different regions use a slot one after
the other. So the pages of a slot are divided inside each region: every operator that uses memory gets
DRIVER_PAGES_MIN, and what is left is divided by weight. A vertex's share is the sum over its chain.

Where a region has more such operators than minima fit into the slot, it is cut: the first operator too many (in
topological order) gets its input through a BLOCKING exchange, so it runs in a region of its own, later.

Limits: a sort does not give its pages back before its consumer runs, although it could while it merges.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from engine.graph.operator_descriptor import DRIVER_PAGES_MIN
from engine.graph.pipelined_regions import RegionEdge, component_of
from engine.optimizer.physical_plan import PhysicalNode


def memory_users_by_region(nodes: Sequence[PhysicalNode]) -> list[list[PhysicalNode]]:
    """Return the operators that use managed memory, one list per region that has any."""
    edges = [RegionEdge(channel.source, node.id, channel.is_pipelined) for node in nodes for channel in node.inputs]
    regions: dict[int, list[PhysicalNode]] = {}
    for node, component in zip(nodes, component_of(len(nodes), edges), strict=True):
        if node.uses_memory:
            regions.setdefault(component, []).append(node)
    return list(regions.values())


def memory_cuts(nodes: Sequence[PhysicalNode], pages_per_slot: int) -> list[tuple[int, int]]:
    """Return channels (consumer, position) to cut next so that regions fit into a slot; empty when all fit.

    pages_per_slot: at least DRIVER_PAGES_MIN. To be called again after cutting, until it returns nothing.
    """
    fitting = pages_per_slot // DRIVER_PAGES_MIN
    for users in memory_users_by_region(nodes):
        if len(users) <= fitting:
            continue
        surplus = users[fitting]
        into = [(surplus.id, position) for position, channel in enumerate(surplus.inputs) if channel.is_pipelined]
        if into:
            return into
        return [
            (consumer.id, position)
            for consumer in nodes
            for position, channel in enumerate(consumer.inputs)
            if channel.source == surplus.id and channel.is_pipelined
        ]
    return []


def with_memory_shares(nodes: Sequence[PhysicalNode], pages_per_slot: int) -> tuple[PhysicalNode, ...]:
    """Return the nodes with their shares of a slot; those of a region sum to 1."""
    shares: dict[int, float] = {}
    for users in memory_users_by_region(nodes):
        minimum = DRIVER_PAGES_MIN / pages_per_slot
        rest = max(0.0, 1 - minimum * len(users))
        total_weight = sum(node.descriptor.memory_weight for node in users)
        for node in users:
            shares[node.id] = minimum + rest * node.descriptor.memory_weight / total_weight
    return tuple(msgspec.structs.replace(node, managed_share=shares.get(node.id, 0.0)) for node in nodes)
