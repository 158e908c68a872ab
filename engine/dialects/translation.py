"""Queries in the dialects of other engines: sqlglot reads them, and they are written again in the dialect of ours.

    translated("SELECT `a b`, 7 / 2 FROM t", "spark")  ->  the tree of SELECT "a b", CAST(7 AS DOUBLE) / 2 FROM t

    text ──► tree, as the dialect means it ──► repairs of that dialect ──► text of ours ──► tree, with the places of
                                                                                            the words of the first text

What a word means is in the first tree: the order of nulls, whether a division is one of integers, where lists and texts
begin, which argument of a function comes first. What has no equal here is refused by name. Columns without a name keep
what was written. The places in errors are those of the text that was given.

Held by: tests/sql/dialects/test_documented.py
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ErrorLevel, UnsupportedError

from engine.dialects.clauses import check_clauses
from engine.dialects.parser import IsBehindAll, WithConditions, parsed, trees_of, with_parameters, without_is
from engine.dialects.repairs import KEPT, REPAIRS
from engine.dialects.shared_forms import Repair, refuse_names, refuse_questions_of_json
from engine.errors import NotYetSupportedError, PlanError

#: the dialect that needs no translation
OURS: Final = "drey"
DIALECTS: Final = (OURS, "duckdb", "postgres", "spark", "snowflake", "bigquery", "trino")


def translated(text: str, dialect: str) -> exp.Expr:
    """Return the one statement of a text in another dialect. Raises: PlanError, NotYetSupportedError."""
    statement = _read(text, dialect)
    check_clauses(statement, text)
    refuse_names(statement)
    if dialect != "duckdb":
        refuse_questions_of_json(statement)
    _name_columns(statement, dialect)
    statement = _repaired(statement, REPAIRS[dialect])
    try:
        written = statement.sql(dialect=_WRITTEN, unsupported_level=ErrorLevel.RAISE, comments=False)
    except UnsupportedError as error:
        what = str(error.args[0]).split(" is not supported")[0].split(" are not supported")[0]
        raise NotYetSupportedError(f"sql: {what} of dialect {dialect}") from None
    found = parsed(written)
    _place(found, statement)
    found.meta["text"] = text
    return found


def checked_dialect(name: str) -> str:
    """Return the name of a dialect. Raises: PlanError for one that is not known."""
    if name.lower() not in DIALECTS:
        raise PlanError(f"sql: no dialect {name!r}; there are {', '.join(DIALECTS)}")
    return name.lower()


def _read(text: str, dialect: str) -> exp.Expr:
    found = trees_of(_reader(dialect), text, f" (dialect {dialect})")
    if len(found) != 1 or found[0] is None:
        raise PlanError("sql: one statement is expected in the text")
    return found[0]


@cache
def _reader(dialect: str) -> Dialect:
    """Return sqlglot's dialect, without the functions that are repaired by what was written."""
    base: Any = Dialect.get_or_raise(dialect).__class__
    functions = {name: one for name, one in base.Parser.FUNCTIONS.items() if name not in KEPT.get(dialect, ())}
    # CAST ends in an error, and TRY_CAST is null
    bases = (WithConditions, base.Parser) if dialect in ("duckdb", "postgres", "trino") else (base.Parser,)
    ranges = without_is(base.Parser.RANGE_PARSERS)
    parts_of_parser = {"FUNCTIONS": functions, "RANGE_PARSERS": ranges, "STRICT_CAST": True}
    parser = type("Parser", (IsBehindAll, *bases), parts_of_parser)
    parts: dict[str, Any] = {"Parser": parser}
    if dialect in ("duckdb", "postgres"):
        parts["Tokenizer"] = with_parameters(base.Tokenizer)
    if dialect == "duckdb":
        parts["to_json_path"] = lambda _self, path: path
    if dialect == "spark":
        parts["Tokenizer"] = type("Tokenizer", (base.Tokenizer,), {"STRING_ESCAPES": ["'", '"', "\\"]})
    reader: Dialect = type(f"Drey{base.__name__}", (base,), parts)()
    return reader


def _repaired(statement: exp.Expr, repairs: Mapping[type[exp.Expr], Repair]) -> exp.Expr:
    """Return a tree whose nodes are repaired, those within others first."""
    for node in reversed(list(statement.walk())):
        repair = repairs.get(type(node))
        if repair is None:
            continue
        if node is statement:
            return repair(node)
        place = exp.Placeholder()
        node.replace(place)
        place.replace(repair(node))
    return statement


def _name_columns(statement: exp.Expr, dialect: str) -> None:
    """Give columns of a SELECT that have no name the text that was written."""
    for select in statement.find_all(exp.Select):
        for item in list(select.expressions):
            if not isinstance(item, _NAMED) and not item.find(exp.Columns):
                name = item.sql(dialect=dialect, comments=False).lower()
                item.replace(exp.alias_(item.copy(), name, quoted=True))


#: items that have a name, or make several columns
_NAMED: Final = (exp.Alias, exp.Column, exp.Posexplode, exp.Inline, exp.Star, exp.Columns, exp.Aliases)


def _place(found: exp.Expr, source: exp.Expr) -> None:
    """Give the words of a tree the places that the same words have in another one, in order."""
    places: dict[str, Iterator[int]] = defaultdict(lambda: iter(()))
    words: dict[str, list[int]] = defaultdict(list)
    for node in source.walk():
        if "start" in node.meta:
            words[_word(node)].append(node.meta["start"])
    places.update((word, iter(sorted(starts))) for word, starts in words.items())
    marked = sorted((node for node in found.walk() if "start" in node.meta), key=lambda node: node.meta["start"])
    for node in found.walk():
        node.meta.pop("span", None)
    for node in marked:
        start = next(places[_word(node)], None)
        if start is None:
            del node.meta["start"]
        else:
            node.meta["start"] = start


def _word(node: exp.Expr) -> str:
    return f"{'$' if isinstance(node, exp.Placeholder) else ''}{node.name.lower() or node.key}"


_BASE: Final = DuckDB.Generator


class _Written(DuckDB):
    """The dialect of translated texts, as the parser of ours reads them."""

    INDEX_OFFSET = 1
    NULL_ORDERING = "nulls_are_large"
    TYPED_DIVISION = True

    class Generator(_BASE):  # type: ignore[misc, valid-type]
        """Writes hints: they are read here."""

        QUERY_HINTS = True


_WRITTEN: Final[Any] = _Written()
