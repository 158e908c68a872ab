"""A text of statements taken apart: queries, and the few statements that are about queries.

    split("SELECT 1; SELECT ';'") -> ["SELECT 1", "          SELECT ';'"]
    statement("EXPLAIN ANALYZE SELECT 1") -> Explain("                SELECT 1", analyze=True)

    SELECT, WITH, VALUES ...                       Query
    EXPLAIN [ANALYZE] query                        Explain
    CREATE [OR REPLACE] VIEW name AS query         CreateView
    CREATE [OR REPLACE] TABLE name AS query        CreateTable
    DROP VIEW|TABLE [IF EXISTS] name               Drop
    COPY (query)|name TO 'path' [(option value, ...)]   CopyTo; without FORMAT the end of the path says it
    INSERT INTO 'path' query                       InsertInto
    SHOW TABLES, DESCRIBE name                     ShowTables, Describe
    ATTACH 'catalog' AS name                       Attach
    SUMMARIZE name|query                           Summarize
    MERGE INTO, UPDATE, DELETE                     Query, whose one row says what it has changed

A statement that is none of these is a Query, and what plans queries says what is wrong with it.

Held by: tests/sql/test_statements.py
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from engine.errors import NotYetSupportedError, PlanError
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
    replaces: bool = False


class CreateTable(NamedTuple):
    """The rows of a query are kept under a name as long as the session lasts."""

    name: str
    text: str
    replaces: bool


class Drop(NamedTuple):
    """A name is given up; ``kind``: VIEW or TABLE, as it was said."""

    name: str
    kind: str
    if_exists: bool


class CopyTo(NamedTuple):
    """The rows of a query are written; ``options`` are those behind the path, without FORMAT."""

    text: str
    path: str
    file_format: str
    options: Mapping[str, str | bool] = MappingProxyType({})


class InsertInto(NamedTuple):
    """The rows of a query are to be added to what lies at a path."""

    path: str
    text: str


class ShowTables(NamedTuple):
    """The names are wanted."""


class Describe(NamedTuple):
    """The columns of a name are wanted."""

    name: str


class Attach(NamedTuple):
    """A catalog of tables gets a name: a folder, or one of pyiceberg's configuration."""

    name: str
    catalog: str


class Summarize(NamedTuple):
    """A row about each column of a query is wanted."""

    text: str


Statement = (
    Query | Explain | CreateView | CreateTable | Drop | CopyTo | InsertInto | ShowTables | Describe | Attach | Summarize
)

_WRITE: Final = "data.write_parquet(path, mode=...)"
_REGISTER: Final = "env.register(name, env.sql('SELECT ...'))"
#: statements that begin with a word, and their equivalent in Python
STATEMENTS: Final[dict[str, str]] = {
    "EXPLAIN": "env.sql('SELECT ...').explain()",
    "DESCRIBE": "env.sql('SELECT * FROM name').schema",
    "DESC": "env.sql('SELECT * FROM name').schema",
    "SUMMARIZE": "env.sql('SELECT * FROM name').describe()",
    "CREATE": _REGISTER,
    "DROP": "env.unregister(name)",
    "INSERT": _WRITE,
    "TRUNCATE": _WRITE,
    "COPY": _WRITE,
    "SET": "Environment(config={...})",
    "PRAGMA": "Environment(config={...})",
}

FORMATS: Final = ("parquet", "csv", "records", "json", "orc", "ipc")
_NAME: Final = r"(\"[^\"]+\"|\w+)"
_EXPLAIN: Final = re.compile(r"EXPLAIN\s+(ANALY[ZS]E\s+)?(.+)", re.IGNORECASE | re.DOTALL)
_CREATE: Final = re.compile(
    rf"CREATE\s+(OR\s+REPLACE\s+)?(VIEW|TABLE)\s+{_NAME}\s+AS\s+(.+)", re.IGNORECASE | re.DOTALL
)
_DROP: Final = re.compile(rf"DROP\s+(VIEW|TABLE)\s+(IF\s+EXISTS\s+)?{_NAME}", re.IGNORECASE)
_PATH: Final = r"'((?:[^']|'')+)'"
_COPY: Final = re.compile(rf"COPY\s*(?:\((.+)\)|{_NAME})\s*TO\s+{_PATH}\s*(?:\((.*)\))?", re.IGNORECASE | re.DOTALL)
_OPTION: Final = re.compile(r"\s*(\w+)(?:\s+('(?:[^']|'')*'|\([^()]*\)|[\w.]+))?\s*(?:,|\Z)")
_INSERT: Final = re.compile(rf"INSERT\s+INTO\s+{_PATH}\s+(.+)", re.IGNORECASE | re.DOTALL)
_CHANGE: Final = re.compile(r"\s*(MERGE\s+INTO|UPDATE|DELETE\s+FROM)\b", re.IGNORECASE)
_NO_PATH: Final = re.compile(r"INSERT(?:\s+INTO)?\s+(\S+)", re.IGNORECASE)
_DESCRIBED: Final = re.compile(r"DESC(?:RIBE)?\b", re.IGNORECASE)
_SHOW: Final = re.compile(r"SHOW\s+TABLES", re.IGNORECASE)
_SUMMARIZE: Final = re.compile(rf"SUMMARIZE\s+(?:{_NAME}|(.+))", re.IGNORECASE | re.DOTALL)
_DESCRIBE: Final = re.compile(rf"(?:DESCRIBE|DESC)\s+{_NAME}((?:\s*\.\s*{_NAME})*)", re.IGNORECASE)
_ATTACH: Final = re.compile(rf"ATTACH\s+{_PATH}\s+AS\s+{_NAME}", re.IGNORECASE)


