"""JobDetails: one job with its vertices and attempts, as REST and the command line show it; JobExceptions.

    JobDetails ── VertexDetails * ─┬─ AttemptDetails * subtasks    the current attempt of each
                                   ├─ AttemptDetails * prior       the attempts before, oldest first
                                   └─ InputDetails *               edges of the plan
    JobExceptions ── JobFailure *                                  latest first, a bounded number

Questions change nothing. Of a job that has ended the last details are kept.

Held by: tests/dispatcher/test_cluster_components.py
"""

from __future__ import annotations

import msgspec

from engine.gateways.job_queue import WaitingJob
from engine.gateways.memory_use import MemoryPoint
from engine.graph.deployment import FailureInfo, TaskCounters
from engine.graph.planned_step import PlannedStep
from engine.graph.run_time_decision import RunTimeDecision
from engine.ids import JobId
from engine.rpc.request import Request


class JobRestart(msgspec.Struct, frozen=True):
    """An attempt of a job that failed and is followed by another one. ``number``: 1 for the first."""

    number: int
    cause: str
    pause_ms: int


class AttemptDetails(msgspec.Struct, frozen=True):
    """One attempt of one subtask. Times in ms since 1970, -1 where there is none."""

    index: int
    #: number of the attempt, from 0
    attempt: int
    #: name of an ExecutionState
    state: str
    #: resource id and address of the TaskManager, "" before it has one
    task_manager: str
    address: str
    #: time of its deployment
    start_ms: int
    end_ms: int
    #: time at which each state was entered
    timestamps_ms: dict[str, int]
    counters: TaskCounters
    failure: FailureInfo | None = None


class InputDetails(msgspec.Struct, frozen=True):
    """A data set that a vertex reads."""

    #: id of the producer's vertex
    vertex: str
    ship_strategy: str
    #: name of a ResultPartitionType
    exchange: str


class VertexDetails(msgspec.Struct, frozen=True):
    """One vertex. ``status`` is the execution state that stands for its subtasks together."""

    id: str
    name: str
    parallelism: int
    max_parallelism: int
    status: str
    start_ms: int
    end_ms: int
    subtasks: tuple[AttemptDetails, ...]
    inputs: tuple[InputDetails, ...]
    prior: tuple[AttemptDetails, ...] = ()


class JobFailure(msgspec.Struct, frozen=True):
    """A failure of a job and when it came; the failure names task and TaskManager."""

    time_ms: int
    failure: FailureInfo


class JobDetails(msgspec.Struct, frozen=True):
    """One job. ``status`` is a JobStatus name; times in ms since 1970, -1 where there is none."""

    job_id: JobId
    name: str
    status: str
    start_ms: int
    end_ms: int
    #: time at which each job status was last entered
    timestamps_ms: dict[str, int]
    vertices: tuple[VertexDetails, ...]
    decisions: tuple[RunTimeDecision, ...] = ()
    #: failures, latest first; of simultaneous ones only the cause
    failures: tuple[JobFailure, ...] = ()
    #: settings of this job, by key; secrets are not hidden here
    configuration: dict[str, str] = {}
    #: place in the queue, while the job has no slot and waits for some
    waiting: WaitingJob | None = None
    #: requests, bytes read and bytes written of the plan and of publication, by store
    stores: dict[str, tuple[int, int, int]] = {}
    #: physical operators as they were planned
    planned: tuple[PlannedStep, ...] = ()
    #: memory of its TaskManagers over time
    memory: tuple[MemoryPoint, ...] = ()


class RequestJobDetails(Request[JobDetails], frozen=True):
    """Ask for everything about a job."""

    job_id: JobId


class JobExceptions(msgspec.Struct, frozen=True):
    """The failures of a job, latest first, of those that came together the cause; is_truncated: there were more."""

    failures: tuple[JobFailure, ...]
    is_truncated: bool = False


class RequestJobExceptions(Request[JobExceptions], frozen=True):
    """Ask for the failures of a job so far."""

    job_id: JobId


JOB_DETAIL_TYPES: tuple[type[msgspec.Struct], ...] = (
    JobDetails,
    JobExceptions,
    RequestJobDetails,
    RequestJobExceptions,
)
