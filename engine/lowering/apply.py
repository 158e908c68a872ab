"""Queries beside rows: what a query says of each row, as joins.

    Apply(VALUE, column)         the only value of its rows that belong to a row, null or a default where there are none
    Apply(EXISTS)                semi and anti joins; with a column: a mark, true or false
    Apply(IN, tested)            the same; null where SQL does not know: a null is among the values, or is tested

Rows of the query belong to a row where ``keys`` are equal and the condition is met; without both all do, and the query
is computed once, beside all rows. A mark is made of the different keys of the query, or of what each key has:

    rows ──left join──► different keys, found            EXISTS by keys, IN of rows that match
    rows ──left join──► keys, their rows and values      IN by keys: unknown where a value is missing

``data.scalar()``, ``is_in(data)`` and the queries within expressions of SQL are lowered here. Source of the form, and
of its name: Neumann and Kemper, Unnesting Arbitrary Queries.

Held by: tests/sql/test_apply.py
Held by: tests/sql/test_subqueries.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from engine.expressions.infer import infer_type
from engine.expressions.literals import make_literal
from engine.graph.expression import (
    AggregateCall,
    ColumnRef,
    Expression,
    NamedExpression,
    conjunction,
    disjunction,
)
from engine.graph.plan import Aggregate, Filter, Limit, Project
from engine.graph.said_operators import Apply, ApplyUse, JoinType
from engine.lowering.aggregate_nodes import aggregate_node
from engine.lowering.exact_keys import as_equals_compares
from engine.lowering.join_keys import JoinKeys
from engine.lowering.joins import join_node, union_node
from engine.lowering.logical_node import LogicalNode
from engine.lowering.projections import columns_as_they_are, free_name, project_node
from engine.lowering.terms import call, case, is_there

_UNKNOWN = make_literal(None, pa.bool_())


class Key(NamedTuple):
    """Two values that are equal where a row of the query belongs to a row; ``null_safe``: null equals null."""

    left: Expression
    right: Expression
    null_safe: bool = False


class _Sides(NamedTuple):
    """The rows, the query, and what says which of its rows belong to a row."""

    left: LogicalNode
    right: LogicalNode
    keys: list[Key]
    condition: Expression | None

    @property
    def is_whole(self) -> bool:
        """Whether all rows of the query belong to all rows."""
        return not self.keys and self.condition is None


def applied(left: LogicalNode, right: LogicalNode, said: Apply) -> LogicalNode:
    """Return the rows with what a query says of them: a column, or those of which it is true."""
    flags = said.null_safe or [False] * len(said.keys)
    keys = [Key(*pair, is_safe) for pair, is_safe in zip(said.keys, flags, strict=True)]
    sides = _Sides(left, right, keys, said.condition)
    tested = [Key(*pair) for pair in said.tested]
    if said.use is ApplyUse.VALUE:
        return _with_value(sides, said)
    if said.column:
        is_existence = said.use is ApplyUse.EXISTS
        node = _with_existence(sides, said.column) if is_existence else _with_membership(sides, tested, said.column)
        return _shown(node, left, said.column)
    if said.use is ApplyUse.EXISTS:
        return _filtered_by_existence(sides, is_not=said.is_not)
    return _filtered_by_membership(sides, tested, is_not=said.is_not)


def equal_join(
    left: LogicalNode,
    right: LogicalNode,
    kind: JoinType,
    keys: Sequence[Key] = (),
    condition: Expression | None = None,
    *,
    null_aware: bool = False,
) -> LogicalNode:
    """Return a join whose keys are compared as ``==`` compares them; all pairs without keys and a condition."""
    if not keys and condition is None:
        condition = None if kind in (JoinType.INNER, JoinType.CROSS) else make_literal(True)
        kind = JoinType.CROSS if kind is JoinType.INNER else kind
    pairs = [_compared(key, left, right) for key in keys]
    own = JoinKeys(pairs, null_safe=[key.null_safe for key in keys])
    return join_node(left, right, kind, own, condition=condition, null_aware=null_aware)


def _compared(key: Key, left: LogicalNode, right: LogicalNode) -> tuple[Expression, Expression]:
    sides = ((key.left, infer_type(key.left, left.schema)), (key.right, infer_type(key.right, right.schema)))
    return as_equals_compares(*sides) or (key.left, key.right)


# ---- values -----------------------------------------------------------------------------------------------------


def _with_value(sides: _Sides, said: Apply) -> LogicalNode:
    assert said.value is not None, "a query of values has one"
    left, right = sides.left, sides.right
    if sides.is_whole:
        value = NamedExpression(said.column, said.value)
        few = LogicalNode(Limit(2), (right,), right.schema)
        is_one = _has_one_row(right)
        row = project_node(right, [value], "scalar") if is_one else _single(few, said.value, (), said)
        return equal_join(left, row, JoinType.CROSS)
    own, keys = _own_keys(sides)
    names = tuple(one.name for one in own)
    value = NamedExpression(said.column if said.is_single else _shown_name(said), said.value)
    right = project_node(right, [*own, value], "scalar")
    if not said.is_single:
        right = _single(right, ColumnRef(value.name), names, said)
    if said.default is None:
        return _shown(equal_join(left, right, JoinType.LEFT, keys), left, said.column)
    found = free_name("__found", left.schema, right.schema)
    node = equal_join(left, _with_column(right, found, make_literal(True)), JoinType.LEFT, keys)
    chosen = case((is_there(ColumnRef(found)), ColumnRef(said.column)), otherwise=said.default)
    kept = [*columns_as_they_are(left.schema.names), NamedExpression(said.column, chosen)]
    return project_node(node, kept, "scalar")


def _shown_name(said: Apply) -> str:
    """Return the name of the value in the error about several."""
    return said.value.name if isinstance(said.value, ColumnRef) else said.column


def _single(node: LogicalNode, value: Expression, keys: tuple[str, ...], said: Apply) -> LogicalNode:
    """Return one row for each of the keys, null for no row at all; an error of the job where there are two."""
    shown, rows = _shown_name(said), free_name("rows", node.schema)
    calls = (AggregateCall("first", value, shown), AggregateCall("count_all", None, rows))
    words = f"{said.words} that stands for a value has more than one row"
    is_one = call("less_equal", ColumnRef(rows), 1)
    found = NamedExpression(said.column, call("require", ColumnRef(shown), is_one, message=words))
    return project_node(aggregate_node(node, keys, calls), [*columns_as_they_are(keys), found], "scalar")


def _has_one_row(node: LogicalNode) -> bool:
    while isinstance(node.operator, Project):
        (node,) = node.inputs
    return isinstance(node.operator, Aggregate) and not node.operator.keys


# ---- existence --------------------------------------------------------------------------------------------------


def _filtered_by_existence(sides: _Sides, *, is_not: bool) -> LogicalNode:
    if not sides.is_whole:
        kind = JoinType.ANTI if is_not else JoinType.SEMI
        return equal_join(sides.left, sides.right, kind, sides.keys, sides.condition)
    counted, rows = _with_any(sides)
    is_met = call("equal" if is_not else "greater", ColumnRef(rows), 0)
    kept = LogicalNode(Filter(is_met), (counted,), counted.schema)
    return project_node(kept, columns_as_they_are(sides.left.schema.names), "exists")


def _with_existence(sides: _Sides, mark: str) -> LogicalNode:
    if not sides.is_whole:
        return _marked(sides, mark)
    counted, rows = _with_any(sides)
    return _with_column(counted, mark, call("greater", ColumnRef(rows), 0))


def _with_any(sides: _Sides) -> tuple[LogicalNode, str]:
    """Return the rows beside a column: 0 where the query has no row at all."""
    rows = free_name("__rows", sides.left.schema)
    first = LogicalNode(Limit(1), (sides.right,), sides.right.schema)
    counted = aggregate_node(first, (), (AggregateCall("count_all", None, rows),))
    return equal_join(sides.left, counted, JoinType.CROSS), rows


def _marked(sides: _Sides, mark: str) -> LogicalNode:
    """Return the rows and a mark: whether rows of the query belong to them."""
    if sides.condition is not None or not sides.keys:
        kinds = {JoinType.SEMI: True, JoinType.ANTI: False}
        parts = [
            _with_column(equal_join(*sides[:2], kind, *sides[2:]), mark, make_literal(is_met))
            for kind, is_met in kinds.items()
        ]
        return union_node(parts)
    own, keys = _own_keys(sides)
    names = tuple(one.name for one in own)
    found = free_name("__found", sides.left.schema)
    different = aggregate_node(project_node(sides.right, own, "exists"), names, ())
    flagged = _with_column(different, found, make_literal(True))
    node = equal_join(sides.left, flagged, JoinType.LEFT, keys)
    return _with_column(node, mark, is_there(ColumnRef(found)))


# ---- membership -------------------------------------------------------------------------------------------------


def _filtered_by_membership(sides: _Sides, tested: list[Key], *, is_not: bool) -> LogicalNode:
    left, right, keys, condition = sides
    if not is_not:
        return equal_join(left, right, JoinType.SEMI, [*tested, *keys], condition)
    if sides.is_whole:
        return equal_join(left, right, JoinType.ANTI, tested, null_aware=True)
    if len(tested) > 1:
        mark = free_name("__mark", left.schema)
        node = _with_membership(sides, tested, mark)
        kept = LogicalNode(Filter(call("not", ColumnRef(mark))), (node,), node.schema)
        return project_node(kept, columns_as_they_are(left.schema.names), "is_in")
    without, with_null = _without_match(sides, tested[0])
    return equal_join(_known(without, sides, tested[0]), right, JoinType.ANTI, with_null, condition)


def _without_match(sides: _Sides, tested: Key) -> tuple[LogicalNode, list[Key]]:
    """Return the rows that have no equal value, and the keys of those whose value is null."""
    without = equal_join(sides.left, sides.right, JoinType.ANTI, [tested, *sides.keys], sides.condition)
    return without, [Key(call("is_null", tested.left), make_literal(True)), *sides.keys]


def _known(without: LogicalNode, sides: _Sides, tested: Key) -> LogicalNode:
    """Return the rows without an equal value to which no null belongs."""
    return equal_join(without, _nulls(sides, tested), JoinType.ANTI, sides.keys, sides.condition)


def _nulls(sides: _Sides, tested: Key) -> LogicalNode:
    return LogicalNode(Filter(call("is_null", tested.right)), (sides.right,), sides.right.schema)


def _with_membership(sides: _Sides, tested: list[Key], mark: str) -> LogicalNode:
    """Return the rows and a mark: true where a value is equal, else null where one may be, else false."""
    if len(tested) > 1:
        return _with_membership_of_rows(sides, tested, mark)
    if sides.is_whole:
        return _with_membership_in_all(sides, tested[0], mark)
    if sides.condition is None:
        return _with_membership_by_keys(sides, tested[0], mark)
    left, right, keys, condition = sides
    without, with_null = _without_match(sides, tested[0])
    known = equal_join(_known(without, sides, tested[0]), right, JoinType.ANTI, with_null, condition)
    is_null = call("is_null", tested[0].left)
    others = LogicalNode(Filter(call("not", is_null)), (without,), without.schema)
    parts = (
        (equal_join(left, right, JoinType.SEMI, [*tested, *keys], condition), make_literal(True)),
        (known, make_literal(False)),
        (equal_join(others, _nulls(sides, tested[0]), JoinType.SEMI, keys, condition), _UNKNOWN),
        (equal_join(without, right, JoinType.SEMI, with_null, condition), _UNKNOWN),
    )
    return union_node([_with_column(node, mark, value) for node, value in parts])


def _with_membership_in_all(sides: _Sides, tested: Key, mark: str) -> LogicalNode:
    """Return the mark by the different values of the query, and how many of them are not null."""
    left = sides.left
    value, other = _compared(tested, left, sides.right)
    key, found, rows, values, own = (
        free_name(f"__{name}", left.schema) for name in ("key", "found", "rows", "values", "tested")
    )
    different = aggregate_node(project_node(sides.right, [NamedExpression(key, other)], "is_in"), (key,), ())
    flagged = _with_column(different, found, make_literal(True))
    beside = _with_column(left, own, value)
    node = join_node(beside, flagged, JoinType.LEFT, JoinKeys([(ColumnRef(own), ColumnRef(key))]))
    calls = (AggregateCall("count_all", None, rows), AggregateCall("count", ColumnRef(key), values))
    counted = join_node(node, aggregate_node(different, (), calls), JoinType.CROSS, JoinKeys())
    is_unknown = call("and", call("greater", ColumnRef(rows), 0), _may_be(tested, rows, values))
    is_in = case((is_there(ColumnRef(found)), True), (is_unknown, _UNKNOWN), otherwise=False)
    return _with_column(counted, mark, is_in)


def _with_membership_by_keys(sides: _Sides, tested: Key, mark: str) -> LogicalNode:
    """Return the mark by groups of the keys: how many rows each has, and how many values that are not null."""
    left = sides.left
    match, rows, values = (free_name(f"__{name}", left.schema) for name in ("match", "rows", "values"))
    matched = _shown(_marked(sides._replace(keys=[tested, *sides.keys]), match), left, match)
    own, keys = _own_keys(sides)
    value = NamedExpression(free_name("__value", left.schema), tested.right)
    calls = (AggregateCall("count_all", None, rows), AggregateCall("count", ColumnRef(value.name), values))
    keyed = project_node(sides.right, [*own, value], "is_in")
    counts = aggregate_node(keyed, tuple(one.name for one in own), calls)
    node = equal_join(matched, counts, JoinType.LEFT, keys)
    is_unknown = call("and", is_there(ColumnRef(rows)), _may_be(tested, rows, values))
    is_in = case((ColumnRef(match), True), (is_unknown, _UNKNOWN), otherwise=False)
    return _with_column(node, mark, is_in)


def _may_be(tested: Key, rows: str, values: str) -> Expression:
    """Return whether a value may be equal to one that is not known: it is null, or one of those is."""
    return call("or", call("is_null", tested.left), call("greater", ColumnRef(rows), ColumnRef(values)))


def _with_membership_of_rows(sides: _Sides, tested: list[Key], mark: str) -> LogicalNode:
    """Return the mark of several values at once: unknown where all that is known of a row of the query is equal."""
    left = sides.left
    match, maybe = (free_name(f"__{name}", left.schema) for name in ("match", "maybe"))
    matched = _shown(_marked(sides._replace(keys=[*tested, *sides.keys]), match), left, match)
    may_be = [
        disjunction((call("is_null", one.left), call("is_null", one.right), call("equal", one.left, one.right)))
        for one in tested
    ]
    possible = conjunction(may_be if sides.condition is None else [*may_be, sides.condition])
    node = _shown(_marked(sides._replace(left=matched, condition=possible), maybe), matched, maybe)
    return _with_column(node, mark, case((ColumnRef(match), True), (ColumnRef(maybe), _UNKNOWN), otherwise=False))


# ---- columns ----------------------------------------------------------------------------------------------------


def _own_keys(sides: _Sides) -> tuple[list[NamedExpression], list[Key]]:
    """Return the keys of the query as columns under names that no row has, and the keys of the join with them."""
    names = [free_name(f"__key{place}", sides.left.schema) for place in range(len(sides.keys))]
    columns = [NamedExpression(name, key.right) for name, key in zip(names, sides.keys, strict=True)]
    return columns, [key._replace(right=ColumnRef(name)) for name, key in zip(names, sides.keys, strict=True)]


def _with_column(node: LogicalNode, name: str, value: Expression) -> LogicalNode:
    return project_node(node, [*columns_as_they_are(node.schema.names), NamedExpression(name, value)], "apply")


def _shown(node: LogicalNode, left: LogicalNode, column: str) -> LogicalNode:
    """Return the rows as they were, and one column more."""
    wanted = [*left.schema.names, column]
    return node if node.schema.names == wanted else project_node(node, columns_as_they_are(wanted), "apply")
