"""Keys of RIGHT and FULL joins with USING: in the query that has the join they are that of the side that is there.

    SELECT k, v FROM a FULL JOIN b USING (k) WHERE k > 1 ORDER BY k
    SELECT coalesce(k, b.using_key_k) AS k, v FROM a FULL JOIN ... WHERE coalesce(k, b.using_key_k) > 1 ORDER BY k
    SELECT *                                        SELECT * REPLACE (coalesce(k, b.using_key_k) AS k)

Queries in parentheses have names of their own and stay as they are; ``a.k`` and ``b.k`` are what they are called.

Held by: tests/sql/test_using_joins.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.sql.tokens import Token, after, before, closing, opening, raw, words_from

_SETS: Final = frozenset(("UNION", "INTERSECT", "EXCEPT", ";"))
#: words before an item of a SELECT list
_BEGINS: Final = frozenset(("SELECT", "DISTINCT", "ALL", ","))
_NO_VALUE_BEFORE: Final = frozenset(("AS", "FROM", "JOIN", "."))


class MergedKeys:
    """The keys of a text, by the SELECT of their query."""

    def __init__(self) -> None:
        self._found: list[tuple[Token, dict[str, str]]] = []

    def value(self, found: Sequence[Token], join: int, key: str, plain: str) -> str:
        """Return the left side's value of a key: ``plain``, or the one that an earlier join made of it."""
        return self._of(found, join).get(key.upper(), plain)

    def add(self, found: Sequence[Token], join: int, key: str, sides: tuple[str, str]) -> None:
        """Take a key of a join that has both sides, or the right one."""
        self._of(found, join)[key.upper()] = f"coalesce({', '.join(sides)})"

    def _of(self, found: Sequence[Token], join: int) -> dict[str, str]:
        place = join
        while place >= 0 and found[place].word != "SELECT":
            place = before(found, opening(found, place) if found[place].word == ")" else place)
        if place < 0:
            return {}
        known = next((keys for token, keys in self._found if token is found[place]), None)
        if known is None:
            known = {}
            self._found.append((found[place], known))
        return known

    def write(self, found: list[Token]) -> bool:
        """Write the keys wherever a query names them; False where its list has a * that cannot have them."""
        return all(write_values(found, select, keys) for select, keys in self._found if keys)


def write_values(
    found: list[Token], select: Token, shown_keys: dict[str, str], others: dict[str, str] | None = None
) -> bool:
    """Write values for the names of a SELECT's query; False where its list has a * that cannot have them.

    Args: shown_keys: of columns that * shows; others: names that are the same with a table before them.
    """
    at = next(place for place, token in enumerate(found) if token is select)
    keys = {**shown_keys, **(others or {})}
    is_list, is_ordered, shown = True, False, set()
    while (at := after(found, at)) < len(found) and found[at].word not in (*_SETS, ")"):
        word, previous = found[at].word, found[before(found, at)].word
        following = words_from(found, after(found, at), 1)
        is_item = is_list and previous in _BEGINS and following in ([","], ["FROM"])
        is_list = is_list and word != "FROM"
        is_ordered = is_ordered or word == "ORDER"
        if word == "(":
            at = _write_within(found, at, keys)
        elif word.endswith("*") and is_list and (word != "*" or previous in _BEGINS):
            if not is_item or word != "*":
                return False
            written = ", ".join(f"{value} AS {key.lower()}" for key, value in shown_keys.items())
            found[at] = raw(f"* REPLACE ({written})")
            shown |= set(keys)
        elif word in keys and previous not in _NO_VALUE_BEFORE and not (is_ordered and word in shown):
            name = found[at].text.rpartition(".")[2]
            found[at] = raw(f"{keys[word]} AS {name}" if is_item else keys[word])
            shown |= {word} if is_item else set()
    return True


def _write_within(found: list[Token], opened: int, keys: dict[str, str]) -> int:
    """Write the keys between parentheses that are no query; return where they are closed."""
    if words_from(found, after(found, opened), 1) in (["SELECT"], ["WITH"], ["VALUES"]):
        return closing(found, opened)
    at = opened
    while (at := after(found, at)) < len(found) and found[at].word != ")":
        if found[at].word == "(":
            at = _write_within(found, at, keys)
        elif found[at].word in keys and found[before(found, at)].word not in _NO_VALUE_BEFORE:
            found[at] = raw(keys[found[at].word])
    return at
