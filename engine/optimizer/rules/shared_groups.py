"""Shared groups: aggregates that are equal, or differ in what one of their keys may be, are computed at once.

    groups by (county, quarter) of sales where quarter = 1   ┐         groups by (county, quarter)      ┌─► quarter = 1
    groups by (county, quarter) of sales where quarter = 2   ┘   ->    where quarter = 1 or quarter = 2 ┴─► quarter = 2

SQL writes these: a query under a name (WITH) that is used several times, each time for another year. Its filter comes
down into each use, and what was one query reads its tables once for each of them. Or a query is written twice.

Below the aggregates must be the same operators over the same sources, whatever columns are called: projections,
filters, unions, aggregates, joins that keep the rows of the side with the difference. The filters differ in conditions
over columns that come up to the keys as they are, and that cannot raise, for all groups are asked then. Every branch of
a union differs in the same way, or none does.

It pays where reading the sources again costs more than keeping the groups (costs of ``shared_scans``).

Comparisons are for ``totals_of_parts``, too.

Held by: tests/sql/test_shared_groups.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from engine.graph.expression import (
    ORDER_DEPENDENT_AGGREGATES,
    ColumnRef,
    Expression,
    NamedExpression,
    columns_of,
    conjunction,
    conjuncts,
    disjunction,
)
from engine.graph.plan import Aggregate, Filter, Join, PlanNode, Project, Source, Union
from engine.graph.said_operators import JoinHint, JoinType
from engine.optimizer.estimates import estimate_below
from engine.optimizer.expression_rewriting import cannot_raise, substitute
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.rules.projection_pruning import used_columns
from engine.optimizer.rules.shared_scans import WRITE_COST
from engine.statistics.estimates import Estimates, row_width

#: rows of all sources together from which a search for equal parts is worth it
SOURCE_ROWS_MIN: Final = 100_000
#: inputs of a join all of whose rows are in the result if they meet the condition on the other side
_KEPT_SIDES: Final = {
    JoinType.INNER: (0, 1),
    JoinType.CROSS: (0, 1),
    JoinType.LEFT: (0,),
    JoinType.SEMI: (0,),
    JoinType.ANTI: (0,),
    JoinType.RIGHT: (1,),
}


class Difference(NamedTuple):
    """The filters in which two results differ, in names of the first one."""

    own: tuple[Expression, ...]
    other: tuple[Expression, ...]

    def named(self, names: dict[str, str]) -> Difference | None:
        """Return the filters in other names; None where a column has none."""
        columns = {name for part in (*self.own, *self.other) for name in columns_of(part)}
        if not columns <= names.keys():
            return None
        mapping = {name: ColumnRef(names[name]) for name in columns}
        own, other = ([substitute(part, mapping) for part in parts] for parts in self)
        return Difference(tuple(own), tuple(other))


class Equal(NamedTuple):
    """Two equal results: what columns of the second one are called in the first, and the difference."""

    names: dict[str, str]
    difference: Difference | None


class Comparison(msgspec.Struct):
    """The way down through two results; ``filters`` are those of the first that differ, with the parts in common.

    ``common``: parts of filters of the first that others have in common with both; none else are looked at as such.
    """

    plan: LogicalPlan
    filters: dict[int, tuple[tuple[Expression, ...], Difference]] = msgspec.field(default_factory=dict)
    common: dict[int, tuple[Expression, ...]] = {}

    def equal(self, one: PlanNode, other: PlanNode) -> Equal | None:
        """Return the mapping between two equal results, None where they differ; projections may rename columns."""
        if one.id == other.id:
            return Equal({name: name for name in one.schema.names}, None)
        (base, own), (other_base, others) = self.behind(one), self.behind(other)
        found = self._equal_operators(base, other_base)
        if found is None:
            return None
        named: dict[str, str] = {behind: name for name, behind in reversed(own.items())}
        called = {name: named.get(found.names.get(behind, "")) for name, behind in others.items()}
        return _carried({name: one for name, one in called.items() if one is not None}, found.difference, named)

    def behind(self, node: PlanNode) -> tuple[PlanNode, dict[str, str]]:
        """Return the node below projections that choose and rename columns, and the columns' names there."""
        names = {name: name for name in node.schema.names}
        while isinstance(node.operator, Project) and not node.name and node.parallelism is None:
            made = {each.name: each.expression for each in node.operator.expressions}
            below = {name: made[behind] for name, behind in names.items()}
            if not all(isinstance(each, ColumnRef) for each in made.values()):
                break
            names = {name: each.name for name, each in below.items() if isinstance(each, ColumnRef)}
            node = self.plan.node(node.inputs[0])
        return node, names

    def _equal_operators(self, one: PlanNode, other: PlanNode) -> Equal | None:
        if one.id == other.id or (isinstance(one.operator, Source) and one.operator == other.operator):
            return Equal({name: name for name in one.schema.names}, None) if one.schema == other.schema else None
        if type(one.operator) is not type(other.operator) or len(one.inputs) != len(other.inputs):
            return None
        if any(node.name or node.parallelism is not None for node in (one, other)):
            return None
        below = [
            self.equal(self.plan.node(own), self.plan.node(others))
            for own, others in zip(one.inputs, other.inputs, strict=True)
        ]
        found = [each for each in below if each is not None]
        if len(found) < len(below):
            return None
        match one.operator, other.operator:
            case Filter(), Filter():
                return self._filters(one, other, found[0])
            case Project(), Project():
                return _projections(one, other, found[0])
            case Join(), Join():
                return _joins(one, other, found)
            case Aggregate(), Aggregate():
                return _groups(one, other, found[0])
            case Union(), Union():
                return _unions(one, other, found)
        return None

    def _filters(self, one: PlanNode, other: PlanNode, below: Equal) -> Equal | None:
        assert isinstance(one.operator, Filter)
        assert isinstance(other.operator, Filter)
        own = conjuncts(one.operator.predicate)
        parts = [named_as(part, below.names) for part in conjuncts(other.operator.predicate)]
        others = [part for part in parts if part is not None]
        if len(others) < len(parts):
            return None
        common = tuple(part for part in own if part in others and part in self.common.get(one.id, own))
        difference = Difference(
            tuple(part for part in own if part not in common), tuple(part for part in others if part not in common)
        )
        if not difference.own and not difference.other:
            return below
        is_whole = bool(difference.own) and bool(difference.other) and below.difference is None
        if not is_whole or not all(cannot_raise(part, one.schema) for parts in difference for part in parts):
            return None
        self.filters[one.id] = common, difference
        return Equal(below.names, difference)


