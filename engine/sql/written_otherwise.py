"""Forms of SQL that the planner does not read, or reads otherwise, written in words that it does read.

    a IS DISTINCT FROM b AND c            (a IS DISTINCT FROM b) AND c      it would read b AND c as one value
    s LIKE 'a!_%' ESCAPE '!'              the same with a backslash in place of !
    s SIMILAR TO '(a|b)%'                 s ~ '^(?s:(a|b).*)$'
    sum(v) FILTER (WHERE k > 1) OVER w    sum(CASE WHEN k > 1 THEN v END) OVER w
    OFFSET 2 ROWS FETCH NEXT 3 ROWS ONLY  OFFSET 2 LIMIT 3
    SELECT EXISTS (SELECT 1 FROM u ...)   SELECT ((SELECT count(*) FROM u ...) > 0)     exists_as_count, where asked for
    k > ANY (SELECT k FROM t)             k > ANY (SELECT * FROM (SELECT k FROM t) AS compared_rows)    the same table

What has none of them is the same text.

Held by: tests/sql/test_written_otherwise.py
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from engine.sql.tokens import (
    Change,
    Token,
    after,
    before,
    case_begin,
    case_end,
    closing,
    opening,
    outside,
    raw,
    rewritten,
    text_of,
    tokens,
    words_from,
)

#: words without which none of the changes applies
_WORDS: Final = re.compile(r"\b(?:DISTINCT\s+FROM|ESCAPE|SIMILAR|FILTER|FETCH|ROWS?|ANY|SOME)\b", re.IGNORECASE)
_ENDS_TEXT: Final = """
    WHERE GROUP HAVING ORDER LIMIT OFFSET FETCH WINDOW QUALIFY UNION INTERSECT EXCEPT JOIN LEFT RIGHT FULL INNER CROSS
    WHEN THEN ELSE END AS , ; ) FROM SELECT DISTINCT ON BY CASE FILTER NATURAL
