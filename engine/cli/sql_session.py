"""Statements one after the other over the same names: what ``flink-run sql`` runs, from a command line or a shell.

    CREATE VIEW name AS query     a name for the query
    CREATE TABLE name AS query    its rows, kept in files until the session ends
    CREATE MACRO name(a) AS ...   an expression or a query with parameters
    DROP VIEW|TABLE|MACRO name    the name is free again
    COPY (query) TO 'path'        its rows, written
    INSERT INTO 'path' query      its rows, added to what is there

Rows and plans go to standard output.

Held by: tests/cli/test_sql_statements.py
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from engine.column_expressions.expressions import col
from engine.csv.writer import check_csv_sink
from engine.errors import NotYetSupportedError, PlanError
from engine.files.paths import is_hidden, local_path
from engine.sql_values.casts import rounded
from engine.statements import statements as kinds
from engine.statements.attached import attached_table, attached_tables
from engine.statements.macros import create_macro, drop_macro
from engine.statements.query import format_at, read_table
from engine.storage.file_system import FolderEntry
from engine.storage.file_systems import file_system_of, is_folder
from engine.storage.store_client import use_store_settings

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.api.data_set import DataSet
    from engine.api.environment import Environment

#: largest number of rows shown of a table
_SHOWN_ROWS: Final = 1000
#: names of COPY's options in ``write_*``, by format
_OPTIONS: Final[dict[str, dict[str, str]]] = {
    "csv": {"header": "header", "delimiter": "delimiter", "compression": "compression"},
    "parquet": {"compression": "compression", "compression_level": "compression_level"},
    **{name: {"compression": "compression"} for name in ("json", "ipc", "orc")},
}


class SqlSession:
    """Runs statements in an Environment; rows as ``file_format``: table, csv, json or arrow.

    dialect: of the queries, None: ours.
    """

    def __init__(self, environment: Environment, file_format: str, dialect: str | None = None) -> None:
        self.environment = environment
        self._dialect = dialect
        self._file_format = file_format
        self._stored_count = 0

    def run(self, text: str) -> None:
        """Run one statement. Raises: EngineError."""
        environment = self.environment
        match kinds.statement(text):
            case kinds.Query(text=query):
                kinds.check_is_whole(query)
                _write_rows(self._query(query), self._file_format)
            case kinds.Explain(text=query, analyze=analyze, file_format=file_format):
                print(self._query(query).explain(analyze=analyze, format=file_format))
            case kinds.CreateMacro(macro=macro) as created:
                create_macro(environment.macros, macro, replaces=created.replaces, keeps=created.keeps)
            case kinds.CreateView() as view:
                if self._is_wanted("VIEW", view):
                    environment.register(view.name, self._query(view.text))
            case kinds.CreateTable() as table:
                if self._is_wanted("TABLE", table):
                    self._store(table)
            case kinds.Drop() as drop:
                self._drop(drop)
            case kinds.CopyTo() as copy:
                self._copy(copy)
            case kinds.InsertInto() as insert:
                self._insert(insert)
            case kinds.ShowTables():
                self.show_tables()
            case kinds.Describe(name=name):
                self.describe(name)
            case kinds.Attach(name=name, catalog=catalog):
                if name in environment.catalogs:
                    raise PlanError(f"ATTACH {catalog!r} AS {name}: this name is attached already; write another one")
                environment.attach(name, catalog)
            case kinds.Summarize(text=query):
                _write_rows(self._query(query).describe(), self._file_format)

    def show_tables(self) -> None:
        """Print the names of tables."""
        print("\n".join([*sorted(self.environment.tables), *attached_tables(self.environment)]))

    def describe(self, name: str) -> None:
        """Print the columns of a table."""
        tables = self.environment.tables
        data_set = tables[name] if name in tables else attached_table(self.environment, name)
        if data_set is None:
            close = get_close_matches(name, tables)
            known = (
                f"did you mean {' or '.join(close)}?" if close else f"there are: {', '.join(sorted(tables)) or 'none'}"
            )
            raise PlanError(f"DESCRIBE {name}: there is no such table; {known}")
        for field in data_set.schema:
            print(f"{field.name}  {field.type}{'' if field.nullable else ' not null'}")

    def _query(self, text: str) -> DataSet:
        return self.environment.sql(text, dialect=self._dialect)

    def _is_wanted(self, kind: str, made: kinds.CreateView | kinds.CreateTable) -> bool:
        """Return whether a name is to be given. Raises: PlanError for one that is there, and is to stay."""
        if made.name not in self.environment.tables or made.replaces:
            return True
        if not made.keeps:
            raise PlanError(f"CREATE {kind} {made.name}: it is there already; write CREATE OR REPLACE {kind}")
        return False

    def _drop(self, drop: kinds.Drop) -> None:
        if drop.kind == "MACRO":
            drop_macro(self.environment.macros, drop.name, drop.if_exists)
        elif drop.name in self.environment.tables:
            self.environment.unregister(drop.name)
        elif not drop.if_exists:
            raise PlanError(f"DROP {drop.kind} {drop.name}: there is no such table; write DROP {drop.kind} IF EXISTS")

    def _store(self, table: kinds.CreateTable) -> None:
        data = self._query(table.text)
        self._stored_count += 1
        path = self.environment.temporary_folder() / f"table-{self._stored_count}"
        data.write_records(path)
        self.environment.execute(f"CREATE TABLE {table.name}")
        self.environment.register(table.name, read_table(self.environment, str(path)))

    def _copy(self, copy: kinds.CopyTo) -> None:
        options = _write_options(copy.file_format, copy.options)
        use_store_settings(self.environment.configuration.storage_texts())
        place = local_path(copy.path, "COPY TO")
        if file_system_of(place).find(place) is not None and not options.get("overwrite") and "mode" not in options:
            adds = "" if copy.file_format == "records" else ", (MODE append) to add to it"
            raise PlanError(f"COPY TO {copy.path!r}: it exists already; write (OVERWRITE true) to replace it{adds}")
        data = self._query(copy.text)
        if copy.file_format == "csv":
            data.write_csv(copy.path, **{"header": True, **options})
        else:
            getattr(data, f"write_{copy.file_format}")(copy.path, **options)
        self.environment.execute(f"COPY TO {copy.path}")

    def _insert(self, insert: kinds.InsertInto) -> None:
        """Add rows to files; columns go by their places, and become of the types that are there."""
        use_store_settings(self.environment.configuration.storage_texts())
        folder = local_path(insert.path, "INSERT INTO")
        if not is_folder(folder):
            raise PlanError(f"INSERT INTO {insert.path!r}: no such folder; COPY (query) TO 'path' makes one")
        file_format = format_at(insert.path)
        if file_format not in _OPTIONS:
            raise NotYetSupportedError(f"INSERT INTO {insert.path!r}, {file_format}")
        there = read_table(self.environment, insert.path).schema
        data = self._query(insert.text)
        if len(data.columns) != len(there):
            raise PlanError(
                f"INSERT INTO {insert.path!r}: the query has {len(data.columns)} columns, "
                f"there are {len(there)}: {', '.join(there.names)}"
            )
        columns = [
            rounded(col(one.name), one.type, field.type).cast(field.type).alias(field.name)
            for one, field in zip(data.schema, there, strict=True)
        ]
        options: dict[str, Any] = {"partition_by": _folder_columns(folder)} if _folder_columns(folder) else {}
        options |= {"header": True} if file_format == "csv" else {}
        getattr(data.select(*columns), f"write_{file_format}")(insert.path, mode="append", **options)
        self.environment.execute(f"INSERT INTO {insert.path}")


def _folder_columns(folder: str) -> list[str]:
    """Return the columns whose values are in the names of folders, such as year=2026/month=3."""
    found = []
    while inner := next((each for each in _entries(folder) if each.is_folder and _names_value(each.name)), None):
        found.append(unquote(inner.name.partition("=")[0]))
        folder = inner.path
    return found


def _entries(folder: str) -> Iterator[FolderEntry]:
    return file_system_of(folder).entries(folder)


def _names_value(name: str) -> bool:
    return "=" in name and not is_hidden(name)


def _write_options(file_format: str, options: Mapping[str, str | bool]) -> dict[str, Any]:
    known = {"overwrite": "overwrite", **_OPTIONS.get(file_format, {})}
    if file_format != "records":
        known |= {"partition_by": "partition_by", "mode": "mode", "target_file_size": "target_file_size"}
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise PlanError(f"COPY TO: {file_format} has no option {unknown[0].upper()}; it has {', '.join(known).upper()}")
    for name, value in options.items():
        takes_word = name not in ("header", "overwrite")
        if isinstance(value, bool) == takes_word:
            wanted = "a value" if takes_word else "true or false"
            raise PlanError(f"COPY TO: {name.upper()} {str(value).lower()}: it takes {wanted}")
    return {known[name]: _names(value) if name == "partition_by" else _value(value) for name, value in options.items()}


def _names(value: str | bool) -> list[str]:
    """Return the columns of PARTITION_BY a, or (a, "b c")."""
    return [name.strip().strip('"') for name in str(value).strip("()").split(",")]


def _value(value: str | bool) -> str | bool | int:
    return int(value) if isinstance(value, str) and value.isdecimal() else value


def _write_rows(data: DataSet, file_format: str) -> None:
    if file_format == "table":
        is_terminal = sys.__stdout__ is not None and sys.__stdout__.isatty()
        data.show(_SHOWN_ROWS, width=None if is_terminal else sys.maxsize)
        return
    if file_format == "csv":
        check_csv_sink(data.schema, ",")
    table = data.to_arrow()
    sys.stdout.flush()
    if file_format == "json":
        _write_json(table)
        return
    import pyarrow as pa
    import pyarrow.csv as pa_csv

    sink = sys.stdout.buffer
    if file_format == "csv":
        pa_csv.write_csv(table, sink)
    else:
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    sink.flush()


def _write_json(table: pa.Table) -> None:
    for batch in table.to_batches():
        for row in batch.to_pylist():
            print(json.dumps(_without_nan(row), default=str, ensure_ascii=False))


def _without_nan(value: Any) -> Any:
    """Return a value with null for floats that JSON has not, as ``write_json`` writes them."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _without_nan(one) for key, one in value.items()}
    return [_without_nan(one) for one in value] if isinstance(value, list) else value