def _projections(one: PlanNode, other: PlanNode, below: Equal) -> Equal | None:
    assert isinstance(one.operator, Project)
    assert isinstance(other.operator, Project)
    names = {}
    for others in other.operator.expressions:
        wanted = named_as(others.expression, below.names)
        name = next((own.name for own in one.operator.expressions if own.expression == wanted), None)
        if name is not None:
            names[others.name] = name
    kept = {
        each.expression.name: each.name for each in one.operator.expressions if isinstance(each.expression, ColumnRef)
    }
    return _carried(names, below.difference, kept)


def named_as(expression: Expression, names: dict[str, str]) -> Expression | None:
    """Return an expression in other names, None where a column has none."""
    columns = set(columns_of(expression))
    return substitute(expression, {name: ColumnRef(names[name]) for name in columns}) if columns <= set(names) else None


def _carried(names: dict[str, str], difference: Difference | None, kept: dict[str, str]) -> Equal | None:
    """Return an equality whose difference is in columns that are kept; None where it is in others."""
    if difference is None:
        return Equal(names, None)
    named = difference.named(kept)
    return None if named is None else Equal(names, named)


def _joins(one: PlanNode, other: PlanNode, below: Sequence[Equal]) -> Equal | None:
    own, others = one.operator, other.operator
    assert isinstance(own, Join)
    assert isinstance(others, Join)
    left, right = below
    both = {**right.names, **left.names}
    if own.how is not others.how or own.coalesce_keys != others.coalesce_keys or own.null_aware or others.null_aware:
        return None
    if JoinHint.OPTIMIZER_CHOOSES is not own.hint or own.hint is not others.hint:
        return None
    has_keys = own.left_keys == tuple(left.names.get(key) for key in others.left_keys) and own.right_keys == tuple(
        right.names.get(key) for key in others.right_keys
    )
    condition = None if others.condition is None else named_as(others.condition, both)
    if not has_keys or own.condition != condition:
        return None
    sides = [side for side, each in enumerate(below) if each.difference is not None]
    if len(sides) > 1 or not set(sides) <= set(_KEPT_SIDES.get(own.how, ())):
        return None
    difference = below[sides[0]].difference if sides else None
    if sides == [1] and own.coalesce_keys:
        return None
    names = {name: both[name] for name in other.schema.names if both.get(name) in one.schema.names}
    return _carried(names, difference, {name: name for name in one.schema.names})


