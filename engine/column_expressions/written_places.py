"""Places of expressions: the line of a script that made one which fails when its job runs.

    note(expression)                          when a script makes it
    add_place(error, operators)               when a job over it fails: "expression: job.py, line 7: q=10 // col(...)"

An expression is plain data that travels, is compared and is rewritten, so that its place is not part of it: it is kept
beside it, in the process of the script, for as long as the expression is there. What failed is known by its text, which
begins the error's message: it is that of an expression of the plan, or of what the optimizer made of several. Of its
parts the one that can fail at all is named, where there is one, else the longest.

Thread: any.
Held by: tests/integration/test_uncaught_errors.py
"""

from __future__ import annotations

import linecache
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import msgspec

from engine.errors import LINES_MAX, DataError
from engine.expressions.text import expression_text
from engine.graph.expression import Call, Case, Cast, ColumnRef, Expression, Literal, children_of
from engine.graph.function_row import NEVER
from engine.graph.function_table import FUNCTION_TABLE
from engine.graph.plan import Operator, Source
from engine.shown_text import shown_line
from engine.user_warnings import Place, near_place

_PLACES: Final[dict[int, tuple[weakref.ref[Expression], Place]]] = {}
#: the kinds of expressions whose places are kept
_NOTED: Final = frozenset({Call, Cast, Case})
#: characters shown of a line of a script
_LINE_MAX: Final = 200


def note(expression: Expression, place: Place | None = None) -> None:
    """Remember where an expression was made: at a place, or where the script is now."""
    key = id(expression)
    if type(expression) in _NOTED and key not in _PLACES:
        found = place or near_place()
        if found is not None:
            _PLACES[key] = weakref.ref(expression, partial(_forget, key)), found


def _forget(key: int, _gone: object) -> None:
    _PLACES.pop(key, None)


@contextmanager
def placed_errors(operators: Iterable[Operator]) -> Iterator[None]:
    """Add to the error of a job of some operators where the expression that failed was written."""
    try:
        yield
    except DataError as error:
        add_place(error, operators)
        raise


def add_place(error: DataError, operators: Iterable[Operator]) -> None:
    """Add to an error where the expression that failed was written, if it belongs to one of these operators."""
    first, *lines = str(error).splitlines() or [""]
    place = _place_of(first, operators)
    if place is None:
        return
    source = linecache.getline(place.file, place.line).strip()[:_LINE_MAX]
    where = f"  expression: {place.file}, line {place.line}{': ' if source else ''}{source}"
    at = next((number for number, line in enumerate(lines) if line.startswith(("  task:", "  job:"))), len(lines))
    lines.insert(at, shown_line(where))
    if len(lines) >= LINES_MAX and at:
        del lines[at - 1]
    error.args = ("\n".join([first, *lines]), *error.args[1:])


def _place_of(message: str, operators: Iterable[Operator]) -> Place | None:
    """Return the place of the expression in a message: the one part of it that can fail, else the longest."""
    named: dict[str, tuple[Expression, Place]] = {}
    for operator in operators:
        for part in () if isinstance(operator, Source) else _expressions_of(operator):
            known = _PLACES.get(id(part))
            if known is not None and (text := _shown(part)) in message:
                named[text] = part, known[1]
    failing = {place for part, place in named.values() if _can_fail(part)}
    if len(failing) == 1:
        return failing.pop()
    return named[max(named, key=len)][1] if named else None


def _shown(expression: Expression) -> str:
    """Return what an error shows of an expression: what a requirement says, or its text."""
    if isinstance(expression, Call) and expression.function == "require":
        return str(expression.options["message"])
    return expression_text(expression)


def _can_fail(expression: Expression) -> bool:
    """Whether a function fails for some values of its own."""
    if isinstance(expression, Call):
        row = FUNCTION_TABLE.get(expression.function)
        return row is None or row.fails != NEVER
    return isinstance(expression, Cast)


def _expressions_of(value: Any) -> Iterator[Expression]:
    """Yield the expressions in an operator, and their parts."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, ColumnRef | Literal):
            continue
        if isinstance(one, Expression):
            yield one
            waiting += children_of(one)
        elif isinstance(one, msgspec.Struct):
            waiting += (getattr(one, name) for name in one.__struct_fields__)
        elif isinstance(one, tuple):
            waiting += one
