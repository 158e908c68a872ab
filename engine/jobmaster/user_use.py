"""UserUse: what the running jobs of each user take together, for limits of users.

    sum_for(job that looks, its value) ─► the sum of its user's jobs, where this job ends for it; else 0

A user who takes too much loses the job that began last of those that take a part: what is further on goes on. Each job
tells its own value when it looks, and leaves at its end. Jobs of one leader share it; the next leader counts anew.
Thread: the event loop.

Held by: tests/jobmaster/test_job_limits.py
"""

from __future__ import annotations

from collections import defaultdict

from engine.ids import JobId


class UserUse:
    """Values of jobs that run, by user and limit."""

    def __init__(self) -> None:
        #: start of each job, and what it takes
        self._values: defaultdict[tuple[str, str], dict[JobId, tuple[int, int]]] = defaultdict(dict)

    def sum_for(self, job_id: JobId, start_ms: int, user: str, key: str, value: int) -> int:
        """Take note of the value of a job; return the sum of its user's jobs if it began last of them, else 0."""
        jobs = self._values[user, key]
        jobs[job_id] = (start_ms, value)
        last = max(((start, each.value) for each, (start, taken) in jobs.items() if taken), default=None)
        return sum(taken for _, taken in jobs.values()) if last == (start_ms, job_id.value) else 0

    def leave(self, job_id: JobId, user: str) -> None:
        """Forget a job that has ended; idempotent."""
        for place in [each for each in self._values if each[0] == user]:
            self._values[place].pop(job_id, None)
            if not self._values[place]:
                del self._values[place]
