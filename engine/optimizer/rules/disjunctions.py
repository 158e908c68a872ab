"""Disjunctions: what the branches of an OR have in common, and what they say of one table alone.

    common parts     (a and b) or (a and c)  ->  a and (b or c)      the part may move, or become a key
    implied parts    (a1 and b1) or (a2 and b2), a over one table, b over another
                     ->  the same, and (a1 or a2), and (b1 or b2)    each moves to its table

Both hold with nulls: AND and OR are distributive over three values, and a row for which the whole is true is one for
which each implied part is true. A part is implied for a table only when every branch says something of it, and only
parts that cannot raise are added. A table is where values come from: columns are followed below joins as far as a
filter of them could move. This runs once, before filters move: what was implied is then a part like any other.

Held by: tests/optimizer/test_disjunctions.py
"""

from __future__ import annotations

import msgspec

from engine.graph.expression import Expression, columns_of, conjunction, conjuncts, disjunction, disjuncts
from engine.graph.plan import Filter, Join, PlanNode, Project
from engine.graph.said_operators import JoinType
from engine.optimizer.expression_rewriting import cannot_raise, column_behind
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.operator_entries.join import PASSES_LEFT, PASSES_RIGHT

#: joins from a predicate down to the source of a column, with the side at each
Path = tuple[tuple[int, int], ...]

#: joins in which a condition on one row's columns applies to all of its pairs
_OF_PAIRS = frozenset({JoinType.INNER, JoinType.CROSS, JoinType.SEMI})


def apply(plan: LogicalPlan) -> None:
    """Rewrite the predicates of filters and the conditions of joins."""
    for listed in plan.order():
        node = plan.node(listed.id)
        if isinstance(node.operator, Filter):
            better = _rewritten(plan, node, node.operator.predicate)
            if better != node.operator.predicate:
                plan.replace(node, operator=Filter(better))
        elif isinstance(node.operator, Join) and node.operator.condition is not None:
            better = _rewritten(plan, node, node.operator.condition)
            if better != node.operator.condition:
                plan.replace(node, operator=msgspec.structs.replace(node.operator, condition=better))


def _rewritten(plan: LogicalPlan, node: PlanNode, predicate: Expression) -> Expression:
    parts = [part for whole in conjuncts(predicate) for part in _common_parts(whole)]
    for whole in list(parts):
        parts += [part for part in _implied_parts(plan, node, whole) if part not in parts]
    return conjunction(parts)


def _common_parts(whole: Expression) -> list[Expression]:
    """Return the parts of an OR that all branches have, and the OR of what is left of them."""
    branches = [conjuncts(branch) for branch in disjuncts(whole)]
    common = [part for part in branches[0] if all(part in branch for branch in branches)]
    if len(branches) == 1 or not common:
        return [whole]
    rests = [[part for part in branch if part not in common] for branch in branches]
    # a branch without other parts is true wherever the common ones are, and so is the whole
    return [*common, disjunction(map(conjunction, rests))] if all(rests) else common


def _implied_parts(plan: LogicalPlan, node: PlanNode, whole: Expression) -> list[Expression]:
    """Return the parts of an OR over several tables that concern one of them alone."""
    branches = [conjuncts(branch) for branch in disjuncts(whole)]
    if len(branches) == 1:
        return []
    paths = {name: _path(plan, node, name) for name in columns_of(whole)}
    tables = [path for path in dict.fromkeys(paths.values()) if path]
    if len(set(paths.values())) == 1:
        return []
    found = []
    for table in tables:
        of_table = [[part for part in branch if _is_over(part, paths, table)] for branch in branches]
        if all(of_table):
            found.append(disjunction(map(conjunction, of_table)))
    schemas = [plan.node(source).schema for source in node.inputs]
    return [
        part
        for part in found
        if any(set(columns_of(part)) <= set(schema.names) and cannot_raise(part, schema) for schema in schemas)
    ]


def _is_over(part: Expression, paths: dict[str, Path], table: Path) -> bool:
    return {paths[name] for name in columns_of(part)} == {table}


def _path(plan: LogicalPlan, node: PlanNode, name: str) -> Path:
    """Return the way to the table of a column, as far as a filter could move; () where it could not."""
    path: list[tuple[int, int]] = []
    start = node.id
    while True:
        operator = node.operator
        side = 0
        if isinstance(operator, Join):
            right = plan.node(node.inputs[1]).schema.names
            side = int(name not in plan.node(node.inputs[0]).schema.names and name in right)
            passing = _OF_PAIRS if node.id == start else (PASSES_LEFT, PASSES_RIGHT)[side]
            if operator.how not in passing:
                return tuple(path)
            path.append((node.id, side))
        elif isinstance(operator, Project):
            behind = column_behind(operator.expressions, name)
            if behind is None:
                return tuple(path)
            name = behind
        elif not isinstance(operator, Filter):
            return tuple(path)
        node = plan.node(node.inputs[side])
