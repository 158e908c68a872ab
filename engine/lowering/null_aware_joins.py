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

from collections.abc import Callable, Sequence

from engine.graph.expression import ColumnRef, Expression, NamedExpression, conjunction, disjunction
from engine.graph.plan import Filter
from engine.lowering.join_keys import JoinKeys, KeyedSides
from engine.lowering.logical_node import LogicalNode
from engine.lowering.projections import project_node
from engine.lowering.terms import call, term

#: type of functions that make an anti join of (left, right, keys, condition)
AntiJoin = Callable[[LogicalNode, LogicalNode, JoinKeys, Expression | None], LogicalNode]


def not_in_node(sides: KeyedSides, condition: Expression | None, anti: AntiJoin) -> LogicalNode:
    """Return the left rows whose keys are certainly not those of any right row that meets the condition."""
    right, names = _with_own_names(sides)
    lefts, rights = list(map(ColumnRef, sides.left_keys)), list(map(ColumnRef, names))
    pairs = list(zip(lefts, rights, strict=True))
    may_be_equal = [
        disjunction((call("equal", one, other), call("is_null", one), call("is_null", other))) for one, other in pairs
    ]
    possible = conjunction(may_be_equal if condition is None else [*may_be_equal, condition])
    incomplete = LogicalNode(Filter(_any_null(rights)), (right,), right.schema)
    rest = anti(sides.left, right, JoinKeys(pairs), condition)
    rest = anti(rest, incomplete, JoinKeys(), possible)
    return anti(rest, right, JoinKeys([(_any_null(lefts), term(True))]), possible)


def _any_null(keys: Sequence[Expression]) -> Expression:
    return disjunction(call("is_null", key) for key in keys)


def _with_own_names(sides: KeyedSides) -> tuple[LogicalNode, list[str]]:
    """Return the right with key columns that no left column is called like, beside those that a condition may name."""
    lefts = set(sides.left.schema.names)
    names = [f"__not_in{index}" for index in range(len(sides.right_keys))]
    keys = [NamedExpression(name, ColumnRef(key)) for name, key in zip(names, sides.right_keys, strict=True)]
    others = [NamedExpression(name, ColumnRef(name)) for name in sides.right.schema.names if name not in lefts]
    return project_node(sides.right, [*keys, *others], "join"), names
