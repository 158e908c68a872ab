"""A text of statements taken apart: queries, and the few statements that are about queries.

    split("SELECT 1; SELECT ';'") -> ["SELECT 1", "          SELECT ';'"]
    statement("EXPLAIN ANALYZE SELECT 1") -> Explain("                SELECT 1", analyze=True)

    SELECT, WITH, VALUES ...                       Query
    EXPLAIN [ANALYZE] query                        Explain; EXPLAIN (FORMAT json, ANALYZE) query
    CREATE [OR REPLACE] VIEW [IF NOT EXISTS] name AS query         CreateView, also with TEMP before VIEW
    CREATE [OR REPLACE] TABLE [IF NOT EXISTS] name AS query        CreateTable
    CREATE [OR REPLACE] MACRO [IF NOT EXISTS] name(a, b := 1) AS [TABLE] body   CreateMacro
    DROP VIEW|TABLE|MACRO [IF EXISTS] name         Drop
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

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, cast

from sqlglot.errors import TokenError

from engine.choices import ExplainFormat
from engine.dialects.excerpts import with_excerpts
from engine.dialects.parser import of_tokens, shown_place
from engine.errors import NotYetSupportedError, PlanError
from engine.statements.macros import Macro
from engine.statements.text_pieces import first_word, pieces, stray_hint
from engine.statements.words import Words, placed


class Query(NamedTuple):
    """Rows are wanted."""

    text: str


class Explain(NamedTuple):
    """The plan is wanted; ``analyze``: run, beside what happened; ``file_format``: text, html or json."""

    text: str
    analyze: bool
    file_format: ExplainFormat = "text"


class CreateView(NamedTuple):
    """A query gets a name; ``keeps``: a name that is there stays what it is."""

    name: str
    text: str
    replaces: bool = False
    keeps: bool = False


class CreateTable(NamedTuple):
    """The rows of a query are kept under a name as long as the session lasts."""

    name: str
    text: str
    replaces: bool = False
    keeps: bool = False


class CreateMacro(NamedTuple):
    """An expression or a query with parameters gets a name."""

    macro: Macro
    replaces: bool = False
    keeps: bool = False


class Drop(NamedTuple):
    """A name is given up; ``kind``: VIEW, TABLE or MACRO, as it was said."""

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
    """The columns of a name are wanted, or those of a query."""

    name: str
    query: str = ""


class Attach(NamedTuple):
    """A catalog of tables gets a name: a folder, or one of pyiceberg's configuration."""

    name: str
    catalog: str


class Summarize(NamedTuple):
    """A row about each column of a query is wanted."""

    text: str


Statement = (
    Query
    | Explain
    | CreateView
    | CreateTable
    | CreateMacro
    | Drop
    | CopyTo
    | InsertInto
    | ShowTables
    | Describe
    | Attach
    | Summarize
)

_WRITE: Final = "write data.write_parquet(path, mode=...)"
_REGISTER: Final = "write env.register(name, env.sql('SELECT ...'))"
_COMMITS: Final = "each MERGE, UPDATE and DELETE is a commit of its own"
_OPTIMIZE: Final = "write env.optimize(table)"
_PARAMETERS: Final = "write env.sql(text, params=[...])"
_OPTIONS: Final = "write Environment(config={...})"
#: statements that begin with a word, and what to do in their place
STATEMENTS: Final[dict[str, str]] = {
    "EXPLAIN": "write env.sql('SELECT ...').explain()",
    "DESCRIBE": "write env.sql('SELECT * FROM name').schema",
    "DESC": "write env.sql('SELECT * FROM name').schema",
    "SUMMARIZE": "write env.sql('SELECT * FROM name').describe()",
    "CREATE": _REGISTER,
    "DROP": "write env.unregister(name)",
    "ATTACH": "write env.attach(name, catalog)",
    "DETACH": "an attached catalog stays for the session",
    "USE": "write whole names, catalog.schema.table",
    "ANALYZE": "numbers of rows are known from files",
    **dict.fromkeys(("INSERT", "TRUNCATE", "COPY"), _WRITE),
    **dict.fromkeys(("SET", "RESET", "PRAGMA", "LOAD", "INSTALL"), _OPTIONS),
    **dict.fromkeys(("BEGIN", "START", "COMMIT", "ROLLBACK", "END", "ABORT", "SAVEPOINT"), _COMMITS),
    **dict.fromkeys(("PREPARE", "EXECUTE", "DEALLOCATE"), _PARAMETERS),
    **dict.fromkeys(("VACUUM", "OPTIMIZE"), _OPTIMIZE),
    **dict.fromkeys(("CACHE", "UNCACHE", "REFRESH", "CHECKPOINT"), "write data.cache()"),
    **dict.fromkeys(("ALTER", "COMMENT"), "tables change by MERGE, UPDATE and DELETE"),
    **dict.fromkeys(("GRANT", "REVOKE", "LOCK", "KILL", "CALL", "EXPORT", "IMPORT"), "no statement here is like it"),
}

