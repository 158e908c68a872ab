"""Names of what stands in the list of SELECT without one: what was written.

    SELECT sum(T.price), price FROM t    "sum(t.price)", "price"

Only the list that gives a query its columns is looked at; in one with * the planner's names stay.

Held by: tests/sql/test_select_items.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.sql.tokens import Token, after, before, case_begin, outside, tokens

_ENDS_TEXT: Final = """
    FROM WHERE GROUP HAVING ORDER LIMIT OFFSET FETCH WINDOW QUALIFY UNION INTERSECT EXCEPT MINUS ; )
"""
_ENDS: Final = frozenset(_ENDS_TEXT.split())
#: words that are followed by the rest of a value, not by a name
_GOES_ON: Final = frozenset(("AND", "OR", "NOT", "IS", "IN", "LIKE", "ILIKE", "BETWEEN", "THEN", "ELSE", "OVER"))
_IS_VALUE: Final = frozenset(("END", "NULL", "TRUE", "FALSE", "UNKNOWN", "ISNULL", "NOTNULL"))
_TIMES: Final = frozenset(("DATE", "TIMESTAMP", "TIME", "INTERVAL", "TIMESTAMPTZ"))


#: prefix of column names that are looked up in the text
MADE_NAME: Final = "column "


def written_names(text: str, names: Sequence[str]) -> list[str]:
    """Return the names of a query's columns, as they were written where the planner made them up."""
    found = tokens(text)
    items = [found[begin:end] for begin, end in item_places(found)]
    if any(map(is_star, items)):
        made = {f"{MADE_NAME}{number}": item for number, item in enumerate(items)}
        return [_name(made[name], name) if name in made else name for name in names]
    if len(items) != len(names):
        return list(names)
    return [_name(item, name) for item, name in zip(items, names, strict=True)]


def _name(item: Sequence[Token], name: str) -> str:
    if not is_without_name(item):
        return plain_name(item[-1].text) if name.startswith(MADE_NAME) else name
    if not _is_column(item):
        return _text(item)
    plain = plain_name(item[-1].text)
    return plain if name.startswith(MADE_NAME) else name


def plain_name(written: str) -> str:
    """Return the name that a column is called by: lower case unless it is in quotes."""
    return written[1:-1].replace('""', '"') if written.startswith('"') else written.rpartition(".")[2].lower()


def item_places(found: Sequence[Token]) -> list[tuple[int, int]]:
    """Return the begin and the end of each item of the first SELECT outside parentheses."""
    places = outside(found)
    begin = next((at for at, place in enumerate(places) if found[place].word == "SELECT"), None)
    if begin is None:
        return []
    end = next((place for place in places[begin:] if found[place].word in _ENDS), len(found))
    start = places[begin] + 1
    first = after(found, places[begin])
    if first < end and found[first].word in ("DISTINCT", "ALL"):
        start = first + 1
    commas = _commas(found, start, end)
    return [_trimmed(found, *pair) for pair in zip([start, *(one + 1 for one in commas)], [*commas, end], strict=True)]


def _commas(found: Sequence[Token], start: int, end: int) -> list[int]:
    places, depth = [], 0
    for place in range(start, end):
        word = found[place].word
        depth += (word in ("(", "[", "{")) - (word in (")", "]", "}"))
        if word == "," and depth == 0:
            places.append(place)
    return places


def is_star(item: Sequence[Token]) -> bool:
    """Return whether an item is ``*``, ``t.*`` or one of them with EXCLUDE and so on; or nothing, or DISTINCT ON."""
    words = [token.word for token in item if token.word]
    return not words or "*" in (words[0], words[1] if words[0].endswith(".") and words[1:] else "") or words[0] == "ON"


def _trimmed(found: Sequence[Token], begin: int, end: int) -> tuple[int, int]:
    """Return the places without the space and the comments around."""
    words = [place for place in range(begin, end) if found[place].word]
    return (words[0], words[-1] + 1) if words else (begin, begin)


def _is_column(item: Sequence[Token]) -> bool:
    is_quoted = len(item) > 1 and item[-2].word.endswith(".") and item[-1].word.startswith('"')
    return is_quoted or (len(item) == 1 and _is_name(item[0].word) and item[0].word not in _IS_VALUE)


def is_without_name(item: Sequence[Token]) -> bool:
    """Return whether an item has no name behind it; a column has one of its own."""
    if _is_column(item):
        return True
    last = len(item) - 1
    earlier = before(item, last)
    if earlier < 0:
        return True
    word, previous = item[last].word, item[earlier].word
    if not _is_name(word) or previous in _GOES_ON:
        return True
    if word in _IS_VALUE:
        return word != "END" or case_begin(item, last) >= 0
    # a value cannot end here: it is an operator, or AS
    ends_value = _is_name(previous) or previous[:1] in ("'", ")", "]", "}") or previous[:1].isdigit()
    return previous != "AS" and not ends_value


def _is_name(word: str) -> bool:
    return word[:1].isalpha() or word[:1] in ('"', "_")


def _text(item: Sequence[Token]) -> str:
    """Return an item as it was written, in lower case outside of texts and names in quotes."""
    parts = [token.text if token.word[:1] in ("'", '"') else token.text.lower() for token in item]
    return " ".join("".join(parts).split())
