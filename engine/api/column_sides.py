"""Columns that are written ``data["x"]``: of which data set each is.

    data["x"]                           a column that is remembered as one of that data set's
    condition=left["v"] < right["v"]    the right's column under its name in pairs of rows, "v" and the suffix
    on=left["k"] == right["k"]          refused: keys are columns, and it is the join that compares them
    left.filter(right["v"] > 1)         refused: the left's rows have no such column, or another one of that name

A column is plain data that travels and is compared by its name, so its data set is kept beside it, for as long as the
column is there. ``col("v")`` has none, and is a name among the columns of a pair.

Thread: any.
Held by: tests/integration/test_join_sides.py
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from engine.column_expressions.expression import Expr
from engine.errors import SchemaError
from engine.expressions.text import expression_text
from engine.graph.expression import Call, ColumnRef, Expression, children_of, columns_of, conjuncts, replaced
from engine.graph.said_operators import AsofJoinBy, JoinBy
from engine.lowering.logical_node import LogicalNode

_NODES: Final[dict[int, tuple[weakref.ref[ColumnRef], LogicalNode]]] = {}
_COMPARISONS: Final = frozenset(
    {"equal", "eq_null_safe", "not_equal", "less", "less_equal", "greater", "greater_equal", "between"}
)
#: limit of columns that an error names
_NAMED_MAX: Final = 20
_CONDITIONS: Final = _COMPARISONS | {"and", "or", "not"}


def column_of(node: LogicalNode, name: str) -> ColumnRef:
    """Return a column that is remembered as one of a node."""
    column = ColumnRef(name)
    _NODES[id(column)] = weakref.ref(column, partial(_forget, id(column))), node
    return column


def _forget(key: int, _gone: object) -> None:
    _NODES.pop(key, None)


def _node_of(column: Expression) -> LogicalNode | None:
    found = _NODES.get(id(column))
    return None if found is None else found[1]


def _all_parts(expressions: Iterable[Expression]) -> Iterator[Expression]:
    """Yield expressions and everything in them."""
    waiting = list(expressions)
    while waiting:
        part = waiting.pop()
        yield part
        waiting += children_of(part)


def check_own_columns(expressions: Sequence[Expression], node: LogicalNode) -> None:
    """Refuse a column that is written as one of a data set of which these rows have none, or by another name."""
    for part in _all_parts(expressions if _NODES else ()):
        whose = _node_of(part)
        if isinstance(part, ColumnRef) and whose is not None and not _is_made_of(node, whose, part.name):
            raise SchemaError(
                f"{part.name!r} is written as a column of another data set, and {part.name!r} of these rows is not made"
                f" of it: join the two first, and write col(...) with the name that the column has here:"
                f" {', '.join(node.schema.names[:_NAMED_MAX])}"
            )


def _is_made_of(node: LogicalNode, whose: LogicalNode, name: str) -> bool:
    """Whether a column of that name may come from the one of another node; a join takes its left's first."""
    waiting, seen = [node], {id(node)}
    while waiting:
        one = waiting.pop()
        if one is whose:
            return True
        operator, inputs = (one.operator, one.inputs) if one.said is None else (one.said.operator, one.said.inputs)
        if isinstance(operator, JoinBy | AsofJoinBy) and name in inputs[0].schema.names:
            inputs = inputs if ColumnRef(name) in _keys_of_both(operator) else inputs[:1]
        waiting += [each for each in inputs if id(each) not in seen]
        seen.update(map(id, inputs))
    return False


def _keys_of_both(join: JoinBy | AsofJoinBy) -> Sequence[Expression]:
    """Return the keys that come out once."""
    if not isinstance(join, JoinBy):
        return (*join.by, *([join.on[0]] if join.is_on else []))
    return [left for left, _ in join.keys] if join.is_on else []


class Sides(NamedTuple):
    """The two inputs of a join."""

    left: LogicalNode
    right: LogicalNode
    #: end of the names of right columns that the left has too
    suffix: str | None

    def condition(self, condition: Expression | None, keys: Sequence[str]) -> Expression | None:
        """Return a condition by the names of a pair of rows; SchemaError where it does not say a column's side.

        keys: names of keys that come out once, whose values are equal in a pair.
        """
        if condition is None:
            return None
        both = set(self.left.schema.names) & set(self.right.schema.names) - set(keys)

        def placed(part: Expression) -> Expression | None:
            if not isinstance(part, ColumnRef) or part.name not in both or self.suffix is None:
                return None
            node = _node_of(part)
            if node is not None and (self.left is self.right or (node is not self.left and node is not self.right)):
                whose = "that is both sides" if node is self.left else "that is neither side"
                raise SchemaError(
                    f"join condition: {part.name!r} is written as a column of a data set {whose}, and both sides have"
                    f" one; write {self._names(part.name)}"
                )
            # a new column, which is of no data set: validate= joins others that stand for these
            return ColumnRef(part.name + (self.suffix if node is self.right else "")) if node else None

        found = replaced(condition, placed)
        self._check_compared(found, both)
        return found

    def _check_compared(self, condition: Expression, both: set[str]) -> None:
        """Refuse a comparison of a column of both sides with itself, as ``col("v") == col("v")``."""
        for part in _all_parts([condition]):
            if self.suffix is None or not isinstance(part, Call) or part.function not in _COMPARISONS:
                continue
            name = next((name for name in columns_of(part) if name in both), None)
            if name is not None and part.arguments[0] == part.arguments[1]:
                text = expression_text(part)
                raise SchemaError(
                    f"join condition={text}: it compares the left's {name!r} with itself; write {self._names(name)}"
                )

    def _names(self, name: str) -> str:
        return f"col({name!r}) for the left's, col({name + str(self.suffix)!r}) for the right's"

    def check_keys(self, keys: Sequence[tuple[Expression, Expression]]) -> None:
        """Refuse ``left_on=right["x"]``: a key of one side that is written as a column of the other."""
        for pair in keys:
            for key, own, other, option in zip(pair, self[:2], (self.right, self.left), ("left", "right"), strict=True):
                for part in _all_parts([key]):
                    if own is not other and _node_of(part) is other:
                        raise SchemaError(
                            f"join {option}_on={expression_text(key)}: {expression_text(part)!r} is written as a column"
                            " of the other data set"
                        )

    def check_no_condition(self, on: Any) -> None:
        """Refuse a comparison in the place of keys, ``on=left["k"] == right["k"]``, with what to write."""
        for one in on or ():
            if isinstance(one, Expr) and isinstance(one.expression, Call) and one.expression.function in _CONDITIONS:
                text = expression_text(one.expression)
                raise SchemaError(
                    f"join on={text}: a key is a column or a value of each side, and the join compares them; write"
                    f" {self._instead(one.expression)}"
                )

    def _instead(self, condition: Expression) -> str:
        """Return the keys or the condition that a comparison stands for."""
        pairs: list[tuple[str, str]] = []
        for part in conjuncts(condition):
            match part:
                case Call("equal", (ColumnRef() as left, ColumnRef() as right)):
                    is_turned = _node_of(left) is self.right and self.right is not self.left
                    pairs.append((right.name, left.name) if is_turned else (left.name, right.name))
                case _:
                    return "condition=..., with suffix='_right' where both sides have a column of a name"
        lefts, rights = ([pair[side] for pair in pairs] for side in (0, 1))
        left_keys, right_keys = (repr(names if len(names) > 1 else names[0]) for names in (lefts, rights))
        return f"on={left_keys}" if lefts == rights else f"left_on={left_keys}, right_on={right_keys}"
