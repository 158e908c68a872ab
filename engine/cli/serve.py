"""``flink-run serve``: a server that tools of any language query over Flight SQL.

    flink-run serve --table orders=orders/ --flight-sql 31337
    flink-run serve -f views.sql --read-only -t cluster

Standard output has one line, the address, once clients may come. It ends with SIGTERM or SIGINT; what runs then is
cancelled.

Held by: tests/flight_sql/test_processes.py
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from engine.cli.setting_argument import parse_option
from engine.cli.submit import add_setting_arguments, install_settings
from engine.errors import ConfigurationError

if TYPE_CHECKING:
    from engine.statements.session import StatementSession

PORT = 31337
#: longest time until a signal is noticed, seconds
_LOOK_S = 0.2


def add_serve_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "--flight-sql", type=int, default=PORT, metavar="PORT", help=f"port of Flight SQL (default: {PORT}; 0: any)"
    )
    parser.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS", help="address to listen at (default: this machine alone)"
    )
    add_table_arguments(parser)
    parser.add_argument("--read-only", action="store_true", help="run queries alone")
    parser.add_argument("--no-token", action="store_true", help="let in all users of this machine (loopback only)")
    add_setting_arguments(parser)


def add_table_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say which tables clients find."""
    parser.add_argument(
        "--table", dest="tables", type=parse_option, action="append", default=[], metavar="NAME=PATH",
        help="Parquet, CSV with a header, or a record data set, under a name",
    )  # fmt: skip
    parser.add_argument("-f", dest="file", type=Path, metavar="FILE", help="statements to run first, such as views")
    parser.add_argument("--dialect", metavar="NAME", help="of the statements (default: Drey's own)")


def run_statements(options: argparse.Namespace, session: StatementSession) -> None:
    """Register the tables, and run the statements of the file. Raises: EngineError."""
    from engine.statements.query import read_table
    from engine.statements.statements import split, statement

    statements = [statement(one) for one in split(_text_of(options.file))] if options.file else []
    for name, path in options.tables:
        session.environment.register(name, read_table(session.environment, path))
    for one in statements:
        if session.rows(one) is None:
            session.change(one)


def serve(options: argparse.Namespace) -> int:
    """Serve until a signal comes; return the exit code. Raises: EngineError."""
    from engine import Environment
    from engine.entrypoint.audit_file import AuditFile
    from engine.flight_sql.service import FlightSqlService
    from engine.statements.session import StatementSession

    if options.target == "spark":
        raise ConfigurationError("serve runs on local and cluster; leave -t spark out")
    install_settings(options)
    is_over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: is_over.set())
    with Environment() as environment:
        run_statements(options, StatementSession(environment, options.dialect))
        log_file = _log_file(options.flight_sql)
        audit = AuditFile(environment.configuration, log_file)
        service = FlightSqlService(
            environment, options.host, options.flight_sql, dialect=options.dialect,
            is_read_only=options.read_only, is_open=options.no_token, note=audit.note,
        )  # fmt: skip
        try:
            print(f"record of callers and statements: {log_file.parent}/{log_file.stem}-audit.log", file=sys.stderr)
            if service.metrics is not None:
                print(f"metrics at {service.metrics.url}", file=sys.stderr)
            token = f" (token: {service.token_file})" if service.token_file else ""
            print(f"Flight SQL at {service.uri}{token}", flush=True)
            # The system may give the signal to a thread of gRPC's, which does not wake this one.
            while not is_over.wait(_LOOK_S):
                pass
            print("shutting down", file=sys.stderr, flush=True)
        finally:
            has_ended = service.close()
            audit.close()
    if not has_ended:
        # Threads of the library wait for clients that take nothing, and would hold the process.
        sys.stderr.flush()
        os._exit(0)
    return 0


def _log_file(port: int) -> Path:
    """Return the log file whose name the record of this server follows; its folder is there."""
    from engine.entrypoint.places import find_places

    places = find_places()
    try:
        places.log.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        reason = f"{places.log} cannot be made, where callers and statements are recorded: {error.strerror}"
        raise ConfigurationError(f"serve: {reason}; name another folder in DREY_LOG_DIR") from None
    return places.log_file("flight-sql", port)


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"serve -f {file}: {getattr(error, 'strerror', None) or error}") from None
