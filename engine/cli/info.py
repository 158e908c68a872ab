"""``flink-run job info``: the plan of a script's first job, explained; nothing is executed.

Held by: tests/integration/test_command_line.py
"""

from __future__ import annotations

import argparse

from engine.cli.run_script import run_script
from engine.cli.submit import install_settings
from engine.config.command_line import current_command_line
from engine.targets.local import explain_instead_of_running


def info(options: argparse.Namespace) -> int:
    """Run the script up to its first ``execute`` and print the plan instead."""
    install_settings(options)
    explain_instead_of_running(in_short=options.short)
    return run_script(options.script, options.arguments, current_command_line().py_files)