"""
_ENDS: Final = frozenset(_ENDS_TEXT.split())
#: function around a list, which leaves it as it is
MARK: Final = "ARRAY_CONCAT"
_LOGIC: Final = frozenset(("AND", "OR"))
#: aggregates that ignore nulls
_OVER_NULLS: Final = frozenset(("COUNT", "SUM", "AVG", "MIN", "MAX", "STDDEV", "STDDEV_POP", "VAR_SAMP", "VAR_POP"))
_NOT_SIMPLE: Final = frozenset(
    ("GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "FETCH", "QUALIFY", "UNION", "INTERSECT", "EXCEPT")
)
#: words that end a SELECT list
_CLAUSES: Final = frozenset(("FROM", "WHERE", "ON", "HAVING", "GROUP", "ORDER", "QUALIFY"))


def in_known_words(text: str) -> str:
    """Return a query as the planner reads it right."""
    if not _WORDS.search(text):
        return text
    return rewritten(text, (_escaped, _similar, _windows_filtered, _fetched, _distinct_parts, _any_of_list))


def exists_as_count(text: str) -> str:
    """Return a query in which EXISTS in lists of SELECT counts rows: it has a plan where they look at rows outside."""
    found = tokens(text)
    for at in range(len(found) - 1, -1, -1):
        opened = after(found, at)
        if found[at].word != "EXISTS" or opened == len(found) or not _is_in_list(found, at):
            continue
        closed = closing(found, opened)
        inner = found[opened + 1 : closed]
        places = outside(inner)
        words = [inner[place].word for place in places]
        if words[:1] != ["SELECT"] or "FROM" not in words or _NOT_SIMPLE.intersection(words):
            continue
        begin = words.index("FROM")
        if "(" not in words[:begin]:  # an aggregate of all rows has a row always
            found[at : closed + 1] = [raw("((SELECT count(*) "), *inner[places[begin] :], raw(") > 0)")]
    return text_of(found)


def with_rows_named(text: str) -> str:
    """Return a query in which the rows that ANY and ALL look at have another name than those outside."""
    found = tokens(text)
    for at in range(len(found) - 1, -1, -1):
        opened = after(found, at)
        if found[at].word not in ("ANY", "ALL", "SOME") or words_from(found, opened, 2) != ["(", "SELECT"]:
            continue
        closed = closing(found, opened)
        found[opened : closed + 1] = [raw("(SELECT * FROM "), *found[opened : closed + 1], raw(" AS compared_rows)")]
    return text_of(found)


def _is_in_list(found: Sequence[Token], at: int) -> bool:
    """Return whether a place is between SELECT and FROM, in parentheses or not."""
    while at > 0:
        at = before(found, at)
        if found[at].word == ")":
            at = opening(found, at)
        elif found[at].word == "SELECT" or found[at].word in _CLAUSES:
            return found[at].word == "SELECT"
    return False


def _distinct_parts(found: Sequence[Token], at: int) -> Change:
    words = words_from(found, at, 4)
    if words[:3] != ["IS", "DISTINCT", "FROM"] and words != ["IS", "NOT", "DISTINCT", "FROM"]:
        return None
    last = at
    for _ in range(words.index("FROM")):
        last = after(found, last)
    end = _operand_end(found, last)
    if end == len(found) or found[end].word not in _LOGIC:
        return None
    begin = _operand_begin(found, at)
    earlier = before(found, begin)
    if earlier >= 0 and found[earlier].word == "AND":
        earlier = _operand_begin(found, earlier)
    if any(token.word == "BETWEEN" for token in found[max(earlier, 0) : end]):
        return None  # its AND is not one of the condition
    return begin, end, [raw("("), *found[begin:end], raw(") ")]


def _operand_end(found: Sequence[Token], at: int) -> int:
    """Return the place of the word that ends the operand behind a place."""
    at = after(found, at)
    while at < len(found):
        word = found[at].word
        if word == "(":
            at = closing(found, at)
        elif word == "CASE":
            at = case_end(found, at)
        elif word in _LOGIC or word in _ENDS:
            return at
        at = after(found, at)
    return at


def _operand_begin(found: Sequence[Token], at: int) -> int:
    """Return the first place of the operand before a place."""
    begin = at
    while True:
        at = before(found, at)
        word = found[at].word if at >= 0 else "("
        if word == ")":
            at = opening(found, at)
        elif word == "END":
            at = case_begin(found, at)
        elif word in ("(", "NOT") or word in _LOGIC or word in _ENDS:
            return begin
        begin = at


def _escaped(found: Sequence[Token], at: int) -> Change:
    if found[at].word not in ("LIKE", "ILIKE"):
        return None
    pattern = after(found, at)
    words = words_from(found, pattern, 3)
    if len(words) < 3 or words[1] != "ESCAPE" or not (_is_text(words[0]) and _is_text(words[2])):
        return None
    escape = words[2][1:-1].replace("''", "'")
    if len(escape) > 1:
        return None
    like = "".join(_pattern_parts(words[0][1:-1].replace("''", "'"), escape, plain="\\{0}", any_="%", one="_"))
    end = after(found, after(found, pattern)) + 1
    return pattern, end, [_text(like)]


def _similar(found: Sequence[Token], at: int) -> Change:
    if found[at].word != "SIMILAR":
        return None
    words = words_from(found, at, 5)
    if len(words) < 3 or words[1] != "TO" or not _is_text(words[2]):
        return None
    pattern = after(found, after(found, at))
    escape = "\\"
    end = pattern + 1
    if words[3:4] == ["ESCAPE"] and _is_text(words[-1]):
        escape = words[4][1:-1]
        end = after(found, after(found, pattern)) + 1
    matched = "".join(_pattern_parts(words[2][1:-1].replace("''", "'"), escape, plain="\\{0}", any_=".*", one="."))
    is_not = found[before(found, at)].word == "NOT"
    begin = before(found, at) if is_not else at
    return begin, end, [raw("!~ " if is_not else "~ "), _text(f"^(?s:{matched})$")]


def _pattern_parts(pattern: str, escape: str, *, plain: str, any_: str, one: str) -> list[str]:
    """Return the parts of a pattern of SQL in another language, in which ``plain`` takes a character as it is."""
    is_like = any_ == "%"
    parts, place = [], 0
    while place < len(pattern):
        letter = pattern[place]
        place += 1
        if letter == escape and place < len(pattern):
            letter = pattern[place]
            place += 1
            special = letter in "%_\\" if is_like else not letter.isalnum() and not letter.isspace()
            parts.append(plain.format(letter) if special else letter)
        elif letter == "\\" or (not is_like and letter in ".^$"):
            parts.append(plain.format(letter))
        else:
            parts.append({"%": any_, "_": one}.get(letter, letter))
    return parts


def _windows_filtered(found: Sequence[Token], at: int) -> Change:
    if found[at].word not in _OVER_NULLS:
        return None
    opened = after(found, at)
    if words_from(found, opened, 1) != ["("]:
        return None
    closed = closing(found, opened)
    kept = after(found, after(found, closed))
    if words_from(found, after(found, closed), 3) != ["FILTER", "(", "WHERE"]:
        return None
    kept_end = closing(found, kept)
    value = found[opened + 1 : closed]
    words = [value[place].word for place in outside(value)]
    if words_from(found, after(found, kept_end), 1) != ["OVER"] or not words or {"DISTINCT", ",", "ORDER"} & set(words):
        return None
    condition = found[after(found, kept) + 1 : kept_end]
    counted = [raw("1")] if words == ["*"] else value
    parts = [raw("CASE WHEN "), *condition, raw(" THEN "), *counted, raw(" END) ")]
    return opened + 1, kept_end + 1, parts


def _any_of_list(found: Sequence[Token], at: int) -> Change:
    """Mark the list of ``= ANY (list)``, which the planner takes for a call that has no NULL: ``list_functions``."""
    if found[at].word not in ("ANY", "SOME") or found[before(found, at)].word != "=":
        return None
    opened = after(found, at)
    inner = words_from(found, opened, 2)
    if inner[:1] != ["("] or inner[1:] in (["SELECT"], ["WITH"], ["VALUES"], ["("]) or inner[1:] == [MARK]:
        return None
    return opened + 1, closing(found, opened), [raw(f"{MARK}("), *found[opened + 1 : closing(found, opened)], raw(")")]


def _fetched(found: Sequence[Token], at: int) -> Change:
    words = words_from(found, at, 5)
    if words[:1] == ["OFFSET"] and words[2:3] in (["ROW"], ["ROWS"]):
        rows = after(found, after(found, at))
        return rows, rows + 1, []
    if words[:1] != ["FETCH"] or words[1:2] not in (["FIRST"], ["NEXT"]) or words[-1] != "ONLY":
        return None
    count = ["1", *words[2:]] if words[2] in ("ROW", "ROWS") else words[2:]
    last = at
    for _ in words[1:]:
        last = after(found, last)
    return (at, last + 1, [raw(f"LIMIT {count[0]}")]) if count[1] in ("ROW", "ROWS") else None


def _is_text(word: str) -> bool:
    return word.startswith("'")


def _text(value: str) -> Token:
    written = "'" + value.replace("'", "''") + "'"
    return Token(written, written)
