"""JobEvent: what a JobMaster decided and learned, one fact each, in the order in which it happened.

    Led            a leader begins, or goes on, with the job
    Prepared       staging of its outputs is there
    BoundsChosen   ranges of a sorted result                         ┐
    Scheduled      the attempts of a region have slots               ┴ durable before a task of it is sent
    TaskEnded      the last report of an attempt
    FailureNoted   something went wrong
    Replanned      run-time decisions
    Restarted      regions have new attempts
    CancelAsked    a client cancels the job           FailingBegun   what went wrong ends the job

The events of a job in their order rebuild it (``job_facts``); so does any beginning of them, as it was then. They
are stored as msgpack, a map each with its tag as "type": fields may be added with a default, never changed.

Plain data. Source: the JobEvents of Flink's FLIP-383, which keep finished tasks only.

Held by: tests/jobmaster/test_job_journal.py
"""

from __future__ import annotations

from functools import cache

import msgspec

from engine.graph.deployment import FailureInfo, Staging, TaskReport
from engine.graph.run_time_decision import RunTimeDecision
from engine.ids import ExecutionAttemptId, IntermediateDataSetId
from engine.jobmaster.slot_pool import AllocatedSlot


class Led(msgspec.Struct, frozen=True, tag="led"):
    """A leader begins, or goes on, with the job."""

    epoch: int
    time_ms: int


class Prepared(msgspec.Struct, frozen=True, tag="prepared"):
    """Staging is there: a place for each sink index. A text is the path of a staging folder, as once written."""

    staging: dict[int, Staging | str]

    @property
    def places(self) -> dict[int, Staging]:
        """The place of each sink."""
        return {index: Staging(place) if isinstance(place, str) else place for index, place in self.staging.items()}


class BoundsChosen(msgspec.Struct, frozen=True, tag="bounds-chosen"):
    """The bounds of a sorted result's ranges, which stay whatever attempts come later."""

    data_set: IntermediateDataSetId
    bounds: tuple[bytes, ...]


class ScheduledAttempt(msgspec.Struct, frozen=True):
    """An attempt and its slot."""

    attempt: ExecutionAttemptId
    slot: AllocatedSlot


class Scheduled(msgspec.Struct, frozen=True, tag="scheduled"):
    """All attempts of a region have their slots."""

    attempts: tuple[ScheduledAttempt, ...]
    time_ms: int


class TaskEnded(msgspec.Struct, frozen=True, tag="task-ended"):
    """An attempt has ended. ``timestamps_ms``: when it entered each state, by name."""

    report: TaskReport
    timestamps_ms: dict[str, int]


class FailureNoted(msgspec.Struct, frozen=True, tag="failure-noted"):
    """A failure was recorded."""

    failure: FailureInfo
    time_ms: int


class Replanned(msgspec.Struct, frozen=True, tag="replanned"):
    """Run-time decisions that were taken together."""

    decisions: tuple[RunTimeDecision, ...]


class Restarted(msgspec.Struct, frozen=True, tag="restarted"):
    """Regions have new attempts. ``failed_ms``: when the failure came that was mended by this."""

    attempts: tuple[ExecutionAttemptId, ...]
    failed_ms: int
    #: time at which the attempts began, after the pause of the restart strategy; -1: an earlier release wrote this
    time_ms: int = -1


class CancelAsked(msgspec.Struct, frozen=True, tag="cancel-asked"):
    """The job is to end as CANCELED."""

    time_ms: int


class FailingBegun(msgspec.Struct, frozen=True, tag="failing-begun"):
    """The job is to end as FAILED; the failures noted before say why."""

    time_ms: int


JobEvent = (
    Led
    | Prepared
    | BoundsChosen
    | Scheduled
    | TaskEnded
    | FailureNoted
    | Replanned
    | Restarted
    | CancelAsked
    | FailingBegun
)

_encoder = msgspec.msgpack.Encoder()


@cache
def _decoder() -> msgspec.msgpack.Decoder[JobEvent]:
    # Made when it is needed: it looks at the types of all events.
    return msgspec.msgpack.Decoder(JobEvent)


def encode_event(event: JobEvent) -> bytes:
    """Return the bytes of an event."""
    return _encoder.encode(event)


def decode_event(content: bytes | memoryview) -> JobEvent:
    """Return the event of these bytes; raises msgspec.MsgspecError."""
    return _decoder().decode(content)
