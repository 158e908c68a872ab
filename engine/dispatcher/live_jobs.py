"""LiveJobs: what a leader knows of the jobs that it has, enough to store each again when it was removed.

    add(handle, graph) ─► note(handle) at each change ─► forget(job id) before it is cleaned

What is cleaned is forgotten first, under the lock that storing it again takes: so nothing comes back. A handle is
changed and noted under that lock, too: so what is known is what is in force. Thread safe. The graph is the object that
the JobMaster has, so it costs no memory.

Held by: tests/dispatcher/test_storage_mending.py
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from engine.dispatcher.job_handle import JobHandle
from engine.graph.job_graph import JobGraph
from engine.ids import JobId
from engine.jobmaster.job_journal import Journal

#: locks that all jobs share, so that one of a job that is forgotten can still be waited for
_LOCKS = 64


@dataclass
class LiveJob:
    """A job of this leader, and its handle as it was last in force."""

    handle: JobHandle
    job_graph: JobGraph


class LiveJobs:
    """The jobs of one leader. Callers that act on what they find here hold the job's lock."""

    def __init__(self) -> None:
        self._locks = tuple(threading.RLock() for _ in range(_LOCKS))
        # each entry guarded by: self.lock_of(its job)
        self._jobs: dict[JobId, LiveJob] = {}
        self._journals: dict[JobId, Journal] = {}

    def lock_of(self, job_id: JobId) -> threading.RLock:
        """Return the lock of a job, which is held while its handle is asked for."""
        return self._locks[hash(job_id) % _LOCKS]

    def ids(self) -> tuple[JobId, ...]:
        """Return all jobs, as they are at one moment."""
        return tuple(self._jobs)

    def get(self, job_id: JobId) -> LiveJob | None:
        """Return a job, or None."""
        with self.lock_of(job_id):
            return self._jobs.get(job_id)

    def journal(self, job_id: JobId) -> Journal | None:
        """Return the current journal of a job."""
        with self.lock_of(job_id):
            return self._journals.get(job_id)

    def add(self, handle: JobHandle, job_graph: JobGraph) -> None:
        """Add a job of this leader."""
        with self.lock_of(handle.job_id):
            self._jobs[handle.job_id] = LiveJob(handle, job_graph)

    def add_journal(self, job_id: JobId, journal: Journal) -> None:
        """Add the journal of a job."""
        with self.lock_of(job_id):
            self._journals[job_id] = journal

    def note(self, handle: JobHandle) -> None:
        """Update the state of a job."""
        with self.lock_of(handle.job_id):
            job = self._jobs.get(handle.job_id)
            if job is not None:
                job.handle = handle

    def forget(self, job_id: JobId) -> None:
        """Remove a job."""
        with self.lock_of(job_id):
            self._jobs.pop(job_id, None)
            self._journals.pop(job_id, None)
