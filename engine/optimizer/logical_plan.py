"""LogicalPlan: a Plan that rules may change, and the way back to a Plan.

    LogicalPlan(plan) ─► rules: replace, insert, redirect ─► .to_plan()

Nodes are frozen PlanNodes kept by id; a rule puts a new node under an id (``replace``), adds one (``insert``) or lets
the consumers of one read another (``redirect``). Ids stay stable while rules run; ``to_plan`` drops what no sink
reaches and numbers the rest anew in topological order, so the result is a valid Plan again. ``changed`` tells the
planner whether another round is worth it. What is found out about the whole plan (``order``, ``kinds``, ``known``) is
kept until a node changes, ``consumers`` until a node reads others: most rules, most times, change nothing.

Held by: tests/optimizer/test_logical_plan.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import is_
from typing import TYPE_CHECKING, TypeVar, cast

import msgspec

from engine.graph.plan import Operator, Plan, PlanNode, SaidForm
from engine.graph.plan_schema import PlanSchema

if TYPE_CHECKING:
    from engine.statistics.estimates import Estimates

T = TypeVar("T")


class LogicalPlan:
    """A plan under change. Not shared between threads."""

    def __init__(self, plan: Plan) -> None:
        plan.validate()
        self.name = plan.name
        self.sinks = plan.sinks
        self._nodes: dict[int, PlanNode] = {node.id: node for node in plan.nodes}
        self._next_id = len(plan.nodes)
        self.changed = False
        #: nodes that rules looked at, by rule and first node
        self._looked_at: dict[tuple[str, int], tuple[PlanNode, ...]] = {}
        self._known: dict[Callable[[LogicalPlan], object], object] = {}
        #: ids of the nodes that sinks reach, inputs before their consumers; () until they are asked for
        self._ids: tuple[int, ...] = ()
        #: consumers of those; {} until they are asked for
        self._readers: dict[int, list[int]] = {}
        #: estimates of each node, with the node and the estimates of its inputs that they are based on (``estimates``)
        self.estimated: dict[int, tuple[PlanNode, list[Estimates], Estimates]] = {}

    def node(self, node_id: int) -> PlanNode:
        """Return the node under an id."""
        return self._nodes[node_id]

    def known(self, find: Callable[[LogicalPlan], T]) -> T:
        """Return a function's cached result for the plan as it is now; callers must not change it."""
        found = self._known.get(find, self)
        if found is self:
            found = self._known[find] = find(self)
        return cast("T", found)

    def order(self) -> tuple[PlanNode, ...]:
        """Return the nodes that sinks reach, inputs before their consumers, in a stable order."""
        return self.known(_order)

    def consumers(self) -> Mapping[int, list[int]]:
        """Return the consumers of each reachable node, once for each input."""
        if not self._readers:
            self._readers = _consumers(self)
        return self._readers

    def kinds(self) -> frozenset[type]:
        """Return the types of the operators that sinks reach."""
        return self.known(_kinds)

    def is_new(self, rule: str, *nodes: PlanNode) -> bool:
        """Return whether a rule asks for the first time about a node with others, as they are; all that it goes by."""
        key = (rule, nodes[0].id)
        before = self._looked_at.get(key, ())
        self._looked_at[key] = nodes
        return len(before) != len(nodes) or not all(map(is_, before, nodes))

    def replace(self, node: PlanNode, **changes: object) -> PlanNode:
        """Put a changed copy of a node under its id and return it."""
        changed = msgspec.structs.replace(node, **changes)
        self._put(changed)
        return changed

    def insert(self, operator: Operator, inputs: tuple[int, ...], schema: PlanSchema, like: PlanNode) -> PlanNode:
        """Add a node that no one reads yet; it takes the parallelism of ``like``."""
        node = PlanNode(self._next_id, operator, inputs, schema, parallelism=like.parallelism)
        self._put(node)
        self._next_id += 1
        return node

    def redirect(self, old_id: int, new_id: int) -> None:
        """Make every consumer of one node read another instead."""
        for node in list(self._nodes.values()):
            if old_id in node.inputs and node.id != new_id:
                inputs = tuple(new_id if source == old_id else source for source in node.inputs)
                self._put(msgspec.structs.replace(node, inputs=inputs, said=_redirected(node.said, old_id, new_id)))
            elif node.said is not None and old_id in node.said.inputs:
                self._put(msgspec.structs.replace(node, said=_redirected(node.said, old_id, new_id)))
        self.changed = True

    def _put(self, node: PlanNode) -> None:
        before = self._nodes.get(node.id)
        if before is not None and before.inputs != node.inputs:  # no one reads a new one yet
            self._ids, self._readers = (), {}
        self._nodes[node.id] = node
        self._known.clear()
        self.changed = True

    def to_plan(self) -> Plan:
        """Return the plan as it is now, without what no sink reaches, ids numbered anew."""
        order = self.order()
        position = {node.id: index for index, node in enumerate(order)}
        nodes = tuple(
            msgspec.structs.replace(
                node,
                id=position[node.id],
                inputs=tuple(position[source] for source in node.inputs),
                said=_renumbered(node.said, position),
            )
            for node in order
        )
        return Plan(nodes, tuple(position[sink] for sink in self.sinks), self.name)


def _redirected(said: SaidForm | None, old_id: int, new_id: int) -> SaidForm | None:
    if said is None:
        return None
    return SaidForm(said.operator, tuple(new_id if source == old_id else source for source in said.inputs))


def _renumbered(said: SaidForm | None, position: Mapping[int, int]) -> SaidForm | None:
    """Return a said form with the ids of a plan; None where the plan has not all of its inputs any more."""
    if said is None or any(source not in position for source in said.inputs):
        return None
    return SaidForm(said.operator, tuple(position[source] for source in said.inputs))


def _order(plan: LogicalPlan) -> tuple[PlanNode, ...]:
    nodes = plan._nodes
    if not plan._ids:
        plan._ids = _ids(nodes, plan.sinks)
    return tuple(map(nodes.__getitem__, plan._ids))


def _ids(nodes: Mapping[int, PlanNode], sinks: Sequence[int]) -> tuple[int, ...]:
    ordered: dict[int, None] = {}
    for sink in sinks:
        stack = [sink]
        while stack:
            node_id = stack.pop()
            if node_id < 0:  # its inputs are done
                ordered[~node_id] = None
            elif node_id not in ordered:
                stack.append(~node_id)
                stack.extend(nodes[node_id].inputs[::-1])
    return tuple(ordered)


def _kinds(plan: LogicalPlan) -> frozenset[type]:
    return frozenset(type(node.operator) for node in plan.order())


def _consumers(plan: LogicalPlan) -> dict[int, list[int]]:
    order = plan.order()
    found: dict[int, list[int]] = {node.id: [] for node in order}
    for node in order:
        for source in node.inputs:
            found[source].append(node.id)
    return found
