"""The messages between components: frozen structs, each naming its reply.

    client ── SubmitJob, CancelJob, RequestJob* ──► Dispatcher ── CancelJob, RequestJob* ──► JobMaster
    TaskExecutor ── RegisterTaskExecutor ──► ResourceManager                                  (1) slots are registered
    JobMaster ── RequestSlots ──► ResourceManager                                             (2) slots are wanted
    ResourceManager ── RequestSlot ──► TaskExecutor                                           (3) a slot is assigned
    TaskExecutor ── OfferSlots ──► JobMaster                                                  (4) and offered
    JobMaster ── SubmitTasks, CancelTask, ReleasePartitions ──► TaskExecutor                   (5) and used
    TaskExecutor ── UpdateTaskStates, ReportProgress ──► JobMaster
    JobMaster ── FreeSlot, ReleaseJob ──► TaskExecutor ── NotifySlotFree ──► ResourceManager
    ResourceManager, JobMaster ── Heartbeat ──► TaskExecutor
    REST ── EndTaskExecutors ──► ResourceManager ── EndProcess ──► TaskExecutor  the cluster is shut down
    JobMaster (of the next leader) ── ReattachJob ──► TaskExecutor               what goes on under it
    TaskExecutor ── StayConnected (held open), DisconnectTaskExecutor ──► ResourceManager
    TaskExecutor ── RequestLeader ──► JobManager                                 which one leads, under which epoch

Only types listed in MESSAGE_TYPES travel. The epoch is not in them: every call carries it (``engine.rpc``).

Held by: tests/rpc/test_codec.py
"""

from __future__ import annotations

import msgspec

from engine.gateways.insight import INSIGHT_TYPES
from engine.gateways.job_details import JOB_DETAIL_TYPES, JobRestart
from engine.gateways.job_queue import FIRST_TURN, JOB_QUEUE_TYPES, JobTurn, WaitingJob
from engine.gateways.memory_use import MemoryInUse
from engine.gateways.task_executors import TASK_EXECUTOR_TYPES, TaskExecutorHardware
from engine.graph.deployment import (
    FailureInfo,
    PublishedOutput,
    TaskCounters,
    TaskDeploymentDescriptor,
    TaskReport,
    VertexResult,
)
from engine.graph.job_graph import JobGraph
from engine.graph.run_time_decision import RunTimeDecision
from engine.graph.task_wait import TaskWait
from engine.ids import AllocationId, ExecutionAttemptId, JobId, ResourceId, ResultPartitionId
from engine.rpc.program import Program
from engine.rpc.request import Acknowledge, Request


class JobOverview(msgspec.Struct, frozen=True):
    """A job in a list. ``status`` is a JobStatus name; ``end_ms`` is -1 while it runs."""

    job_id: JobId
    name: str
    status: str
    start_ms: int
    end_ms: int
    #: number of tasks in each execution state, by state name
    tasks: dict[str, int] = {}
    #: place in the queue, while the job has no slot and waits for some
    waiting: WaitingJob | None = None
    #: user that the job belongs to; "": none by name
    user: str = ""
    #: time at which its first subtask began, in ms since 1970; -1: none has
    begun_ms: int = -1


class JobList(msgspec.Struct, frozen=True):
    """All jobs the Dispatcher knows, oldest first."""

    jobs: tuple[JobOverview, ...]


class SubmitReply(msgspec.Struct, frozen=True):
    """``is_new`` is False when a job of that id was there already; nothing was started then."""

    job_id: JobId
    is_new: bool


class VertexProgress(msgspec.Struct, frozen=True):
    """One vertex while it runs: counters summed over subtasks, subtasks by execution state."""

    name: str
    parallelism: int
    counters: TaskCounters
    #: number of subtasks in each state, by state name
    subtasks: dict[str, int]


class JobProgress(msgspec.Struct, frozen=True):
    """Live numbers of a job."""

    job_id: JobId
    name: str
    status: str
    runtime_ms: int
    vertices: tuple[VertexProgress, ...]
    #: run-time decisions so far
    decisions: tuple[RunTimeDecision, ...] = ()
    waiting: WaitingJob | None = None
    #: latest restarts, oldest first
    restarts: tuple[JobRestart, ...] = ()
    #: storage that its end waits for, and why; "": none
    trouble: str = ""


class JobOutcome(msgspec.Struct, frozen=True):
    """The outcome of a job. ``status`` is FINISHED, FAILED, CANCELED or SUSPENDED."""

    job_id: JobId
    name: str
    status: str
    runtime_ms: int
    vertices: tuple[VertexResult, ...]
    failure: FailureInfo | None = None
    decisions: tuple[RunTimeDecision, ...] = ()
    #: outputs of a job that has finished, as their targets tell of them
    outputs: tuple[PublishedOutput, ...] = ()
    #: requests, bytes read and bytes written of the plan and of publication, by store
    stores: dict[str, tuple[int, int, int]] = {}


