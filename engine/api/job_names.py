"""Names of jobs that a program gives none: that of its script, or the statement that they are the work of.

    with jobs_named("SELECT a FROM t", "ada"): ...     jobs that begin here, in this thread
    job_name() ─► "SELECT a FROM t", or "my_script"
    job_user() ─► "ada": the user that a server runs the statement for, or ""

A statement is shown on one line, cut to NAME_CHARACTERS_MAX.

Held by: tests/flight_sql/test_statements.py
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Final

NAME_CHARACTERS_MAX: Final = 200
#: name of the jobs that this thread begins; "": that of the script
_name: ContextVar[str] = ContextVar("job name", default="")
#: user that the jobs of this thread belong to; "": none by name
_user: ContextVar[str] = ContextVar("job user", default="")


@contextmanager
def jobs_named(statement: str, user: str = "") -> Iterator[None]:
    """Name the jobs that begin within after a statement, and give them to a user.

    Not across a ``yield``: another thread may go on there.
    """
    name = " ".join(statement.split())
    if len(name) > NAME_CHARACTERS_MAX:
        name = f"{name[: NAME_CHARACTERS_MAX - 1]}…"
    tokens = _name.set(name), _user.set(user)
    try:
        yield
    finally:
        _name.reset(tokens[0])
        _user.reset(tokens[1])


def job_name() -> str:
    """Return the name of a job that begins now."""
    script = Path(sys.argv[0]).stem if sys.argv and sys.argv[0] else ""
    return _name.get() or (script if script and not script.startswith("-") else "job")


def job_user() -> str:
    """Return the name of the user that a job which begins now belongs to; "": that of the configuration, if any."""
    return _user.get()
