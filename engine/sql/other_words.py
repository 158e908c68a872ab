"""Words and operators of other dialects, in words that the planner reads.

    x ISNULL, x NOTNULL                   x IS NULL, x IS NOT NULL
    s RLIKE 'a+', s NOT REGEXP 'a+'       s ~ 'a+', s !~ 'a+'
    d + INTERVAL (n) DAY                  d + interval_of(n, 'day')
    d + n * INTERVAL '2 days'             d + interval_of((n) * 2, 'day')
    js ->> '$.a'                          json_extract_string(js, '$.a')
    x::UBIGINT, CAST(x AS HUGEINT)        x::BIGINT UNSIGNED, CAST(x AS DECIMAL(38, 0))
    a SEMI JOIN b, a MINUS b              a LEFT SEMI JOIN b, a EXCEPT b
    count(*) FILTER (k > 1)               count(*) FILTER (WHERE k > 1)
    1_000, AS MATERIALIZED (, FROM t      1000, AS (, SELECT * FROM t
    SELECT a, b ... ORDER BY ALL          ORDER BY 1, 2
    SELECT DISTINCT f(a) ORDER BY f(a)    ORDER BY 1: the planner does not see that both are the same

Held by: tests/sql/test_other_words.py
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from engine.errors import NotYetSupportedError
from engine.sql.known_calls import arguments
from engine.sql.spans import INTERVAL_OF, unit_named
from engine.sql.tokens import (
    Change,
    Token,
    after,
    before,
    opening,
    outside,
    primary_begin,
    primary_end,
    raw,
    rewritten,
    text_of,
    words_from,
)

#: words without which none of the changes applies
_WORDS: Final = re.compile(
    r"\b(?:ISNULL|NOTNULL|RLIKE|REGEXP|INTERVAL|SEMI|ANTI|FILTER|MINUS|MATERIALIZED|HUGEINT|BLOB|U\w*INT\w*"
    r"|ORDER\s+BY\s+ALL|DISTINCT)\b|->>|\d_\d|\A\s*FROM\b",
    re.IGNORECASE,
)
_TYPES: Final = {
    "UTINYINT": "TINYINT UNSIGNED",
    "USMALLINT": "SMALLINT UNSIGNED",
    "UINTEGER": "INT UNSIGNED",
    "UBIGINT": "BIGINT UNSIGNED",
    "HUGEINT": "DECIMAL(38, 0)",
    "BLOB": "BYTEA",
}
_NULLS: Final = {"ISNULL": "IS NULL", "NOTNULL": "IS NOT NULL"}
_CHANGED: Final = frozenset((*_NULLS, *_TYPES, "SEMI", "ANTI", "FILTER", "MINUS", "MATERIALIZED", "FROM"))
_MATCHES: Final = ("RLIKE", "REGEXP")
_NUMBER: Final = re.compile(r"\d[\d.]*(?:_\d+)+(?:\.\d+)?")
_KEY: Final = re.compile(r"(.*?)((?:\s+(?:ASC|DESC))?(?:\s+NULLS\s+(?:FIRST|LAST))?)", re.IGNORECASE | re.DOTALL)
_LENGTH: Final = re.compile(r"\s*(-?\d+)\s*([a-zA-Z]+)?\s*")


def in_common_words(text: str) -> str:
    """Return a query in the words of the planner."""
    if not _WORDS.search(text):
        return text
    return rewritten(text, _CHANGES)


def _plain_words(found: Sequence[Token], at: int) -> Change:
    """Change a word whose place says what it is."""
    word = found[at].word
    if word not in _CHANGED and not word[:1].isdigit():
        return None
    earlier = before(found, at)
    previous = found[earlier].word if earlier >= 0 else ""
    following = words_from(found, after(found, at), 1)
    if word in _NULLS and previous and previous not in ("SELECT", ",", "(") and following != ["("]:
        return at, at + 1, [raw(_NULLS[word])]
    if word in _TYPES and previous in ("AS", ":"):
        return at, at + 1, [raw(_TYPES[word])]
    if word in ("SEMI", "ANTI") and following == ["JOIN"] and previous not in ("LEFT", "RIGHT"):
        return at, at, [raw("LEFT"), raw(" ")]
    if word == "FILTER" and previous == ")" and following == ["("]:
        opened = after(found, at)
        is_short = words_from(found, after(found, opened), 1) != ["WHERE"]
        return (opened + 1, opened + 1, [raw("WHERE"), raw(" ")]) if is_short else None
    if word == "MINUS" and following in (["SELECT"], ["("], ["VALUES"]):
        return at, at + 1, [raw("EXCEPT")]
    if word == "MATERIALIZED" and following == ["("] and previous in ("AS", "NOT"):
        return (earlier if previous == "NOT" else at), at + 1, []
    if word == "FROM" and not previous and "SELECT" not in [found[place].word for place in outside(found)]:
        return at, at, [raw("SELECT * ")]
    if _NUMBER.fullmatch(word):
        return at, at + 1, [raw(word.replace("_", ""))]
    return None


def _matched(found: Sequence[Token], at: int) -> Change:
    if found[at].word not in _MATCHES or words_from(found, after(found, at), 1) in (["("], [","], []):
        return None
    earlier = before(found, at)
    is_not = found[earlier].word == "NOT"
    return (earlier if is_not else at), at + 1, [raw("!~" if is_not else "~")]


def _json_text(found: Sequence[Token], at: int) -> Change:
    if found[at].word != "-" or [token.text for token in found[at : at + 3]] != ["-", ">", ">"]:
        return None
    begin, path = primary_begin(found, before(found, at)), after(found, at + 2)
    end = primary_end(found, path)
    text, path_text = text_of(found[begin:at]).strip(), text_of(found[path:end])
    return begin, end, [raw(f"json_extract_string(CAST({text} AS VARCHAR), {path_text})")]


def _interval(found: Sequence[Token], at: int) -> Change:
    """Change an interval that columns say: in parentheses, by a name, or by a factor."""
    if found[at].word != "INTERVAL":
        return None
    value = after(found, at)
    words = words_from(found, value, 2)
    if words[:1] == ["("] or (len(words) == 2 and words[0][:1].isalpha() and words[1].isalpha()):
        end = primary_end(found, value)
        unit = after(found, end - 1)
        if unit == len(found):
            return None
        count = text_of(found[value:end])
        return at, unit + 1, [raw(f"{INTERVAL_OF}(CAST({count} AS BIGINT), '{unit_named(found[unit].text)}')")]
    earlier = before(found, at)
    end, number, unit_name = _constant(found, value)
    is_behind = earlier >= 0 and found[earlier].word == "*"
    following = after(found, end - 1)
    is_before = following < len(found) and found[following].word == "*"
    if not unit_name or not (is_behind or is_before):
        return None
    if is_behind:
        begin = primary_begin(found, before(found, earlier))
        factor = text_of(found[begin:earlier])
    else:
        begin, factor_at = at, after(found, following)
        end = primary_end(found, factor_at)
        factor = text_of(found[factor_at:end])
    count = factor.strip() if number == 1 else f"({factor.strip()}) * {number}"
    return begin, end, [raw(f"{INTERVAL_OF}(CAST({count} AS BIGINT), '{unit_named(unit_name)}')")]


def _constant(found: Sequence[Token], value: int) -> tuple[int, int, str]:
    """Return the end of an interval's constant, its number and its unit; no unit where there are several."""
    written = found[value].word.strip("'") if value < len(found) else ""
    parts = _LENGTH.fullmatch(written)
    if parts is None:
        return value + 1, 0, ""
    if parts[2]:
        return value + 1, int(parts[1]), parts[2]
    unit = after(found, value)
    return (unit + 1, int(parts[1]), found[unit].text) if unit < len(found) else (value + 1, 0, "")


