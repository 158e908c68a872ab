"""Aggregates over windows that no Window computes: of whole partitions, as of groups, and joined to their rows.

    partitioned_project(source, named, what)       columns with window functions of all kinds
    partitioned_filter(source, predicate)          rows for which a condition with such functions is true

    select(x - median(x).over(k), mode(y).over(k))

    source ──┬─► groups by k: median(x), mode(y) ─┐
             └────────────────────────────────────┴─► join by k, null equals null ──► project

One pass over groups and one join for all aggregates of a partition. The other window functions are ``window_nodes``'s.

Held by: tests/integration/test_window_rewrites.py
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from engine.graph.expression import OF_GROUPS, ColumnRef, Expression, NamedExpression, Over, children_of, replaced
from engine.graph.said_operators import JoinType
from engine.lowering.aggregate_columns import aggregates_node
from engine.lowering.join_keys import JoinKeys, keys_on
from engine.lowering.joins import join_node
from engine.lowering.logical_node import LogicalNode
from engine.lowering.projections import columns_as_they_are, project_node
from engine.lowering.window_nodes import windowed_filter, windowed_project


def partitioned_project(source: LogicalNode, named: Sequence[NamedExpression], what: str) -> LogicalNode:
    """Return a projection of a node whose columns have window functions in them."""
    node, found = _with_groups(source, [one.expression for one in named], what)
    return windowed_project(node, [replace(one, expression=new) for one, new in zip(named, found, strict=True)], what)


def partitioned_filter(source: LogicalNode, predicate: Expression) -> LogicalNode:
    """Return the rows of a node for which a condition with window functions in it is true."""
    node, (condition,) = _with_groups(source, [predicate], "filter")
    rows = windowed_filter(node, condition)
    return rows if node is source else project_node(rows, columns_as_they_are(source.schema.names), "filter")


def _with_groups(
    source: LogicalNode, expressions: Sequence[Expression], what: str
) -> tuple[LogicalNode, list[Expression]]:
    """Return a node with what is computed of groups, and the expressions over it."""
    waiting: list[Over] = []
    for over in (over for expression in expressions for over in _of_groups(expression)):
        waiting += [over] if over not in waiting else []
    if not waiting:
        return source, list(expressions)
    for over in waiting:
        assert over.argument is not None, "what is computed"
        aggregates_node(source, (), [NamedExpression("of_all", over.argument)])  # errors speak of the columns there are
    node, names = source, list[tuple[Over, str]]()
    while waiting:
        same = [over for over in waiting if _is_same_partition(over, waiting[0])]
        waiting = [over for over in waiting if over not in same]
        made = [(over, _fresh(node, f"__aggregate{len(names) + index}")) for index, over in enumerate(same)]
        node = _joined(node, made, what)
        names += made
    return node, [replaced(one, lambda part: _column(part, names)) for one in expressions]


def _of_groups(expression: Expression) -> list[Over]:
    """Return the aggregates of groups in an expression, from left to right, at any depth."""
    found, waiting = list[Over](), [expression]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Over) and one.function == OF_GROUPS:
            found.append(one)
        else:
            waiting.extend(reversed(children_of(one)))
    return found


def _column(part: Expression, names: Sequence[tuple[Over, str]]) -> Expression | None:
    return next((ColumnRef(name) for over, name in names if over == part), None)


def _is_same_partition(one: Over, other: Over) -> bool:
    return all(key in other.partition_by for key in one.partition_by) and len(one.partition_by) == len(
        other.partition_by
    )


def _joined(node: LogicalNode, made: Sequence[tuple[Over, str]], what: str) -> LogicalNode:
    """Return rows with aggregates of their groups, which are of one partition."""
    keys: list[str] = []
    for key in made[0][0].partition_by:
        if isinstance(key, ColumnRef):
            keys.append(key.name)
            continue
        name = _fresh(node, f"__key{len(keys)}")
        node = project_node(node, [*columns_as_they_are(node.schema.names), NamedExpression(name, key)], what)
        keys.append(name)
    outputs = [NamedExpression(name, over.argument) for over, name in made if over.argument is not None]
    groups = aggregates_node(node, tuple(keys), outputs)
    if not keys:
        return join_node(node, groups, JoinType.CROSS, JoinKeys())
    return join_node(node, groups, JoinType.INNER, keys_on(keys, null_safe=True))


def _fresh(node: LogicalNode, name: str) -> str:
    while name in node.schema.names:
        name += "_"
    return name
