"""Totals of parts: aggregates without keys over parts of the same rows are computed at once, each under its condition.

    count(*) of sales at eight o'clock  ┐         sales at eight or        ┌─► count(when eight then 1)
    count(*) of sales at nine o'clock   ┘   ->    at nine o'clock        ──┴─► count(when nine then 1)

SQL writes these: each value that stands in a SELECT or a FROM is a query of its own, which joins the same tables. Rows
may be parts of the same result as groups may (``shared_groups``): one filter below differs, in conditions that cannot
raise over columns that come up. Aggregates pass nulls over, so that one whose value is null where the condition does
not hold is the total of its part. Values that can raise see the rows of their own part alone, and stay.

It pays where reading the sources again costs more than asking each row of all parts for each total, and nothing else
is made of the rows of a part.

Held by: tests/sql/test_totals_of_parts.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from engine.expressions.literals import make_literal
from engine.graph.expression import (
    ORDER_DEPENDENT_AGGREGATES,
    AggregateCall,
    Case,
    ColumnRef,
    Expression,
    NamedExpression,
    conjunction,
    disjunction,
)
from engine.graph.plan import Aggregate, PlanNode, Project, Source
from engine.graph.plan_schema import ColumnInfo, PlanSchema
from engine.optimizer.estimates import estimate_below
from engine.optimizer.expression_rewriting import cannot_raise, substitute
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.rules.shared_groups import Comparison, all_below, bytes_read, named_as, reads_many, with_filters
from engine.optimizer.rules.shared_totals import renumbered

#: cost of a row for each total, in bytes that are read: a condition is asked, and a value is made that counts or not
_ASKED_BYTES: Final = 16


class _Totals(NamedTuple):
    """An aggregate without keys, with its arguments in terms of the result that it is over."""

    node: PlanNode
    base: PlanNode
    arguments: tuple[Expression | None, ...]


class _Part(NamedTuple):
    """Totals in terms of the first of a family; ``kept`` is what the filter that differs says, below."""

    totals: _Totals
    arguments: tuple[Expression | None, ...]
    kept: tuple[Expression, ...]
    conditions: tuple[Expression, ...]


class _Family(NamedTuple):
    """Totals of parts, the first one's first; ``place`` is the filter that differs, ``common`` what all say there."""

    place: int
    common: tuple[Expression, ...]
    parts: list[_Part]


def apply(plan: LogicalPlan) -> None:
    """Compute totals of parts of the same rows at once."""
    waiting = [totals for node in plan.order() if (totals := _totals(plan, node)) is not None]
    while len(waiting) > 1:
        first, *waiting = waiting
        family = _family(plan, first, waiting)
        if family is not None and _pays(plan, family):
            taken = {part.totals.node.id for part in family.parts}
            waiting = [totals for totals in waiting if totals.node.id not in taken]
            _share(plan, family)


def _totals(plan: LogicalPlan, node: PlanNode) -> _Totals | None:
    aggregate = node.operator
    if not isinstance(aggregate, Aggregate) or aggregate.keys or node.name or node.parallelism is not None:
        return None
    if aggregate.of_states or any(call.function in ORDER_DEPENDENT_AGGREGATES for call in aggregate.calls):
        return None
    if not reads_many(plan, node):
        return None
    base, names = Comparison(plan).behind(plan.node(node.inputs[0]))
    columns: dict[str, Expression] = {name: ColumnRef(behind) for name, behind in names.items()}
    arguments = [None if call.argument is None else substitute(call.argument, columns) for call in aggregate.calls]
    if not all(each is None or cannot_raise(each, base.schema) for each in arguments):
        return None
    return _Totals(node, base, tuple(arguments))


