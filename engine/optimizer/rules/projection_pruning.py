"""Projection pruning: nothing is read, kept or sent that no one uses.

    top down     which columns of each node its consumers use
    bottom up    sources read only those; projections compute only those; a join returns only those; before a join,
                 a sort and a union a projection drops what filters alone needed

A Python function and a sink use every column of their input. A node without used columns (the input of
``count()``) keeps its narrowest one, a filter one that it looks at itself, because rows without columns have no place
in a batch. Dropping an expression that could raise is fine: the job fails less. What an operator needs and keeps is
said by its entry (``columns_used``, ``prune``).

Held by: tests/optimizer/test_rules.py
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.graph.expression import columns_of
from engine.graph.plan import Filter, PlanNode
from engine.graph.plan_schema import PlanSchema
from engine.optimizer.input_changes import narrowest
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.operator_entries.registry import entry_of


def apply(plan: LogicalPlan) -> None:
    """Prune the whole plan; a second call changes nothing."""
    used = used_columns(plan)
    for node in plan.order():
        current = plan.node(node.id)
        entry_of(current.operator).prune(plan, current, current.operator, used[node.id])


def used_columns(plan: LogicalPlan) -> Mapping[int, set[str]]:
    """Return the columns that the consumers of each node use, at least one."""
    return plan.known(_used_columns)


def _used_columns(plan: LogicalPlan) -> dict[int, set[str]]:
    order = plan.order()
    used: dict[int, set[str]] = {node.id: set() for node in order}
    for node in reversed(order):
        if node.id in plan.sinks:
            used[node.id] = set(node.schema.names)
        elif not used[node.id] and node.schema.columns:
            used[node.id] = {narrowest(_of_predicate(node))}
        for input_index, source in enumerate(node.inputs):
            used[source] |= entry_of(node.operator).columns_used(plan, node, node.operator, input_index, used[node.id])
    return used


def _of_predicate(node: PlanNode) -> PlanSchema:
    """Return the columns of a filter's predicate, which are read whatever is used of its rows; else all columns."""
    predicate = node.operator.predicate if isinstance(node.operator, Filter) else None
    names = () if predicate is None else dict.fromkeys(columns_of(predicate))
    return node.schema.select(names) if names else node.schema
