"""The dialect that queries are written in: PostgreSQL's meaning with DuckDB's comforts, as a parser of sqlglot.

    parsed("SELECT k, max(v) FROM t GROUP BY 1") -> exp.Select       one statement
    place_of(node), sentence(node, "...")                            "line 1, column 8: ..." of what it is about
    written(node, text)                                              the part of the text that a list's item is

Every function is a name with arguments (``exp.Anonymous``) but those with a syntax of their own (CAST, EXTRACT, TRIM,
SUBSTRING, POSITION, OVERLAY): what a name means is the binder's. Positions of lists count from 1, as they are written.

Held by: tests/sql/test_mistakes.py
"""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, ClassVar, Final

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ErrorLevel, ParseError, TokenError
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from engine.errors import PlanError

_OWN_SYNTAX: Final = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "SUBSTRING", "POSITION", "OVERLAY")
_SPAN: Final = "span"
_QUOTED: Final = re.compile(r"('(?:[^']|'')*'|\"[^\"]*\")")
_BASE: Final = DuckDB.Parser
_KEYWORD_TEXT: Final = """
    SELECT DISTINCT FROM WHERE GROUP HAVING ORDER LIMIT OFFSET UNION INTERSECT EXCEPT JOIN LEFT RIGHT FULL INNER OUTER
    CROSS USING BETWEEN WITH VALUES PARTITION OVER CREATE TABLE VIEW REPLACE DESCRIBE EXPLAIN ANALYZE INSERT
    PRECEDING FOLLOWING UNBOUNDED EXISTS QUALIFY
"""
_KEYWORDS: Final = tuple(_KEYWORD_TEXT.split())
#: functions whose arguments have names
_BY_NAME: Final = ("struct_pack", "struct_insert")
_BEGIN: Final = ("", "(", "PIVOT", "UNPIVOT", "TABLE")


class Drey(DuckDB):
    """The dialect."""

    INDEX_OFFSET = 0
    NULL_ORDERING = "nulls_are_large"

    class Parser(_BASE):  # type: ignore[misc, valid-type]
        """A parser whose items of lists know their part of the text."""

        FUNCTIONS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
            name: _BASE.FUNCTION_PARSERS[name] for name in _OWN_SYNTAX
        }
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
            name: one for name, one in _BASE.NO_PAREN_FUNCTION_PARSERS.items() if name in ("ANY", "CASE", "IF", "MAP")
        }

        VERSION_PHRASES: ClassVar[dict[tuple[str, ...], str]] = {
            **_BASE.VERSION_PHRASES,
            ("FOR", "SYSTEM_VERSION"): "VERSION",
        }

        def _parse_simplified_pivot(self, is_unpivot: bool | None = None) -> exp.Pivot:
            """Parse a statement, whose ON and USING take any expression, with an order and a limit behind it."""
            this = self._parse_table()
            on = self._parse_csv(self._parse_expression) if self._match(TokenType.ON) else []
            if not on:
                self.raise_error("expected: ON")
            into = self._parse_unpivot_columns()
            using = self._parse_csv(self._parse_expression) if self._match(TokenType.USING) else []
            parts = {"using": using, "group": self._parse_group(), "unpivot": is_unpivot, "into": into}
            found = exp.Pivot(this=this, expressions=on, **parts)
            for name, part in (("order", self._parse_order()), ("limit", self._parse_limit())):
                found.set(name, part)
            return found

        def _parse_csv(self, parse_method: Callable[[], Any], sep: TokenType = TokenType.COMMA) -> list[Any]:
            items: list[Any] = []
            while True:
                first, is_following = self._curr, bool(items)
                item = parse_method()
                if item is None:
                    if is_following and self._curr and self._curr.token_type == sep:
                        self.raise_error("expected: an expression")
                    return items
                if first and self._prev and isinstance(item, exp.Expr):
                    item.meta[_SPAN] = (first.start, self._prev.end + 1)
                items.append(item)
                if not self._match(sep):
                    return items


_DIALECT: Final = Drey()


def parsed(text: str) -> exp.Expr:
    """Return the one statement of a text. Raises: PlanError."""
    try:
        found = _DIALECT.parse(text, error_level=ErrorLevel.IMMEDIATE)
    except ParseError as error:
        raise PlanError(f"sql: {of_parser(error, text)}") from None
    except TokenError as error:
        raise PlanError(f"sql: {of_tokens(error, text)}") from None
    except RecursionError:
        raise PlanError("sql: the query is nested too deep") from None
    if not any(found):
        raise PlanError("sql: there is no statement in the text")
    if len(found) > 1:
        raise PlanError(f"sql: {_at(text, text.find(';'))}more than one statement")
    (statement,) = found
    assert statement is not None, "there is a statement"
    statement.meta["text"] = text
    if ":=" in text or "=>" in text:
        _check_names(statement, text)
    return statement


