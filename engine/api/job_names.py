"""Names of jobs that a program gives none: that of its script, or the statement that they are the work of.

    with jobs_named("SELECT a FROM t"): ...     jobs that begin here, in this thread
    job_name() ─► "SELECT a FROM t", or "my_script"

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


@contextmanager
def jobs_named(statement: str) -> Iterator[None]:
    """Name the jobs that begin within after a statement. Not across a ``yield``: another thread may go on there."""
    name = " ".join(statement.split())
    if len(name) > NAME_CHARACTERS_MAX:
        name = f"{name[: NAME_CHARACTERS_MAX - 1]}…"
    token = _name.set(name)
    try:
        yield
    finally:
        _name.reset(token)


def job_name() -> str:
    """Return the name of a job that begins now."""
    script = Path(sys.argv[0]).stem if sys.argv and sys.argv[0] else ""
    return _name.get() or (script if script and not script.startswith("-") else "job")