def split(text: str) -> list[str]:
    """Return the statements of a text without their semicolons; what is only space and comments is none.

    Each stands behind as many lines and blanks as there are before it, so that errors have the places of the text.
    """
    statements, begin, end = [], 0, 0
    for piece in (*pieces(text), ";"):
        if piece == ";":
            statements.append(_from(text[:end], begin))
            begin = end + 1
        end += len(piece)
    return [one.rstrip() for one in statements if _without_comments(one)]


def _from(text: str, place: int) -> str:
    """Return a text from a place on, behind lines and blanks."""
    line = text.rfind("\n", 0, place) + 1
    return "\n" * text.count("\n", 0, place) + " " * (place - line) + text[place:]


def statement(text: str) -> Statement:
    """Parse one statement; PlanError for one that is incomplete, such as a COPY without a format."""
    begun = _without_comments(text)
    before = len(text.rstrip()) - len(begun)

    def placed(found: re.Match[str], group: int) -> str:
        if _CHANGE.match(found[group]):
            raise PlanError(f"{begun.split()[0].upper()}: a statement that changes a table stands alone")
        return _from(text[: before + found.end(group)], before + found.start(group))

    if found := _EXPLAIN.fullmatch(begun):
        return Explain(placed(found, 2), bool(found[1]))
    if found := _CREATE.fullmatch(begun):
        name, replaces = _plain(found[3]), bool(found[1])
        is_view = found[2].upper() == "VIEW"
        return (CreateView if is_view else CreateTable)(name, placed(found, 4), replaces)
    if found := _DROP.fullmatch(begun):
        return Drop(_plain(found[3]), found[1].upper(), bool(found[2]))
    if found := _COPY.fullmatch(begun):
        path, options = found[3].replace("''", "'"), _options(found[4] or "")
        query = placed(found, 1) if found[1] else f"SELECT * FROM {found[2]}"  # noqa: S608 - of one author
        return CopyTo(query, path, _format(options.pop("format", None), path), options)
    if found := _INSERT.fullmatch(begun):
        return InsertInto(found[1].replace("''", "'"), placed(found, 2))
    if found := _NO_PATH.match(begun):
        what = "rows are added to files; write INSERT INTO 'path', and behind it a query"
        raise PlanError(f"INSERT INTO {found[1]}: {what}")
    if _SHOW.fullmatch(begun):
        return ShowTables()
    if found := _DESCRIBE.fullmatch(begun):
        return Describe(f"{found[1]}{found[2]}" if found[2] else _plain(found[1]))
    if found := _ATTACH.fullmatch(begun):
        return Attach(_plain(found[2]), found[1].replace("''", "'"))
    if _DESCRIBED.match(begun):
        raise PlanError("DESCRIBE: this is no name of a table; for a query write CREATE VIEW name AS query before")
    if found := _SUMMARIZE.fullmatch(begun):
        query = placed(found, 2) if found[2] else f"SELECT * FROM {found[1]}"  # noqa: S608 - of one author
        return Summarize(query)
    return Query(text)


def check_is_query(text: str) -> None:
    """Raise NotYetSupportedError, PlanError for a statement that is no query, with what to write in its place."""
    begun = _without_comments(text)
    first = begun.partition("(")[0].split(maxsplit=1)[:1]
    word = first[0].upper() if first else ""
    place = _place(text, len(text.rstrip()) - len(begun))
    if word == "SHOW":
        known = "SHOW TABLES is no query; write list(env.tables)"
        raise PlanError(f"sql: {place}{known if _SHOW.fullmatch(begun) else 'SHOW is followed by TABLES'}")
    if word in STATEMENTS:
        said = f"{word} (a query begins with SELECT, FROM, WITH or VALUES; write {STATEMENTS[word]})"
        raise NotYetSupportedError(f"sql: {said}")


def _place(text: str, at: int) -> str:
    return f"line {text.count(chr(10), 0, at) + 1}, column {at - text.rfind(chr(10), 0, at)}: "


def _plain(name: str) -> str:
    """Return the name that is meant: lower case unless it is quoted."""
    return name[1:-1] if name.startswith('"') else name.lower()


def _options(text: str) -> dict[str, str | bool]:
    """Return the options behind a path: COMPRESSION zstd, OVERWRITE; a word alone is true."""
    options: dict[str, str | bool] = {}
    end = 0
    while end < len(text.rstrip()):
        found = _OPTION.match(text, end)
        if found is None:
            raise PlanError(f"COPY TO: the options ({text.strip()}) are not of the form (FORMAT csv, HEADER false)")
        value = (found[2] or "").strip("()").strip()
        end = found.end()
        value = value[1:-1].replace("''", "'") if value.startswith("'") else value
        is_word = value.lower() in ("", "true", "false")
        options[found[1].lower()] = value.lower() != "false" if is_word else value
    return options


def _format(named: str | bool | None, path: str) -> str:
    wanted = str(named).lower() if named else path.rstrip("/").rpartition(".")[2].lower()
    if wanted not in FORMATS:
        raise PlanError(f"COPY TO {path!r}: write (FORMAT {'|'.join(FORMATS)}) behind it")
    return wanted


def _without_comments(text: str) -> str:
    """Return a text without the comments before its first word."""
    return re.sub(r"\A(?:\s+|--[^\n]*(?:\n|\Z)|/\*(?!\+).*?\*/)+", "", text, flags=re.DOTALL).strip()
