"""Shared totals: aggregates without keys over the same rows are computed at once.

    count(*) of rows where a   ┐                              ┌─► count(*)
    avg(x) of rows where a     ┘   ->   one pass over them  ──┴─► avg(x)

SQL writes these: each value that stands in a SELECT or a WHERE is a query of its own. Rows are the same where the same
filters were applied to the same result, whatever columns were chosen between. A filter that can raise keeps its place.

Held by: tests/optimizer/test_shared_totals.py
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from engine.graph.expression import (
    ORDER_DEPENDENT_AGGREGATES,
    AggregateCall,
    ColumnRef,
    Expression,
    NamedExpression,
    conjunction,
    conjuncts,
)
from engine.graph.plan import Aggregate, Filter, PlanNode, Project
from engine.graph.plan_schema import ColumnInfo, PlanSchema
from engine.optimizer.expression_rewriting import cannot_raise, mapping_of, substitute
from engine.optimizer.logical_plan import LogicalPlan


class _Totals(NamedTuple):
    """An aggregate without keys, in terms of the result that its filters are over."""

    node: PlanNode
    base: int
    parts: list[Expression]
    arguments: list[Expression | None]


def apply(plan: LogicalPlan) -> None:
    """Compute totals of the same rows at once."""
    families: list[list[_Totals]] = []
    for node in plan.order():
        totals = _totals(plan, node)
        if totals is None:
            continue
        family = next((each for each in families if _are_same_rows(each[0], totals)), None)
        if family is None:
            families.append([totals])
        else:
            family.append(totals)
    for family in families:
        if len(family) > 1:
            _share(plan, family)


def _totals(plan: LogicalPlan, node: PlanNode) -> _Totals | None:
    aggregate = node.operator
    if not isinstance(aggregate, Aggregate) or aggregate.keys or node.name or node.parallelism is not None:
        return None
    if any(call.function in ORDER_DEPENDENT_AGGREGATES for call in aggregate.calls):
        return None
    parts: list[Expression] = []
    arguments = [call.argument for call in aggregate.calls]
    below = plan.node(node.inputs[0])
    while below.parallelism is None:
        match below.operator:
            case Filter(predicate=predicate) if cannot_raise(predicate, plan.node(below.inputs[0]).schema):
                parts += [part for part in conjuncts(predicate) if part not in parts]
            case Project(expressions=made) if all(isinstance(each.expression, ColumnRef) for each in made):
                columns = mapping_of(made)
                parts = [substitute(part, columns) for part in parts]
                arguments = [None if each is None else substitute(each, columns) for each in arguments]
            case _:
                break
        below = plan.node(below.inputs[0])
    return _Totals(node, below.id, parts, arguments)


def _are_same_rows(one: _Totals, other: _Totals) -> bool:
    if one.base != other.base or len(one.parts) != len(other.parts):
        return False
    return all(part in other.parts for part in one.parts)


def _share(plan: LogicalPlan, family: list[_Totals]) -> None:
    """Put one aggregate in the place of several, and choose the columns of each from its result."""
    calls: list[AggregateCall] = []
    arguments: list[ColumnInfo] = []
    states: list[ColumnInfo] = []
    results: list[ColumnInfo] = []
    chosen: list[tuple[NamedExpression, ...]] = []
    for totals in family:
        aggregate, columns = totals.node.operator, []
        assert isinstance(aggregate, Aggregate)
        for index, (call, argument) in enumerate(zip(aggregate.calls, totals.arguments, strict=True)):
            wanted = (call.function, argument)
            place = next((at for at, known in enumerate(calls) if (known.function, known.argument) == wanted), None)
            if place is None:
                place = len(calls)
                calls.append(AggregateCall(call.function, argument, f"__total{place}"))
                arguments += renumbered(aggregate.argument_schema, f"__arg{index}", f"__arg{place}")
                states += renumbered(aggregate.state_schema, f"__state{index}_", f"__state{place}_")
                column = totals.node.schema.column(call.name)
                results.append(msgspec.structs.replace(column, name=f"__total{place}"))
            columns.append(NamedExpression(call.name, ColumnRef(f"__total{place}")))
        chosen.append(tuple(columns))
    first, source = family[0], plan.node(family[0].base)
    if first.parts:
        source = plan.insert(Filter(conjunction(first.parts)), (source.id,), source.schema, source)
    operator = Aggregate((), tuple(calls), PlanSchema(tuple(states)), PlanSchema(tuple(arguments)))
    shared = plan.insert(operator, (source.id,), PlanSchema(tuple(results)), first.node)
    for totals, expressions in zip(family, chosen, strict=True):
        own = plan.insert(Project(expressions), (shared.id,), totals.node.schema, totals.node)
        plan.redirect(totals.node.id, own.id)


def renumbered(schema: PlanSchema, prefix: str, new_prefix: str) -> list[ColumnInfo]:
    """Return the columns of one call under the number that it has now."""
    is_whole = prefix.startswith("__arg")
    own = [each for each in schema.columns if (each.name == prefix if is_whole else each.name.startswith(prefix))]
    return [msgspec.structs.replace(each, name=new_prefix + each.name.removeprefix(prefix)) for each in own]
