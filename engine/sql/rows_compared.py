"""Rows of values beside rows of values, as conditions on the values: what is unknown of one is unknown of all.

    (a, b) = (1, 2)                       ((a = 1) AND (b = 2))
    (a, b) < (1, 2)                       ((a < 1) OR ((a = 1) AND (b < 2)))
    (a, b) IN ((1, 2), (3, 4))            (((a = 1) AND (b = 2)) OR ((a = 3) AND (b = 4)))
    (a, b) IN (SELECT x, y FROM u)        EXISTS (SELECT 1 FROM (SELECT x, y FROM u) AS r (r_1, r_2)
                                                  WHERE r_1 = a AND r_2 = b)
    (a, b) NOT IN (SELECT x, y FROM u)    NOT EXISTS (... WHERE (r_1 = a) IS NOT FALSE AND (r_2 = b) IS NOT FALSE)

    (SELECT ...) NOT IN (SELECT ...)      the same of one value, where that is a query or NULL

EXISTS tells no FALSE from NULL: it stands for IN only where both leave a row out, as a condition of WHERE and ON,
and under AND and OR there.

Held by: tests/sql/test_rows_compared.py
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from engine.sql.known_calls import arguments
from engine.sql.tokens import Token, after, before, closing, opening, raw, text_of, tokens, words_from

#: text behind a comma of a row that is compared
_ROW: Final = re.compile(r"\)\s*(?:=|<|>|!|NOT\s+IN\b|IN\b)", re.IGNORECASE)
_NO_MEMBER: Final = re.compile(r"[\w')]\s+NOT\s+IN\s*\(\s*SELECT\b", re.IGNORECASE)
#: words before a row; after other words parentheses are a function's
_BEFORE_TEXT: Final = "WHERE AND OR NOT ON HAVING QUALIFY SELECT WHEN THEN ELSE DISTINCT BY ( , ="
_BEFORE: Final = frozenset(_BEFORE_TEXT.split())
_BEFORE_VALUE: Final = frozenset(("WHERE", "AND", "OR", "ON", "("))
_BEHIND_TEXT: Final = """
    AND OR ) ; WHERE GROUP HAVING ORDER LIMIT OFFSET FETCH WINDOW QUALIFY UNION INTERSECT EXCEPT JOIN LEFT RIGHT FULL
    INNER CROSS NATURAL