class SubmitJob(Request[SubmitReply], frozen=True):
    """Start a job, unless one of that id is known already."""

    job_graph: JobGraph


class CancelJob(Request[Acknowledge], frozen=True):
    """Cancel a job; without effect on one that has ended."""

    job_id: JobId


class RequestJobStatus(Request[JobOverview], frozen=True):
    """Ask for a job's state."""

    job_id: JobId


class RequestJobProgress(Request[JobProgress], frozen=True):
    """Ask for a job's live numbers."""

    job_id: JobId


class RequestJobOutcome(Request[JobOutcome], frozen=True):
    """Ask how a job ended; answered when it has."""

    job_id: JobId


class ListJobs(Request[JobList], frozen=True):
    """Ask for all jobs."""


class SlotStatus(msgspec.Struct, frozen=True):
    """One slot as its TaskExecutor sees it; without ``allocation_id`` it is free."""

    index: int
    allocation_id: AllocationId | None = None
    job_id: JobId | None = None


class RegistrationReply(msgspec.Struct, frozen=True):
    """The ResourceManager knows the TaskExecutor now."""

    resource_id: ResourceId
    #: named jobs that this leader does not know and will not ask for
    unknown_jobs: tuple[JobId, ...] = ()
    #: difference of the two machines' clocks, where users should know of it; else ""
    clock_note: str = ""


class RegisterTaskExecutor(Request[RegistrationReply], frozen=True):
    """A TaskExecutor and all of its slots. Sent again whenever the slots change: the last one counts."""

    resource_id: ResourceId
    address: str
    slots: tuple[SlotStatus, ...]
    #: address at which other TaskExecutors read its partitions
    data_address: str = ""
    hardware: TaskExecutorHardware = TaskExecutorHardware()
    #: jobs of which it holds tasks, slots or results
    jobs: tuple[JobId, ...] = ()
    #: wall clock of the sender; 0: not given
    clock_ms: int = 0
    program: Program = Program()
    #: True if it takes no slots and ends once nothing is left on it
    is_draining: bool = False


class StayConnected(Request[Acknowledge], frozen=True):
    """Hold this call open for a while; when either side goes away the other one hears of it at once."""

    resource_id: ResourceId


class DisconnectTaskExecutor(Request[Acknowledge], frozen=True):
    """A TaskExecutor leaves; what runs there is lost."""

    resource_id: ResourceId
    reason: str


class LeaderReply(msgspec.Struct, frozen=True):
    """The leader of the cluster: ``address`` is ``<host>:<port>`` of its process."""

    epoch: int
    session: str
    address: str


class RequestLeader(Request[LeaderReply], frozen=True):
    """Ask a JobManager which one leads."""


class EndTaskExecutors(Request[Acknowledge], frozen=True):
    """The cluster is shut down: every TaskExecutor that is registered is asked to end its process."""

    reason: str


class EndProcess(Request[Acknowledge], frozen=True):
    """Tell a TaskExecutor to end its process, as a signal would."""

    reason: str


class RequestSlots(Request[Acknowledge], frozen=True):
    """Request ``count`` slots, all of them or none, for one pipelined region; ``request_id`` grows within a job."""

    job_id: JobId
    job_name: str
    job_master_address: str
    request_id: int
    count: int
    #: TaskExecutors whose slots are used only when there are no others
    avoided: tuple[ResourceId, ...] = ()
    turn: JobTurn = FIRST_TURN


class WithdrawSlotRequests(Request[Acknowledge], frozen=True):
    """Withdraw a request for slots, or (None) all requests of a job."""

    job_id: JobId
    request_id: int | None = None


class NotifySlotFree(Request[Acknowledge], frozen=True):
    """A slot was given back."""

    resource_id: ResourceId
    index: int
    allocation_id: AllocationId


class SlotHolder(msgspec.Struct, frozen=True):
    """A job and the number of slots it holds."""

    job_id: JobId
    job_name: str
    count: int


class SlotOverview(msgspec.Struct, frozen=True):
    """All slots of the cluster."""

    total_count: int
    free_count: int
    task_executor_count: int
    holders: tuple[SlotHolder, ...]


class RequestSlotOverview(Request[SlotOverview], frozen=True):
    """Ask which jobs have the slots."""


class RequestSlot(Request[Acknowledge], frozen=True):
    """Assign a slot of this TaskExecutor to a job and have it offered to its JobMaster."""

    index: int
    job_id: JobId
    allocation_id: AllocationId
    job_master_address: str
    request_id: int


class SlotOffer(msgspec.Struct, frozen=True):
    """A slot for the JobMaster to use, with its pages."""

    index: int
    allocation_id: AllocationId
    pages: int
    #: number of the JobMaster's request
    request_id: int
    #: additional pages for a job without Python functions
    spare_pages: int = 0


class SlotOfferReply(msgspec.Struct, frozen=True):
    """The offers that the JobMaster takes."""

    accepted: tuple[AllocationId, ...]