#: statements of sessions, as they are written
_FORMS: Final[dict[str, str]] = {
    "CREATE": "CREATE VIEW name AS query, CREATE TABLE name AS query, or CREATE MACRO name(a, b := 1) AS expression",
    "COPY": "COPY (query) TO 'path' (FORMAT parquet)",
    "DROP": "DROP VIEW name, DROP TABLE name, or DROP MACRO name",
    "INSERT": "INSERT INTO 'path' query",
    "ATTACH": "ATTACH 'folder' AS name",
    "SUMMARIZE": "SUMMARIZE query",
}

#: words behind EXPLAIN in other engines
_OF_OTHERS: Final = ("VERBOSE", "EXTENDED", "FORMATTED", "CODEGEN", "COST", "LOGICAL", "PLAN")
#: formats of plans
_PLANS: Final = ("text", "html", "json")
FORMATS: Final = ("parquet", "csv", "records", "json", "orc", "ipc", "excel")


def split(text: str) -> list[str]:
    """Return the statements of a text without their semicolons; what is only space and comments is none.

    Each stands behind as many lines and blanks as there are before it, so that errors have the places of the text.
    """
    statements, begin, end = [], 0, 0
    for piece in (*pieces(text), ";"):
        if piece == ";":
            statements.append(placed(text, begin, end))
            begin = end + 1
        end += len(piece)
    return [one.rstrip() for one in statements if first_word(one)[0]]


def statement(text: str) -> Statement:
    """Parse one statement; PlanError for one that is incomplete, such as a COPY without a format."""
    parse = _PARSERS.get(first_word(text)[0])
    if parse is None:
        return Query(text)
    with with_excerpts(text):
        found = parse(_words_of(text))
    return Query(text) if found is None else found


def _words_of(text: str) -> Words:
    try:
        return Words.of(text)
    except TokenError as error:
        raise PlanError(f"sql: {of_tokens(error, text)}") from None


def _explain(words: Words) -> Statement:
    place, inner = words.place, words.options()
    options = {} if inner is None else _options("EXPLAIN", inner)
    if "analyse" in options and "analyze" not in options:
        options["analyze"] = options.pop("analyse")
    is_run = options.pop("analyze", False)
    file_format = options.pop("format", "text")
    said = ""
    if options:
        said = f"no option {next(iter(options)).upper()}; there are ANALYZE and FORMAT text|html|json"
    elif not isinstance(is_run, bool):
        said = f"ANALYZE {is_run}; write ANALYZE, or ANALYZE false"
    elif isinstance(file_format, bool) or file_format.lower() not in _PLANS:
        said = f"FORMAT {'' if isinstance(file_format, bool) else f'{file_format} '}is not one of {', '.join(_PLANS)}"
    is_run = words.take("ANALYZE") or words.take("ANALYSE") or is_run is True
    if not said and str(file_format).lower() == "json" and not is_run:
        said = "FORMAT json has what happened beside what was expected; write EXPLAIN (FORMAT json, ANALYZE) query"
    if not said and any(words.begins(one) for one in _OF_OTHERS):
        said = "behind it stands ANALYZE, or a query"
    if not said and words.is_end:
        said = "a query stands behind it, as in EXPLAIN ANALYZE SELECT 1"
    if said:
        raise PlanError(f"sql: {place}EXPLAIN: {said}")
    return Explain(_query(words), is_run, cast("ExplainFormat", str(file_format).lower()))


