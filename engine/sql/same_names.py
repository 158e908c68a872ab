"""Values that the planner takes for equal, since the name by which it knows them leaves out casts.

    sum(k), sum(CAST(k AS DOUBLE))    sum(k), sum(CAST(coalesce(k) AS DOUBLE))     a coalesce for each type of the text
    SELECT max(k), max(k)             SELECT max(k) AS "column 0", max(k) AS "column 1"
    SELECT k AS a, v AS a             SELECT k AS a, v AS "column 1"

It is done after the planner has refused a text; ``select_items`` finds the names again.

Held by: tests/sql/test_same_names.py
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from engine.sql.select_items import MADE_NAME, is_star, is_without_name, item_places
from engine.sql.tokens import Token, after, before, closing, raw, text_of, tokens

_SAME: Final = re.compile(
    r"duplicate (?:un)?qualified field name|Projections require unique expression names"
    r"|qualified field name \S+ and unqualified field name"
)
_CASTS: Final = ("CAST", "TRY_CAST")


def are_same_names(error: Exception) -> bool:
    """Return whether the planner took two values of a query for one."""
    return _SAME.search(str(error)) is not None


def told_apart(text: str) -> str:
    """Return a query in which values of several types, and columns of the same name, have names of their own."""
    return _with_columns_named(_with_casts_named(text))


def _with_casts_named(text: str) -> str:
    found = tokens(text)
    casts = [(at, *_parts(found, at)) for at, token in enumerate(found) if token.word in _CASTS]
    types: dict[str, int] = {}
    depths = [types.setdefault(text_of(found[kind:end]).upper(), len(types) + 1) for _, _, kind, end in casts]
    inserted: list[tuple[int, list[Token]]] = []
    for (_, first, kind, _), depth in zip(casts, depths, strict=True):
        inserted.append((first, [raw("coalesce"), raw("(")] * depth))
        inserted.append((before(found, kind) + 1, [raw(")")] * depth))
    for place, parts in sorted(inserted, key=lambda one: one[0], reverse=True):
        found[place:place] = parts
    return text_of(found)


def _parts(found: Sequence[Token], at: int) -> tuple[int, int, int]:
    """Return the begin of the value of a CAST, the place of its AS, and its end."""
    opened = after(found, at)
    closed = closing(found, opened)
    depth = 0
    for place in range(closed - 1, opened, -1):
        depth += (found[place].word == ")") - (found[place].word == "(")
        if depth == 0 and found[place].word == "AS":
            return after(found, opened), place, closed
    return closed, closed, closed


def _with_columns_named(text: str) -> str:
    found = tokens(text)
    places = item_places(found)
    aliases = [_alias(found[begin:end]) for begin, end in places]
    for number, (begin, end) in reversed(list(enumerate(places))):
        item = found[begin:end]
        if is_star(item):
            continue
        if is_without_name(item):
            found[end:end] = [raw(f' AS "{MADE_NAME}{number}"')]
        elif aliases[number] in aliases[:number]:
            found[end - 1] = raw(f'"{MADE_NAME}{number}"')
    return text_of(found)


def _alias(item: Sequence[Token]) -> str:
    """Return the name behind an item; "" where there is none."""
    return "" if is_star(item) or is_without_name(item) else item[-1].text.lower()
