"""Shared filters: what every use of a result asks of its rows is asked once, before they are kept for the uses.

    groups ─┬─► month = 2 ─► mean > 1          groups ─► month = 2 or month = 3 ─► mean > 1 ─┬─► month = 2
            └─► month = 3 ─► mean > 1    ->                                                  └─► month = 3

SQL writes these: a query under a name (WITH) has a condition of its own, and each of its uses another one, which comes
down to the groups. Uses that meet again read rows that were stored, so fewer are written, and read by each of them.

A part that can raise sees only rows that it has seen in some use: those that pass what one of the uses asks before it.
Followed are the filters and projections above a result that have no other reader.

Held by: tests/optimizer/test_shared_filters.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.graph.expression import ColumnRef, Expression, conjunction, conjuncts, disjunction
from engine.graph.function_table import is_deterministic
from engine.graph.plan import Filter, PlanNode, Project
from engine.optimizer.expression_rewriting import cannot_raise, mapping_of, substitute
from engine.optimizer.logical_plan import LogicalPlan


class _Part(NamedTuple):
    """A part of a filter above a result: the filter, what it says there, and in columns of the result.

    ``is_first``: of the first filter with a part that can raise; ``is_before``: of a filter below that one, or of any
    where there is none.
    """

    filter_id: int
    said: Expression
    asked: Expression
    is_safe: bool
    is_first: bool
    is_before: bool


def apply(plan: LogicalPlan) -> None:
    """Ask once what all uses of a result ask."""
    for listed in plan.order():
        uses = plan.consumers().get(listed.id, [])
        if len(uses) > 1 and len(set(uses)) == len(uses) and plan.is_new("shared_filters", listed, *_seen(plan, uses)):
            _ask_once(plan, plan.node(listed.id), uses)


def _seen(plan: LogicalPlan, uses: Sequence[int]) -> list[PlanNode]:
    """Return the nodes of uses, those that have no filter too, since one of them may go."""
    return [*map(plan.node, uses), *_above(plan, uses)]


def _above(plan: LogicalPlan, uses: Sequence[int]) -> list[PlanNode]:
    """Return the filters and projections that only a use's rows pass, all in one list."""
    found = []
    for use in uses:
        node = plan.node(use)
        while isinstance(node.operator, Filter | Project) and not node.name and node.parallelism is None:
            found.append(node)
            readers = plan.consumers()[node.id]
            if len(readers) != 1:
                break
            node = plan.node(readers[0])
    return found


def _ask_once(plan: LogicalPlan, node: PlanNode, uses: Sequence[int]) -> None:
    asked = [_parts(plan, node, use) for use in uses]
    movable = [[part.asked for part in parts if part.is_safe or part.is_first] for parts in asked]
    common = [part for part in movable[0] if all(part in other for other in movable[1:]) and is_deterministic(part)]
    if not common:
        return
    source = node
    if not all(cannot_raise(part, node.schema) for part in common):
        before = [[part.asked for part in parts if part.is_before] for parts in asked]
        if all(before):
            seen = disjunction([conjunction(parts) for parts in before])
            source = plan.insert(Filter(seen), (source.id,), node.schema, node)
    shared = plan.insert(Filter(conjunction(common)), (source.id,), node.schema, node)
    for use in uses:
        reader = plan.node(use)
        plan.replace(reader, inputs=tuple(shared.id if each == node.id else each for each in reader.inputs))
    for parts in asked:
        _drop(plan, [part for part in parts if part.asked in common])


def _parts(plan: LogicalPlan, node: PlanNode, use: int) -> list[_Part]:
    """Return the parts of the filters above a result in one use, those below first."""
    found: list[_Part] = []
    columns: dict[str, Expression] = {name: ColumnRef(name) for name in node.schema.names}
    raising: int | None = None
    for above in _above(plan, [use]):
        if isinstance(above.operator, Project):
            columns = {name: substitute(each, columns) for name, each in mapping_of(above.operator.expressions).items()}
        elif isinstance(above.operator, Filter):
            parts = [(part, substitute(part, columns)) for part in conjuncts(above.operator.predicate)]
            safe = [cannot_raise(part, node.schema) for _, part in parts]
            raising = above.id if raising is None and not all(safe) else raising
            for (said, part), is_safe in zip(parts, safe, strict=True):
                found.append(_Part(above.id, said, part, is_safe, above.id == raising, raising is None))
    return found


def _drop(plan: LogicalPlan, dropped: Sequence[_Part]) -> None:
    """Take parts out of their filters."""
    for filter_id in dict.fromkeys(part.filter_id for part in dropped):
        node = plan.node(filter_id)
        assert isinstance(node.operator, Filter)
        gone = [part.said for part in dropped if part.filter_id == filter_id]
        kept = [part for part in conjuncts(node.operator.predicate) if part not in gone]
        if kept:
            plan.replace(node, operator=Filter(conjunction(kept)))
        else:
            plan.redirect(filter_id, node.inputs[0])
