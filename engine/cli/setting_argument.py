"""``-D key=value``: a setting on the command line, for commands that run jobs, ask a JobManager or read what it stores.

Held by: tests/cli/test_main.py
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from engine.config.command_line import CommandLine, given_once, install_command_line


def parse_option(text: str) -> tuple[str, str]:
    """Return key and value of ``key=value``."""
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise argparse.ArgumentTypeError(f"{text!r} is not key=value")
    return key, value


def add_setting_argument(parser: argparse.ArgumentParser) -> None:
    """Add the option."""
    parser.add_argument(
        "-D",
        dest="options",
        type=parse_option,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="set an option; flink-run config show lists them",
    )


def run_with_settings(parser: argparse.ArgumentParser, command: Callable[[argparse.Namespace], int]) -> None:
    """Make the command the parser's, with the option."""
    add_setting_argument(parser)

    def run(options: argparse.Namespace) -> int:
        install_command_line(CommandLine(given_once(options.options)))
        return command(options)

    parser.set_defaults(run=run)