def _groups(one: PlanNode, other: PlanNode, below: Equal) -> Equal | None:
    own, others = one.operator, other.operator
    assert isinstance(own, Aggregate)
    assert isinstance(others, Aggregate)
    if own.keys != tuple(below.names.get(key) for key in others.keys) or own.of_states or others.of_states:
        return None
    calls = [
        (call.function, None if call.argument is None else named_as(call.argument, below.names))
        for call in others.calls
    ]
    if [(call.function, call.argument) for call in own.calls] != calls:
        return None
    if any(call.function in ORDER_DEPENDENT_AGGREGATES for call in own.calls):
        return None
    names = {key: below.names[key] for key in others.keys}
    names |= {other_call.name: call.name for call, other_call in zip(own.calls, others.calls, strict=True)}
    return _carried(names, below.difference, {key: key for key in own.keys})


def _unions(one: PlanNode, other: PlanNode, below: Sequence[Equal]) -> Equal | None:
    names = [{name: each.names.get(name) for name in other.schema.names} for each in below]
    if any(each != names[0] for each in names) or any(each.difference != below[0].difference for each in below):
        return None
    called = {name: own for name, own in names[0].items() if own is not None}
    return _carried(called, below[0].difference, {name: name for name in one.schema.names})


def apply(plan: LogicalPlan) -> None:
    """Compute at once what is equal or differs in a key alone."""
    taken: set[int] = set()
    candidates = [node for node in reversed(plan.order()) if _is_candidate(plan, node)]
    for place, first in enumerate(candidates):
        if first.id in taken:
            continue
        family: list[tuple[PlanNode, Comparison, Equal]] = []
        twins: list[tuple[PlanNode, dict[str, str]]] = []
        for node in candidates[place + 1 :]:
            comparison = Comparison(plan)
            if node.id in taken or (found := comparison.equal(first, node)) is None:
                continue
            if set(found.names) < set(node.schema.names):
                continue
            if found.difference is None:
                twins.append((node, found.names))
            elif not family or _is_same_place(family[0], (node, comparison, found)):
                family.append((node, comparison, found))
        if twins and _pays(plan, first, len(twins)):
            for node, names in twins:
                taken |= all_below(plan, node)
                _rename(plan, first, node, names)
        if family and _pays(plan, first, len(family)):
            _share(plan, first, family)
            for node in (first, *(node for node, _, _ in family)):
                taken |= all_below(plan, node)


def _is_candidate(plan: LogicalPlan, node: PlanNode) -> bool:
    return (
        isinstance(node.operator, Aggregate) and bool(node.operator.keys) and not node.name and reads_many(plan, node)
    )


