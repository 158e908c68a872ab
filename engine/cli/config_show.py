"""``flink-run config show``: every option, its effective value, where it comes from and what it means.

``flink-run config copy FOLDER``: the files of ``conf`` as they came with the program.

Held by: tests/integration/test_command_line.py
"""

from __future__ import annotations

import argparse
from pathlib import Path

from engine.config.home import copy_delivered
from engine.config.loader import load_configuration
from engine.config.options import all_options
from engine.config.secret_keys import shown_text
from engine.errors import ConfigurationError


def show_config(options: argparse.Namespace) -> int:
    """Print the table and return 0."""
    configuration = load_configuration()
    for option in all_options():
        value = shown_text(configuration, option.key)
        print(f"{option.key}: {'(none)' if value is None else value}    [{configuration.origin(option.key)}]")
        if options.describe:
            print(f"    {option.description}")
    return 0


def copy_config(options: argparse.Namespace) -> int:
    """Copy the delivered files into a folder that is not there yet and return 0."""
    folder = Path(options.folder)
    if folder.exists():
        raise ConfigurationError(f"{folder} is there already: name a new folder, so that no file of yours is replaced")
    try:
        for path in copy_delivered(folder):
            print(path)
    except OSError as error:
        raise ConfigurationError(f"{folder} cannot be made: {error.strerror}") from error
    return 0