"""
_BEHIND: Final = frozenset(_BEHIND_TEXT.split())
_ORDERS: Final = {"<": "<", ">": ">", "<=": "<", ">=": ">"}


def with_rows_compared(text: str) -> str:
    """Return a query without comparisons of rows."""
    comma = text.find(",")
    if (comma < 0 or not _ROW.search(text, comma)) and not _NO_MEMBER.search(text):
        return text
    found = tokens(text)
    at = len(found) - 1
    while at >= 0:
        changed = _changed(found, at) if found[at].word == "(" else None
        if found[at].word == "NULL":
            changed = _value_outside(found, at, at)
        if changed is not None:
            end, written = changed
            found[at:end] = [raw(written)]
        at -= 1
    return text_of(found)


def _changed(found: Sequence[Token], at: int) -> tuple[int, str] | None:
    """Return the end of a comparison whose left side begins at a place, and its replacement."""
    earlier = before(found, at)
    if earlier >= 0 and found[earlier].word not in _BEFORE:
        return None
    closed = closing(found, at)
    if closed < len(found) and words_from(found, after(found, at), 1) == ["SELECT"]:
        return _value_outside(found, at, closed)
    left = arguments(found[at + 1 : closed]) if closed < len(found) else []
    if len(left) < 2 or words_from(found, after(found, at), 1) in (["WITH"], ["VALUES"]):
        return None
    operator, place = _operator(found, after(found, closed))
    if not operator or place >= len(found) or found[place].word != "(":
        return None
    end = closing(found, place)
    if end == len(found):
        return None
    inner = found[place + 1 : end]
    if operator in ("IN", "NOT IN"):
        if words_from(inner, after(inner, -1), 1) in (["SELECT"], ["WITH"]):
            is_condition = _is_condition(found, at) and _ends(found, end)
            return (end + 1, _member(left, text_of(inner), operator)) if is_condition else None
        rows = [_row(one) for one in arguments(inner)]
        if any(row is None or len(row) != len(left) for row in rows):
            return None
        written = " OR ".join(_equal(left, row) for row in rows if row is not None)
        return end + 1, f"(NOT ({written}))" if operator == "NOT IN" else f"({written})"
    right = arguments(inner)
    return (end + 1, _compared(left, right, operator)) if len(right) == len(left) else None


def _value_outside(found: Sequence[Token], at: int, last: int) -> tuple[int, str] | None:
    """Return the replacement of ``value NOT IN (SELECT ...)``, of a query or of NULL."""
    operator, place = _operator(found, after(found, last))
    earlier = before(found, at)
    if earlier < 0 or found[earlier].word not in _BEFORE_VALUE:
        return None
    if operator != "NOT IN" or words_from(found, place, 2) != ["(", "SELECT"]:
        return None
    end = closing(found, place)
    if end == len(found) or not _is_condition(found, at) or not _ends(found, end):
        return None
    return end + 1, _member([text_of(found[at : last + 1])], text_of(found[place + 1 : end]), operator)


def _operator(found: Sequence[Token], at: int) -> tuple[str, int]:
    """Return the operator at a place, and where its right side begins."""
    words = words_from(found, at, 2)
    if words == ["NOT", "IN"]:
        return "NOT IN", after(found, after(found, at))
    if words[:1] == ["IN"]:
        return "IN", after(found, at)
    symbol, place = "", at
    while place < len(found) and found[place].word in ("=", "<", ">", "!"):
        symbol += found[place].word
        place = after(found, place)
    return (symbol, place) if symbol in (*_ORDERS, "=", "==", "<>", "!=") else ("", at)


def _row(written: str) -> list[str] | None:
    """Return the values of a row in parentheses."""
    found = tokens(written)
    if not found or found[0].word != "(" or closing(found, 0) != len(found) - 1:
        return None
    return arguments(found[1:-1])


def _equal(left: Sequence[str], right: Sequence[str]) -> str:
    return "(" + " AND ".join(f"(({one}) = ({other}))" for one, other in zip(left, right, strict=True)) + ")"


def _compared(left: Sequence[str], right: Sequence[str], operator: str) -> str:
    if operator in ("=", "=="):
        return _equal(left, right)
    if operator in ("<>", "!="):
        return f"(NOT {_equal(left, right)})"
    one, other = f"({left[0]})", f"({right[0]})"
    if len(left) == 1:
        return f"({one} {operator} {other})"
    rest = _compared(left[1:], right[1:], operator)
    return f"(({one} {_ORDERS[operator]} {other}) OR (({one} = {other}) AND {rest}))"


def _member(left: Sequence[str], query: str, operator: str) -> str:
    names = [f"r_{number + 1}" for number in range(len(left))]
    pairs = [f"({name} = ({one}))" for name, one in zip(names, left, strict=True)]
    rows = f"(SELECT 1 FROM ({query}) AS r ({', '.join(names)}) WHERE "  # noqa: S608 - of the query itself
    if operator == "IN":
        return f"EXISTS {rows}{' AND '.join(pairs)})"
    return f"NOT EXISTS {rows}{' AND '.join(f'({pair} IS NOT FALSE)' for pair in pairs)})"


def _is_condition(found: Sequence[Token], at: int) -> bool:
    """Return whether only AND, OR and parentheses stand between a place and its WHERE or ON."""
    place = before(found, at)
    # NOT belongs to the operand of AND or OR that it stands in
    is_operand = True
    while place >= 0:
        word = found[place].word
        if word in ("WHERE", "ON"):
            return True
        if word in ("AND", "OR"):
            is_operand = False
        if (word == "NOT" and is_operand) or word in ("CASE", "WHEN", "THEN", "ELSE", "SELECT", "BY", "HAVING"):
            return False
        if word == "(":
            # of NOT (...), of a function, of (...) IS NULL, or of nothing
            earlier = before(found, place)
            is_alone = earlier < 0 or found[earlier].word in ("AND", "OR", "(", "WHERE", "ON")
            if not is_alone or not _ends(found, closing(found, place)):
                return False
            is_operand = True
        place = before(found, opening(found, place) if word == ")" else place)
    return False


def _ends(found: Sequence[Token], closed: int) -> bool:
    """Return whether a condition ends with a parenthesis: it is no value of another one."""
    following = words_from(found, after(found, closed), 1) if closed < len(found) else []
    return not following or following[0] in _BEHIND
