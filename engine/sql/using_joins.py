"""USING of all joins but inner ones, for which the planner makes a join without a form in Substrait.

    a LEFT JOIN b USING (k)    a LEFT JOIN (SELECT * EXCLUDE (k), k AS using_key_k FROM b) AS b ON k = b.using_key_k
    a NATURAL LEFT JOIN b      a LEFT JOIN b USING (the columns of both)

The key is that of the left side, under its own name; that of the right side has another one, also where the query
names it (``b.k``), and ``SELECT *`` shows the first only. Of RIGHT and FULL joins it is the one that is there
(``merged_keys``). A query in which that would tell rows apart that are the same without it (DISTINCT, UNION and so on
of *) is refused.

Held by: tests/sql/test_using_joins.py
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa

from engine.errors import NotYetSupportedError
from engine.sql.merged_keys import MergedKeys
from engine.sql.tokens import Token, after, before, closing, opening, raw, text_of, tokens, words_from

#: message about refused forms
UNFIT: Final = "USING or NATURAL of an outer join of this form; write ON a.k = b.k, and coalesce(a.k, b.k) for the key"
PREFIX: Final = "using_key_"
_WORDS: Final = re.compile(r"\b(?:LEFT|RIGHT|FULL|SEMI|ANTI)\b.*\bUSING\s*\(|\bNATURAL\b", re.IGNORECASE | re.DOTALL)
_KINDS: Final = ("LEFT", "RIGHT", "FULL", "SEMI", "ANTI")
_TELLS_APART: Final = frozenset(("DISTINCT", "UNION", "INTERSECT", "EXCEPT"))
_BEFORE_STAR: Final = frozenset(("SELECT", ",", "DISTINCT", "ALL"))
_JOINS: Final = frozenset(("JOIN", "LEFT", "RIGHT", "FULL", "INNER", "CROSS", "NATURAL", "SEMI", "ANTI", ","))
_ENDS: Final = frozenset(("ON", "USING", "WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "UNION", "EXCEPT", "INTERSECT"))
_NAME: Final = re.compile(r"\w+")


def with_using_joins(text: str, tables: Mapping[str, pa.Schema]) -> str:
    """Return a query whose joins have conditions, but for inner ones; ``tables``: what NATURAL looks at."""
    if not _WORDS.search(text):
        return text
    found = tokens(text)
    are_told_apart = not _TELLS_APART.isdisjoint(token.word for token in found)
    keys, at = MergedKeys(), 0
    while at < len(found):
        if found[at].word == "NATURAL":
            _name_columns(found, at, tables)
        if found[at].word == "JOIN" and _write(found, at, keys) and are_told_apart and _has_star(found, at):
            raise NotYetSupportedError(f"sql: {UNFIT}")
        at += 1
    if not keys.write(found):
        raise NotYetSupportedError(f"sql: {UNFIT}")
    return text_of(found)


def shown_columns(names: Sequence[str]) -> list[int]:
    """Return the places of the columns that a query shows."""
    return [place for place, name in enumerate(names) if not name.startswith(PREFIX)]


def _has_star(found: Sequence[Token], join: int) -> bool:
    """Return whether * stands for columns in the list of the SELECT that a join belongs to."""
    place, has_star = join, False
    while place >= 0 and found[place].word != "SELECT":
        earlier = before(found, opening(found, place) if found[place].word == ")" else place)
        is_star = found[place].word == "*" and (
            found[earlier].word in _BEFORE_STAR or found[earlier].word.endswith(".")
        )
        has_star, place = has_star or is_star, earlier
    return has_star


def _name_columns(found: list[Token], natural: int, tables: Mapping[str, pa.Schema]) -> None:
    """Write NATURAL of a join of two tables as USING; others, and inner ones, stay as they are."""
    join = next((at for at in range(natural, len(found)) if found[at].word == "JOIN"), len(found))
    right = after(found, join)
    left = before(found, natural)
    if right >= len(found) or found[after(found, natural)].word not in _KINDS:
        return
    first, last = left, right
    if found[before(found, left)].word != "FROM":  # FROM a AS x, FROM a x
        first = before(found, before(found, left)) if found[before(found, left)].word == "AS" else before(found, left)
    following = words_from(found, after(found, right), 2)
    if following[:1] == ["AS"]:
        last = after(found, after(found, right))
    elif following and following[0].isidentifier() and following[0] not in _JOINS | _ENDS:
        last = after(found, right)
    names = [found[place].text.lower() for place in (first, right)]
    if found[before(found, first)].word != "FROM" or not all(name in tables for name in names):
        return
    one, other = (tables[name].names for name in names)
    if shared := [name for name in one if name in other]:
        found[last + 1 : last + 1] = [raw(" USING "), *tokens(f"({', '.join(shared)})")]
        del found[natural]


def _write(found: list[Token], join: int, keys_merged: MergedKeys) -> bool:
    """Write the join at a place with ON, if it has USING and is no inner one; return whether it was."""
    kind = found[before(found, join)].word
    kind = found[before(found, before(found, join))].word if kind == "OUTER" else kind
    begin = after(found, join)
    relation_end = closing(found, begin) if begin < len(found) and found[begin].word == "(" else begin
    place = after(found, relation_end)
    alias = found[begin].text.rpartition(".")[2] if relation_end == begin else ""
    if place < len(found) and found[place].word == "AS":
        place = after(found, place)
    if place < len(found) and found[place].word != "USING":
        alias, place = found[place].text, after(found, place)
    opened = after(found, place)
    if kind not in _KINDS or not _NAME.fullmatch(alias) or place >= len(found):
        return False
    if found[place].word != "USING" or words_from(found, opened, 1) != ["("]:
        return False
    closed = closing(found, opened)
    keys = [token.text for token in found[opened + 1 : closed] if token.word and token.word != ","]
    if closed == len(found) or not keys or not all(_NAME.fullmatch(key) for key in keys):
        return False
    relation = text_of(found[begin : relation_end + 1]) + (f" AS {alias}" if relation_end > begin else "")
    renamed = ", ".join(f"{key} AS {PREFIX}{key}" for key in keys)
    first = _first_relation(found, join)
    values = {key: keys_merged.value(found, join, key, f"{first}{key}") for key in keys}
    conditions = " AND ".join(f"{values[key]} = {alias}.{PREFIX}{key}" for key in keys)
    selected = f"(SELECT * EXCLUDE ({', '.join(keys)}), {renamed} FROM {relation})"  # noqa: S608 - of the query itself
    _rename(found, {f"{alias}.{key}".upper(): f"{alias}.{PREFIX}{key}" for key in keys})
    if kind in ("RIGHT", "FULL"):
        for key in keys:
            keys_merged.add(found, join, key, (values[key], f"{alias}.{PREFIX}{key}"))
    found[begin : closed + 1] = [raw(f"{selected} AS {alias} ON {conditions}")]
    return True


def _first_relation(found: Sequence[Token], join: int) -> str:
    """Return the name of the first relation, where a USING on the left has made its key the one of several: "a."."""
    place, has_using = before(found, join), False
    while place >= 0 and found[place].word != "FROM":
        if found[place].word == "(":
            return ""
        has_using |= found[place].word == "USING"
        place = before(found, opening(found, place) if found[place].word == ")" else place)
    first = after(found, place)
    if not has_using or place < 0:
        return ""
    last = closing(found, first) if found[first].word == "(" else first
    name = after(found, last)
    name = after(found, name) if found[name].word == "AS" else name
    is_named = found[name].word not in _JOINS
    alias = found[name].text if is_named else found[last].text.rpartition(".")[2]
    return f"{alias}." if _NAME.fullmatch(alias) else ""


def _rename(found: list[Token], names: dict[str, str]) -> None:
    for place, token in enumerate(found):
        if token.word in names:
            earlier, following = before(found, place), words_from(found, after(found, place), 1)
            is_item = found[earlier].word in ("SELECT", "DISTINCT", ",") and following in ([","], ["FROM"])
            # an item keeps its name, by which it is shown
            name = f" AS {token.text.rpartition('.')[2]}" if is_item and _is_in_list(found, earlier) else ""
            found[place] = raw(f"{names[token.word]}{name}")


def _is_in_list(found: Sequence[Token], at: int) -> bool:
    """Return whether a comma, or SELECT, is one of a list of SELECT."""
    while at >= 0 and found[at].word not in ("SELECT", "FROM", "BY", "("):
        at = before(found, opening(found, at) if found[at].word == ")" else at)
    return at >= 0 and found[at].word == "SELECT"
