"""JobEnding: how a job ends, as phases. A part of ``JobState``.

    all FINISHED ─► PUBLISHING ─► RECORDING ─► GIVING_BACK ─────────────► OVER: FINISHED
    FAILING, CANCELLING, all tasks ended ─► RECORDING ─► GIVING_BACK ─► CLEANING ─► OVER: FAILED | CANCELED
    nothing is published ─► the job is FAILING, RECORDING ...
    refused as a leader that is one no more ─► LEFT: another leader goes on with the job

The next leader may go on from any phase: a decision is published again, a recorded end only cleaned up after. The
end is known to others when slots, partitions, workers and staging are given back. Staging goes when the end is
recorded, since no leader resumes the job then: a stale leader would take it from its successor.

Pure.

Held by: tests/jobmaster/test_job_state.py
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from engine.commit.decision import Decision
from engine.graph.deployment import FailureInfo, StagedFile
from engine.jobmaster.job_instruction import Commit, GiveBack, Instruction, PublishAgain, Record, RemoveStaging
from engine.jobmaster.job_status import JobStatus


class EndPhase(StrEnum):
    """The phases of a job's end."""

    NOT_BEGUN = "NOT_BEGUN"
    PUBLISHING = "PUBLISHING"
    RECORDING = "RECORDING"
    GIVING_BACK = "GIVING_BACK"
    CLEANING = "CLEANING"
    OVER = "OVER"
    #: another leader has taken the job over
    LEFT = "LEFT"


class JobEnding:
    """The end of one job. ``out`` takes the instructions."""

    def __init__(self, out: list[Instruction]) -> None:
        self._out = out
        self.phase = EndPhase.NOT_BEGUN
        #: final status of the job, once it is recorded
        self.status = JobStatus.FINISHED
        self.failure: FailureInfo | None = None

    @property
    def has_begun(self) -> bool:
        """Whether nothing is run or sent for the job any more."""
        return self.phase is not EndPhase.NOT_BEGUN

    def commit(self, staged: Iterable[StagedFile]) -> None:
        """Begin to end a job whose tasks have all finished."""
        self.phase = EndPhase.PUBLISHING
        self._out.append(Commit(tuple(staged)))

    def publish_again(self, decision: Decision) -> None:
        """Begin to end a job whose outcome an earlier leader decided."""
        self.phase = EndPhase.PUBLISHING
        self._out.append(PublishAgain(decision))

    def record(self, status: JobStatus, failure: FailureInfo | None) -> None:
        """Set the end of the job: nothing of it runs any more."""
        self.phase, self.status, self.failure = EndPhase.RECORDING, status, failure
        self._out.append(Record(status, failure))

    def step_done(self, phase: EndPhase, holders: Iterable[str]) -> None:
        """Begin the step that follows; ``holders`` are addresses of those that may have something of the job."""
        if phase is not self.phase:
            return
        if phase is EndPhase.PUBLISHING:
            self.record(JobStatus.FINISHED, None)
        elif phase is EndPhase.RECORDING:
            self.phase = EndPhase.GIVING_BACK
            self._out.append(GiveBack(tuple(holders)))
        elif phase is EndPhase.GIVING_BACK and self.status is not JobStatus.FINISHED:
            self.phase = EndPhase.CLEANING
            self._out.append(RemoveStaging())
        else:
            self.phase = EndPhase.OVER

    def leave(self, phase: EndPhase) -> None:
        """Do no more: the step of that phase was refused, and this leader is about to be stopped."""
        if phase is self.phase:
            self.phase = EndPhase.LEFT
