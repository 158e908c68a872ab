"""WorkerBudget: what the Python workers of a process may hold, of which pages have a part where no function runs.

    budget = WorkerBudget(limit_bytes, spare_bytes, memory_manager)
    budget.take(job)           a function of the job is opened here
    budget.give_back(job)      the job has ended, with its workers
    budget.size                what all workers may hold now: the limit without what is reserved of the spare part

    budget of pages  ├───────── pages ─────────┼── spare ──┤
    a slot's pages   ├── 1/4 ──┤  of a job that has functions
                     ├── 1/4 ──┤├1/4┤  of one that has none              of four slots
    workers                     ◄── spare ──┤  what slots of jobs without functions have not reserved

The MemoryManager's budget holds both parts, and a slot offers both (``SlotOffer``). The JobMaster knows the plan: it
gives the spare part of its slots to operators where the job has no Python functions. So no job waits and nothing is
moved: what jobs of both kinds may have side by side adds up to no more than the process has.

While a job with functions runs, free pages of the spare part are not kept warm, and what earlier owners keep in it for
later is given back first.

Invariant: reservations and ``size`` together are at most the budgets of pages and of workers. Thread: any.
Source: the unified memory of Spark, where storage and execution borrow from each other.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.memory.manager import MemoryManager

_UNLIMITED = 1 << 62


class WorkerBudget:
    """The budget of Python workers, and the spare part of it, which pages have too."""

    def __init__(
        self, limit_bytes: int = _UNLIMITED, spare_bytes: int = 0, memory_manager: MemoryManager | None = None
    ) -> None:
        self._limit_bytes = limit_bytes
        self._spare_bytes = spare_bytes
        self._manager = memory_manager
        self._lock = threading.Lock()
        self._jobs: set[str] = set()  # guarded by: self._lock

    @property
    def size(self) -> int:
        """Bytes that all workers together may hold."""
        manager = self._manager
        if manager is None or self._spare_bytes == 0:
            return self._limit_bytes
        reserved = manager.bytes_reserved - (manager.budget_bytes - self._spare_bytes)
        return self._limit_bytes - min(self._spare_bytes, max(0, reserved))

    def take(self, job: str) -> None:
        """Record that functions of a job run here; idempotent."""
        with self._lock:
            is_first = not self._jobs
            self._jobs.add(job)
            if is_first and self._manager is not None and self._spare_bytes > 0:
                self._manager.keep_free(self._spare_bytes)

    def give_back(self, job: str) -> None:
        """Record that a job has ended, whether it had functions or not."""
        with self._lock:
            self._jobs.discard(job)
            if not self._jobs and self._manager is not None and not self._manager.closed:
                self._manager.keep_free(0)
