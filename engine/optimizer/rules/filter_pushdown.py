"""Filter pushdown: each part of a predicate moves towards the sources as far as it is safe.

    below          which parts may pass
    project        all: written in terms of the projection's input
    join           by its type: see ``operators.join``
    union          all, into every branch
    sort           all, when the sort has no limit
    aggregate      parts over the keys alone, when there are keys
    filter         all (then neighbours combine)
    limit, Python  none

A part passes only if it cannot raise, before and after it is rewritten: below, it sees rows that it would not have
seen above. A node with another consumer is never changed. What passes an operator is said by its entry
(``take_filter``).

Held by: tests/optimizer/test_rules.py
"""

from __future__ import annotations

from engine.graph.expression import conjunction, conjuncts
from engine.graph.plan import Filter
from engine.optimizer.expression_rewriting import cannot_raise
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.operator_entries.registry import entry_of


def apply(plan: LogicalPlan) -> None:
    """Push every filter down as far as it comes."""
    while _push_by_one(plan):
        pass


def _push_by_one(plan: LogicalPlan) -> bool:
    """Push every filter down by one node; return whether one was pushed."""
    readers = {node_id: len(each) for node_id, each in plan.consumers().items()}
    is_pushed = False
    for listed in reversed(plan.order()):
        node = plan.node(listed.id)
        if not isinstance(node.operator, Filter) or node.id not in readers:
            continue
        lower = plan.node(node.inputs[0])
        if readers.get(lower.id, 1) > 1 or node.parallelism not in (None, lower.parallelism):
            continue
        below = map(plan.node, lower.inputs)  # an entry may go by their columns
        if not plan.is_new("filter_pushdown", node, lower, *below):
            continue
        safe = [part for part in conjuncts(node.operator.predicate) if cannot_raise(part, lower.schema)]
        passed = entry_of(lower.operator).take_filter(plan, lower, lower.operator, safe)
        if not passed:
            continue
        kept = [part for part in conjuncts(node.operator.predicate) if part not in passed]
        if kept:
            plan.replace(node, operator=Filter(conjunction(kept)))
        else:
            plan.redirect(node.id, lower.id)
            # All others keep their number; a filter that was added has one.
            readers[lower.id] = readers.pop(node.id)
        is_pushed = True
    return is_pushed
