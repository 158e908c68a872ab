"""Sort elimination: a sort is removed when its order has no effect.

Seen through projections and filters (which keep an order), the consumer is another sort, a join, a union, or an
aggregate whose functions do not depend on order: then the order is lost anyway. ``first`` and ``last`` depend on it;
a Python function, a limit and a sink see it. A sort with a limit chooses rows and stays. What an operator does with
the order of its input is said by its entry (``order_use``).

Held by: tests/optimizer/test_rules.py
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.graph.plan import PlanNode, Sort
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.operator_entries.entry import OrderUse
from engine.optimizer.operator_entries.registry import entry_of


def apply(plan: LogicalPlan) -> None:
    """Remove sorts whose order is lost before it has an effect."""
    consumers = plan.consumers()
    for listed in plan.order():
        node = plan.node(listed.id)
        if node.id not in consumers:
            continue
        if isinstance(node.operator, Sort) and node.operator.limit is None and _order_is_lost(plan, node, consumers):
            plan.redirect(node.id, node.inputs[0])
            consumers = plan.consumers()


def _order_is_lost(plan: LogicalPlan, node: PlanNode, consumers: Mapping[int, list[int]]) -> bool:
    readers = [plan.node(consumer) for consumer in consumers[node.id]]
    return bool(readers) and all(_loses_order(plan, reader, consumers) for reader in readers)


def _loses_order(plan: LogicalPlan, reader: PlanNode, consumers: Mapping[int, list[int]]) -> bool:
    use = entry_of(reader.operator).order_use(reader.operator)
    if use is OrderUse.PASSED_ON:
        return _order_is_lost(plan, reader, consumers)
    return use is OrderUse.LOST
