"""Jobs that have ended: their outcome stays known for a while, for clients that ask late.

At most ``limit`` outcomes are kept; the oldest goes first. Pure. Source: Flink's ExecutionGraphInfoStore.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.gateways.job_details import JobDetails
from engine.gateways.messages import JobOutcome, JobOverview
from engine.ids import JobId


@dataclass(frozen=True)
class EndedJob:
    """What is kept of a job."""

    overview: JobOverview
    outcome: JobOutcome
    details: JobDetails


class JobStore:
    """The latest ended jobs, oldest first."""

    def __init__(self, limit: int = 256) -> None:
        self._limit = limit
        self._jobs: dict[JobId, EndedJob] = {}

    def add(self, job: EndedJob) -> None:
        """Keep a job; the oldest one goes when there are too many."""
        self._jobs[job.outcome.job_id] = job
        if len(self._jobs) > self._limit:
            del self._jobs[next(iter(self._jobs))]

    def get(self, job_id: JobId) -> EndedJob | None:
        """Return a job, or None."""
        return self._jobs.get(job_id)

    @property
    def overviews(self) -> tuple[JobOverview, ...]:
        """All jobs, oldest first."""
        return tuple(job.overview for job in self._jobs.values())