def _ordered_by_all(found: Sequence[Token], at: int) -> Change:
    if found[at].word != "ORDER" or words_from(found, at, 3) != ["ORDER", "BY", "ALL"]:
        return None
    items, _ = _items(found, at)
    if not items or any(item.endswith("*") or " EXCLUDE" in item.upper() for item in items):
        raise NotYetSupportedError("sql: ORDER BY ALL of SELECT *; write the columns")
    last = after(found, after(found, at))
    direction = words_from(found, after(found, last), 1)
    suffix = f" {direction[0]}" if direction in (["DESC"], ["ASC"]) else ""
    stop = after(found, last) + 1 if suffix else last + 1
    numbers = ", ".join(f"{number + 1}{suffix}" for number in range(len(items)))
    return at, stop, [raw(f"ORDER BY {numbers}")]


def _items(found: Sequence[Token], at: int) -> tuple[list[str], bool]:
    """Return the items of the SELECT that an ORDER BY belongs to, and whether it is DISTINCT."""
    place = at
    while place >= 0 and found[place].word not in ("SELECT", "("):
        place = before(found, opening(found, place) if found[place].word == ")" else place)
    if place < 0 or found[place].word == "(":
        return [], False
    begin = place + 1
    end = next((begin + one for one in outside(found[begin:at]) if found[begin + one].word == "FROM"), at)
    first = after(found, place)
    is_distinct = found[first].word == "DISTINCT"
    return arguments(found[first + 1 if is_distinct else begin : end]), is_distinct


def _ordered_distinct(found: Sequence[Token], at: int) -> Change:
    """Change what DISTINCT rows are ordered by to the number of the column that it is."""
    if found[at].word != "ORDER" or words_from(found, at, 2) != ["ORDER", "BY"]:
        return None
    items, is_distinct = _items(found, at)
    if not is_distinct or words_from(found, at, 3)[2:] == ["ALL"]:
        return None
    begin = after(found, at) + 1
    places = outside(found[begin:])
    ends = ("LIMIT", "OFFSET", "FETCH", ";", ")", "UNION", "INTERSECT", "EXCEPT")
    end = next((begin + place for place in places if found[begin + place].word in ends), len(found))
    end = min(end, _closed_outside(found, begin))
    keys = found[begin:end]
    plain = [" ".join(item.lower().split()) for item in items]
    written = [_key(key, plain) for key in arguments(keys)]
    if written == arguments(keys):
        return None
    return begin, end, [raw(f" {', '.join(written)}" + (" " if end < len(found) else ""))]


def _closed_outside(found: Sequence[Token], begin: int) -> int:
    """Return the closing parenthesis around a place; the length where it is in none."""
    depth = 0
    for place in range(begin, len(found)):
        depth += (found[place].word == "(") - (found[place].word == ")")
        if depth < 0:
            return place
    return len(found)


def _key(key: str, items: Sequence[str]) -> str:
    """Return the number of the item that a key is, with its direction; the key where it is a column or none."""
    found = _KEY.fullmatch(key)
    value, direction = found.groups() if found else (key, "")
    plain = " ".join(value.lower().split())
    is_value = re.fullmatch(r"[\w.]+", plain) is None
    return f"{items.index(plain) + 1}{direction}" if is_value and plain in items else key


_CHANGES: Final[tuple[Callable[[Sequence[Token], int], Change], ...]] = (
    _plain_words,
    _matched,
    _json_text,
    _interval,
    _ordered_by_all,
    _ordered_distinct,
)
