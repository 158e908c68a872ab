"""Instructions: what a JobMaster has to do, as plain data. ``JobState`` gives them, the endpoint carries them out.

    into the journal       WriteDown ─► AwaitJournal: what follows waits until that is durable
    the outputs            PrepareOutputs, ReviseOutputs, Commit, PublishAgain, Record, RemoveStaging
    to TaskExecutors       Deploy, Cancel, Tell, GiveBack, AcceptSlots, Reattach
    about TaskExecutors    Watch, LookAfter, Forget
    to the ResourceManager TellResourceManager, CountSlots
    time                   SetTimer, StopTimer
    to waiting clients     TellEnd

They are carried out in the order in which they were given, so what is written down is so before its effect. Those that
take time answer with an input (``job_input``) of their own. Plain data.

Held by: tests/jobmaster/test_job_state.py
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from engine.commit.decision import Decision
from engine.gateways.messages import SubmitTasks
from engine.graph.deployment import FailureInfo, StagedFile, Staging
from engine.graph.job_graph import JobGraph
from engine.ids import AllocationId, ExecutionAttemptId, ResourceId
from engine.jobmaster.expectations import Expectation
from engine.jobmaster.job_event import JobEvent
from engine.jobmaster.job_status import JobStatus
from engine.rpc.request import Acknowledge, Request


class Timer(StrEnum):
    """Timers that a job may set."""

    #: the time between a failure and the attempt to recover from it
    PAUSE = "PAUSE"
    #: the wait for slots that the cluster does not have
    SLOTS = "SLOTS"
    #: the wait for the rest of a region's slots
    COLLECTING = "COLLECTING"
    #: the time for which idle slots are kept for the next region
    IDLE = "IDLE"
    #: the time that the job may run
    WALL_TIME = "WALL_TIME"


class WriteDown(msgspec.Struct, frozen=True):
    """Append an event to the journal."""

    event: JobEvent


class AwaitJournal(msgspec.Struct, frozen=True):
    """Report when everything that was written down so far is durable (JournalWritten)."""

    batch: int


class PrepareOutputs(msgspec.Struct, frozen=True):
    """Make staging, or adopt what an earlier leader made (OutputsPrepared, PrepareFailed, Deposed)."""

    known: dict[int, Staging] | None


class ReviseOutputs(msgspec.Struct, frozen=True):
    """Set the number of subtasks that write each output after a run-time decision."""

    job_graph: JobGraph


class Commit(msgspec.Struct, frozen=True):
    """Decide that these files are the outputs, and publish them (StepDone, PublishFailed, Deposed)."""

    staged: tuple[StagedFile, ...]


class PublishAgain(msgspec.Struct, frozen=True):
    """Publish what an earlier leader decided (StepDone, PublishFailed, Deposed)."""

    decision: Decision


class Record(msgspec.Struct, frozen=True):
    """Keep how the job ends, once and for all (StepDone, Deposed)."""

    status: JobStatus
    failure: FailureInfo | None


class GiveBack(msgspec.Struct, frozen=True):
    """Release everything that the job holds at the ResourceManager and at these TaskExecutors (StepDone)."""

    addresses: tuple[str, ...]


class RemoveStaging(msgspec.Struct, frozen=True):
    """Remove what was staged and will not be published (StepDone)."""


class TellEnd(msgspec.Struct, frozen=True):
    """Tell waiting clients how the job ended."""

    status: JobStatus
    failure: FailureInfo | None


class Deploy(msgspec.Struct, frozen=True):
    """Send tasks until their TaskExecutor answers (of each TaskRefused, TaskSentLate, TaskUnanswered, or nothing)."""

    address: str
    request: SubmitTasks


class Cancel(msgspec.Struct, frozen=True):
    """Cancel an attempt (TaskExecutorSilent when its TaskExecutor does not answer; else nothing)."""

    attempt: ExecutionAttemptId
    name: str
    address: str
    resource_id: ResourceId


class Tell(msgspec.Struct, frozen=True):
    """Send a TaskExecutor what need not arrive: one that is gone holds nothing any more."""

    address: str
    request: Request[Acknowledge]


class AcceptSlots(msgspec.Struct, frozen=True):
    """Answer an offer: these slots are taken. SlotsTaken follows when the answer is on its way."""

    allocation_ids: tuple[AllocationId, ...]


class Reattach(msgspec.Struct, frozen=True):
    """Ask TaskExecutors what they have of the job (Reattached, Deposed)."""

    expected: dict[ResourceId, Expectation]


class Watch(msgspec.Struct, frozen=True):
    """Ask a TaskExecutor for signs of life from now on."""

    resource_id: ResourceId
    address: str


class LookAfter(msgspec.Struct, frozen=True):
    """Ask a TaskExecutor for a sign of life at once: something speaks against it (TaskExecutorAnswered, or nothing)."""

    resource_id: ResourceId


class Forget(msgspec.Struct, frozen=True):
    """Ask a TaskExecutor nothing more: it is gone."""

    resource_id: ResourceId


class TellResourceManager(msgspec.Struct, frozen=True):
    """Send the ResourceManager what need not arrive."""

    request: Request[Acknowledge]


class CountSlots(msgspec.Struct, frozen=True):
    """Ask the ResourceManager which jobs hold slots (SlotsCounted)."""


class SetTimer(msgspec.Struct, frozen=True):
    """Report when so many seconds have passed (TimerFired)."""

    timer: Timer
    seconds: float


class StopTimer(msgspec.Struct, frozen=True):
    """Stop a timer, whether or not it has fired."""

    timer: Timer


Instruction = (
    WriteDown
    | AwaitJournal
    | PrepareOutputs
    | ReviseOutputs
    | Commit
    | PublishAgain
    | Record
    | GiveBack
    | RemoveStaging
    | TellEnd
    | Deploy
    | Cancel
    | Tell
    | AcceptSlots
    | Reattach
    | Watch
    | LookAfter
    | Forget
    | TellResourceManager
    | CountSlots
    | SetTimer
    | StopTimer
)