def _create(words: Words) -> Statement | None:
    replaces = words.take("OR", "REPLACE")
    _ = words.take("TEMP") or words.take("TEMPORARY")
    kind = next((one for one in ("VIEW", "TABLE", "MACRO", "FUNCTION") if words.take(one)), "")
    keeps = words.take("IF", "NOT", "EXISTS")
    if kind and replaces and keeps:
        raise PlanError(f"CREATE {kind}: OR REPLACE and IF NOT EXISTS say two things about a name that is there")
    if kind in ("MACRO", "FUNCTION"):
        macro = _macro(words)
        return None if macro is None else CreateMacro(macro, replaces, keeps)
    name = words.name()
    if not kind or name is None or not words.take("AS") or words.is_end:
        return None
    return (CreateView if kind == "VIEW" else CreateTable)(name, _query(words), replaces, keeps)


def _macro(words: Words) -> Macro | None:
    name, inner = words.name(), words.parentheses()
    if name is None or inner is None or not words.take("AS"):
        return None
    is_table = words.take("TABLE")
    parameters: dict[str, str | None] = {}
    for one in inner.items():
        parameter, default = one.name(), one.rest()
        if parameter is None or (default and not default.startswith((":=", "=>"))):
            raise PlanError(f"CREATE MACRO {name}: the parameters ({inner.rest()}) are not of the form (a, b := 1)")
        if parameter.lower() in parameters:
            raise PlanError(f"CREATE MACRO {name}: the parameter {parameter} is there twice")
        if not default and any(known is not None for known in parameters.values()):
            raise PlanError(f"CREATE MACRO {name}: parameters with a default stand behind those without")
        parameters[parameter.lower()] = default[2:].strip() or None
    return None if words.is_end else Macro(name.lower(), tuple(parameters.items()), words.placed_rest(), is_table)


def _drop(words: Words) -> Statement | None:
    kind = next((one for one in ("VIEW", "TABLE", "MACRO", "FUNCTION") if words.take(one)), "")
    if kind in ("MACRO", "FUNCTION"):
        kind, _ = "MACRO", words.take("TABLE")
    if_exists = words.take("IF", "EXISTS")
    name = words.name()
    return Drop(name, kind, if_exists) if kind and name is not None and words.is_end else None


def _copy(words: Words) -> Statement | None:
    inner = words.parentheses()
    query = _rows_of(words) if inner is None else _query(inner)
    path = words.string() if words.take("TO") else None
    behind = words.parentheses()
    if not query or path is None or not words.is_end:
        return None
    options = {} if behind is None else _options("COPY TO", behind)
    return CopyTo(query, path, _format(options.pop("format", None), path), options)


def _insert(words: Words) -> Statement | None:
    has_into = words.take("INTO")
    written, path = words.rest().split(maxsplit=1)[:1], words.string()
    if has_into and path is not None and not words.is_end:
        return InsertInto(path, _query(words))
    if not written:
        return None
    what = "rows are added to files; write INSERT INTO 'path', and behind it a query"
    raise PlanError(f"INSERT INTO {written[0]}: {what}")


def _show(words: Words) -> Statement | None:
    return ShowTables() if words.take("TABLES") and words.is_end else None


def _describe(words: Words) -> Statement:
    query = _rows_of(words) if words.is_last and words.is_string else None
    if query is not None or words.is_query:
        return Describe("", query or _query(words))
    whole, name = words.rest(), words.name()
    has_parts = False
    while name is not None and words.take("."):
        has_parts, name = True, words.name()
    if name is None or not words.is_end:
        raise PlanError("DESCRIBE: this is no name of a table, no 'file' and no query")
    return Describe(whole if has_parts else name)


def _attach(words: Words) -> Statement | None:
    path = words.string()
    name = words.name() if words.take("AS") else None
    return Attach(name, path) if path is not None and name is not None and words.is_end else None