def _family(plan: LogicalPlan, first: _Totals, others: Sequence[_Totals]) -> _Family | None:
    """Return the totals of parts of the rows of the first; None where there are no others."""
    alike: list[tuple[_Totals, int, tuple[Expression, ...]]] = []
    for totals in others:
        comparison = Comparison(plan)
        found = comparison.equal(first.base, totals.base)
        if found is not None and found.difference is not None and len(comparison.filters) == 1:
            if not _are_read_alone(plan, first, totals):
                continue
            ((place, (common, _)),) = comparison.filters.items()
            if not alike or alike[0][1] == place:
                alike.append((totals, place, common))
    if not alike:
        return None
    place, common = alike[0][1:]
    common = tuple(part for part in common if all(part in each for _, _, each in alike))
    parts: list[_Part] = []
    for totals, _, _ in alike:
        # What the first has in common with some of them is a condition, too, unless all say it.
        comparison = Comparison(plan, common={place: common})
        found = comparison.equal(first.base, totals.base)
        if found is None or found.difference is None:
            continue
        arguments = [None if each is None else named_as(each, found.names) for each in totals.arguments]
        if [each is None for each in arguments] == [each is None for each in totals.arguments]:
            kept = comparison.filters[place][1]
            if not parts:
                parts.append(_Part(first, first.arguments, kept.own, found.difference.own))
            parts.append(_Part(totals, tuple(arguments), kept.other, found.difference.other))
    return _Family(place, common, parts) if parts else None


def _are_read_alone(plan: LogicalPlan, one: _Totals, other: _Totals) -> bool:
    """Whether nothing else reads the rows of either, for which they would have to be made all the same."""
    own, others = all_below(plan, one.node), all_below(plan, other.node)
    made = [plan.node(each) for each in (own ^ others) - {one.node.id, other.node.id}]
    return all(isinstance(each.operator, Source) or len(plan.consumers()[each.id]) == 1 for each in made)


def _pays(plan: LogicalPlan, family: _Family) -> bool:
    rows = sum(estimate_below(plan, part.totals.base, {}).rows for part in family.parts)
    calls = sum(len(part.arguments) for part in family.parts)
    read = bytes_read(plan, family.parts[0].totals.node)
    return read * (len(family.parts) - 1) > rows * calls * _ASKED_BYTES


def _share(plan: LogicalPlan, family: _Family) -> None:
    """Put one aggregate over the rows of all parts in the place of several, and choose the columns of each."""
    kept = disjunction([conjunction(part.kept) for part in family.parts])
    first = family.parts[0].totals
    source = with_filters(plan, first.base, {family.place: conjunction([*family.common, kept])})
    calls: list[AggregateCall] = []
    arguments: list[ColumnInfo] = []
    states: list[ColumnInfo] = []
    results: list[ColumnInfo] = []
    chosen: list[tuple[NamedExpression, ...]] = []
    for part in family.parts:
        aggregate, columns = part.totals.node.operator, []
        assert isinstance(aggregate, Aggregate)
        for index, (call, argument) in enumerate(zip(aggregate.calls, part.arguments, strict=True)):
            number = len(calls)
            states += renumbered(aggregate.state_schema, f"__state{index}_", f"__state{number}_")
            # Rows are counted by a number that stands in those of the part, an int64 as their count is.
            own = renumbered(aggregate.argument_schema, f"__arg{index}", f"__arg{number}")
            arguments += own or [msgspec.structs.replace(states[-1], name=f"__arg{number}")]
            value = Case(((conjunction(part.conditions), make_literal(1) if argument is None else argument),))
            calls.append(AggregateCall("count" if argument is None else call.function, value, f"__part{number}"))
            column = part.totals.node.schema.column(call.name)
            results.append(msgspec.structs.replace(column, name=f"__part{number}"))
            columns.append(NamedExpression(call.name, ColumnRef(f"__part{number}")))
        chosen.append(tuple(columns))
    operator = Aggregate((), tuple(calls), PlanSchema(tuple(states)), PlanSchema(tuple(arguments)))
    shared = plan.insert(operator, (source.id,), PlanSchema(tuple(results)), first.node)
    for part, expressions in zip(family.parts, chosen, strict=True):
        node = part.totals.node
        plan.redirect(node.id, plan.insert(Project(expressions), (shared.id,), node.schema, node).id)
