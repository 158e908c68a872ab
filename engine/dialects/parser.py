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
from itertools import pairwise
from typing import Any, ClassVar, Final

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ErrorLevel, ParseError, TokenError
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from engine.errors import ConfigurationError, PlanError
from engine.near_names import near_names

_DIRECTIONS: Final = (TokenType.ASC, TokenType.DESC)
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
_BY_NAME: Final = ("struct_pack", "struct_insert", "struct_update")
_BEGIN: Final = ("", "(", "PIVOT", "UNPIVOT", "TABLE")


def with_parameters(tokenizer: Any) -> Any:
    """Return a tokenizer for which $1,$2 are two parameters; a string is $$...$$, and $word$...$word$ is none."""
    signs = {**tokenizer.SINGLE_TOKENS, "$": TokenType.PARAMETER}

    def tokenize(self: Any, sql: str) -> Any:
        """Return the words of a text; no name begins right behind a number."""
        found = tokenizer.tokenize(self, sql)
        for one, other in pairwise(found):
            kind = one.token_type
            if kind is TokenType.NUMBER and other.start == one.end + 1 and sql[other.start].isalpha():
                said = f"{one.text}{other.text} is neither a number nor a name"
                raise PlanError(f"sql: {shown_place(sql, one.start)}{said}")
            if kind in _DIRECTIONS and other.token_type in _DIRECTIONS and kind is not other.token_type:
                raise PlanError(f"sql: {shown_place(sql, one.start)}ASC and DESC of one key; write one of them")
        return found

    parts = {"HEREDOC_STRINGS": [], "RAW_STRINGS": ["$$"], "SINGLE_TOKENS": signs, "tokenize": tokenize}
    return type("Tokenizer", (tokenizer,), parts)


def without_is(parsers: dict[TokenType, Any]) -> dict[TokenType, Any]:
    """Return the parsers of what may stand behind an operand of a comparison, but that of IS: see ``IsBehindAll``."""
    return {kind: one for kind, one in parsers.items() if kind is not TokenType.IS}


class IsBehindAll:
    """A part of parsers, for which IS binds less than comparisons do: ``a = b IS NULL`` is ``(a = b) IS NULL``.

    And ``a IS DISTINCT FROM b > c`` is ``a IS DISTINCT FROM (b > c)``.
    """

    def _parse_equality(self: Any) -> exp.Expr | None:
        found: exp.Expr | None = super()._parse_equality()  # type: ignore[misc]
        signs = {**self.EQUALITY, **self.COMPARISON}
        while self._match(TokenType.IS):
            found = self._parse_range(self._parse_is(found))
            is_distinct = isinstance(found, exp.NullSafeEQ | exp.NullSafeNEQ)
            while self._match_set(signs):
                kind = signs[self._prev.token_type]
                other = self._parse_comparison()
                if is_distinct:
                    found.set("expression", self.expression(kind(this=found.expression, expression=other)))
                else:
                    found = self.expression(kind(this=found, expression=other))
        return found


class WithConditions:
    """A part of parsers, for which JOIN without a condition is no comma: ``lacks_condition`` of its meta says so."""

    def _parse_join(self, *arguments: Any, **named: Any) -> exp.Join | None:
        is_comma = self._curr.token_type == TokenType.COMMA  # type: ignore[attr-defined]
        found: exp.Join | None = super()._parse_join(*arguments, **named)  # type: ignore[misc]
        if found is not None and not is_comma and found.kind in ("", "INNER"):
            found.meta["lacks_condition"] = not any(found.args.get(one) for one in ("on", "using", "side", "method"))
        return found


class Drey(DuckDB):
    """The dialect."""

    INDEX_OFFSET = 0
    NULL_ORDERING = "nulls_are_large"
    Tokenizer = with_parameters(DuckDB.Tokenizer)

    def to_json_path(self, path: exp.Expr | None) -> exp.Expr | None:
        """Return a path of JSON as it is written: the function reads it."""
        return path

    class Parser(IsBehindAll, WithConditions, _BASE):  # type: ignore[misc, valid-type]
        """A parser whose items of lists know their part of the text."""

        #: words that stand before the brackets of a list; list(v)[1] is an element of an aggregate
        ARRAY_CONSTRUCTORS: ClassVar[dict[str, type[exp.Expr]]] = {"ARRAY": exp.Array}
        RANGE_PARSERS: ClassVar[dict[TokenType, Any]] = without_is(_BASE.RANGE_PARSERS)
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

        def _parse_expression(self) -> exp.Expr | None:
            """Parse an expression; SELECT :parameter is none that has the name SELECT."""
            return None if self._curr.token_type == TokenType.SELECT else super()._parse_expression()

        def _parse_placeholder(self) -> exp.Expr | None:
            """Parse a parameter, which knows its place."""
            start = self._curr.start
            found: exp.Expr | None = super()._parse_placeholder()
            if found is not None:
                found.meta["start"] = start
            return found

        def _parse_group(self, skip_group_by_token: bool = False) -> exp.Group | None:
            """Parse GROUP BY; more may stand behind the comma after ROLLUP (a, b)."""
            found: exp.Group | None = super()._parse_group(skip_group_by_token)
            while found is not None and self._match(TokenType.COMMA):
                more = super()._parse_group(skip_group_by_token=True)
                if not any(more.args.values()) or more.args.get("all") is not None:
                    self.raise_error("expected: an expression")
                for name in ("expressions", "rollup", "cube", "grouping_sets"):
                    if more.args.get(name):
                        found.set(name, [*(found.args.get(name) or ()), *more.args[name]])
            return found

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
    found = trees_of(_DIALECT, text)
    if not any(found):
        raise PlanError("sql: there is no statement in the text")
    if len(found) > 1:
        raise PlanError(f"sql: {shown_place(text, text.find(';'))}more than one statement")
    (statement,) = found
    assert statement is not None, "there is a statement"
    statement.meta["text"] = text
    return statement