def reads_many(plan: LogicalPlan, node: PlanNode) -> bool:
    """Whether the sources below a node have so many rows that a search for equal parts is worth it."""
    sources = [plan.node(each).operator for each in all_below(plan, node)]
    rows = [each.statistics.row_count or 0.0 for each in sources if isinstance(each, Source)]
    return sum(rows) >= SOURCE_ROWS_MIN


def all_below(plan: LogicalPlan, node: PlanNode) -> set[int]:
    """Return the ids of a node and of all that it reads from."""
    found: set[int] = set()
    stack = [node.id]
    while stack:
        node_id = stack.pop()
        if node_id not in found:
            found.add(node_id)
            stack += plan.node(node_id).inputs
    return found


def _is_same_place(one: tuple[PlanNode, Comparison, Equal], other: tuple[PlanNode, Comparison, Equal]) -> bool:
    """Whether the first of a family differs from two others in the same conditions."""
    own = {place: (common, difference.own) for place, (common, difference) in one[1].filters.items()}
    others = {place: (common, difference.own) for place, (common, difference) in other[1].filters.items()}
    return own == others


def _pays(plan: LogicalPlan, node: PlanNode, others: int) -> bool:
    kept = _needed_bytes(plan, [node])
    return bytes_read(plan, node) * others > kept * (others + 1) * (WRITE_COST + others + 1)


def bytes_read(plan: LogicalPlan, node: PlanNode) -> float:
    """Return the bytes that the sources below a node are expected to read."""
    below = [plan.node(each) for each in all_below(plan, node)]
    return _needed_bytes(plan, [each for each in below if isinstance(each.operator, Source)])


def _needed_bytes(plan: LogicalPlan, nodes: Sequence[PlanNode]) -> float:
    """Return the bytes of the rows that come out of nodes, of the columns that are used."""
    used = used_columns(plan)
    known: dict[int, Estimates] = {}
    total = 0.0
    for node in nodes:
        estimates = estimate_below(plan, node, known)
        needed = node.schema.select(name for name in node.schema.names if name in used.get(node.id, ()))
        total += estimates.rows * row_width(needed, estimates.columns)
    return total


def _share(plan: LogicalPlan, first: PlanNode, family: Sequence[tuple[PlanNode, Comparison, Equal]]) -> None:
    """Put one aggregate in the place of several, each of which takes its own groups of it."""
    changed: dict[int, Expression] = {}
    for place, (common, difference) in family[0][1].filters.items():
        choices = [difference.own, *(comparison.filters[place][1].other for _, comparison, _ in family)]
        changed[place] = conjunction([*common, disjunction(map(conjunction, choices))])
    shared = with_filters(plan, first, changed)
    own = family[0][2].difference
    assert own is not None
    uses = [(first, {name: name for name in first.schema.names}, own.own)]
    uses += [(node, found.names, found.difference.other) for node, _, found in family if found.difference is not None]
    for node, names, parts in uses:
        kept = plan.insert(Filter(conjunction(parts)), (shared.id,), shared.schema, node)
        _rename(plan, kept, node, names)


def _rename(plan: LogicalPlan, source: PlanNode, node: PlanNode, names: dict[str, str]) -> None:
    """Put the columns of another node, under their names here, in the place of a node."""
    columns = tuple(NamedExpression(name, ColumnRef(names[name])) for name in node.schema.names)
    plan.redirect(node.id, plan.insert(Project(columns), (source.id,), node.schema, node).id)


def with_filters(plan: LogicalPlan, node: PlanNode, changed: dict[int, Expression]) -> PlanNode:
    """Return a node once more, with other filters below; itself where there are none."""
    inputs = tuple(with_filters(plan, plan.node(each), changed).id for each in node.inputs)
    operator = Filter(changed[node.id]) if node.id in changed else node.operator
    if inputs == node.inputs and node.id not in changed:
        return node
    return plan.insert(operator, inputs, node.schema, node)
