"""NOT IN by several keys, or with a condition: three anti joins, each of which does what it does best.

    (a, b) NOT IN (SELECT x, y ...)      a row goes where some (x, y) is equal, or may be equal for all that is known

    1  rows with an equal partner                                   anti join by the keys
    2  rows that may be equal to a partner with a null              anti join by a condition; such partners are few
    3  rows with a null that may be equal to any partner            anti join of those rows alone: the others have
                                                                    another key

One key without a condition is what the join itself does (``Join.null_aware``).

Held by: tests/integration/test_join_forms.py
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce

from engine.api.expression import Expr, to_expression
from engine.api.join_keys import JoinKeys, KeyedSides
from engine.api.logical_node import LogicalNode
from engine.api.projections import project_node
from engine.graph.expression import ColumnRef, NamedExpression
from engine.graph.plan import Filter

#: type of functions that make an anti join of (left, right, keys, condition)
AntiJoin = Callable[[LogicalNode, LogicalNode, JoinKeys, Expr | None], LogicalNode]


def not_in_node(sides: KeyedSides, condition: Expr | None, anti: AntiJoin) -> LogicalNode:
    """Return the left rows whose keys are certainly not those of any right row that meets the condition."""
    right, names = _with_own_names(sides)
    lefts = [Expr(ColumnRef(name)) for name in sides.left_keys]
    rights = [Expr(ColumnRef(name)) for name in names]
    may_be_equal = [(one == other) | one.is_null() | other.is_null() for one, other in zip(lefts, rights, strict=True)]
    possible = reduce(operator.and_, may_be_equal if condition is None else [*may_be_equal, condition])
    with_nulls = _any_null(rights)
    incomplete = LogicalNode(Filter(with_nulls.expression), (right,), right.schema)
    rest = anti(sides.left, right, JoinKeys(left_on=list(sides.left_keys), right_on=names), condition)
    rest = anti(rest, incomplete, JoinKeys(), possible)
    always = Expr(to_expression(True))
    return anti(rest, right, JoinKeys(left_on=[_any_null(lefts)], right_on=[always]), possible)


def _any_null(keys: list[Expr]) -> Expr:
    return reduce(operator.or_, [key.is_null() for key in keys])


def _with_own_names(sides: KeyedSides) -> tuple[LogicalNode, list[str]]:
    """Return the right with key columns that no left column is called like, beside those that a condition may name."""
    lefts = set(sides.left.schema.names)
    names = [f"__not_in{index}" for index in range(len(sides.right_keys))]
    keys = [NamedExpression(name, ColumnRef(key)) for name, key in zip(names, sides.right_keys, strict=True)]
    others = [NamedExpression(name, ColumnRef(name)) for name in sides.right.schema.names if name not in lefts]
    return project_node(sides.right, [*keys, *others], "join"), names
