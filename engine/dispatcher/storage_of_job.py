"""StorageOfJob: the JobStorage of one job, for its JobMaster: what ``StoredJobs`` does for all of them.

Held by: tests/dispatcher/test_job_storage.py
"""

from __future__ import annotations

from typing import Protocol

from engine.commit.decision import Decision
from engine.commit.result_record import JobResultRecord
from engine.ids import JobId
from engine.jobmaster.job_commit import JobEnd


class DecisionsAndEnds(Protocol):
    """The methods of ``StoredJobs`` that a job uses."""

    @property
    def cluster(self) -> str:
        """The cluster whose next leader resumes its jobs."""
        ...

    def is_over(self, job_id: JobId) -> bool:
        """Whether no leader resumes a job."""
        ...

    def ended(self, job_id: JobId) -> JobResultRecord | None:
        """Return the record of a job's end, or None."""
        ...

    def decide(self, decision: Decision) -> Decision:
        """Keep a decision unless there is one; return the one in force."""
        ...

    def record(self, end: JobEnd) -> None:
        """Keep how a job ended unless that is known."""
        ...


class StorageOfJob:
    """Decision and end of one job. Blocking, any thread."""

    takes_time = True

    def __init__(self, jobs: DecisionsAndEnds, job_id: JobId) -> None:
        self._jobs = jobs
        self._job_id = job_id

    @property
    def cluster(self) -> str:
        """The cluster whose next leader resumes the job."""
        return self._jobs.cluster

    def is_over(self, job_id: JobId) -> bool:
        """Whether no leader resumes another job of this cluster."""
        return self._jobs.is_over(job_id)

    def ended(self) -> JobResultRecord | None:
        """Return the record of the job's end, or None."""
        return self._jobs.ended(self._job_id)

    def decide(self, decision: Decision) -> Decision:
        """Keep a decision unless there is one; return the one in force."""
        return self._jobs.decide(decision)

    def record(self, end: JobEnd) -> None:
        """Keep how the job ended unless that is known."""
        self._jobs.record(end)
