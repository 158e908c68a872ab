"""JobMaster: runs one job. Reports come in, the ExecutionGraph changes, decisions go out.

    start ─► prepare outputs ─► RUNNING ─► schedule ─► deploy ─► reports ... ─► all FINISHED ─► commit ─► FINISHED
                                   ├── a failure that may be mended ─► RESTARTING ─► RUNNING     (``region_failover``)
                                   ├── any other ─► FAILING ─┐
                                   └── cancel ─► CANCELLING ─┴─► all tasks ended ─► release, abort ─► FAILED | CANCELED

When a BLOCKING result is finished, its real size may change what has not begun (``RunTimePlanner``).
Every change of an attempt leads to ``_advance``: it starts regions whose inputs are finished, deploys what their
producers feed, asks for missing slots, and sees when the job is at its end. The outcome is known to others only after
slots, partitions, workers and staging are given back: when a client hears of the end, nothing is left behind.

File operations run in ``blocking_work``, everything else on the loop. Source: Flink's JobMaster and DefaultScheduler.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

from engine.clock import Clock
from engine.errors import EngineError, FencedError, MemoryBudgetError, SlotTimeoutError
from engine.gateways.failure_info import cancelled_elsewhere, failure_info, lost_task_executor
from engine.gateways.job_master import JobMasterGateway
from engine.gateways.messages import (
    CancelJob,
    CancelTask,
    FreeSlot,
    OfferSlots,
    PartitionConsumable,
    ReleaseJob,
    ReleasePartitions,
    ReportProgress,
    RequestSlotOverview,
    RequestSlots,
    SlotOfferReply,
    SubmitTask,
    TaskExecutorLost,
    UpdateTaskState,
    WithdrawSlotRequests,
)
from engine.graph.deployment import FailureInfo, TaskReport
from engine.graph.job_graph import JobGraph
from engine.ids import AllocationId, ResourceId
from engine.jobmaster.deployment import build_descriptor
from engine.jobmaster.execution_graph import build_execution_graph
from engine.jobmaster.execution_state import ExecutionState
from engine.jobmaster.execution_vertex import ExecutionVertex
from engine.jobmaster.job_commit import FolderStorage, JobCommit, JobStorage, StorageUnavailableError
from engine.jobmaster.job_report import JobReport
from engine.jobmaster.job_status import JobStatus
from engine.jobmaster.partition_tracker import partitions_to_release
from engine.jobmaster.region_failover import RegionFailover
from engine.jobmaster.restart_strategy import NoRestart, RestartStrategy
from engine.jobmaster.scheduler import Scheduler
from engine.jobmaster.slot_pool import AllocatedSlot, SlotPool
from engine.jobmaster.slot_timeout import SlotDeadline, slot_timeout_text
from engine.jobmaster.task_executor_watch import TaskExecutorWatch
from engine.rpc.endpoint import RpcEndpoint
from engine.rpc.errors import EndpointUnreachableError, RpcTimeoutError
from engine.rpc.fencing import LeaderFence
from engine.rpc.gateway import RpcService
from engine.rpc.request import ACKNOWLEDGE, Acknowledge, Request

_log = logging.getLogger(__name__)

_CANCEL_TRIES = 3
#: a failure may be mended, slots are of use
_GOING_ON = (JobStatus.RUNNING, JobStatus.RESTARTING)
#: seconds in which a TaskExecutor ends all tasks of a job and gives everything back
_RELEASE_TIMEOUT_S = 60.0
#: between two questions to a storage that does not answer
_STORAGE_PAUSE_S = 1.0


@dataclass(frozen=True)
class JobMasterSettings:
    """What a JobMaster is configured with. Times in seconds."""

    slot_request_timeout_s: float
    heartbeat_interval_s: float
    heartbeat_timeout_s: float
    resource_manager_address: str
    #: where decisions and results lie; None: decisions in the staging folder, results nowhere
    storage_folder: Path | None = None
    #: makes a job's own; by default nothing is tried again
    restart_strategy: Callable[[JobGraph], RestartStrategy] = lambda _: NoRestart()


class JobMaster(JobReport, RpcEndpoint):
    """One job. ``start`` once, then it lives by its messages; ``outcome`` is set at the end."""

    protocol = JobMasterGateway

    def __init__(
        self,
        job_graph: JobGraph,
        rpc: RpcService,
        epoch: int,
        settings: JobMasterSettings,
        clock: Clock,
        blocking_work: Executor,
        is_leading: Callable[[], bool] = lambda: True,
        on_fatal: Callable[[BaseException], None] | None = None,
        storage: JobStorage | None = None,
    ) -> None:
        JobReport.__init__(self, job_graph, build_execution_graph(job_graph), clock)
        RpcEndpoint.__init__(self, f"jobmaster-{job_graph.job_id}", LeaderFence(epoch), on_fatal)
        self._rpc = rpc
        self._epoch = epoch
        self._settings = settings
        self._blocking_work = blocking_work
        self._scheduler = Scheduler(self._graph)
        self._pool = SlotPool()
        if storage is None and settings.storage_folder is not None:
            storage = FolderStorage(settings.storage_folder, job_graph.job_id)
        self._commit = JobCommit(job_graph, epoch, is_leading, storage)
        self._staging: dict[int, str] = {}
        #: slots on TaskExecutors that were lost
        self._lost: dict[ResourceId, list[AllocationId]] = {}
        self._failover = RegionFailover(self._graph, self._scheduler, settings.restart_strategy(job_graph))
        self._slot_deadline = SlotDeadline(
            settings.slot_request_timeout_s, lambda: self.spawn(self._slots_timed_out(), "slot time-out")
        )
        self._is_ending = False
        self._is_pausing = False
        self._task_executors = TaskExecutorWatch(
            rpc,
            rpc.address_of(self.address),
            epoch,
            settings.heartbeat_interval_s,
            settings.heartbeat_timeout_s,
            clock,
            self.spawn,
            self._lose_task_executor,
        )

    # ---- start ----

    def start(self) -> None:
        """Begin to run the job."""
        self._enter(JobStatus.CREATED)
        self.spawn(self._begin(), "begin")
        self.spawn(self._task_executors.run(), "heartbeats")

    async def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            self._staging = await loop.run_in_executor(self._blocking_work, self._commit.prepare)
        except Exception as error:  # whatever it is, it is why the job fails
            self._fail(failure_info(error))
            return
        if self._status is JobStatus.CREATED:
            self._enter(JobStatus.RUNNING)
        self._advance()

    # ---- messages ----

    async def offer_slots(self, request: OfferSlots) -> SlotOfferReply:
        """Take the slots that waiting regions asked for."""
        if self._status not in _GOING_ON:
            return SlotOfferReply(())
        self._end_what_was_lost(request.resource_id, request.address)
        accepted = []
        for offer in request.slots:
            slot = AllocatedSlot(
                offer.allocation_id, request.resource_id, request.address, request.data_address, offer.managed_pages
            )
            if self._pool.offer(offer.request_id, slot):
                accepted.append(offer.allocation_id)
        if accepted:
            self._task_executors.watch(request.resource_id, request.address)
        # The TaskExecutor hears that its slots are taken before it is asked to use them.
        asyncio.get_running_loop().call_soon(self._advance)
        return SlotOfferReply(tuple(accepted))

    async def update_task_state(self, request: UpdateTaskState) -> Acknowledge:
        """Note the state change of an attempt."""
        self._report(request.report)
        return ACKNOWLEDGE

    async def partition_consumable(self, request: PartitionConsumable) -> Acknowledge:
        """Note that a PIPELINED partition has its first buffer; its readers may be deployed."""
        vertex = self._graph.vertex_of(request.partition.producer)
        for partition in vertex.partitions if vertex is not None else ():
            if partition.id == request.partition:
                partition.is_consumable = True
                self._advance()
        return ACKNOWLEDGE

    async def report_progress(self, request: ReportProgress) -> Acknowledge:
        """Note counters of running attempts."""
        for progress in request.tasks:
            vertex = self._graph.vertex_of(progress.attempt)
            if vertex is not None and not vertex.current.state.is_terminal:
                vertex.current.counters = progress.counters
        return ACKNOWLEDGE

    async def task_executor_lost(self, request: TaskExecutorLost) -> Acknowledge:
        """Treat the attempts on a TaskExecutor as failed."""
        self._lose_task_executor(request.resource_id, request.reason)
        return ACKNOWLEDGE

    async def cancel_job(self, request: CancelJob) -> Acknowledge:
        """Cancel all tasks; a job that ends already goes on to its end."""
        if self._status in (JobStatus.CREATED, *_GOING_ON) and not self._is_ending:
            _log.info("job %s is being cancelled", request.job_id)
            self._enter(JobStatus.CANCELLING)
            self._cancel_tasks(self._graph)
            self._advance()
        return ACKNOWLEDGE

    # ---- the job's way ----

    def _report(self, report: TaskReport) -> None:
        vertex = self._graph.update(report, self._clock)
        if vertex is None:
            return
        state = vertex.current.state
        if state.is_terminal:
            self._scheduler.subtask_ended(vertex, self._pool)
        if state is ExecutionState.FAILED:
            self._fail(report.failure or FailureInfo("JobExecutionError", "the task failed without a reason"), [vertex])
        elif state is ExecutionState.CANCELED and self._status in _GOING_ON and not self._failover.covers(vertex):
            self._fail(cancelled_elsewhere(vertex.name), [vertex])
        elif state is ExecutionState.FINISHED:
            for address, partitions in partitions_to_release(vertex).items():
                self._tell(address, ReleasePartitions(partitions))
            if self._status is JobStatus.RUNNING and self._failover.restart_count == 0:
                self._replan(vertex)
        self._advance()

    def _replan(self, finished: ExecutionVertex) -> None:
        """Have the real size of a finished result change the plan of what has not begun."""
        decisions = self._planner.replan(finished)
        for decision in decisions:
            _log.info("job %s: %s", self.job_graph.job_id, decision.text)
        if decisions:
            self.job_graph = self._graph.job_graph
            self._commit.revise(self.job_graph)
            self._withdraw_requests(self._scheduler.revise())

    def _fail(self, failure: FailureInfo, subtasks: Sequence[ExecutionVertex] = ()) -> None:
        """Run the regions of ``subtasks`` again, if that may help, or end the job."""
        self._failures.add(failure)
        if self._status not in (JobStatus.CREATED, *_GOING_ON) or self._is_ending:
            return
        if subtasks and self._restart(failure, subtasks):
            return
        _log.info("job %s fails: %s: %s", self.job_graph.job_id, failure.type_name, failure.message)
        self._enter(JobStatus.FAILING)
        self._cancel_tasks(self._graph)
        self._advance()

    def _restart(self, failure: FailureInfo, subtasks: Sequence[ExecutionVertex]) -> bool:
        """Begin to run regions again; return whether that is so."""
        if not failure.retryable:
            # A task that hangs while its region is being cancelled is not why the job should fail.
            return failure.type_name == "JobExecutionError" and all(map(self._failover.covers, subtasks))
        self._graph.note_damage(failure.partition)
        pause_s = self._failover.begin(subtasks, self._clock.monotonic_s())
        if pause_s is None:
            return False
        self._withdraw_requests(self._scheduler.withdraw_requests())
        if self._status is JobStatus.RUNNING:
            _log.info("restart in %.1f s: %s: %s", pause_s, failure.type_name, failure.message)
            self._slot_deadline.watch(is_stuck=False)
            self._enter(JobStatus.RESTARTING)
            self._is_pausing = True
            self.spawn(self._pause(pause_s), "pause before the restart")
        self._cancel_tasks(self._failover.subtasks)
        self._advance()
        return True

    async def _pause(self, pause_s: float) -> None:
        await asyncio.sleep(pause_s)
        self._is_pausing = False
        self._advance()

    def _run_again(self) -> None:
        """Begin new attempts of the regions that have ended."""
        for address, partitions in self._failover.finish().items():
            self._tell(address, ReleasePartitions(partitions))
        self._failures.mended()
        self._enter(JobStatus.RUNNING)
        self._advance()

    def _cancel_tasks(self, subtasks: Iterable[ExecutionVertex]) -> None:
        for vertex in subtasks:
            execution = vertex.current
            if execution.state in (ExecutionState.CREATED, ExecutionState.SCHEDULED):
                execution.transition(ExecutionState.CANCELING, self._clock)
                execution.transition(ExecutionState.CANCELED, self._clock)
                self._scheduler.subtask_ended(vertex, self._pool)
            elif execution.state.is_deployed and execution.state is not ExecutionState.CANCELING:
                execution.transition(ExecutionState.CANCELING, self._clock)
                self.spawn(self._cancel_task(vertex), f"cancel {vertex.name}")

    async def _cancel_task(self, vertex: ExecutionVertex) -> None:
        execution = vertex.current
        assert execution.slot is not None, f"{vertex.name} runs without a slot"
        gateway = self._rpc.connect(execution.slot.address, self._epoch)
        for _ in range(_CANCEL_TRIES):
            try:
                await gateway.ask(CancelTask(execution.attempt))
                return
            except (RpcTimeoutError, EndpointUnreachableError) as error:
                reason = str(error)
        self._lose_task_executor(execution.slot.resource_id, reason)

    def _advance(self) -> None:
        if self._is_ending or self._is_stopped:
            return
        if self._status is JobStatus.RUNNING:
            if self._graph.is_finished:
                self._is_ending = True
                self.spawn(self._finish(), "finish")
            else:
                self._schedule()
        elif self._status is JobStatus.RESTARTING:
            if self._failover.is_quiet and not self._is_pausing:
                self._run_again()
            else:
                self._schedule()
        elif self._status in (JobStatus.FAILING, JobStatus.CANCELLING) and self._graph.is_quiet:
            self._is_ending = True
            self.spawn(self._end_unfinished(), "end")

    # ---- scheduling ----

    def _schedule(self) -> None:
        for region in self._scheduler.start_regions(self._pool, self._clock):
            if region.request_id is not None and self._pool.close_request(region.request_id):
                self._tell_resource_manager(WithdrawSlotRequests(self.job_graph.job_id, region.request_id))
        for vertex in self._scheduler.deployable():
            if vertex.current.state is ExecutionState.SCHEDULED:  # none before it failed and took it along
                self._deploy(vertex)
            if self._status not in _GOING_ON:
                return
        for slot in self._pool.release_idle():
            self._tell(slot.address, FreeSlot(slot.allocation_id))
        waiting = self._scheduler.waiting
        for region in waiting:
            if region.request_id is None:
                region.request_id = self._pool.open_request(region.slot_count)
                self._request_slots(region.request_id, region.slot_count)
        is_running = self._status is JobStatus.RUNNING
        self._slot_deadline.watch(is_running and bool(waiting) and self._graph.active_count == 0)

    def _request_slots(self, request_id: int, count: int) -> None:
        job = self.job_graph
        address = self._rpc.address_of(self.address)
        self._tell_resource_manager(RequestSlots(job.job_id, job.name, address, request_id, count))

    def _withdraw_requests(self, request_ids: Iterable[int]) -> None:
        for request_id in request_ids:
            self._pool.close_request(request_id)
            self._tell_resource_manager(WithdrawSlotRequests(self.job_graph.job_id, request_id))

    async def _slots_timed_out(self) -> None:
        gateway = self._rpc.connect(self._settings.resource_manager_address, self._epoch)
        overview = await gateway.ask(RequestSlotOverview())
        waiting = self._scheduler.waiting
        if self._status is JobStatus.RUNNING and waiting and self._graph.active_count == 0:
            text = slot_timeout_text(waiting[0].slot_count, overview, self._settings.slot_request_timeout_s)
            self._fail(failure_info(SlotTimeoutError(text), task=waiting[0].subtasks[0].name))

    def _deploy(self, vertex: ExecutionVertex) -> None:
        execution = vertex.current
        assert execution.slot is not None, f"{vertex.name} has no slot"
        execution.transition(ExecutionState.DEPLOYING, self._clock)
        try:
            descriptor = build_descriptor(
                vertex, self.job_graph, self._scheduler.region_of(vertex).subtasks, self._staging
            )
        except MemoryBudgetError as error:
            self._deployment_failed(vertex, error)
            return
        request = SubmitTask(descriptor, self._rpc.address_of(self.address))
        self.spawn(self._submit_task(vertex, execution.slot.address, request), f"deploy {vertex.name}")

    async def _submit_task(self, vertex: ExecutionVertex, address: str, request: SubmitTask) -> None:
        try:
            await self._rpc.connect(address, self._epoch).ask(request)
        except EngineError as error:
            if vertex.current.attempt == request.descriptor.attempt:
                self._deployment_failed(vertex, error)

    def _deployment_failed(self, vertex: ExecutionVertex, error: EngineError) -> None:
        slot = vertex.current.slot
        failure = failure_info(error, vertex.name, str(slot.resource_id) if slot is not None else "")
        self._report(TaskReport(vertex.current.attempt, ExecutionState.FAILED.value, failure=failure))

    # ---- the end ----

    async def _finish(self) -> None:
        staged = [file for vertex in self._graph for file in vertex.current.staged_files]
        try:
            await self._ask_storage(lambda: self._commit.commit(staged))
        except FencedError as error:
            self._leave(error)
            return
        except Exception as error:  # whatever it is, it is why the job fails
            self._failures.add(failure_info(error))
            self._enter(JobStatus.FAILING)
            await self._end_unfinished()
            return
        if await self._record(JobStatus.FINISHED, None):
            await self._release()
            self._end(JobStatus.FINISHED, None)

    async def _end_unfinished(self) -> None:
        is_cancelled = self._status is JobStatus.CANCELLING
        status = JobStatus.CANCELED if is_cancelled else JobStatus.FAILED
        failure = None if is_cancelled else self._failures.root
        # Staging goes when nobody else can go on with the job: a stale leader would take it from its successor.
        if not await self._record(status, failure):
            return
        await self._release()
        try:
            await asyncio.get_running_loop().run_in_executor(self._blocking_work, self._commit.abort)
        except OSError as error:
            _log.warning("staging of job %s could not be removed: %s", self.job_graph.job_id, error)
        self._end(status, failure)

    async def _record(self, status: JobStatus, failure: FailureInfo | None) -> bool:
        """Record how the job ended; return whether this leader may end it.

        What was published stays published when that is not possible.
        """
        end = self._job_end(status, failure, self._epoch)
        try:
            await self._ask_storage(lambda: self._commit.record(end))
        except FencedError as error:
            self._leave(error)
            return False
        except (OSError, EngineError) as error:
            _log.warning("the result of job %s could not be recorded: %s", self.job_graph.job_id, error)
        return True

    async def _ask_storage(self, work: Callable[[], None]) -> None:
        """Do what may be done twice, again and again while the storage does not answer."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                return await loop.run_in_executor(self._blocking_work, work)
            except StorageUnavailableError as error:
                _log.warning("job %s waits for its storage: %s", self.job_graph.job_id, error)
                await asyncio.sleep(_STORAGE_PAUSE_S)

    def _leave(self, error: FencedError) -> None:
        """Do no more: another leader goes on with the job, and this one is about to be stopped."""
        _log.warning("job %s is left to another leader: %s", self.job_graph.job_id, error)

    async def _release(self) -> None:
        """Give back everything that the job holds on TaskExecutors and at the ResourceManager."""
        self._slot_deadline.watch(is_stuck=False)
        job_id = self.job_graph.job_id
        calls = [self._ask_quietly(self._settings.resource_manager_address, WithdrawSlotRequests(job_id))]
        calls += [self._ask_quietly(address, ReleaseJob(job_id)) for address in self._task_executors.addresses]
        await asyncio.gather(*calls)

    async def stop(self) -> None:
        """Stop answering; a job that has not ended is SUSPENDED here."""
        self._slot_deadline.watch(is_stuck=False)
        await super().stop()
        if not self._status.is_terminal:
            self._end(JobStatus.SUSPENDED, None)

    # ---- TaskExecutors ----

    def _tell_resource_manager(self, request: Request[Acknowledge]) -> None:
        self._tell(self._settings.resource_manager_address, request)

    def _tell(self, address: str, request: Request[Acknowledge]) -> None:
        self.spawn(self._ask_quietly(address, request), type(request).__name__)

    async def _ask_quietly(self, address: str, request: Request[Acknowledge]) -> None:
        """Send what need not arrive: a component that is gone holds nothing any more."""
        try:
            await self._rpc.connect(address, self._epoch).ask(request, _RELEASE_TIMEOUT_S)
        except EngineError as error:
            _log.warning("%s to %s: %s", type(request).__name__, address, error)

    def _lose_task_executor(self, resource_id: ResourceId, reason: str) -> None:
        self._task_executors.forget(resource_id)
        slots = [slot.allocation_id for slot in self._pool.slots if slot.resource_id == resource_id]
        self._lost.setdefault(resource_id, []).extend(slots)
        hurt_requests = self._pool.remove_task_executor(resource_id)
        for region in self._scheduler.waiting:
            if region.request_id in hurt_requests:
                self._pool.close_request(region.request_id)
                self._tell_resource_manager(WithdrawSlotRequests(self.job_graph.job_id, region.request_id))
                region.request_id = None
        hurt = self._graph.lose_task_executor(resource_id, self._clock)
        for vertex in hurt:
            self._scheduler.subtask_ended(vertex, self._pool)
        if hurt:
            self._fail(lost_task_executor(str(resource_id), reason, hurt[0].name), hurt)
        self._advance()

    def _end_what_was_lost(self, resource_id: ResourceId, address: str) -> None:
        """Have a TaskExecutor that is back end what it ran when it was lost: its slots can be used again."""
        for allocation_id in self._lost.pop(resource_id, ()):
            self._tell(address, FreeSlot(allocation_id))
