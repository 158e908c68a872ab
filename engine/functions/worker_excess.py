"""WorkerExcess: why a Python worker was ended, in figures and as the text of the error.

The watch (worker_watch.py) makes it, the worker carries it to the session that finds the worker gone.

Held by: tests/functions/test_worker_watch.py
"""

from __future__ import annotations

from typing import NamedTuple

from engine.config.options import MANAGED_SIZE, PROCESS_SIZE
from engine.config.sizes import format_size


class WorkerExcess(NamedTuple):
    """The memory that a worker held when it was ended."""

    size_bytes: int
    #: memory of all workers, and its limit
    total_bytes: int
    allowed_bytes: int
    worker_count: int
    process_bytes: int
    #: process size that would have sufficed, whole mebibytes; 0: larger than the machine, None: unknown
    enough_bytes: int | None = None
    #: file of the function, "" when it is unknown
    file: str = ""
    line: int = 0
    #: memory of the process itself, with a script's own data; 0: unknown
    own_bytes: int = 0

    @property
    def is_crowded(self) -> bool:
        """Whether the process itself holds so much that its workers have no more than their budget."""
        return self.own_bytes > self.process_bytes - self.allowed_bytes

    def text(self, function_name: str) -> str:
        """Return the message: what happened and what to do."""
        workers = "it" if self.worker_count == 1 else f"the {self.worker_count} Python workers of this process"
        size = "" if self.worker_count == 1 else f" holds {format_size(self.size_bytes)},"
        raised = f"raise {PROCESS_SIZE.key}" + (f" to {self.enough_bytes >> 20}mb" if self.enough_bytes else "")
        # What the process does not use its workers may have: there is nothing of that where a script holds much itself.
        own = f", beside {format_size(self.own_bytes)} of the process itself" if self.is_crowded else ""
        if self.enough_bytes == 0:
            raised = "give the machine or container more memory: a process in which it had enough does not fit into it"
        return (
            f"the Python worker of {function_name}{size or ' was ended:'} {workers} held "
            f"{format_size(self.total_bytes)} and may hold {format_size(self.allowed_bytes)} of {PROCESS_SIZE.key} "
            f"{format_size(self.process_bytes)}{own}; have the function hold less at a time (yield rows as they come), "
            f"or {raised}, or lower {MANAGED_SIZE.key} or the parallelism"
        )
