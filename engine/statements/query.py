"""A query over registered data sets, and over files that it names, as a data set.

    FROM sales                    the data set of env.register("sales", ...); drey.main.sales and main.sales as well
    FROM 'sales/*.parquet'        what read_table makes of the path
    FROM read_csv('a.csv', ...)   a call of Environment, with options
    FROM lake.sales.orders        the table of a catalog, env.attach("lake", ...)
    FROM delta."orders/"          a Delta table

Held by: tests/sql/test_queries.py
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from sqlglot import exp

from engine.api.data_set import DataSet
from engine.api.environment import Environment
from engine.api.kept_statements import Repeats
from engine.connectors.records_manifest import MANIFEST_NAME
from engine.dialects.clauses import check_clauses
from engine.dialects.excerpts import with_excerpts
from engine.dialects.parser import check_names, parsed, shown_place
from engine.errors import EngineError, PlanError, SchemaError
from engine.files.compression import plain_ending
from engine.files.paths import is_hidden, placed_store_errors
from engine.lowering.logical_node import reachable
from engine.sql.expression_binder import Expressions
from engine.sql.frames import Context, Session
from engine.sql.query_binder import bind_query, data_set_of
from engine.statements import statements as kinds
from engine.statements.attached import attached_rows, changing_table, check_files, delta_rows, is_delta, is_main, renew
from engine.statements.information_schema import information_schema, is_information_schema
from engine.statements.macros import create_macro, drop_macro, expanded
from engine.statements.parameters import parameters_of
from engine.statements.reader_calls import named_options, reader_rows
from engine.statements.statements import check_is_query
from engine.statements.text_pieces import first_word
from engine.statements.versions import version_of
from engine.storage.file_systems import file_system_of, is_file, is_folder

#: statements that change a table
_CHANGES: Final = exp.Merge | exp.Update | exp.Delete
#: characters of a query that is kept, and types of parameters whose values a key shows
_KEPT_LENGTH: Final = 1 << 16
_KEPT_TYPES: Final = {type(None), bool, int, float, str, bytes, Decimal, date, datetime, time, timedelta}
#: number that a name has behind it where another column of the query has the name
_NUMBERED: Final = re.compile(r"(?<=\w)#\d+\b")
#: endings of files, by format
_ENDINGS: Final = {
    "csv": (".csv",),
    "json": (".json", ".jsonl", ".ndjson"),
    "ipc": (".arrow", ".arrows", ".feather", ".ipc"),
    "orc": (".orc",),
    "avro": (".avro",),
    "excel": (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"),
}
#: endings of files that say nothing of columns
_UNCLEAR: Final = (".txt", ".tsv", ".tab", ".dat", ".log")


def query_data_set(
    text: str,
    environment: Environment,
    parameters: Sequence[Any] | Mapping[str, Any] | None = None,
    dialect: str | None = None,
) -> DataSet:
    """Return the data set of a query; PlanError, SchemaError or NotYetSupportedError for what cannot be one.

    MERGE, UPDATE and DELETE run at once, and return what they have changed; a registered name that they change has the
    new rows then. EXPLAIN is a row with the plan, CREATE and DROP MACRO one with the name. Errors that name a place of
    the text have its line as their excerpt.
    """
    key = _statement_key(text, parameters, dialect)
    node = None if key is None else environment.statements.find(key)
    if node is not None:
        return DataSet(environment, node)
    with with_excerpts(text):
        return _done_or_bound(text, environment, parameters, dialect, key)


def _statement_key(
    text: str, parameters: Sequence[Any] | Mapping[str, Any] | None, dialect: str | None
) -> Hashable | None:
    """Return the key of a query among those that are kept; None: a long text, or parameters of other types."""
    names, values = [], () if parameters is None else parameters
    if isinstance(values, Mapping):
        names, values = list(values), list(values.values())
    if len(text) > _KEPT_LENGTH or not isinstance(values, list | tuple) or not {*map(type, values)} <= _KEPT_TYPES:
        return None
    return text, dialect, *names, *((type(each), repr(each)) for each in values)


def _done_or_bound(
    text: str,
    environment: Environment,
    parameters: Sequence[Any] | Mapping[str, Any] | None,
    dialect: str | None,
    key: Hashable | None,
) -> DataSet:
    done = _of_environment(text, environment, parameters, dialect)
    if done is not None:
        return done
    check_is_query(text)
    statement = parsed(text) if dialect is None else _in_dialect(text, dialect)
    check_clauses(statement, text)
    named_options(statement)
    values = parameters_of(statement, parameters, text)
    statement = expanded(statement, environment.macros, text)
    check_names(statement, text)
    if not isinstance(statement, exp.Query | exp.Values | exp.Subquery | exp.Pivot | _CHANGES):
        word, at = first_word(text)
        said = f"{word} alone is no query; a query begins with SELECT, FROM, WITH or VALUES"
        raise PlanError(f"sql: {shown_place(text, at)}{said}")
    repeats, generation = Repeats(), environment.statements.generation
    table = _reader_of(environment, text, values, repeats)
    session = Session(
        text=text,
        table=table,
        table_names=list(environment.tables),
        from_arrow=environment.from_arrow,
        bind_query=bind_query,
        expressions=Expressions,
        moment=datetime.now(UTC),
        parameters=values,
        functions=environment.functions,
        target=lambda node: changing_table(environment, node, table),
        repeats=repeats,
    )
    try:
        if isinstance(statement, _CHANGES):
            from engine.statements.table_changes import run_change

            done = run_change(statement, Context(session), environment)
            if not statement.this.db:
                renew(environment, _named(statement.this.name, environment.tables))
            return done
        data = data_set_of(statement, Context(session))
        if key is not None and repeats.is_sure and all(node.cached is None for node in reachable([data._node])):
            environment.statements.keep(key, data._node, generation)
        return data
    except RecursionError:
        raise PlanError("sql: the query is nested too deep") from None
    except (PlanError, SchemaError) as error:
        said = _NUMBERED.sub("", str(error))
        raise (error if said == str(error) else type(error)(said)) from None


def is_change(text: str, dialect: str | None = None) -> bool:
    """Return whether a statement changes a table as it is bound: MERGE, UPDATE and DELETE, also behind WITH."""
    word = first_word(text)[0]
    if word != "WITH":
        return word in ("MERGE", "UPDATE", "DELETE")
    try:
        return isinstance(parsed(text) if dialect is None else _in_dialect(text, dialect), _CHANGES)
    except EngineError:  # its binding says what is wrong
        return False


def check_no_change(text: str, dialect: str | None = None) -> None:
    """Raise PlanError for a change in the place of a query: its binding would make it."""
    if is_change(text, dialect):
        raise PlanError("sql: a statement that changes a table stands alone, also behind WITH")


def _in_dialect(text: str, dialect: str) -> exp.Expr:
    """Return the one statement of a text in a dialect that is named."""
    from engine.dialects.translation import OURS, checked_dialect, translated

    name = checked_dialect(dialect)
    return parsed(text) if name == OURS else translated(text, name)


def _reader_of(
    environment: Environment, text: str, values: Mapping[str, Any], repeats: Repeats
) -> Callable[[exp.Table], DataSet | None]:
    """Return the function from a table of FROM to its rows, None for a name that is none."""
    tables = environment.tables
    paths: dict[str, DataSet] = {}

    def table(node: exp.Table) -> DataSet | None:
        if isinstance(node.this, exp.Anonymous):
            repeats.end()
            return reader_rows(environment, node, values, text)
        version = version_of(node, values, text)
        is_own = not node.db or is_main(environment, node)
        found = _named(node.name, tables) if is_own else None
        if found is None:
            repeats.end()  # files and catalogs are looked at for each query
        if is_delta(environment, node):
            return delta_rows(environment, node, version, text)
        if is_information_schema(node):
            return information_schema(environment, node)
        if not is_own:
            return attached_rows(environment, node, version)
        if found is not None or not node.this.args.get("quoted") or not _is_path(node, text):
            return found
        check_files(environment, node.name)
        if node.name not in paths:
            paths[node.name] = read_table(environment, node.name)
        return paths[node.name]

    return table


def _of_environment(
    text: str,
    environment: Environment,
    parameters: Sequence[Any] | Mapping[str, Any] | None,
    dialect: str | None,
) -> DataSet | None:
    """Return the row of a statement about a query or a macro, None for another statement."""
    if first_word(text)[0] not in ("EXPLAIN", "CREATE", "DROP"):
        return None
    match kinds.statement(text):
        case kinds.Explain(text=query, analyze=analyze, file_format=file_format):
            check_no_change(query, dialect)
            data = query_data_set(query, environment, parameters, dialect)
            return _row(environment, "plan", data.explain(analyze=analyze, format=file_format))
        case kinds.CreateMacro() | kinds.Drop(kind="MACRO") if parameters:
            raise PlanError("sql: params are of queries and changes; a statement about a macro takes none")
        case kinds.CreateMacro(macro=macro) as created:
            environment.statements.clear()
            create_macro(environment.macros, macro, replaces=created.replaces, keeps=created.keeps)
            return _row(environment, "created", macro.name)
        case kinds.Drop(name=name, kind="MACRO", if_exists=if_exists):
            environment.statements.clear()
            drop_macro(environment.macros, name, if_exists)
            return _row(environment, "dropped", name)
    return None


def _row(environment: Environment, name: str, value: str) -> DataSet:
    return environment.from_arrow(pa.table({name: [value]}))


def _named(name: str, tables: Mapping[str, DataSet]) -> DataSet | None:
    if name in tables:
        return tables[name]
    found = [one for one in list(tables) if one.lower() == name.lower()]  # another thread may register one
    return tables[found[0]] if len(found) == 1 else None


def _is_path(node: exp.Table, text: str) -> bool:
    """Return whether the name of a table stands in single quotes."""
    start = node.this.meta.get("start")
    return start is not None and text[start : start + 1] == "'"


def format_at(path: str) -> str:
    """Return the format of what lies at a path: by its ending, or that of a file in it; records by their manifest."""
    if is_file(f"{path}/{MANIFEST_NAME}"):
        return "records"
    named = _format_of(path)
    if named or not is_folder(path):
        return named or "parquet"
    return _format_of(_first_file(path)) or "parquet"


def _format_of(path: str) -> str:
    """Return the format that a name says, "" for none or for Parquet."""
    return next((name for name, endings in _ENDINGS.items() if plain_ending(path) in endings), "")


def _first_file(folder: str) -> str:
    """Return the name of a file that readers find in a folder, or in folders of values within it; "" for none."""
    found = (each for each in file_system_of(folder).entries(folder) if not is_hidden(each.name))
    entries = sorted(found, key=lambda each: each.name)
    file = next((each.name for each in entries if each.is_file), "")
    inner = next((each for each in entries if "=" in each.name and each.is_folder), None)
    return file or ("" if inner is None else _first_file(inner.path))


def read_table(environment: Environment, path: str) -> DataSet:
    """Return the data set at a path."""
    with placed_store_errors("sql"):
        file_format = format_at(path)
    if file_format == "csv":
        return environment.read_csv(path, header=True)
    if plain_ending(path) in _UNCLEAR:
        raise PlanError(
            f"sql: FROM {path!r}: the ending does not say the format; write read_csv({path!r}, delimiter = '...'),"
            f" read_fwf or read_text({path!r})"
        )
    read: Callable[[str], DataSet] = getattr(environment, f"read_{file_format}")
    return read(path)
