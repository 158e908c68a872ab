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

import sys
from typing import TYPE_CHECKING, Final

from engine.connectors.json_writer import check_json_sink
from engine.csv.writer import check_csv_sink
from engine.expressions.json_of_values import objects
from engine.statements import statements as kinds
from engine.statements.session import StatementSession

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.api.data_set import DataSet
    from engine.api.environment import Environment
    from engine.choices import SqlDialect

#: largest number of rows shown of a table
_SHOWN_ROWS: Final = 1000


class SqlSession(StatementSession):
    """Runs statements in an Environment; rows as ``file_format``: table, csv, json or arrow.

    dialect: of the queries, None: ours.
    """

    def __init__(self, environment: Environment, file_format: str, dialect: SqlDialect | None = None) -> None:
        super().__init__(environment, dialect)
        self._file_format = file_format

    def run(self, text: str) -> None:
        """Run one statement. Raises: EngineError."""
        match kinds.statement(text):
            case kinds.Explain(text=query, analyze=analyze, file_format=file_format):
                print(self.query(query).explain(analyze=analyze, format=file_format))
            case kinds.ShowTables():
                self.show_tables()
            case kinds.Describe(name=name, query=query):
                self.describe(name, query)
            case kinds.Query() | kinds.Summarize() as asked:
                data = self.rows(asked)
                assert data is not None, "a query has rows"
                _write_rows(data, self._file_format)
            case change:
                self.change(change)

    def show_tables(self) -> None:
        """Print the names of tables."""
        print("\n".join(self.table_names()))

    def describe(self, name: str, query: str = "") -> None:
        """Print the columns of a table, or of a query."""
        for field in self.schema_of(name, query):
            print(f"{field.name}  {field.type}{'' if field.nullable else ' not null'}")


def _write_rows(data: DataSet, file_format: str) -> None:
    if file_format == "table":
        is_terminal = sys.__stdout__ is not None and sys.__stdout__.isatty()
        data.show(_SHOWN_ROWS, width=None if is_terminal else sys.maxsize)
        return
    if file_format == "csv":
        check_csv_sink(data.schema, ",")
    if file_format == "json":
        check_json_sink(data.schema)
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
    """Print rows as ``write_json`` writes them."""
    for batch in table.to_batches():
        lines = objects(batch.schema.names, batch.columns, batch.num_rows, "\n")
        sys.stdout.write("".join(lines.to_pylist()))
