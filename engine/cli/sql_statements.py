"""``flink-run sql``: statements of a command line or a file, one after the other.

    flink-run sql --table orders=orders.parquet -e "SELECT count(*) FROM orders"
    flink-run sql -f nightly.sql --format csv > report.csv
    echo "SELECT 1" | flink-run sql
    flink-run sql                     a shell, on a terminal

Rows go to standard output: as a table for people (the first 1,000), or all of them as CSV, JSON lines or an Arrow
stream. Messages go to standard error. The first statement that fails ends the command with 1.

Held by: tests/cli/test_sql_statements.py
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

from engine.cli.setting_argument import parse_option
from engine.cli.submit import add_setting_arguments, install_settings
from engine.errors import ConfigurationError

FORMATS: Final = ("table", "csv", "json", "arrow")


def add_sql_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
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
    parser.add_argument(
        "--dialect",
        metavar="NAME",
        help="of the queries: duckdb, postgres, spark, snowflake, bigquery or trino (default: Drey's own)",
    )
    add_setting_arguments(parser)


def run_sql(options: argparse.Namespace) -> int:
    """Run the statements; return the exit code. Raises: EngineError."""
    from engine import Environment
    from engine.cli.sql_session import SqlSession
    from engine.statements.query import read_table
    from engine.statements.statements import split, statement

    has_none = not (options.texts or options.file)
    file = Path("-") if has_none and not sys.stdin.isatty() else options.file
    texts = [*options.texts, *([_text_of(file)] if file else [])]
    statements = [one for text in texts for one in split(text)]
    for one in statements:
        statement(one)  # what is wrong with a later one is said before the first one runs
    is_shell = has_none and sys.stdin.isatty() and sys.stdout.isatty()
    if not statements and not is_shell:
        said = "give -e QUERY or -f FILE, write statements on standard input, or call it on a terminal"
        raise ConfigurationError(f"sql: nothing to run; {said}")
    install_settings(options)
    with Environment() as environment:
        for name, path in options.tables:
            environment.register(name, read_table(environment, path))
        session = SqlSession(environment, options.format, options.dialect)
        if is_shell:
            from engine.cli.sql_shell import run_shell

            return run_shell(session)
        for one in statements:
            session.run(one)
    return 0


def _text_of(file: Path) -> str:
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"sql -f {file}: {getattr(error, 'strerror', None) or error}") from None
