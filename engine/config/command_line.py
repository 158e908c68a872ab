"""The command line of this process, as the ``Environment`` of the script that it runs reads it.

``flink-run job submit -D key=value -p 4 JOB.py`` runs JOB.py in the same process; the script's ``Environment()``
finds the settings here. Set once, before the script starts; a plain ``python JOB.py`` leaves it empty.

Held by: tests/config/test_loader.py
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from engine.errors import ConfigurationError


class CommandLine(msgspec.Struct):
    """Settings of the running command; ``target`` and ``job_name`` are None when they were not given."""

    options: dict[str, str] = msgspec.field(default_factory=dict)
    target: str | None = None
    job_name: str | None = None
    #: script that runs, and the files of ``--py-files``
    script: Path | None = None
    py_files: tuple[str, ...] = ()
    #: True if jobs are submitted and not waited for
    is_detached: bool = False
    #: value of ``-m host:port``
    master: str | None = None


_current = CommandLine()


def current_command_line() -> CommandLine:
    """Return the command line of this process."""
    return _current


def install_command_line(command_line: CommandLine) -> None:
    """Make ``command_line`` the one that scripts of this process see."""
    global _current  # noqa: PLW0603 - one command line a process, set before the script starts
    _current = command_line


def given_once(settings: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the settings of ``-D key=value``; ConfigurationError for a key with two values."""
    found: dict[str, str] = {}
    for key, value in settings:
        if found.setdefault(key, value) != value:
            raise ConfigurationError(f"-D {key} is given twice, as {found[key]!r} and as {value!r}: leave one")
    return found
