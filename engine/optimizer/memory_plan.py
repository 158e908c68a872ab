"""Regions that fit into a slot, and the pages of their operators.

    slot ── one subtask of every operator of one pipelined region ── pages

Operators of a pipelined region run together, one subtask of each in a slot; different regions use a slot one after
the other. So the pages of a slot are divided inside each region (``memory.page_budget``). A slot with fewer subtasks,
where one operator has fewer than another, has more pages for each: what ``with_pages`` says are the fewest.

A region whose operators do not fit into the slot together is cut: the first one too many (in topological order) gets
its input through a BLOCKING exchange, so it runs in a region of its own, later. What an operator needs to fit is all
its state, or twice the square root of that in pages. With the root it parts or merges once what it spills: n pages make
n parts, of which each fits into n pages again. Twice, for it reads and writes besides, and estimates are short as often
as not. With fewer it writes and reads every row once more for each further level, which costs more than the exchange
does: ten operators of one slot with six pages each and thousands of pages of rows took four times as long as two.

    a slot of 64 pages    join 36 ══► aggregate 25 ──BLOCKING──► join 36 ══► sort 25         36: of 324 pages of rows

Limits: a sort does not give its pages back before its consumer runs, although it could while it merges.
Source: two-pass algorithms of external sort and Grace hash join, which need the square root of their input in memory.
Held by: tests/optimizer/test_exchange_planning.py
Held by: tests/targets/test_explained_pages.py
Held by: tests/integration/test_strangers_programs.py
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from engine.graph.operator_descriptor import HashAggregateOperator
from engine.graph.pipelined_regions import RegionEdge, pipelined_components
from engine.graph.ship_strategy import ShipStrategy
from engine.memory.page_budget import OPERATOR_PAGES_MIN, PageBudget, SlotWeights, operator_pages
from engine.optimizer.physical_plan import PhysicalNode


def memory_users_by_region(nodes: Sequence[PhysicalNode]) -> list[list[PhysicalNode]]:
    """Return the operators that keep rows in pages, one list per region that has any."""
    edges = [RegionEdge(channel.source, node.id, channel.is_pipelined) for node in nodes for channel in node.inputs]
    regions: dict[int, list[PhysicalNode]] = {}
    for node, component in zip(nodes, pipelined_components(len(nodes), edges), strict=True):
        if node.uses_memory:
            regions.setdefault(component, []).append(node)
    return list(regions.values())


def memory_cuts(nodes: Sequence[PhysicalNode], budget: PageBudget) -> list[tuple[int, int]]:
    """Return channels (consumer, position) to cut next so that regions fit into a slot; empty when all fit.

    budget: of at least OPERATOR_PAGES_MIN a slot. To be called again after cutting, until it returns nothing.
    """
    for users in memory_users_by_region(nodes):
        pages = 0
        for count, node in enumerate(users):
            pages += _needed_pages(nodes, node, budget.page_bytes)
            if pages > budget.slot_pages and count > 0:
                return _into(node) or _out_of(nodes, node)
    return []


def _needed_pages(nodes: Sequence[PhysicalNode], node: PhysicalNode, page_bytes: int) -> int:
    """Return the number of pages an operator needs so that it spills no row twice."""
    held = 0.0
    for channel in node.inputs:
        if node.absorbs(channel.input_index):
            subtasks = 1 if channel.ship_strategy is ShipStrategy.BROADCAST else node.parallelism
            # Where a size is not known it is negative, and the least has to do.
            held += max(0.0, nodes[channel.source].estimates.size_bytes) / subtasks
    if isinstance(node.descriptor.operator, HashAggregateOperator):
        held = min(held, max(0.0, node.estimates.size_bytes) / node.parallelism)
    pages = held / page_bytes
    return max(OPERATOR_PAGES_MIN, math.ceil(min(pages, 2 * math.sqrt(pages))))


def _into(node: PhysicalNode) -> list[tuple[int, int]]:
    return [(node.id, position) for position, channel in enumerate(node.inputs) if channel.is_pipelined]


def _out_of(nodes: Sequence[PhysicalNode], node: PhysicalNode) -> list[tuple[int, int]]:
    return [
        (consumer.id, position)
        for consumer in nodes
        for position, channel in enumerate(consumer.inputs)
        if channel.source == node.id and channel.is_pipelined
    ]


def with_pages(nodes: Sequence[PhysicalNode], slot_pages: int) -> tuple[PhysicalNode, ...]:
    """Return the nodes with the pages of each in a slot that has one subtask of every operator of its region."""
    pages: dict[int, int] = {}
    for users in memory_users_by_region(nodes):
        weights = SlotWeights.of([node.descriptor.memory_weight for node in users])
        pages.update((node.id, operator_pages(node.descriptor.memory_weight, weights, slot_pages)) for node in users)
    return tuple(msgspec.structs.replace(node, pages=pages.get(node.id, 0)) for node in nodes)