def _summarize(words: Words) -> Statement | None:
    if words.is_end:
        return None
    name = _rows_of(words) if words.is_last else None
    return Summarize(name or _query(words))


_PARSERS: Final[Mapping[str, Callable[[Words], Statement | None]]] = {
    "EXPLAIN": _explain,
    "CREATE": _create,
    "DROP": _drop,
    "COPY": _copy,
    "INSERT": _insert,
    "SHOW": _show,
    "DESCRIBE": _describe,
    "DESC": _describe,
    "ATTACH": _attach,
    "SUMMARIZE": _summarize,
}


def check_is_whole(text: str) -> None:
    """Raise PlanError for a statement of a session that is not of its form."""
    word, at = first_word(text)
    if word in _FORMS:
        raise PlanError(f"sql: {shown_place(text, at)}{word} is not complete, or another; write {_FORMS[word]}")


def check_is_query(text: str) -> None:
    """Raise NotYetSupportedError, PlanError for a statement that is no query, or has a hint where none is read."""
    stray = stray_hint(text)
    if stray is not None:
        said = "a hint is read behind SELECT alone, as in SELECT /*+ BROADCAST(t) */ DISTINCT k"
        raise PlanError(f"sql: {shown_place(text, stray)}{said}")
    word, at = first_word(text)
    if word == "SHOW":
        known = "SHOW TABLES is no query; write list(env.tables)"
        said = known if statement(text) == ShowTables() else "SHOW is followed by TABLES"
        raise PlanError(f"sql: {shown_place(text, at)}{said}")
    if word in STATEMENTS:
        said = f"{word} (a query begins with SELECT, FROM, WITH or VALUES; {STATEMENTS[word]})"
        raise NotYetSupportedError(f"sql: {shown_place(text, at)}{said}")


def _query(words: Words) -> str:
    """Return the query that the rest of a statement is, "" for none. Raises: PlanError for another statement."""
    other = next((one for one in (*STATEMENTS, "SHOW") if words.begins(one)), None)
    if other is not None:
        raise PlanError(f"sql: {words.place}a query is expected here; {other} stands alone")
    for change in (("MERGE", "INTO"), ("UPDATE",), ("DELETE", "FROM")):
        if words.begins(*change):
            raise PlanError(f"{' '.join(change)}: a statement that changes a table stands alone")
    return "" if words.is_end else words.placed_rest()


def _rows_of(words: Words) -> str | None:
    """Return the query of all rows of the name, or of the file, that comes next."""
    written = words.written()
    is_one = words.string() is not None or words.name() is not None
    return f"SELECT * FROM {written}" if is_one else None  # noqa: S608 - of one author


def _options(what: str, words: Words) -> dict[str, str | bool]:
    """Return the options behind a path: COMPRESSION zstd, OVERWRITE; a word alone is true."""
    options: dict[str, str | bool] = {}
    for one in words.items():
        place, name, value = one.place, one.name(), _value(one)
        if name is None or not one.is_end:
            said = f"the options ({words.rest()}) are not of the form (FORMAT csv, HEADER false)"
            raise PlanError(f"sql: {place}{what}: {said}")
        if name.lower() in options:
            raise PlanError(f"sql: {place}{what}: the option {name.upper()} is there twice")
        is_word = value.lower() in ("", "true", "false")
        options[name.lower()] = value.lower() != "false" if is_word else value
    return options


def _value(words: Words) -> str:
    """Pass the value of an option: a string, what stands in parentheses, or a word."""
    if (text := words.string()) is not None:
        return text
    inner = words.parentheses()
    return words.dotted() if inner is None else inner.rest()


def _format(named: str | bool | None, path: str) -> str:
    wanted = str(named).lower() if named else path.rstrip("/").rpartition(".")[2].lower()
    wanted = "excel" if wanted == "xlsx" else wanted
    if wanted not in FORMATS:
        raise PlanError(f"COPY TO {path!r}: write (FORMAT {'|'.join(FORMATS)}) behind it")
    return wanted
