"""Jobs that wait for slots: their order, and what people are shown of it.

    JobTurn(priority, order) ─► goes with every RequestSlots ─► the ResourceManager's queue (``JobQueue``)
    RequestWaitingJobs ─► WaitingJob: place, and why it waits ─► waiting_text: one line for people
    SlotsShort ─► JobMaster: the cluster could never serve what the job waits for, or can again

Pure data.

Held by: tests/resourcemanager/test_job_queue.py
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from engine.ids import JobId
from engine.rpc.request import Acknowledge, Request


class JobTurn(msgspec.Struct, frozen=True):
    """The turn of a job: higher priorities first, then the job that was submitted first."""

    priority: int = 0
    #: number of the submission, rising, also from one leader to the next
    order: int = 0
    #: user that the job belongs to; "": none by name
    user: str = ""

    @property
    def key(self) -> tuple[int, int]:
        """Sorts those that come first to the front."""
        return -self.priority, self.order


#: turn of a job that has no others beside it
FIRST_TURN = JobTurn()


class WaitingReason(StrEnum):
    """The reasons for which a job waits."""

    #: other jobs hold the slots, or come first
    SLOTS = "SLOTS"
    #: the limit of running jobs is reached
    LIMIT = "LIMIT"
    #: the jobs of its user have as much as they may
    USER = "USER"
    #: the cluster has too few slots
    CLUSTER = "CLUSTER"


class WaitingJob(msgspec.Struct, frozen=True):
    """A job that has no slot and waits for some."""

    #: place in the queue, from 1
    place: int
    #: number of waiting jobs
    count: int
    slots_needed: int
    slots_total: int
    reason: WaitingReason
    priority: int = 0


def waiting_text(waiting: WaitingJob) -> str:
    """Return a line for people: ``place 2 of 3 in the queue: 4 slots needed, others have them or come first``."""
    slots = f"{waiting.slots_needed} slot{'' if waiting.slots_needed == 1 else 's'}"
    match waiting.reason:
        case WaitingReason.LIMIT:
            why = "as many jobs run as jobmanager.max-running-jobs allows"
        case WaitingReason.USER:
            why = "jobs of its user have as much as user.limit.running-jobs or user.limit.slots allows"
        case WaitingReason.CLUSTER:
            why = f"{slots} needed, the cluster has {waiting.slots_total}"
        case _:
            why = f"{slots} needed, others have them or come first"
    return f"place {waiting.place} of {waiting.count} in the queue: {why}"


class WaitingJobs(msgspec.Struct, frozen=True):
    """The queue."""

    jobs: dict[JobId, WaitingJob]


class RequestWaitingJobs(Request[WaitingJobs], frozen=True):
    """Ask the ResourceManager which jobs wait: all, or one."""

    job_id: JobId | None = None


class SlotsShort(Request[Acknowledge], frozen=True):
    """Tell a JobMaster that the existing slots can never fit its requests, or (False) that they can again."""

    job_id: JobId
    is_short: bool


JOB_QUEUE_TYPES: tuple[type[msgspec.Struct], ...] = (RequestWaitingJobs, SlotsShort, WaitingJobs)
