"""ClusterEvents: what has happened to jobs and TaskManagers in this process, counted for metrics. One for the process.

    job_ended(status, seconds)  job_restarts()  attempts_failed(n)  task_manager_lost()  ─►  CLUSTER_EVENTS.counts, ...

Counts begin with the process and only grow; those of a leadership that has ended stay, as Prometheus wants it. Jobs
are forgotten in time (``jobstore.expiration-time``), so their durations are kept as counts by length.

Thread: the event loops of a process, of which an embedded one may have several.

Held by: tests/rest/test_process_meter.py
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec

#: upper bounds of durations in seconds; longer ones follow the last
BOUNDS_S: Final = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0)
_ENDS = ("FINISHED", "FAILED", "CANCELED")


class ClusterEvent(StrEnum):
    """The events that are counted."""

    JOB_RESTARTED = "job-restarted"
    ATTEMPT_FAILED = "attempt-failed"
    TASK_MANAGER_LOST = "task-manager-lost"


class JobDurations(msgspec.Struct):
    """The durations of jobs that ended in one way: ``counts`` by ``BOUNDS_S``, the last of all longer ones."""

    counts: list[int] = msgspec.field(default_factory=lambda: [0] * (len(BOUNDS_S) + 1))
    total_s: float = 0.0


class ClusterEvents:
    """Counts of one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = dict.fromkeys(ClusterEvent, 0)  # guarded by: self._lock
        self._durations = {status: JobDurations() for status in _ENDS}  # guarded by: self._lock

    def note(self, event: ClusterEvent, count: int = 1) -> None:
        """Count events."""
        with self._lock:
            self._counts[event] += count

    def job_ended(self, status: str, duration_s: float) -> None:
        """Count a job; one that is suspended has not ended."""
        with self._lock:
            durations = self._durations.get(status)
            if durations is not None:
                durations.counts[bisect_left(BOUNDS_S, duration_s)] += 1
                durations.total_s += duration_s

    @property
    def counts(self) -> Mapping[ClusterEvent, int]:
        """The number of each event."""
        with self._lock:
            return dict(self._counts)

    @property
    def durations(self) -> Mapping[str, JobDurations]:
        """The durations of jobs by how they ended; all ends are there from the start."""
        with self._lock:
            return {status: JobDurations(list(each.counts), each.total_s) for status, each in self._durations.items()}


#: events of this process
CLUSTER_EVENTS = ClusterEvents()
