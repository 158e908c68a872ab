"""Names of what stands in the list of SELECT without one: what was written.

    SELECT sum(T.price), price FROM t    "sum(t.price)", "price"

Only the list that gives a query its columns is looked at; one with * keeps the names that the planner has for it.

Held by: tests/sql/test_select_items.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.sql.tokens import Token, before, case_begin, outside, tokens

_ENDS_TEXT: Final = """
    FROM WHERE GROUP HAVING ORDER LIMIT OFFSET FETCH WINDOW QUALIFY UNION INTERSECT EXCEPT MINUS ; )
"""
_ENDS: Final = frozenset(_ENDS_TEXT.split())
#: behind such a word there is no name, but the rest of a value
_GOES_ON: Final = frozenset(("AND", "OR", "NOT", "IS", "IN", "LIKE", "ILIKE", "BETWEEN", "THEN", "ELSE", "OVER"))
_IS_VALUE: Final = frozenset(("END", "NULL", "TRUE", "FALSE", "UNKNOWN", "ISNULL", "NOTNULL"))
_TIMES: Final = frozenset(("DATE", "TIMESTAMP", "TIME", "INTERVAL", "TIMESTAMPTZ"))


def written_names(text: str, names: Sequence[str]) -> list[str]:
    """Return the names of a query's columns, as they were written where the planner made them up."""
    items = _items(tokens(text))
    if len(items) != len(names):
        return list(names)
    return [_text(item) if _is_unnamed(item) else name for item, name in zip(items, names, strict=True)]


def _items(found: Sequence[Token]) -> list[list[Token]]:
    """Return the items of the first SELECT that is in no parentheses; none where one of them is *."""
    places = outside(found)
    begin = next((at for at, place in enumerate(places) if found[place].word == "SELECT"), None)
    if begin is None:
        return []
    end = next((place for place in places[begin:] if found[place].word in _ENDS), len(found))
    items: list[list[Token]] = [[]]
    depth = 0
    for token in found[places[begin] + 1 : end]:
        depth += (token.word in ("(", "[", "{")) - (token.word in (")", "]", "}"))
        if token.word == "," and depth == 0:
            items.append([])
        else:
            items[-1].append(token)
    items = [_trimmed(item) for item in items]
    if items[0] and items[0][0].word in ("DISTINCT", "ALL"):
        items[0] = _trimmed(items[0][1:])
    return [] if any(not item or item[-1].word.endswith("*") or _has_star(item) for item in items) else items


def _has_star(item: Sequence[Token]) -> bool:
    """Return whether an item is ``* EXCLUDE (...)`` or ``t.* REPLACE (...)``, or DISTINCT ON (...) stands before it."""
    return "*" in (item[0].word, item[1].word if len(item) > 1 and item[0].word.endswith(".") else "") or (
        item[0].word == "ON"
    )


def _trimmed(item: Sequence[Token]) -> list[Token]:
    words = [at for at, token in enumerate(item) if token.word]
    return list(item[words[0] : words[-1] + 1]) if words else []


def _is_unnamed(item: Sequence[Token]) -> bool:
    """Return whether an item is more than a column and has no name behind it."""
    last = len(item) - 1
    earlier = before(item, last)
    if earlier < 0:
        return not _is_name(item[last].word) and not item[last].word.startswith("'") and item[last].word[:1].isalpha()
    word, previous = item[last].word, item[earlier].word
    if not _is_name(word) or previous in _GOES_ON:
        return True
    if word in _IS_VALUE:
        return word != "END" or case_begin(item, last) >= 0
    # a value cannot end here: it is an operator, or AS
    return previous != "AS" and not (_is_name(previous) or previous[:1] in ("'", ")", "]", "}") or previous.isdigit())


def _is_name(word: str) -> bool:
    return word[:1].isalpha() or word[:1] in ('"', "_")


def _text(item: Sequence[Token]) -> str:
    """Return an item as it was written, in lower case outside of texts and names in quotes."""
    parts = [token.text if token.word[:1] in ("'", '"') else token.text.lower() for token in item]
    return " ".join("".join(parts).split())