def _check_names(statement: exp.Expr, text: str) -> None:
    """Raise PlanError for a function that is given arguments by their names, and knows places alone."""
    for node in statement.find_all(exp.PropertyEQ, exp.Kwarg):
        call = node.parent
        if isinstance(call, exp.Anonymous) and call.name.lower() not in _BY_NAME:
            raise PlanError(sentence(node, f"{call.name}() takes its arguments by their places, not by names", text))


def place_of(node: exp.Expr) -> int | None:
    """Return the place in the text at which a node begins, None where no part of it has one."""
    starts = [one.meta["start"] for one in node.walk() if "start" in one.meta]
    return min(starts, default=None)


def sentence(node: exp.Expr, said: str, text: str | None = None) -> str:
    """Return a sentence about a node, its place in front."""
    place = place_of(node)
    text = text if text is not None else node.root().meta.get("text", "")
    return f"sql: {said}" if place is None or not text else f"sql: {_at(text, place)}{said}"


def written(node: exp.Expr, text: str) -> str:
    """Return the text of an item of a list, in one line, in lower case where it is not quoted."""
    start, end = node.meta.get(_SPAN, (0, 0))
    parts = _QUOTED.split(" ".join(text[start:end].split()))
    return "".join(part if place % 2 else part.lower() for place, part in enumerate(parts)) or node.sql(
        dialect=_DIALECT
    )


def did_you_mean(name: str, known: Any, cutoff: float = 0.6) -> str:
    """Return "; did you mean ...?" with the names that are near, "" for none."""
    lower = {one.lower(): one for one in known}
    close = [lower[one] for one in get_close_matches(name.lower(), lower, n=2, cutoff=cutoff)]
    return f"; did you mean {' or '.join(close)}?" if close else ""


def _at(text: str, place: int) -> str:
    before = text[:place]
    return f"line {before.count(chr(10)) + 1}, column {place - before.rfind(chr(10))}: "


def of_parser(error: ParseError, text: str) -> str:
    """Return the sentence of an error of the parser: its place, what was expected, and the word that was meant."""
    (found,) = error.errors[:1]
    highlight, said = found["highlight"] or "", str(found["description"])
    place = len(found["start_context"] or "") if len(text) < 100 else -1
    place = _place(text, found["line"], found["col"], highlight)
    rest = text[place + len(highlight) :].strip() if place >= 0 else ""
    is_end = (not rest and "Expecting" in said) or ("missing" in said and not rest)
    near = _near(text, place)
    begin = text.lstrip().split(maxsplit=1)[0].upper().rstrip("(") if text.strip() else ""
    if begin not in (*_KEYWORDS, *_BEGIN) and "did you mean" in near and begin in near.upper():
        return f"{_at(text, len(text) - len(text.lstrip()))}expected: an SQL statement, found: {begin}{near}"
    if "Invalid expression" in said or "Unexpected token" in said:
        said = f"expected: end of statement, found: {highlight}"
    elif said.startswith("Expecting "):
        found_word = "the end" if is_end else highlight if highlight.isalpha() else rest.split()[0]
        said = f"expected: {said.removeprefix('Expecting ')}, found: {found_word}"
    elif "Required keyword" in said:
        word = said.split("core.")[-1].split("'")[0].lower()
        said = f"{word} is not complete, found: {'the end' if is_end else rest.split()[0] if rest else highlight}"
    else:
        said = f"{said[:1].lower()}{said[1:]}"
    return f"{_at(text, max(place, 0))}{said}{near}"


def _place(text: str, line: int | None, column: int | None, highlight: str) -> int:
    if line is None or column is None:
        return len(text.rstrip())
    start = sum(len(one) + 1 for one in text.split("\n")[: line - 1])
    # the column is that of the last character of the word
    return max(start + column - len(highlight), 0)


def _near(text: str, place: int) -> str:
    """Return the keyword that was meant at a place or before it."""
    behind = text[place:].split(maxsplit=1)[:1]
    before = text[:place].split()[-1:]
    word = (behind or [""])[0].upper()
    if before and before[0].upper() in ("GROUP", "ORDER", "PARTITION"):
        return f"; write {before[0].upper()} BY"
    for written_word in (*before, *text[:place].split()[-3:-1], word):
        one = written_word.strip("(),")
        close = get_close_matches(one.upper(), _KEYWORDS, n=1, cutoff=0.7)
        if close and close[0] != one.upper():
            return f"; did you mean {close[0]} for {one}?"
    return ""


def of_tokens(_error: TokenError, text: str) -> str:
    """Return the sentence of a text that cannot be cut into words: a quote has no end."""
    quote = next((one for one in ("'", '"') if text.count(one) % 2), "'")
    return f"{_at(text, text.rfind(quote))}unterminated {'string literal' if quote == chr(39) else 'name'}"
