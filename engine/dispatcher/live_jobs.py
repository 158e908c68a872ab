"""LiveJobs: what a leader knows of the jobs that it has, enough to store each again when it was removed.

    add(handle, graph) ─► note(handle) at each change ─► forget(job id) before it is cleaned

What is cleaned is forgotten first, under the lock that storing it again takes: so nothing comes back. Thread
safe. The graph is the object that the JobMaster has, so it costs no memory.

Held by: tests/dispatcher/test_storage_mending.py
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from engine.dispatcher.job_handle import JobHandle
from engine.graph.job_graph import JobGraph
from engine.ids import JobId
from engine.jobmaster.job_journal import Journal


@dataclass
class LiveJob:
    """A job of this leader, and its handle as it was last in force."""

    handle: JobHandle
    job_graph: JobGraph


class LiveJobs:
    """The jobs of one leader. Callers that act on what they find here hold ``lock``."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        # guarded by: self.lock
        self._jobs: dict[JobId, LiveJob] = {}
        self._journals: dict[JobId, Journal] = {}

    def ids(self) -> tuple[JobId, ...]:
        """Return all jobs."""
        with self.lock:
            return tuple(self._jobs)

    def get(self, job_id: JobId) -> LiveJob | None:
        """Return a job, or None."""
        with self.lock:
            return self._jobs.get(job_id)

    def journal(self, job_id: JobId) -> Journal | None:
        """Return the current journal of a job."""
        with self.lock:
            return self._journals.get(job_id)

    def add(self, handle: JobHandle, job_graph: JobGraph) -> None:
        """Add a job of this leader."""
        with self.lock:
            self._jobs[handle.job_id] = LiveJob(handle, job_graph)

    def add_journal(self, job_id: JobId, journal: Journal) -> None:
        """Add the journal of a job."""
        with self.lock:
            self._journals[job_id] = journal

    def note(self, handle: JobHandle) -> None:
        """Update the state of a job."""
        with self.lock:
            job = self._jobs.get(handle.job_id)
            if job is not None:
                job.handle = handle

    def forget(self, job_id: JobId) -> None:
        """Remove a job."""
        with self.lock:
            self._jobs.pop(job_id, None)
            self._journals.pop(job_id, None)
