"""``flink-run config show``: every option, its effective value, where it comes from and what it means.

Held by: tests/integration/test_command_line.py
"""

from __future__ import annotations

import argparse

from engine.config.loader import load_configuration
from engine.config.options import all_options
from engine.config.secret_keys import shown_text


def show_config(options: argparse.Namespace) -> int:
    """Print the table and return 0."""
    configuration = load_configuration()
    for option in all_options():
        value = shown_text(configuration, option.key)
        print(f"{option.key}: {'(none)' if value is None else value}    [{configuration.origin(option.key)}]")
        if options.describe:
            print(f"    {option.description}")
    return 0
