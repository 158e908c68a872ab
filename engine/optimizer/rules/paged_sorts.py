"""Paged sorts: some of their rows are taken by their place, so that those with equal keys must have one order.

    sort ─► limit                           pages: limit(10), limit(10, offset=10) and so on
    sort ─► row_place, rand                 rows are numbered: with_row_index, tail, limit(None, offset=10), sample
    sort ─► map, filter, select ─► limit    what is made of each row keeps the order
    sort ─► sort ─► limit                   rows that are equal for the upper one are in the order of the lower one

Nothing else asks for it: a sort whose rows are all taken leaves ties as they come. How the order of ties is made is
said in ``input_order``.

Held by: tests/optimizer/test_input_order.py
"""

from __future__ import annotations

import msgspec

from engine.graph.plan import Explode, Filter, Limit, Operator, Project, PythonFunction, Sort
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.operator_entries.entry import OrderUse
from engine.optimizer.operator_entries.registry import entry_of


def apply(plan: LogicalPlan) -> None:
    """Mark the sorts whose rows are taken by their place."""
    for listed in reversed(plan.order()):
        node = plan.node(listed.id)
        if not _sees_places(node.operator):
            continue
        below = plan.node(node.inputs[0])
        while isinstance(below.operator, Project | Filter | PythonFunction | Explode | Limit):
            below = plan.node(below.inputs[0])
        if isinstance(below.operator, Sort) and not below.operator.is_paged:
            plan.replace(below, operator=msgspec.structs.replace(below.operator, is_paged=True))


def _sees_places(operator: Operator) -> bool:
    if isinstance(operator, Sort):
        return operator.has_settled_ties
    return isinstance(operator, Limit | Project) and entry_of(operator).order_use(operator) is OrderUse.SEEN
