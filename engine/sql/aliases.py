"""Names that a list of SELECT gives, where the same SELECT uses them: written out, as DuckDB and Spark understand them.

    SELECT price * n AS total, total / 2 AS half FROM t WHERE total > 1
    SELECT price * n AS total, (price * n) / 2 AS half FROM t WHERE (price * n) > 1

It is done for names that are no columns, after the planner has said so: a column is meant before such a name is.

Held by: tests/sql/test_aliases.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.sql.tokens import Token, after, before, closing, opening, raw, text_of, tokens, words_from

_ENDS: Final = frozenset(("UNION", "INTERSECT", "EXCEPT", "ORDER", "LIMIT", "OFFSET", "FETCH", ";", ")"))
_CLAUSES: Final = frozenset(("FROM", "WHERE", "ON", "GROUP", "HAVING", "BY", "QUALIFY", "("))


def with_alias_written_out(text: str, name: str) -> str:
    """Return a query in which a name stands for what it was given to; the same text where it is no such name."""
    found = tokens(text)
    wanted = name.upper()
    for at, token in enumerate(found):
        if token.word.strip('"').upper() != wanted or words_from(found, before(found, at), 1) != ["AS"]:
            continue
        begin = _item_begin(found, before(found, at))
        if begin is None:
            continue
        value = raw(f"({text_of(found[begin : before(found, at)]).strip()})")
        places = _uses(found, at, wanted)
        if places:
            for place in places:
                found[place] = value
            return text_of(found)
    return text


def _item_begin(found: Sequence[Token], named: int) -> int | None:
    """Return the begin of the item with the name at a place; None outside a SELECT list."""
    begin, place = named, before(found, named)
    while place >= 0:
        word = found[place].word
        if word in ("SELECT", "DISTINCT"):
            return begin
        if word == ",":
            return begin if _is_in_list(found, place) else None
        if word in _CLAUSES:
            return None
        begin = place = opening(found, place) if word == ")" else place
        place = before(found, place)
    return None


def _is_in_list(found: Sequence[Token], comma: int) -> bool:
    place = before(found, comma)
    while place >= 0 and found[place].word not in _CLAUSES:
        if found[place].word == "SELECT":
            return True
        place = before(found, opening(found, place) if found[place].word == ")" else place)
    return False


def _uses(found: Sequence[Token], at: int, name: str) -> list[int]:
    """Return the later places of a name in the same SELECT, outside queries within it."""
    places, depth, place = [], 0, after(found, at)
    while place < len(found) and (depth or found[place].word not in _ENDS):
        word, following = found[place].word, words_from(found, after(found, place), 1)
        if word == "(" and following in (["SELECT"], ["WITH"]):
            place = closing(found, place)
        depth += (word == "(" and following not in (["SELECT"], ["WITH"])) - (word == ")")
        is_name = word.strip('"').upper() == name and following != ["("]
        if is_name and found[before(found, place)].word not in ("AS", "."):
            places.append(place)
        place = after(found, place)
    return places