def trees_of(dialect: Dialect, text: str, note: str = "") -> list[exp.Expr | None]:
    """Return the statements of a text in a dialect. Raises: PlanError, the note at its end."""
    try:
        return dialect.parse(text, error_level=ErrorLevel.IMMEDIATE)
    except ParseError as error:
        raise PlanError(f"sql: {of_parser(error, text)}{note}") from None
    except TokenError as error:
        raise PlanError(f"sql: {of_tokens(error, text)}{note}") from None
    except RecursionError:
        raise PlanError("sql: the query is nested too deep") from None
    except TypeError as error:
        if "compiled" not in str(error):
            raise
        said = "sql: the compiled parts of sqlglot take no dialect but their own; run pip uninstall sqlglotc"
        raise ConfigurationError(said) from None


def check_names(statement: exp.Expr, text: str) -> None:
    """Raise PlanError for a function that is given arguments by their names, and knows places alone."""
    for node in nodes_in(statement, exp.PropertyEQ, exp.Kwarg):
        call = node.parent
        is_of_files = isinstance(call, exp.Anonymous) and isinstance(call.parent, exp.Table)
        if isinstance(call, exp.Anonymous) and not is_of_files and call.name.lower() not in _BY_NAME:
            raise PlanError(sentence(node, f"{call.name}() takes its arguments by their places, not by names", text))


def nodes_in(node: exp.Expr, *kinds: type[Any]) -> list[Any]:
    """Return a node and all that is within it, level by level; of some kinds where these are given."""
    found = [node]
    for one in found:  # which grows
        for part in one.args.values():
            if isinstance(part, exp.Expr):
                found.append(part)
            elif isinstance(part, list):
                found += [each for each in part if isinstance(each, exp.Expr)]
    return [one for one in found if isinstance(one, kinds)] if kinds else found


def place_of(node: exp.Expr) -> int | None:
    """Return the place in the text at which a node begins, None where no part of it has one."""
    starts = [one.meta["start"] for one in nodes_in(node) if "start" in one.meta]
    return min(starts, default=None)


def sentence(node: exp.Expr, said: str, text: str | None = None) -> str:
    """Return a sentence about a node, its place in front."""
    place = place_of(node)
    text = text if text is not None else node.root().meta.get("text", "")
    return f"sql: {said}" if place is None or not text else f"sql: {shown_place(text, place)}{said}"


def written(node: exp.Expr, text: str) -> str:
    """Return the text of an item of a list, in one line, in lower case where it is not quoted."""
    start, end = node.meta.get(_SPAN, (0, 0))
    parts = _QUOTED.split(" ".join(text[start:end].split()))
    return "".join(part if place % 2 else part.lower() for place, part in enumerate(parts)) or node.sql(
        dialect=_DIALECT
    )


def shown_place(text: str, place: int) -> str:
    """Return the line and the column of a place."""
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
        return f"{shown_place(text, len(text) - len(text.lstrip()))}expected: an SQL statement, found: {begin}{near}"
    if "Invalid expression" in said or "Unexpected token" in said:
        said = f"expected: end of statement, found: {highlight}"
    elif said.startswith("Expecting "):
        found_word = "the end" if is_end else highlight if highlight.isalpha() else rest.split()[0]
        said = f"expected: {said.removeprefix('Expecting ')}, found: {found_word}"
    elif "Required keyword" in said:
        said = (
            f"{_incomplete(said, highlight)}, found: {'the end' if is_end else rest.split()[0] if rest else highlight}"
        )
    elif said.startswith("Expected table name"):
        said = f"expected: a table, found: {rest.split()[0] if rest else 'the end'}"
    else:
        said = f"{said[:1].lower()}{said[1:]}"
    return f"{shown_place(text, max(place, 0))}{said}{near}"


def _incomplete(said: str, highlight: str) -> str:
    """Return the words for a part of a statement that ends too early."""
    word = said.rpartition("'>")[0].rpartition(".")[2].lower()
    if word == "whens":
        return "MERGE is not complete: write WHEN MATCHED THEN ..., WHEN NOT MATCHED THEN ..."
    is_same = highlight.lower().startswith(word) or not any(map(str.isalnum, highlight))
    return f"{highlight.upper() if is_same else word} is not complete"


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
        close = near_names(one, _KEYWORDS, likeness=0.7)
        if close and close[0] != one.upper():
            return f"; did you mean {close[0]} for {one}?"
    return ""


def of_tokens(_error: TokenError, text: str) -> str:
    """Return the sentence of a text that cannot be cut into words: a quote has no end."""
    quote = next((one for one in ("'", '"', "$$") if text.count(one) % 2), "'")
    return f"{shown_place(text, text.rfind(quote))}unterminated {'name' if quote == chr(34) else 'string literal'}"
