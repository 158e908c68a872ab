"""StatementSession: what statements do that are no queries, over the names of an Environment.

    session.change(statement)     CREATE, DROP, COPY, INSERT INTO and ATTACH, done; the job that it took, None for none
    session.rows(statement)       the data set of a query, of EXPLAIN, of SUMMARIZE, SHOW TABLES and DESCRIBE
                                  None: the statement makes a change

A shell prints the rows, and a server sends them. Each change is one job at most, which ``execute`` runs: two threads
make their changes one after the other.

Held by: tests/cli/test_sql_statements.py
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import pyarrow as pa

from engine.column_expressions.expressions import col
from engine.csv.style import CsvWriteOptions
from engine.errors import NotYetSupportedError, PlanError
from engine.files.paths import is_hidden, local_path
from engine.near_names import did_you_mean
from engine.sql_values.casts import rounded
from engine.statements import statements as kinds
from engine.statements.attached import attached_table, attached_tables, check_files
from engine.statements.macros import create_macro, drop_macro
from engine.statements.query import check_no_change, format_at, read_table
from engine.storage.file_system import FolderEntry
from engine.storage.file_systems import file_system_of, is_folder
from engine.storage.store_client import use_store_settings

if TYPE_CHECKING:
    from engine.api.data_set import DataSet
    from engine.api.environment import Environment
    from engine.choices import SqlDialect
    from engine.client.job_result import JobResult

#: values of parameters: of $1 and so on, or by name
Parameters = Sequence[Any] | Mapping[str, Any] | None
#: names of COPY's options in ``write_*``, by format
_OPTIONS: Final[dict[str, dict[str, str]]] = {
    "csv": {
        **{name: name for name in ("header", "delimiter", "compression", *CsvWriteOptions.__annotations__)},
        # as in DuckDB
        **{"nullstr": "null_text", "dateformat": "date_format", "timestampformat": "timestamp_format"},
    },
    "parquet": {"compression": "compression", "compression_level": "compression_level"},
    **{name: {"compression": "compression"} for name in ("json", "ipc", "orc")},
    "excel": {"sheet": "sheet", "header": "header"},
}
#: options that are true or false, and those that may be a number
_FLAGS: Final = ("header", "overwrite", "single_file")
_NUMBERS: Final = ("compression_level", "target_file_size")


class StatementSession:
    """Statements one after the other over the same names. ``dialect``: of the queries, None: ours."""

    def __init__(self, environment: Environment, dialect: SqlDialect | None = None) -> None:
        self.environment = environment
        self.dialect = dialect
        self._stored_count = 0

    def rows(self, statement: kinds.Statement, parameters: Parameters = None) -> DataSet | None:
        """Return the rows that a statement asks for, None for a statement that makes a change. Raises: EngineError."""
        environment = self.environment
        self._check_stands_alone(statement)
        match statement:
            case kinds.Query(text=query):
                kinds.check_is_whole(query)
                return self.query(query, parameters)
            case kinds.Explain(text=query, analyze=analyze, file_format=file_format):
                plan = self.query(query, parameters).explain(analyze=analyze, format=file_format)
                return environment.from_arrow(pa.table({"plan": [plan]}))
            case kinds.ShowTables():
                return environment.from_arrow(pa.table({"name": pa.array(self.table_names(), pa.string())}))
            case kinds.Describe(name=name, query=query):
                fields = self.schema_of(name, query)
                columns = {
                    "name": pa.array(fields.names, pa.string()),
                    "type": pa.array([str(field.type) for field in fields], pa.string()),
                    "nullable": pa.array([field.nullable for field in fields], pa.bool_()),
                }
                return environment.from_arrow(pa.table(columns))
            case kinds.Summarize(text=query):
                return self.query(query, parameters).describe()
        return None

    def change(self, statement: kinds.Statement, parameters: Parameters = None) -> JobResult | None:
        """Make the change of a statement; return its job, None where it took none. Raises: EngineError."""
        environment = self.environment
        self._check_stands_alone(statement)
        match statement:
            case kinds.CreateMacro(macro=macro) as created:
                environment.statements.clear()
                create_macro(environment.macros, macro, replaces=created.replaces, keeps=created.keeps)
            case kinds.CreateView() as view:
                if self._is_wanted("VIEW", view):
                    environment.register(view.name, self.query(view.text, parameters))
            case kinds.CreateTable() as table:
                return self._store(table, parameters) if self._is_wanted("TABLE", table) else None
            case kinds.Drop() as drop:
                self._drop(drop)
            case kinds.CopyTo() as copy:
                return self._copy(copy, parameters)
            case kinds.InsertInto() as insert:
                return self._insert(insert, parameters)
            case kinds.Attach(name=name, catalog=catalog):
                if name in environment.catalogs:
                    raise PlanError(f"ATTACH {catalog!r} AS {name}: this name is attached already; write another one")
                check_files(environment, catalog)
                environment.attach(name, catalog)
        return None

    def _check_stands_alone(self, statement: kinds.Statement) -> None:
        """Raise PlanError for a change within another statement."""
        if not isinstance(statement, kinds.Query):
            check_no_change(getattr(statement, "text", ""), self.dialect)

    def query(self, text: str, parameters: Parameters = None) -> DataSet:
        """Return the data set of a query."""
        return self.environment.sql(text, parameters, dialect=self.dialect)

    def table_names(self) -> list[str]:
        """Return the names of tables, those of attached catalogs behind the registered ones."""
        return [*sorted(self.environment.tables), *attached_tables(self.environment)]

    def schema_of(self, name: str, query: str = "") -> pa.Schema:
        """Return the columns of a table, or of a query. Raises: PlanError for a name that is none."""
        if query:
            return self.query(query).schema
        tables = self.environment.tables
        data_set = tables[name] if name in tables else attached_table(self.environment, name)
        if data_set is None:
            known = did_you_mean(name, tables) or f"; there are: {', '.join(sorted(tables)) or 'none'}"
            raise PlanError(f"DESCRIBE {name}: there is no such table{known}")
        return data_set.schema

    def _is_wanted(self, kind: str, made: kinds.CreateView | kinds.CreateTable) -> bool:
        """Return whether a name is to be given. Raises: PlanError for one that is there, and is to stay."""
        if made.name not in self.environment.tables or made.replaces:
            return True
        if not made.keeps:
            raise PlanError(f"CREATE {kind} {made.name}: it is there already; write CREATE OR REPLACE {kind}")
        return False

    def _drop(self, drop: kinds.Drop) -> None:
        if drop.kind == "MACRO":
            self.environment.statements.clear()
            drop_macro(self.environment.macros, drop.name, drop.if_exists)
        elif drop.name in self.environment.tables:
            self.environment.unregister(drop.name)
        elif not drop.if_exists:
            raise PlanError(f"DROP {drop.kind} {drop.name}: there is no such table; write DROP {drop.kind} IF EXISTS")

    def _store(self, table: kinds.CreateTable, parameters: Parameters) -> JobResult:
        data = self.query(table.text, parameters)
        self._stored_count += 1
        path = self.environment.temporary_folder() / f"table-{self._stored_count}"
        data.write_records(path)
        result = self.environment.execute(f"CREATE TABLE {table.name}")
        self.environment.register(table.name, read_table(self.environment, str(path)))
        return result

    def _copy(self, copy: kinds.CopyTo, parameters: Parameters) -> JobResult:
        check_files(self.environment, copy.path)
        options = _write_options(copy.file_format, copy.options)
        use_store_settings(self.environment.configuration.storage_texts())
        place = local_path(copy.path, "COPY TO")
        if file_system_of(place).find(place) is not None and not options.get("overwrite") and "mode" not in options:
            adds = "" if copy.file_format == "records" or options.get("single_file") else ", (MODE append) to add to it"
            raise PlanError(f"COPY TO {copy.path!r}: it exists already; write (OVERWRITE true) to replace it{adds}")
        data = self.query(copy.text, parameters)
        if copy.file_format == "csv":
            data.write_csv(copy.path, **{"header": True, **options})
        else:
            getattr(data, f"write_{copy.file_format}")(copy.path, **options)
        return self.environment.execute(f"COPY TO {copy.path}")

    def _insert(self, insert: kinds.InsertInto, parameters: Parameters) -> JobResult:
        """Add rows to files; columns go by their places, and become of the types that are there."""
        use_store_settings(self.environment.configuration.storage_texts())
        check_files(self.environment, insert.path)
        folder = local_path(insert.path, "INSERT INTO")
        if not is_folder(folder):
            raise PlanError(f"INSERT INTO {insert.path!r}: no such folder; COPY (query) TO 'path' makes one")
        file_format = format_at(insert.path)
        if file_format not in _OPTIONS:
            raise NotYetSupportedError(f"INSERT INTO {insert.path!r}, {file_format}")
        there = read_table(self.environment, insert.path).schema
        data = self.query(insert.text, parameters)
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
        return self.environment.execute(f"INSERT INTO {insert.path}")


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
        known |= {name: name for name in ("partition_by", "mode", "target_file_size", "single_file")}
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise PlanError(f"COPY TO: {file_format} has no option {unknown[0].upper()}; it has {', '.join(known).upper()}")
    for name, value in options.items():
        takes_word = name not in _FLAGS
        if isinstance(value, bool) == takes_word:
            wanted = "a value" if takes_word else "true or false"
            raise PlanError(f"COPY TO: {name.upper()} {str(value).lower()}: it takes {wanted}")
    return {
        known[name]: _names(value) if name == "partition_by" else _value(name, value) for name, value in options.items()
    }


def _names(value: str | bool) -> list[str]:
    """Return the columns of PARTITION_BY a, or (a, "b c")."""
    return [name.strip().strip('"') for name in str(value).strip("()").split(",")]


def _value(name: str, value: str | bool) -> str | bool | int:
    return int(value) if name in _NUMBERS and isinstance(value, str) and value.isdecimal() else value
