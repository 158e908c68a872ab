"""``flink-run sql``: statements of a command line or a file, one after the other.

    flink-run sql --table orders=orders.parquet -e "SELECT count(*) FROM orders"
    flink-run sql -f nightly.sql --format csv > report.csv

Rows go to standard output: as a table for people (the first 1,000), or all of them as CSV, JSON lines or an Arrow
stream. Messages go to standard error. The first statement that fails ends the command with 1.

Held by: tests/cli/test_sql_statements.py
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine.cli.submit import add_setting_arguments, install_settings, parse_option
from engine.errors import ConfigurationError, PlanError

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.api.data_set import DataSet
    from engine.api.environment import Environment

FORMATS: Final = ("table", "csv", "json", "arrow")
#: rows of a table for people
_SHOWN_ROWS: Final = 1000


def add_sql_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command understands."""
    parser.add_argument("-e", dest="texts", metavar="QUERY", action="append", default=[], help="statements to run")
    parser.add_argument("-f", dest="file", type=Path, metavar="FILE", help="a file of statements; - is standard input")
    parser.add_argument(
        "--table",
        dest="tables",
        type=parse_option,
        action="append",
        default=[],
        metavar="NAME=PATH",
        help="Parquet, CSV with a header, or a record data set, under a name",
    )
    parser.add_argument("--format", choices=FORMATS, default="table", help="how rows are written (default: table)")
    add_setting_arguments(parser)


def run_sql(options: argparse.Namespace) -> int:
    """Run the statements; return the exit code. Raises: EngineError."""
    from engine import Environment  # noqa: PLC0415 - loads the whole engine; other commands start without it
    from engine.sql.query import read_table  # noqa: PLC0415
    from engine.sql.statements import split, statement  # noqa: PLC0415

    text = "\n;".join([*options.texts, *([_text_of(options.file)] if options.file else [])])
    statements = [statement(one) for one in split(text)]
    if not statements:
        raise ConfigurationError("sql: nothing to run; give -e QUERY or -f FILE")
    install_settings(options)
    with Environment() as environment:
        for name, path in options.tables:
            environment.register(name, read_table(environment, path))
        for one in statements:
            _run(environment, one, options.format)
    return 0


def _text_of(file: Path) -> str:
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"sql -f {file}: {getattr(error, 'strerror', None) or error}") from None


def _run(environment: Environment, one: object, file_format: str) -> None:
    from engine.sql import statements as kinds  # noqa: PLC0415

    match one:
        case kinds.Query(text=text):
            _write_rows(environment.sql(text), file_format)
        case kinds.Explain(text=text, analyze=analyze):
            print(environment.sql(text).explain(analyze=analyze))
        case kinds.CreateView(name=name, text=text):
            environment.register(name, environment.sql(text))
        case kinds.CopyTo(text=text, path=path, file_format=written):
            _copy(environment, environment.sql(text), path, written)
        case kinds.ShowTables():
            print("\n".join(sorted(environment.tables)))
        case kinds.Describe(name=name):
            if name not in environment.tables:
                known = ", ".join(sorted(environment.tables)) or "none"
                raise PlanError(f"DESCRIBE {name}: there is no such table; there are: {known}")
            for field in environment.tables[name].schema:
                print(f"{field.name}  {field.type}{'' if field.nullable else ' not null'}")


def _copy(environment: Environment, data: DataSet, path: str, file_format: str) -> None:
    if file_format == "csv":
        data.write_csv(path, header=True)
    else:
        # write_parquet, write_records and so on
        getattr(data, f"write_{file_format}")(path)
    environment.execute(f"COPY TO {path}")


def _write_rows(data: DataSet, file_format: str) -> None:
    if file_format == "table":
        data.show(_SHOWN_ROWS)
        return
    table = data.to_arrow()
    sys.stdout.flush()
    if file_format == "json":
        _write_json(table)
        return
    import pyarrow as pa  # noqa: PLC0415 - the engine has loaded it
    import pyarrow.csv as pa_csv  # noqa: PLC0415

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
            print(json.dumps(row, default=str, ensure_ascii=False))