class OfferSlots(Request[SlotOfferReply], frozen=True):
    """Offer slots to a JobMaster. ``data_address`` is where partitions of this TaskExecutor are read from."""

    resource_id: ResourceId
    address: str
    data_address: str
    slots: tuple[SlotOffer, ...]


class SubmitTasksReply(msgspec.Struct, frozen=True):
    """The failures of attempts that do not run; all others do, or have run."""

    refused: tuple[TaskReport, ...] = ()


class SubmitTasks(Request[SubmitTasksReply], frozen=True):
    """Run attempts, producers before their consumers; drop result partitions as ``ReleasePartitions`` does."""

    descriptors: tuple[TaskDeploymentDescriptor, ...]
    job_master_address: str
    released: tuple[ResultPartitionId, ...] = ()


class CancelTask(Request[Acknowledge], frozen=True):
    """Cancel one attempt; without effect on one that has ended."""

    attempt: ExecutionAttemptId


class FreeSlot(Request[Acknowledge], frozen=True):
    """Take a slot back; its tasks are cancelled."""

    allocation_id: AllocationId


class ReleasePartitions(Request[Acknowledge], frozen=True):
    """Drop result partitions that will not be read."""

    partitions: tuple[ResultPartitionId, ...]


class ReleaseJob(Request[Acknowledge], frozen=True):
    """Drop everything of a job: tasks, slots, partitions. Answered when its task threads have ended."""

    job_id: JobId


class AttachedJob(msgspec.Struct, frozen=True):
    """The tasks, slots and results of a job that a TaskExecutor holds, of those that a new JobMaster asked for."""

    resource_id: ResourceId
    slots: tuple[AllocationId, ...]
    #: last report of each attempt that runs, or ran, on this TaskExecutor
    reports: tuple[TaskReport, ...]
    partitions: tuple[ResultPartitionId, ...]
    is_draining: bool = False


class ReattachJob(Request[AttachedJob], frozen=True):
    """Tell a TaskExecutor that a JobMaster resumes a job that another one began.

    What the TaskExecutor has of the job and is not named here is cancelled, dropped and freed.
    """

    job_id: JobId
    job_master_address: str
    attempts: tuple[ExecutionAttemptId, ...]
    partitions: tuple[ResultPartitionId, ...]
    slots: tuple[AllocationId, ...]


class HeartbeatReply(msgspec.Struct, frozen=True):
    """A sign of life."""

    resource_id: ResourceId


class Heartbeat(Request[HeartbeatReply], frozen=True):
    """A sign of life of ``sender`` (its address), and the request for one."""

    sender: str


class UpdateTaskStates(Request[Acknowledge], frozen=True):
    """Attempts changed their states, in this order."""

    reports: tuple[TaskReport, ...]


class TaskProgress(msgspec.Struct, frozen=True):
    """Counters of one running attempt."""

    attempt: ExecutionAttemptId
    counters: TaskCounters
    #: wait of a task without progress since the last report; None: it works
    wait: TaskWait | None = None


class ReportProgress(Request[Acknowledge], frozen=True):
    """Counters of the running attempts of one job."""

    tasks: tuple[TaskProgress, ...]
    #: memory of the process that they run in
    memory: MemoryInUse | None = None


class TaskExecutorLost(Request[Acknowledge], frozen=True):
    """The ResourceManager lost a TaskExecutor."""

    resource_id: ResourceId
    reason: str


class SuspectTaskExecutor(Request[Acknowledge], frozen=True):
    """Tell the ResourceManager that a job could not reach a TaskExecutor; if it is gone, all jobs are told."""

    resource_id: ResourceId


MESSAGE_TYPES: tuple[type[msgspec.Struct], ...] = (
    Acknowledge,
    AttachedJob,
    CancelJob,
    CancelTask,
    DisconnectTaskExecutor,
    EndProcess,
    EndTaskExecutors,
    FreeSlot,
    Heartbeat,
    HeartbeatReply,
    JobList,
    JobOutcome,
    JobOverview,
    JobProgress,
    LeaderReply,
    ListJobs,
    NotifySlotFree,
    OfferSlots,
    ReattachJob,
    RegisterTaskExecutor,
    RegistrationReply,
    ReleaseJob,
    ReleasePartitions,
    ReportProgress,
    RequestJobOutcome,
    RequestJobProgress,
    RequestJobStatus,
    RequestLeader,
    RequestSlot,
    RequestSlotOverview,
    RequestSlots,
    SlotOfferReply,
    SlotOverview,
    StayConnected,
    SubmitJob,
    SubmitReply,
    SubmitTasks,
    SubmitTasksReply,
    SuspectTaskExecutor,
    TaskExecutorLost,
    UpdateTaskStates,
    WithdrawSlotRequests,
    *INSIGHT_TYPES,
    *JOB_DETAIL_TYPES,
    *JOB_QUEUE_TYPES,
    *TASK_EXECUTOR_TYPES,
)
