"""JobScheduling: slots are asked for, regions start, tasks are sent. A part of the JobMaster.

    regions that are ready ─► slots: of the pool, else asked for ─► Scheduled is in the journal ─► SubmitTask

A task is sent when the next leader would know where: what it does not know of is cancelled by its TaskExecutor.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Executor

from engine.errors import EngineError, MemoryBudgetError, SlotTimeoutError
from engine.fault_points import reach
from engine.gateways.failure_info import failure_info
from engine.gateways.job_queue import JobTurn, SlotsShort
from engine.gateways.messages import (
    FreeSlot,
    RequestSlotOverview,
    RequestSlots,
    SubmitTask,
    SuspectTaskExecutor,
    WithdrawSlotRequests,
)
from engine.graph.deployment import FailureInfo, TaskReport
from engine.ids import ResourceId
from engine.jobmaster.deployment import build_descriptor
from engine.jobmaster.execution_state import ExecutionState
from engine.jobmaster.execution_vertex import Execution, ExecutionVertex
from engine.jobmaster.job_commit import JobCommit
from engine.jobmaster.job_ending import JobEnding
from engine.jobmaster.job_event import BoundsChosen, Scheduled, ScheduledAttempt
from engine.jobmaster.job_facts import JobFacts
from engine.jobmaster.job_journal import Journal
from engine.jobmaster.job_status import JobStatus
from engine.jobmaster.range_bounds import choose_bounds
from engine.jobmaster.scheduler import SchedulingRegion
from engine.jobmaster.slot_timeout import SlotDeadline, slot_timeout_text
from engine.rpc.errors import EndpointUnreachableError, RpcTimeoutError
from engine.rpc.gateway import RpcService
from engine.rpc.request import ACKNOWLEDGE, Acknowledge

_log = logging.getLogger(__name__)

#: so often a TaskExecutor is asked that does not answer
TRIES = 3
#: seconds for which a part of the slots of a region is kept when the rest does not come
_COLLECTING_S = 10.0
#: a failure may be mended, slots are of use
GOING_ON = (JobStatus.RUNNING, JobStatus.RESTARTING)


class JobScheduling(JobEnding):
    """Regions, slots and tasks of one job, whose JobMaster this is a part of."""

    def __init__(
        self,
        state: JobFacts,
        rpc: RpcService,
        epoch: int,
        resource_manager_address: str,
        commit: JobCommit,
        journal: Journal,
        blocking_work: Executor,
        on_fatal: Callable[[BaseException], None] | None,
        slot_request_timeout_s: float,
        turn: JobTurn,
    ) -> None:
        super().__init__(state, rpc, epoch, resource_manager_address, commit, journal, blocking_work, on_fatal)
        self._turn = turn
        #: nothing that the job waits for could be served by the slots there are
        self._is_short = False
        self._scheduler = state.scheduler
        self._pool = state.pool
        self._staging: dict[int, str] = {}
        #: regions whose slots are not in the journal yet
        self._unwritten: set[int] = set()
        self._slot_request_timeout_s = slot_request_timeout_s
        self._slot_deadline = SlotDeadline(
            slot_request_timeout_s, lambda: self.spawn(self._slots_timed_out(), "slot time-out")
        )
        self._collecting = SlotDeadline(_COLLECTING_S, self._ask_again)

    def _advance(self) -> None:
        """Do what has become possible."""
        raise NotImplementedError

    def _report(self, report: TaskReport) -> None:
        """Act on a report."""
        raise NotImplementedError

    async def _cancel_task(self, vertex: ExecutionVertex) -> None:
        """Have the current attempt end."""
        raise NotImplementedError

    def _lose_task_executor(self, resource_id: ResourceId, reason: str) -> None:
        """Count everything there as lost."""
        raise NotImplementedError

    def _give_up_task_executor(self, resource_id: ResourceId, reason: str) -> None:
        """Lose a TaskExecutor that could not be reached, and have the others know soon."""
        self._tell_resource_manager(SuspectTaskExecutor(resource_id))
        self._lose_task_executor(resource_id, reason)

    def _fail(self, failure: FailureInfo, subtasks: Sequence[ExecutionVertex] = ()) -> None:
        """Act on a failure."""
        raise NotImplementedError

    def _schedule(self) -> None:
        started = self._scheduler.start_regions(self._pool, self._clock)
        for region in started:
            if region.request_id is not None and self._pool.close_request(region.request_id):
                self._tell_resource_manager(WithdrawSlotRequests(self.job_graph.job_id, region.request_id))
            self._write_down(region)
        if not self._journal.is_durable and started:
            self._unwritten |= {id(region) for region in started}
            self.spawn(self._await_journal(started), "slots are written down")
        for vertex in self._scheduler.deployable():
            is_written = id(self._scheduler.region_of(vertex)) not in self._unwritten
            if (
                is_written and vertex.current.state is ExecutionState.SCHEDULED
            ):  # none before it failed and took it along
                self._deploy(vertex)
            if self._status not in GOING_ON:
                return
        for slot in self._pool.release_idle():
            self._tell(slot.address, FreeSlot(slot.allocation_id))
        waiting = self._scheduler.waiting
        for region in waiting:
            if region.request_id is None:
                region.request_id = self._pool.open_request(region.slot_count)
                self._request_slots(region.request_id, region.slot_count)
        self._collecting.watch(bool(self._pool.incomplete))
        self._slot_deadline.watch(self._is_stuck)

    @property
    def _is_stuck(self) -> bool:
        """Whether nothing runs, and what waits needs more slots than there are. Who waits for others is not stuck."""
        is_idle = self._status is JobStatus.RUNNING and self._graph.active_count == 0
        return is_idle and self._is_short and bool(self._scheduler.waiting)

    async def slots_short(self, request: SlotsShort) -> Acknowledge:
        """Count the time in which the cluster could never serve what the job waits for."""
        self._is_short = request.is_short
        self._slot_deadline.watch(self._is_stuck)
        return ACKNOWLEDGE

    def _ask_again(self) -> None:
        """Give back what has come of requests whose rest does not come, and ask anew, from the same place in the queue.

        Two jobs that each hold a part of what they need would wait for each other.
        """
        self._collecting.watch(is_stuck=False)
        self._close_requests(self._pool.incomplete)
        if self._status in GOING_ON:
            self._advance()

    def _close_requests(self, request_ids: Collection[int]) -> None:
        """Give up requests of regions that wait; they ask anew."""
        for region in self._scheduler.waiting:
            if region.request_id is not None and region.request_id in request_ids:
                self._withdraw_requests([region.request_id])
                region.request_id = None

    def _write_down(self, region: SchedulingRegion) -> None:
        for data_set, bounds in choose_bounds(region.subtasks):
            self._journal.append(BoundsChosen(data_set, bounds))
        placed = [(each.current.attempt, each.current.slot) for each in region.subtasks]
        attempts = tuple(ScheduledAttempt(attempt, slot) for attempt, slot in placed if slot is not None)
        self._journal.append(Scheduled(attempts, self._clock.wall_ms()))

    async def _await_journal(self, regions: Iterable[SchedulingRegion]) -> None:
        await self._journal.flush()
        reach("job.scheduled")
        self._unwritten -= {id(region) for region in regions}
        self._advance()

    def _request_slots(self, request_id: int, count: int) -> None:
        job, avoided = self.job_graph, tuple(self._pool.avoided)
        address = self._rpc.address_of(self.address)
        self._tell_resource_manager(RequestSlots(job.job_id, job.name, address, request_id, count, avoided, self._turn))

    def _withdraw_requests(self, request_ids: Iterable[int]) -> None:
        for request_id in request_ids:
            self._pool.close_request(request_id)
            self._tell_resource_manager(WithdrawSlotRequests(self.job_graph.job_id, request_id))

    async def _slots_timed_out(self) -> None:
        gateway = self._rpc.connect(self._resource_manager_address, self._epoch)
        overview = await gateway.ask(RequestSlotOverview())
        waiting = self._scheduler.waiting
        if self._is_stuck:
            text = slot_timeout_text(waiting[0].slot_count, overview, self._slot_request_timeout_s)
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
        """Send a task. One that was not answered may run: it is sent again, and who never answers is lost."""
        execution, reason = vertex.current, ""
        for _ in range(TRIES):
            if vertex.current is not execution or execution.state.is_terminal:
                return  # it was lost meanwhile, with its TaskExecutor
            try:
                await self._rpc.connect(address, self._epoch).ask(request)
            except (RpcTimeoutError, EndpointUnreachableError) as error:
                reason = str(error)
            except EngineError as error:
                if vertex.current is execution:
                    self._refused(execution)
                    self._deployment_failed(vertex, error)
                return
            else:
                if reason and execution.state is ExecutionState.CANCELING:
                    await self._cancel_task(vertex)  # it may have been cancelled before it was there
                return
        if vertex.current is execution and not execution.state.is_terminal and execution.slot is not None:
            self._give_up_task_executor(execution.slot.resource_id, reason)

    def _refused(self, execution: Execution) -> None:
        """Give up the slot of an attempt: its TaskExecutor may have taken it back when nobody heard."""
        if execution.slot is not None:
            self._pool.discard(execution.slot.allocation_id)
            self._tell(execution.slot.address, FreeSlot(execution.slot.allocation_id))

    def _deployment_failed(self, vertex: ExecutionVertex, error: EngineError) -> None:
        slot = vertex.current.slot
        failure = failure_info(error, vertex.name, str(slot.resource_id) if slot is not None else "")
        self._report(TaskReport(vertex.current.attempt, ExecutionState.FAILED.value, failure=failure))

    async def _release(self) -> None:
        self._stop_counting()
        await super()._release()

    def _stop_counting(self) -> None:
        self._slot_deadline.watch(is_stuck=False)
        self._collecting.watch(is_stuck=False)

    async def stop(self) -> None:
        """Stop answering; a job that has not ended is SUSPENDED here."""
        self._stop_counting()
        await super().stop()
