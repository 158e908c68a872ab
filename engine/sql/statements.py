"""A text of statements taken apart: queries, and the few statements that are about queries.

    split("SELECT 1; SELECT ';'") -> ["SELECT 1", "SELECT ';'"]
    statement("EXPLAIN ANALYZE SELECT 1") -> Explain("SELECT 1", analyze=True)

    SELECT, WITH, VALUES ...                       Query
    EXPLAIN [ANALYZE] query                        Explain
    CREATE [OR REPLACE] VIEW name AS query         CreateView
    COPY (query) TO 'path' [(FORMAT parquet|csv|json|...)]   CopyTo; without FORMAT the end of the path says it
    SHOW TABLES, DESCRIBE name                     ShowTables, Describe

A statement that is none of these is a Query, and what plans queries says what is wrong with it.

Held by: tests/sql/test_statements.py
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from engine.errors import PlanError
from engine.sql.text_pieces import pieces


class Query(NamedTuple):
    """Rows are wanted."""

    text: str


class Explain(NamedTuple):
    """The plan is wanted; ``analyze``: run, beside what happened."""

    text: str
    analyze: bool


class CreateView(NamedTuple):
    """A query gets a name."""

    name: str
    text: str


class CopyTo(NamedTuple):
    """The rows of a query are written."""

    text: str
    path: str
    file_format: str


class ShowTables(NamedTuple):
    """The names are wanted."""


class Describe(NamedTuple):
    """The columns of a name are wanted."""

    name: str


Statement = Query | Explain | CreateView | CopyTo | ShowTables | Describe

FORMATS: Final = ("parquet", "csv", "records", "json", "orc", "ipc")
_NAME: Final = r"(\"[^\"]+\"|\w+)"
_EXPLAIN: Final = re.compile(r"EXPLAIN\s+(ANALYZE\s+)?(.+)", re.IGNORECASE | re.DOTALL)
_VIEW: Final = re.compile(rf"CREATE\s+(?:OR\s+REPLACE\s+)?VIEW\s+{_NAME}\s+AS\s+(.+)", re.IGNORECASE | re.DOTALL)
_COPY: Final = re.compile(
    r"COPY\s*\((.+)\)\s*TO\s+'((?:[^']|'')+)'\s*(?:\(\s*FORMAT\s+(\w+)\s*\))?", re.IGNORECASE | re.DOTALL
)
_SHOW: Final = re.compile(r"SHOW\s+TABLES", re.IGNORECASE)
_DESCRIBE: Final = re.compile(rf"(?:DESCRIBE|DESC)\s+{_NAME}", re.IGNORECASE)


def split(text: str) -> list[str]:
    """Return the statements of a text without their semicolons; what is only space and comments is none."""
    statements, current = [], ""
    for piece in pieces(text):
        if piece == ";":
            statements.append(current)
            current = ""
        else:
            current += piece
    return [one.strip() for one in (*statements, current) if _without_comments(one)]


def statement(text: str) -> Statement:
    """Return what one statement is; PlanError for a COPY without a format."""
    begun = _without_comments(text)
    if found := _EXPLAIN.fullmatch(begun):
        return Explain(found[2], bool(found[1]))
    if found := _VIEW.fullmatch(begun):
        return CreateView(_plain(found[1]), found[2])
    if found := _COPY.fullmatch(begun):
        path = found[2].replace("''", "'")
        return CopyTo(found[1], path, _format(found[3], path))
    if _SHOW.fullmatch(begun):
        return ShowTables()
    if found := _DESCRIBE.fullmatch(begun):
        return Describe(_plain(found[1]))
    return Query(text)


def _plain(name: str) -> str:
    """Return the name that is meant: lower case unless it is quoted."""
    return name[1:-1] if name.startswith('"') else name.lower()


def _format(named: str | None, path: str) -> str:
    wanted = named.lower() if named else path.rstrip("/").rpartition(".")[2].lower()
    if wanted not in FORMATS:
        raise PlanError(f"COPY TO {path!r}: write (FORMAT {'|'.join(FORMATS)}) behind it")
    return wanted


def _without_comments(text: str) -> str:
    """Return a text without the comments before its first word."""
    return re.sub(r"\A(?:\s+|--[^\n]*(?:\n|\Z)|/\*(?!\+).*?\*/)+", "", text, flags=re.DOTALL).strip()
