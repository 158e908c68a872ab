"""Calls of functions that the planner does not know, written as calls of those that it does: ``call_table``.

    SELECT year(d), if(k > 1, 'a', 'b')
    SELECT date_part('year', d), (CASE WHEN k > 1 THEN 'a' ELSE 'b' END)

A text without such calls stays as it is.

Held by: tests/sql/test_function_calls.py
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from engine.errors import NotYetSupportedError, PlanError
from engine.sql.call_table import CALLS, OF_FUNCTIONS, REFUSED, RENAMED
from engine.sql.format_calls import FORMATS, formatted
from engine.sql.spans import unit_named
from engine.sql.tokens import Token, after, before, closing, outside, raw, text_of, tokens, words_from

_NAMES: Final = frozenset((*RENAMED, *FORMATS, *OF_FUNCTIONS, *(name for name, _ in CALLS)))
_WORDS: Final = re.compile(rf"\b(?:{'|'.join(_NAMES)})\s*\(", re.IGNORECASE)
#: numbers of arguments by name
_COUNTS: Final = {name: sorted(count for other, count in CALLS if other == name) for name, _ in CALLS}
#: words before parentheses that make them part of a name or a type, not a call
_NO_CALL_BEFORE: Final = frozenset(("NULLS", "FETCH", "AS", "JOIN", "FROM", "TABLE", "VIEW", ".", ")"))
#: functions with FROM among their arguments
_WITH_FROM: Final = frozenset(("EXTRACT", "SUBSTRING", "TRIM", "OVERLAY"))
#: default separators of texts
_JOINED: Final = {"string_agg": ",", "group_concat": ",", "listagg": ""}
#: functions that the planner has with other numbers of arguments
_ALSO_KNOWN: Final = frozenset(("string_agg",))


class CallError(PlanError):
    """A function is called with too many arguments or too few."""

    def __init__(self, name: str, sentence: str) -> None:
        super().__init__(f"sql: {sentence}")
        self.name = name
        self.sentence = sentence


def with_known_calls(text: str) -> str:
    """Return a query in which functions have the names and forms that the planner knows."""
    if not _WORDS.search(text):
        return text
    found = tokens(text)
    at = len(found) - 1
    while at >= 0:
        name = found[at].text.lower()
        opened = after(found, at)
        if name in _NAMES and opened < len(found) and found[opened].word == "(" and _is_call(found, at):
            _write(found, at, name)
        at -= 1
    return text_of(found)


def _is_call(found: Sequence[Token], at: int) -> bool:
    earlier = before(found, at)
    if earlier >= 0 and found[earlier].word in _NO_CALL_BEFORE and not _is_from_of_values(found, earlier):
        return False
    # WITH list(a, b) AS (SELECT ...) names a query
    closed = closing(found, after(found, at))
    following = after(found, closed) if closed < len(found) else closed
    is_name = following < len(found) and found[following].word == "AS"
    return not (is_name and after(found, following) < len(found) and found[after(found, following)].word == "(")


def _is_from_of_values(found: Sequence[Token], at: int) -> bool:
    """Return whether a word is the FROM of EXTRACT(year FROM x), or of x IS DISTINCT FROM y: no table follows."""
    if found[at].word != "FROM":
        return False
    earlier = before(found, at)
    if earlier >= 0 and found[earlier].word == "DISTINCT":
        return True
    depth = 0
    while earlier >= 0:
        word = found[earlier].word
        depth += (word == ")") - (word == "(")
        if depth < 0:
            called = before(found, earlier)
            return called >= 0 and found[called].word in _WITH_FROM
        earlier = before(found, earlier)
    return False


def _write(found: list[Token], at: int, name: str) -> None:
    """Write the call at a place in other words."""
    opened = after(found, at)
    closed = closing(found, opened)
    if closed == len(found):
        return
    if name in _JOINED:
        _join_texts(found, opened, _JOINED[name])
        closed = closing(found, opened)
    inner = found[opened + 1 : closed]
    given = arguments(inner)
    template = CALLS.get((name, len(given))) if not _has_order(inner) else None
    if name in OF_FUNCTIONS:
        raise NotYetSupportedError(f"sql: {name}() with a function ({REFUSED[name]})")
    if name in FORMATS:
        found[at : closed + 1] = [raw(formatted(name, given))]
    elif template is not None:
        end, over = _over(found, closed) if "{over}" in template else (closed + 1, "")
        unit = _unit_text(given[0]) if "{unit}" in template else ""
        found[at:end] = [raw(_filled(template, given, over, unit))]
    elif name in RENAMED:
        found[at] = raw(RENAMED[name])
    elif name not in _ALSO_KNOWN:
        counts = " or ".join(map(str, _COUNTS[name]))
        raise CallError(name, f"{name}() has {len(given)} arguments here and takes {counts}")


def _join_texts(found: list[Token], opened: int, separator: str) -> None:
    """Write what is put between texts where a call does not say it, and its WITHIN GROUP (ORDER BY ...) into it."""
    closed = closing(found, opened)
    behind = after(found, closed)
    if words_from(found, behind, 3) == ["WITHIN", "GROUP", "("]:
        order = after(found, after(found, behind))
        end = closing(found, order)
        found[closed : end + 1] = [raw(" "), *found[order + 1 : end], raw(")")]
        closed = closing(found, opened)
    places = [place + opened + 1 for place in outside(found[opened + 1 : closed])]
    end = next((place for place in places if found[place].word == "ORDER"), closed)
    if len(arguments(found[opened + 1 : end])) == 1:
        last = before(found, end) + 1
        found[last:last] = [raw(","), raw(f" '{separator}'")]


def _filled(template: str, given: Sequence[str], over: str, unit: str) -> str:
    parts = {f"{{{number}}}": value for number, value in enumerate(given)} | {"{over}": over, "{unit}": unit}
    return re.sub(r"\{(?:\d|over|unit)\}", lambda place: parts[place[0]], template)


def arguments(inner: Sequence[Token]) -> list[str]:
    """Return the arguments between parentheses; a comma in parentheses, brackets or braces parts none."""
    given, current, depth = [], "", 0
    for token in inner:
        depth += (token.word in ("(", "[", "{")) - (token.word in (")", "]", "}"))
        if token.word == "," and depth == 0:
            given.append(current.strip())
            current = ""
        else:
            current += token.text if token.word or token.text.isspace() else " "
    return [*given, current.strip()] if given or current.strip() else []


def _has_order(inner: Sequence[Token]) -> bool:
    """Return whether DISTINCT or ORDER BY stand among the arguments: only the name may change."""
    depth = 0
    for token in inner:
        depth += (token.word == "(") - (token.word == ")")
        if depth == 0 and token.word in ("DISTINCT", "ORDER"):
            return True
    return False


def _over(found: Sequence[Token], closed: int) -> tuple[int, str]:
    """Return the end and the text of FILTER (...) and OVER ... behind a call."""
    end = closed
    for word in ("FILTER", "OVER"):
        following = after(found, end)
        if following < len(found) and found[following].word == word:
            end = after(found, following)
            end = closing(found, end) if end < len(found) and found[end].word == "(" else end
    end = min(end, len(found) - 1)
    return end + 1, text_of(found[closed + 1 : end + 1])


def _unit_text(written: str) -> str:
    """Return the text of a unit: DAY as 'day'."""
    return f"'{unit_named(written.strip(chr(39)))}'"
