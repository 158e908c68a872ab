"""``-D key=value``: a setting on the command line, for commands that run jobs and for those that ask a JobManager.

Held by: tests/cli/test_main.py
"""

from __future__ import annotations

import argparse


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
