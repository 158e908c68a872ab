"""Whether rows can meet a predicate of which only the bounds are known: it is written anew, over the bounds.

    may_be_true(predicate, floats) -> Expression over lowest(x), highest(x), null_count(x), ROW_COUNT; None: unknown

    x < y           lowest(x) < highest(y)                           x is null       null_count(x) > 0
    x = y           lowest(x) <= highest(y), highest(x) >= lowest(y) a and b, or     both, one of them
    x in (...)      one of them is between the bounds                not a           a may be false: x < y where
    starts_with     its begin is between those of the bounds                         highest(x) >= lowest(y)

A row of the bounds stands for many rows (a row group, a file). Where the new predicate is false, none of them meets the
old one; where it is true or null they may. So a bound that is missing is null, and nothing has to be known of it. The
comparisons are those of the engine: values are widened and ordered as they are for rows, since the way to a common type
keeps the order.

Bounds need not be values that are there: a text cut short is a lowest bound as good as any.
NaN is greater than every number and in no bound that Parquet keeps, so a float has no highest value, but among those
that are equal to a number or less.

Source: pruning predicates of DataFusion, data skipping of Delta Lake.
Held by: tests/parquet/test_row_group_bounds.py
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from engine.expressions.literals import make_literal
from engine.graph.expression import Call, ColumnRef, Expression, Literal

ROW_COUNT: Final = "row count"
#: members of a list beyond which they are not compared one by one
_MEMBERS_MAX: Final = 1000
_NEGATED: Final = {
    "less": "greater_equal",
    "less_equal": "greater",
    "greater": "less_equal",
    "greater_equal": "less",
    "equal": "not_equal",
    "not_equal": "equal",
}
#: functions of one value that keep its order
_MONOTONE: Final = frozenset({"dt_year"})
_ZERO: Final = make_literal(0)


def lowest(column: str) -> str:
    """Return the name of the column of lowest values."""
    return f"lowest {column}"


def highest(column: str) -> str:
    """Return the name of the column of highest values."""
    return f"highest {column}"


def null_count(column: str) -> str:
    """Return the name of the column of null counts."""
    return f"nulls {column}"


def may_be_true(predicate: Expression, floats: Collection[str]) -> Expression | None:
    """Return a condition that is false where no row meets a predicate; ``floats``: columns that may hold NaN."""
    return _Rewriting(floats).may_be(predicate, outcome=True)


class _Rewriting:
    """The rewriting of one predicate. None everywhere: nothing can be said."""

    def __init__(self, floats: Collection[str]) -> None:
        self._floats = floats

    def may_be(self, predicate: Expression, *, outcome: bool) -> Expression | None:
        """Return a condition that is false where no row makes a predicate ``outcome``."""
        match predicate:
            case Literal(value=bool() | None as value):
                return make_literal(value is outcome)
            case ColumnRef(name=name):
                # A bool is one of two values: its bounds say which are there.
                return ColumnRef(highest(name)) if outcome else Call("not", (ColumnRef(lowest(name)),))
            case Call(function="not", arguments=(operand,)):
                return self.may_be(operand, outcome=not outcome)
            case Call(function="and" | "or" as function, arguments=arguments):
                parts = (self.may_be(part, outcome=outcome) for part in arguments)
                return _all_of(parts) if (function == "and") is outcome else _one_of(parts)
            case Call(function=function, arguments=(left, right)) if function in _NEGATED:
                return self._comparison(function if outcome else _NEGATED[function], left, right)
            case Call(function="between", arguments=(value, low, high)) if _are_alike((low, high)):
                sides = (("greater_equal", low), ("less_equal", high))
                if outcome:
                    return _all_of(self._comparison(function, value, bound) for function, bound in sides)
                return _one_of(self._comparison(_NEGATED[function], value, bound) for function, bound in sides)
            case Call(function="is_in", arguments=(value, *members)) if outcome and _are_alike(members):
                return _one_of([make_literal(False), *(self._comparison("equal", value, each) for each in members)])
            case Call(function="is_null" | "is_not_null" as function, arguments=(ColumnRef(name=name),)):
                wants_null = (function == "is_null") is outcome
                return _some_null(name) if wants_null else _some_value(name)
            case Call(function="str_starts_with", arguments=(ColumnRef(name=name), Literal(value=str(prefix)))) if (
                outcome
            ):
                return _begins(name, prefix)
        return None

    def _comparison(self, function: str, left: Expression, right: Expression) -> Expression | None:
        """Return a condition that is false where no two values of a row compare so."""
        if function.startswith("greater"):
            return self._comparison(function.replace("greater", "less"), right, left)
        # No NaN is equal to a number: there the highest number is what counts.
        of_numbers = function == "equal" and (_is_number(left) or _is_number(right))
        low_left, high_left = _bound(left, lowest), self._highest(left, of_numbers=of_numbers)
        low_right, high_right = _bound(right, lowest), self._highest(right, of_numbers=of_numbers)
        match function:
            case "equal":
                found = _all_of((_call("less_equal", low_left, high_right), _call("less_equal", low_right, high_left)))
            case "not_equal":
                # All rows have one value on both sides only where all four bounds are that.
                if None in (low_left, high_left, low_right, high_right):
                    return None
                found = _one_of((_call("not_equal", low_left, high_right), _call("not_equal", high_left, low_right)))
            case _:
                found = _call(function, low_left, high_right)
        return _all_of([found, *(_some_value(name) for name in (*_columns(left), *_columns(right)))])

    def _highest(self, value: Expression, *, of_numbers: bool) -> Expression | None:
        if not of_numbers and any(name in self._floats for name in _columns(value)):
            return None
        return _bound(value, highest)


def _bound(value: Expression, name_of: Callable[[str], str]) -> Expression | None:
    """Return a bound of a value; None where only its rows would tell."""
    match value:
        case Literal():
            return value
        case ColumnRef(name=name):
            return ColumnRef(name_of(name))
        case Call(function=function, arguments=(operand,)) if function in _MONOTONE:
            inner = _bound(operand, name_of)
            return None if inner is None else Call(function, (inner,), value.options)
    return None


def _columns(value: Expression) -> tuple[str, ...]:
    """Return the column that a value with bounds comes from."""
    match value:
        case ColumnRef(name=name):
            return (name,)
        case Call(function=function, arguments=(operand,)) if function in _MONOTONE:
            return _columns(operand)
    return ()


def _are_alike(constants: Sequence[Expression]) -> bool:
    """Whether values are compared with several constants as with each alone, and there are not too many.

    A fraction among whole numbers has all of them compared as floats, of which the large ones are rounded.
    """
    if len(constants) > _MEMBERS_MAX or not all(isinstance(each, Literal) for each in constants):
        return False
    return len({type(each.value) for each in constants if isinstance(each, Literal)}) <= 1


def _is_number(value: Expression) -> bool:
    """Whether a value is a constant that is no NaN, as far as it is a float at all."""
    if not isinstance(value, Literal):
        return False
    return not isinstance(value.value, float) or not math.isnan(value.value)


def _begins(name: str, prefix: str) -> Expression | None:
    """Return a condition that is false where no text begins so."""
    if not prefix:
        return None
    start: dict[str, bool | int | float | str | None] = {"start": 0, "stop": len(prefix)}
    text = make_literal(prefix)
    low = Call("str_slice", (ColumnRef(lowest(name)),), start)
    return _all_of((Call("less_equal", (low, text)), Call("greater_equal", (ColumnRef(highest(name)), text))))


def _some_null(name: str) -> Expression:
    return Call("greater", (ColumnRef(null_count(name)), _ZERO))


def _some_value(name: str) -> Expression:
    return Call("less", (ColumnRef(null_count(name)), ColumnRef(ROW_COUNT)))


def _call(function: str, left: Expression | None, right: Expression | None) -> Expression | None:
    return None if left is None or right is None else Call(function, (left, right))


def _all_of(parts: Iterable[Expression | None]) -> Expression | None:
    """Return a condition that is false where any part is; a part without bounds may be true."""
    known = [part for part in parts if part is not None]
    return _joined("and", known) if known else None


def _one_of(parts: Iterable[Expression | None]) -> Expression | None:
    """Return a condition that is false where all parts are; None when one part has no bounds."""
    listed = list(parts)
    known = [part for part in listed if part is not None]
    return _joined("or", known) if known and len(known) == len(listed) else None


def _joined(function: str, parts: list[Expression]) -> Expression:
    """Return parts that belong together, as a tree of little depth: lists have a thousand members."""
    while len(parts) > 1:
        pairs = [parts[index : index + 2] for index in range(0, len(parts), 2)]
        parts = [Call(function, tuple(pair)) if len(pair) == 2 else pair[0] for pair in pairs]
    return parts[0]
