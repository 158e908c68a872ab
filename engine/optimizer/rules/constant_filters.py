"""Constant filters: parts that are always true go; what never has a row goes with all that needs its rows.

    filter(true and a)                    ->  filter(a)
    filter('x' == 'y')                    ->  filter(false)
    filter(false), filter(null)           ->  no rows
    filter(a), where all rows were looked at when the source was sampled, and none meets a   ->  no rows
    project, filter, sort, ... (no rows)  ->  no rows
    x inner, cross, semi (no rows)        ->  no rows             x anti (no rows)  ->  x
    x union (no rows) union y             ->  x union y
    groups by keys of no rows             ->  no rows             without keys: one row, so it stays

SQL writes these: each branch of a union says in a constant column what it is, and a filter asks for one of them. What
is left out might have raised an error; no row asks for it. Functions of users stay, since one may return rows for none.

"No rows" is a source without splits.
Held by: tests/optimizer/test_constant_filters.py
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from engine.graph.expression import Expression, Literal, conjunction, conjuncts
from engine.graph.plan import (
    Aggregate,
    AsofJoin,
    Explode,
    Filter,
    Join,
    Limit,
    PlanNode,
    Project,
    Sort,
    SortedAggregate,
    Source,
    Union,
    Window,
)
from engine.graph.said_operators import JoinType
from engine.graph.source_spec import ArrowSource, SourceStatistics
from engine.optimizer.expression_rewriting import truth_of_constants
from engine.optimizer.logical_plan import LogicalPlan

#: inputs without which a join of that type has no rows; other types need all of them
_NEEDED = {
    JoinType.INNER: ((0,), (1,)),
    JoinType.CROSS: ((0,), (1,)),
    JoinType.SEMI: ((0,), (1,)),
    JoinType.ANTI: ((0,),),
    JoinType.LEFT: ((0,),),
    JoinType.RIGHT: ((1,),),
}
_ROW_WISE = (Project, Filter, Sort, Limit, Explode, Window)


def apply(plan: LogicalPlan) -> None:
    """Settle filters by constants, inputs first, so that what has no rows is known above it."""
    for listed in plan.order():
        node = plan.node(listed.id)
        if isinstance(node.operator, Filter) and plan.is_new("constant_filters", node, plan.node(node.inputs[0])):
            _settle(plan, node, node.operator.predicate)
            node = plan.node(listed.id)
        inputs = map(plan.node, node.inputs)
        why = next((_why_empty(each) for each in inputs if isinstance(each.operator, Source) and _is_empty(each)), None)
        if why is None:
            continue
        if _has_no_rows(plan, node):
            _empty(plan, node, why)
        elif isinstance(node.operator, Union):
            _without_empty(plan, node)
        elif _is_anti_join(node) and node.schema == plan.node(node.inputs[0]).schema:
            plan.redirect(node.id, node.inputs[0])


def _settle(plan: LogicalPlan, node: PlanNode, predicate: Expression) -> None:
    parts = conjuncts(predicate)
    kept = [part for part in parts if not isinstance(part, Literal) and truth_of_constants(part) is None]
    if any(_is_never_true(part) for part in parts):
        _empty(plan, node, "no rows: a filter is never true")
    elif _is_met_by_none(plan.node(node.inputs[0]), parts):
        _empty(plan, node, "no rows: none of the source meets its filter")
    elif kept and len(kept) < len(parts):
        plan.replace(node, operator=Filter(conjunction(kept)))
    elif not kept and node.parallelism in (None, plan.node(node.inputs[0]).parallelism):
        plan.redirect(node.id, node.inputs[0])


def _is_never_true(part: Expression) -> bool:
    if isinstance(part, Literal):
        return part.value is not True
    return truth_of_constants(part) is False


def _is_met_by_none(below: PlanNode, parts: Sequence[Expression]) -> bool:
    """Whether it is known of a source that no row of it meets some of these conditions."""
    if not isinstance(below.operator, Source):
        return False
    never = [known.expression for known in below.operator.statistics.computed if known.is_met_by_none]
    # Expressions have no hash, and there may be thousands of parts: their bytes are compared.
    known = {msgspec.msgpack.encode(part) for part in parts} if never else set()
    return any(known.issuperset(map(msgspec.msgpack.encode, conjuncts(predicate))) for predicate in never)


def _is_empty(node: PlanNode) -> bool:
    return isinstance(node.operator, Source) and node.operator.spec == _nothing(node.schema.names)


def _nothing(columns: tuple[str, ...]) -> ArrowSource:
    return ArrowSource(paths=(), splits=(), columns=columns)


def _why_empty(node: PlanNode) -> str:
    assert isinstance(node.operator, Source)
    return node.operator.statistics.origin


def _empty(plan: LogicalPlan, node: PlanNode, origin: str) -> None:
    statistics = SourceStatistics(0.0, 0.0, origin, is_exact=True)
    plan.replace(node, operator=Source(_nothing(node.schema.names), statistics), inputs=())


def _has_no_rows(plan: LogicalPlan, node: PlanNode) -> bool:
    """Whether a node of which some inputs have no rows has none itself."""
    empty = {position for position, source in enumerate(node.inputs) if _is_empty(plan.node(source))}
    match node.operator:
        case Join(how=how):
            needed = _NEEDED.get(how, ((0, 1),))
            return any(empty.issuperset(inputs) for inputs in needed)
        case Aggregate(keys=keys) | SortedAggregate(keys=keys):
            return bool(keys)
        case AsofJoin():
            return 0 in empty
        case Union():
            return len(empty) == len(node.inputs)
        case operator:
            return isinstance(operator, _ROW_WISE)


def _is_anti_join(node: PlanNode) -> bool:
    return isinstance(node.operator, Join) and node.operator.how is JoinType.ANTI


def _without_empty(plan: LogicalPlan, node: PlanNode) -> None:
    """Leave out of a union the inputs that have no rows."""
    kept = tuple(source for source in node.inputs if not _is_empty(plan.node(source)))
    if len(kept) > 1:
        plan.replace(node, inputs=kept)
    elif plan.node(kept[0]).schema == node.schema:
        plan.redirect(node.id, kept[0])
