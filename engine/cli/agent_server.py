"""``flink-run mcp``: tables for an agent, over standard input and output (the Model Context Protocol).

    flink-run mcp --table orders=orders/ --table shops=shops.csv

The agent's program starts it, and ends it by closing its input. It can read the tables, and change nothing.

Held by: tests/mcp_server/test_tools.py
"""

from __future__ import annotations

import argparse

from engine.cli.serve import add_table_arguments, run_statements
from engine.cli.submit import add_setting_arguments, install_settings
from engine.config.durations import parse_duration_ms


def add_mcp_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_table_arguments(parser)
    parser.add_argument("--files", action="store_true", help="let queries name files, too, that this user may read")
    parser.add_argument("--timeout", default="60 s", metavar="TIME", help="time of a query (default: 60 s)")
    add_setting_arguments(parser)


def serve_agent(options: argparse.Namespace) -> int:
    """Serve until the input ends; return the exit code. Raises: EngineError."""
    from engine import Environment
    from engine.mcp_server.tools import Tools, server_of
    from engine.statements.session import StatementSession

    timeout_s = parse_duration_ms(options.timeout) / 1000
    install_settings(options)
    with Environment(config={"sql.files.enabled": options.files}) as environment:
        session = StatementSession(environment, options.dialect)
        run_statements(options, session)
        server_of(Tools(session, timeout_s)).run("stdio")
    return 0
