"""PassingStorage: decision and end of a job that ends with its process, as long as its JobMaster lives.

No leader resumes such a job, so only the JobMaster that has them asks for them: no file is written.
"""

from __future__ import annotations

from engine.commit.decision import Decision
from engine.commit.result_record import JobResultRecord
from engine.ids import JobId
from engine.jobmaster.job_commit import JobEnd


class PassingStorage:
    """The JobStorage of one job, in memory."""

    cluster = ""
    takes_time = False

    def __init__(self) -> None:
        self._decision: Decision | None = None
        self._end: JobEnd | None = None

    def is_over(self, job_id: JobId) -> bool:
        """Return False: no job goes on without its process, which is asked for instead."""
        return False

    def ended(self) -> JobResultRecord | None:
        """Return the record of the job's end, or None."""
        return None if self._end is None else self._end.record

    def decide(self, decision: Decision) -> Decision:
        """Keep a decision unless there is one; return the one in force."""
        self._decision = self._decision or decision
        return self._decision

    def record(self, end: JobEnd) -> None:
        """Keep how the job ended unless that is known."""
        self._end = self._end or end
