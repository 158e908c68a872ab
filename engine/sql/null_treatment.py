"""IGNORE NULLS and RESPECT NULLS of functions over windows, which Substrait does not say.

    last_value(x) IGNORE NULLS OVER w       nth_value(x, -11) OVER w              numbers of ``PASSING_NULLS``
    lag(x, 1, d IGNORE NULLS) OVER w        coalesce(nth_value(x, -12) OVER w, d)
    first(x ORDER BY k) IGNORE NULLS        first(x ORDER BY k) FILTER (WHERE x IS NOT NULL)
    lead(x) RESPECT NULLS OVER w            lead(x) OVER w

What such a number is (``passing_nulls``): the value of the first row of the frame that has one, or of the last.

    last_value(x) IGNORE NULLS   ──►   max(row number and x as bytes of one order, null where x is) OVER the frame

The row numbers are a column that is there before: ``row_number() OVER`` the same partition and order.

Held by: tests/sql/test_null_treatment.py
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from engine.api.aggregates import max_, min_
from engine.api.expression import Expr
from engine.errors import NotYetSupportedError
from engine.expressions.ordered_pairs import can_pair, head_of
from engine.graph.expression import Call
from engine.sql.known_calls import arguments
from engine.sql.tokens import Token, after, before, closing, opening, raw, text_of, tokens, words_from

_WORDS: Final = re.compile(r"\b(?:IGNORE|RESPECT)\s+NULLS\b", re.IGNORECASE)
_FIRST, _LAST, _BEFORE, _BEHIND = -10, -11, -12, -13
_NUMBERS: Final = {
    **{"FIRST_VALUE": _FIRST, "FIRST": _FIRST, "LAST_VALUE": _LAST, "LAST": _LAST},
    **{"LAG": _BEFORE, "LEAD": _BEHIND},
}
#: forms of nth_value(x, number) over a window
PASSING_NULLS: Final = frozenset(_NUMBERS.values())
_ROW: Final = pa.int64()


def with_null_treatment(text: str) -> str:
    """Return a query without IGNORE NULLS and RESPECT NULLS."""
    if not _WORDS.search(text):
        return text
    found, at = tokens(text), 0
    while at < len(found):
        if found[at].word in ("IGNORE", "RESPECT") and words_from(found, at, 2)[1:] == ["NULLS"]:
            at = _write(found, at)
        at += 1
    return text_of(found)


def _write(found: list[Token], at: int) -> int:
    """Write the call that the words at a place belong to; return where it begins."""
    is_ignored, last = found[at].word == "IGNORE", after(found, at)
    del found[at : last + 1]
    earlier = before(found, at)
    # behind the call, or the last words within it
    opened = opening(found, earlier) if found[earlier].word == ")" and not _is_within(found, at) else _opened(found, at)
    name = before(found, opened)
    if not is_ignored or name < 0:
        return name
    closed = closing(found, opened)
    if words_from(found, after(found, closed), 1) != ["OVER"]:
        value = arguments(found[opened + 1 : closed])[0]
        value = re.split(r"\sORDER\s+BY\s", value, flags=re.IGNORECASE)[0]
        found[closed + 1 : closed + 1] = [raw(f" FILTER (WHERE {value} IS NOT NULL)")]
        return name
    end = after(found, after(found, closed))
    end = closing(found, end) if found[end].word == "(" else end
    over = text_of(found[closed + 1 : end + 1])
    found[name : end + 1] = [raw(_call(found[name].word, arguments(found[opened + 1 : closed]), over))]
    return name


def _is_within(found: Sequence[Token], at: int) -> bool:
    """Return whether the parenthesis behind a place closes what was opened before it: f(g(x) IGNORE NULLS)."""
    following = after(found, at - 1)
    return following < len(found) and found[following].word == ")"


def _opened(found: Sequence[Token], at: int) -> int:
    """Return the opening parenthesis around a place."""
    place = before(found, at)
    while place >= 0 and found[place].word != "(":
        place = before(found, opening(found, place) if found[place].word == ")" else place)
    return place


def _call(name: str, given: Sequence[str], over: str) -> str:
    if name not in _NUMBERS:
        raise NotYetSupportedError(
            f"sql: {name.lower()}() with IGNORE NULLS (there are first_value, last_value, lag, lead)"
        )
    if _NUMBERS[name] in (_BEFORE, _BEHIND) and given[1:2] not in ([], ["1"]):
        raise NotYetSupportedError(f"sql: {name.lower()}() with IGNORE NULLS of more than one row")
    call = f"nth_value({given[0]}, {_NUMBERS[name]}){over}"
    return f"coalesce({call}, {given[2]})" if len(given) > 2 else call


def passing_nulls(number: int, value: Expr, value_type: pa.DataType, row: Expr, settings: dict[str, Any]) -> Expr:
    """Return the value of a row that has one.

    Args: row: the row's number in its partition; settings: partition, order and frame.
    """
    if not can_pair(_ROW, value_type):
        raise NotYetSupportedError(f"sql: IGNORE NULLS of {value_type}")
    pair = Expr(Call("ordered_pair", (row.expression, value.expression), {"inverted": False}))
    if number in (_BEFORE, _BEHIND):
        rows = (None, -1) if number == _BEFORE else (1, None)
        settings = {"partition_by": settings["partition_by"], "order_by": [row], "rows": rows}
    found = (max_ if number in (_LAST, _BEFORE) else min_)(pair).over(**settings)
    return found.call("paired_value", pa.scalar(None, value_type), head=head_of(_ROW))
