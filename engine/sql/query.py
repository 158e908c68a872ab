"""A query over registered data sets, and over files that it names, as a data set.

    FROM sales                    the data set of env.register("sales", ...)
    FROM 'sales/*.parquet'        what read_table makes of the path
    FROM lake.sales.orders        the table of a catalog, env.attach("lake", ...)
    FROM delta."orders/"          a Delta table

Held by: tests/sql/test_queries.py
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from sqlglot import exp

from engine.api.data_set import DataSet
from engine.api.environment import Environment
from engine.connectors.records_manifest import MANIFEST_NAME
from engine.errors import NotYetSupportedError, PlanError, SchemaError
from engine.files.compression import plain_ending
from engine.files.paths import is_hidden, placed_store_errors
from engine.sql.attached import attached_rows, changing_table, is_delta
from engine.sql.dialect import parsed, sentence
from engine.sql.frames import Context, Session
from engine.sql.other_dialects import OURS, checked_dialect, translated
from engine.sql.query_binder import bind_query, data_set_of
from engine.sql.statements import check_is_query
from engine.sql.table_changes import CHANGES, run_change
from engine.storage.file_systems import file_system_of, is_file, is_folder

#: number that a name has behind it where another column of the query has the name
_NUMBERED: Final = re.compile(r"(?<=\w)#\d+\b")
#: endings of files, by format
_ENDINGS: Final = {
    "csv": (".csv",),
    "json": (".json", ".jsonl", ".ndjson"),
    "ipc": (".arrow", ".arrows", ".feather", ".ipc"),
    "orc": (".orc",),
    "avro": (".avro",),
}


def query_data_set(
    text: str,
    environment: Environment,
    parameters: Sequence[Any] | Mapping[str, Any] | None = None,
    dialect: str | None = None,
) -> DataSet:
    """Return the data set of a query; PlanError, SchemaError or NotYetSupportedError for what cannot be one.

    MERGE, UPDATE and DELETE run at once, and return what they have changed.
    """
    check_is_query(text)
    name = checked_dialect(dialect)
    statement = parsed(text) if name == OURS else translated(text, name)
    if not isinstance(statement, exp.Query | exp.Values | exp.Subquery | exp.Pivot | CHANGES):
        raise NotYetSupportedError(sentence(statement, f"{statement.key.upper()} is no query", text))
    tables = environment.tables
    paths: dict[str, DataSet] = {}

    def table(node: exp.Table) -> DataSet | None:
        if is_delta(environment, node):
            return environment.read_delta(node.name)
        if node.db:
            return attached_rows(environment, node)
        found = _named(node.name, tables)
        if found is not None or not node.this.args.get("quoted") or not _is_path(node, text):
            return found
        if node.name not in paths:
            paths[node.name] = read_table(environment, node.name)
        return paths[node.name]

    session = Session(
        text=text,
        table=table,
        table_names=list(tables),
        from_arrow=environment.from_arrow,
        bind_query=bind_query,
        moment=datetime.now(UTC),
        parameters=parameters,
        functions=environment.functions,
        target=lambda node: changing_table(environment, node, table),
    )
    try:
        if isinstance(statement, CHANGES):
            return run_change(statement, Context(session), environment)
        return data_set_of(statement, Context(session))
    except RecursionError:
        raise PlanError("sql: the query is nested too deep") from None
    except (PlanError, SchemaError) as error:
        said = _NUMBERED.sub("", str(error))
        raise (error if said == str(error) else type(error)(said)) from None


def _named(name: str, tables: Mapping[str, DataSet]) -> DataSet | None:
    if name in tables:
        return tables[name]
    found = [one for one in tables if one.lower() == name.lower()]
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
    read: Callable[[str], DataSet] = getattr(environment, f"read_{file_format}")
    return read(path)
