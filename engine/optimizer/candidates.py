"""Candidates: possible ways to compute a node of the plan, with their inputs, costs and properties.

    Candidate ── node, strategy, parallelism, properties, own costs, cumulative costs
        └── CandidateInput * ── candidate of the input, ship strategy, partitioner, cost of shipping

The enumerator makes several per node and keeps the cheapest for each different outcome (parallelism and properties);
a node with several consumers keeps one, so that all consumers read the same result.

Source: Flink's PlanNode and Channel while they are enumerated.
Held by: tests/optimizer/test_physical_operators.py
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import msgspec

from engine.graph.plan import PlanNode
from engine.graph.ship_strategy import PartitionerSpec, ShipStrategy
from engine.graph.sort_key import SortKey
from engine.optimizer.properties import RANDOM, GlobalProperties, LocalProperties
from engine.statistics.costs import NO_COST, Costs, forward_cost, repartition_cost, total_costs
from engine.statistics.estimates import Estimates

#: limit of candidates kept for one node
CANDIDATES_MAX = 8

FORWARD = PartitionerSpec("FORWARD")
GLOBAL = PartitionerSpec("GLOBAL")
REBALANCE = PartitionerSpec("REBALANCE")


class Shipping(NamedTuple):
    """The way rows travel into a node, its costs, and the reason, for people."""

    strategy: ShipStrategy
    partitioner: PartitionerSpec
    costs: Costs
    reason: str = ""


class RejectedAlternative(msgspec.Struct, frozen=True):
    """An alternative that was not taken and why."""

    name: str
    reason: str


class JoinReport(msgspec.Struct):
    """The alternatives of one join: cheapest cumulative costs by name, and those that were out of the question."""

    costs: dict[str, Costs] = {}
    excluded: dict[str, str] = {}
    hint: str = ""


class CandidateInput(msgspec.Struct, frozen=True, eq=False):
    """One input of a candidate."""

    candidate: Candidate
    shipping: Shipping


class Candidate(msgspec.Struct, frozen=True, eq=False, dict=True):
    """One way to compute a node. ``strategy`` names the algorithm; empty where there is no choice."""

    node: PlanNode
    estimates: Estimates
    parallelism: int
    inputs: tuple[CandidateInput, ...] = ()
    strategy: str = ""
    alternative: str = ""
    costs: Costs = NO_COST
    properties: GlobalProperties = RANDOM
    order: LocalProperties = LocalProperties()
    report: JoinReport | None = None
    #: order of the rows in each subtask, by their present names, whether or not any operator needs it
    sorted_by: tuple[SortKey, ...] = ()
    #: aggregate whose second phase a sort can do
    combined: Candidate | None = None

    @property
    def is_ordered(self) -> bool:
        """Whether its rows have a total order that must survive."""
        return bool(self.order.order) and (self.parallelism == 1 or self.order.is_total)

    @cached_property
    def own_costs(self) -> Costs:
        """Costs of the node with the channels into it."""
        return total_costs((self.costs, *(each.shipping.costs for each in self.inputs)))

    @cached_property
    def cumulative_costs(self) -> Costs:
        """Own costs with those of everything below; a result that is read twice counts once."""
        found: dict[int, Candidate] = {}
        stack = [self]
        while stack:
            candidate = stack.pop()
            if id(candidate) not in found:
                found[id(candidate)] = candidate
                stack.extend(each.candidate for each in candidate.inputs)
        return total_costs(candidate.own_costs for candidate in found.values())


def move(source: Candidate, parallelism: int) -> Shipping:
    """Return the shipping of rows to that many subtasks when any of them may take a row."""
    if source.parallelism == parallelism:
        return Shipping(ShipStrategy.FORWARD, FORWARD, forward_cost())
    costs = repartition_cost(source.estimates, parallelism)
    if parallelism == 1:
        return Shipping(ShipStrategy.PARTITION_RANDOM, GLOBAL, costs, "all rows to one subtask")
    reason = f"from {source.parallelism} to {parallelism} subtasks"
    return Shipping(ShipStrategy.PARTITION_FORCED_REBALANCE, REBALANCE, costs, reason)


def cheapest(candidates: list[Candidate]) -> Candidate:
    """Return the candidate with the smallest cumulative costs; the first of equals."""
    best, best_costs = candidates[0], candidates[0].cumulative_costs
    for candidate in candidates[1:]:
        costs = candidate.cumulative_costs
        if costs < best_costs:
            best, best_costs = candidate, costs
    return best


def prune(candidates: list[Candidate], *, to_one: bool) -> list[Candidate]:
    """Keep the cheapest candidate of each outcome, at most CANDIDATES_MAX, or of all when ``to_one``."""
    if to_one:
        return [cheapest(candidates)]
    by_outcome: dict[tuple[int, GlobalProperties, LocalProperties, tuple[SortKey, ...]], list[Candidate]] = {}
    for candidate in candidates:
        outcome = (candidate.parallelism, candidate.properties, candidate.order, candidate.sorted_by)
        by_outcome.setdefault(outcome, []).append(candidate)
    kept = [cheapest(group) for group in by_outcome.values()]
    while len(kept) > CANDIDATES_MAX:
        dearest = kept[0]
        for candidate in kept[1:]:
            if dearest.cumulative_costs < candidate.cumulative_costs:
                dearest = candidate
        kept.remove(dearest)
    return kept


def most_subtasks(roots: list[Candidate]) -> int:
    """Return the largest parallelism of a chosen plan: the slots that it needs."""
    most, seen, waiting = 1, set[int](), list(roots)
    while waiting:
        candidate = waiting.pop()
        if candidate.node.id not in seen:
            seen.add(candidate.node.id)
            most = max(most, candidate.parallelism)
            waiting.extend(each.candidate for each in candidate.inputs)
    return most
