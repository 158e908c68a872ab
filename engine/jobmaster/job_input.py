"""Inputs: what a JobMaster hears, as plain data, for ``JobState``.

    messages of others      OfferSlots, UpdateTaskStates, ReportProgress, TaskExecutorLost, TaskExecutorDraining,
                            SlotsShort, CancelJob, as
                            they came
    the process             Begin, Suspend, TimerFired
    answers to instructions the rest (``job_instruction`` says which answers which)

Plain data.

Held by: tests/jobmaster/test_job_state.py
"""

from __future__ import annotations

import msgspec

from engine.commit.decision import Decision
from engine.gateways.job_queue import SlotsShort
from engine.gateways.messages import (
    AttachedJob,
    CancelJob,
    OfferSlots,
    ReportProgress,
    SlotOverview,
    TaskExecutorLost,
    UpdateTaskStates,
)
from engine.gateways.task_executors import TaskExecutorDraining
from engine.graph.deployment import FailureInfo, PublishedOutput, Staging
from engine.ids import ExecutionAttemptId, ResourceId
from engine.jobmaster.job_ending import EndPhase
from engine.jobmaster.job_instruction import Timer


class Begin(msgspec.Struct, frozen=True):
    """Run the job, or go on with one that another leader began. ``decision``: of that one, if it is in force."""

    is_recovered: bool = False
    decision: Decision | None = None


class Suspend(msgspec.Struct, frozen=True):
    """The JobMaster stops."""


class TimerFired(msgspec.Struct, frozen=True):
    """The seconds of a timer have passed."""

    timer: Timer


class JournalWritten(msgspec.Struct, frozen=True):
    """All journal entries before AwaitJournal are durable."""

    batch: int


class OutputsPrepared(msgspec.Struct, frozen=True):
    """Each sink index has a place where attempts write, and the states of places that change are held."""

    staging: dict[int, Staging]
    #: names by place (``held_states``)
    held_states: dict[str, str] = {}


class PrepareFailed(msgspec.Struct, frozen=True):
    """The staging folder could not be made."""

    failure: FailureInfo


class PublishFailed(msgspec.Struct, frozen=True):
    """The outputs were not published."""

    failure: FailureInfo


class StepDone(msgspec.Struct, frozen=True):
    """A step of the job's end is done; publication tells what it made."""

    phase: EndPhase
    published: tuple[PublishedOutput, ...] = ()


class Deposed(msgspec.Struct, frozen=True):
    """A step was refused, as this leader is one no more."""

    phase: EndPhase
    reason: str


class Reattached(msgspec.Struct, frozen=True):
    """The state that TaskExecutors have of the job; those that have not answered are gone."""

    answers: dict[ResourceId, AttachedJob]


class SlotsTaken(msgspec.Struct, frozen=True):
    """The TaskExecutor has been told that its slots are taken: they may be used."""


class SlotsCounted(msgspec.Struct, frozen=True):
    """The jobs that hold the slots of the cluster."""

    overview: SlotOverview


class TaskRefused(msgspec.Struct, frozen=True):
    """A TaskExecutor does not run a task."""

    attempt: ExecutionAttemptId
    failure: FailureInfo


class TaskSentLate(msgspec.Struct, frozen=True):
    """A task was sent more than once: it may have been cancelled before it was there."""

    attempt: ExecutionAttemptId


class TaskUnanswered(msgspec.Struct, frozen=True):
    """A TaskExecutor never answered whether it runs a task."""

    attempt: ExecutionAttemptId
    reason: str


class TaskExecutorSilent(msgspec.Struct, frozen=True):
    """A TaskExecutor could not be reached."""

    resource_id: ResourceId
    reason: str


class TaskExecutorAnswered(msgspec.Struct, frozen=True):
    """A TaskExecutor that was looked after has answered."""

    resource_id: ResourceId


JobInput = (
    Begin
    | Suspend
    | TimerFired
    | OfferSlots
    | UpdateTaskStates
    | ReportProgress
    | TaskExecutorLost
    | TaskExecutorDraining
    | SlotsShort
    | CancelJob
    | JournalWritten
    | OutputsPrepared
    | PrepareFailed
    | PublishFailed
    | StepDone
    | Deposed
    | Reattached
    | SlotsTaken
    | SlotsCounted
    | TaskRefused
    | TaskSentLate
    | TaskUnanswered
    | TaskExecutorSilent
    | TaskExecutorAnswered
)
