"""JobMaster: runs one job. Reports come in, the ExecutionGraph changes, decisions go out.

    start ─► prepare outputs ─► RUNNING ─► schedule ─► deploy ─► reports ... ─► all FINISHED ─► commit ─► FINISHED
      │                            ├── a failure that may be mended ─► RESTARTING ─► RUNNING     (``region_failover``)
      │                            ├── any other ─► FAILING ─┐
      │                            └── cancel ─► CANCELLING ─┴─► all tasks ended ─► release, abort ─► FAILED | CANCELED
      └── of another leader ─► RECONCILING ─► RUNNING | FAILING | CANCELLING                        (``reattachment``)

When a BLOCKING result is finished, its real size may change what has not begun (``RunTimePlanner``).
Every change of an attempt leads to ``_advance``: it starts regions whose inputs are finished, deploys what their
producers feed, asks for missing slots, and sees when the job is at its end (``job_ending``).

What is decided and learned goes to the journal, from which the next leader rebuilds the job (``job_facts``). Only
the slots of a region are waited for, before its tasks are sent: what a TaskExecutor runs or holds can be found again.

File operations run in ``blocking_work``, everything else on the loop. Source: Flink's JobMaster and DefaultScheduler.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor

import msgspec

from engine.clock import Clock
from engine.commit.decision import Decision
from engine.errors import DiskFullError, EngineError, FencedError, JobStalledError, PlanError
from engine.fault_points import reach
from engine.gateways.failure_info import cancelled_elsewhere, failure_info, lost_task_executor
from engine.gateways.job_master import JobMasterGateway
from engine.gateways.job_queue import FIRST_TURN, JobTurn
from engine.gateways.messages import (
    CancelJob,
    CancelTask,
    FreeSlot,
    OfferSlots,
    ReleasePartitions,
    ReportProgress,
    SlotOfferReply,
    TaskExecutorLost,
    UpdateTaskState,
)
from engine.graph.deployment import FailureInfo, TaskReport
from engine.graph.job_graph import JobGraph
from engine.ids import AllocationId, ResourceId, ResultPartitionId
from engine.jobmaster.execution_state import ExecutionState
from engine.jobmaster.execution_vertex import ExecutionVertex
from engine.jobmaster.job_commit import JobCommit, JobStorage
from engine.jobmaster.job_event import CancelAsked, Led, Prepared, Replanned, Restarted, TaskEnded
from engine.jobmaster.job_facts import JobFacts, RecoveredJob, cancel
from engine.jobmaster.job_journal import Journal, NoJournal
from engine.jobmaster.job_master_settings import JobMasterSettings
from engine.jobmaster.job_scheduling import GOING_ON, TRIES, JobScheduling
from engine.jobmaster.job_status import JobStatus
from engine.jobmaster.partition_tracker import partitions_to_release
from engine.jobmaster.reattachment import Losses, Reattachment, losses, why_missing
from engine.jobmaster.repeated_failure import RepeatedFailure
from engine.jobmaster.slot_pool import AllocatedSlot
from engine.jobmaster.stall_watch import StallWatch
from engine.jobmaster.task_executor_watch import TaskExecutorWatch
from engine.rpc.gateway import RpcService
from engine.rpc.request import ACKNOWLEDGE, Acknowledge

_log = logging.getLogger(__name__)


class JobMaster(JobScheduling):
    """One job. ``start`` once, then it lives by its messages; ``outcome`` is set at the end.

    Args:
        storage: where decision and end are kept.
        journal: what happens is written to.
        recovered: of a job that another leader began; ``journal`` has its events already.
        turn: place of the job among those that wait for slots.
    """

    protocol = JobMasterGateway

    def __init__(
        self,
        job_graph: JobGraph,
        rpc: RpcService,
        epoch: int,
        settings: JobMasterSettings,
        clock: Clock,
        blocking_work: Executor,
        is_leading: Callable[[], bool],
        on_fatal: Callable[[BaseException], None],
        storage: JobStorage,
        journal: Journal | None = None,
        recovered: RecoveredJob | None = None,
        turn: JobTurn = FIRST_TURN,
    ) -> None:
        self._recovered = recovered
        events = () if recovered is None else recovered.events
        state = JobFacts.rebuild(job_graph, lambda: settings.restart_strategy(job_graph), clock, events)
        commit = JobCommit(state.graph.job_graph, epoch, is_leading, storage, state.staging)
        super().__init__(
            state,
            rpc,
            epoch,
            settings.resource_manager_address,
            commit,
            journal or NoJournal(),
            blocking_work,
            on_fatal,
            settings.slot_request_timeout_s,
            turn,
        )
        self._settings = settings
        self._state = state
        self._is_reattached = recovered is None
        #: when the failure came that is being mended
        self._failed_ms = 0
        self._reattachment: Reattachment | None = None
        #: what came while TaskExecutors were asked
        self._early_reports: list[TaskReport] = []
        #: slots on TaskExecutors that were lost
        self._lost: dict[ResourceId, list[AllocationId]] = {}
        self._failover = state.failover
        self._stall = StallWatch(state.graph, settings.stalled_timeout_s(job_graph))
        self._repeated = RepeatedFailure(settings.give_up_s(job_graph))
        self._is_pausing = False
        self._task_executors = TaskExecutorWatch(
            rpc,
            rpc.address_of(self.address),
            epoch,
            settings.heartbeat_interval_s,
            settings.heartbeat_timeout_s,
            clock,
            self.spawn,
            self._give_up_task_executor,
        )

    # ---- start ----

    def start(self) -> None:
        """Begin to run the job, or go on with it."""
        self._enter(JobStatus.CREATED)
        self._journal.append(Led(self._epoch, self._clock.wall_ms()))
        if self._recovered is None:
            self.spawn(self._begin(), "begin")
        else:
            self._enter(JobStatus.RECONCILING)
            self.spawn(self._go_on(self._recovered.decision), "go on")
        self.spawn(self._task_executors.run(), "heartbeats")

    async def _begin(self) -> None:
        if await self._prepare() and self._status is JobStatus.CREATED:
            self._enter(JobStatus.RUNNING)
        self._advance()

    async def _prepare(self) -> bool:
        """Have staging; return whether there is any."""
        known = self._state.staging
        try:
            if known is None:
                self._staging = await self._ask_storage(self._commit.prepare)
                self._journal.append(Prepared(self._staging))
            else:
                self._staging = known
                await self._ask_storage(lambda: self._commit.adopt(known))
        except FencedError as error:
            self._leave(error)
            return False
        except Exception as error:  # whatever it is, it is why the job fails
            self._fail(failure_info(error))
            return False
        reach("job.prepared")
        return True

    # ---- a job of another leader ----

    async def _go_on(self, decision: Decision | None) -> None:
        """Take the job up where its events end."""
        if decision is not None:
            self._is_ending = True
            self._enter(JobStatus.RUNNING)
            await self._publish(lambda: self._commit.publish_again(decision))
        elif self._state.is_cancelling or self._state.is_failing:
            self._enter(JobStatus.CANCELLING if self._state.is_cancelling else JobStatus.FAILING)
            self._drop_tasks()
        elif await self._prepare():
            await self._reattach()

    def _drop_tasks(self) -> None:
        """Think no more of what may run: TaskExecutors end it when the job is released."""
        cancel(list(self._graph), self._state)
        self._advance()

    async def _reattach(self) -> None:
        """Find what TaskExecutors have of the job, and run what is missing."""
        if self._status is not JobStatus.RECONCILING:  # cancelled meanwhile
            return
        reach("job.reattaching")
        address, timeout_s = self._rpc.address_of(self.address), self._settings.reattach_timeout_s
        watch = self._task_executors.watch
        self._reattachment = Reattachment(self._rpc, self._epoch, address, timeout_s, self._clock, self._state, watch)
        try:
            answers = await self._reattachment.run()
        except FencedError as error:
            self._leave(error)
            return
        reach("job.reattached")
        if self._status is not JobStatus.RECONCILING:
            return
        for resource_id, answer in answers.items():
            self._pool.keep(resource_id, answer.slots)
        self._is_reattached = True
        self._enter(JobStatus.RUNNING)
        for report in (*(report for answer in answers.values() for report in answer.reports), *self._early_reports):
            self._learn(report)
        self._mend(losses(self._state, self._reattachment.expected, answers))
        measured = self._planner.some_measured()
        if measured is not None:  # what followed from its size may have been cut off
            self._replan(measured)
        self._advance()

    def _mend(self, lost: Losses) -> None:
        """Have everything run again that failed, was torn down or is not there any more."""
        for resource_id in lost.task_executors:
            self._forget_task_executor(resource_id)
            self._graph.lose_task_executor(resource_id, self._clock)
        for vertex in lost.attempts:
            self._learn(TaskReport(vertex.current.attempt, ExecutionState.FAILED.value))
        hurt = {vertex.id: vertex for vertex in lost.results}
        for vertex in self._graph:
            has_ended = vertex.current.state in (ExecutionState.FAILED, ExecutionState.CANCELED)
            if has_ended:
                self._scheduler.subtask_ended(vertex, self._pool)
            if has_ended or (vertex.current.is_lost and vertex.is_needed):
                hurt[vertex.id] = vertex
        failures = [(vertex, why_missing(vertex)) for vertex in hurt.values()]
        # What cannot be mended ends the job, unless it came of what is mended.
        for vertex, failure in sorted(failures, key=lambda pair: not pair[1].retryable):
            if not self._failover.covers(vertex):
                self._fail(failure, [vertex], is_new=failure not in self._failures.unmended)

    # ---- messages ----

    async def offer_slots(self, request: OfferSlots) -> SlotOfferReply:
        """Take the slots that waiting regions asked for."""
        if self._status not in GOING_ON or self._is_ending:
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
        if self._status is JobStatus.RECONCILING:
            self._early_reports.append(request.report)
        else:
            self._report(request.report)
        return ACKNOWLEDGE

    async def report_progress(self, request: ReportProgress) -> Acknowledge:
        """Note counters of running attempts."""
        for progress in request.tasks:
            vertex = self._graph.vertex_of(progress.attempt)
            if vertex is not None and not vertex.current.state.is_terminal:
                vertex.current.counters = progress.counters
        stalled = self._stall.note(request.tasks, self._clock.monotonic_s())
        if stalled is not None and self._status in GOING_ON:
            self._fail(failure_info(JobStalledError(stalled)))
        return ACKNOWLEDGE

    async def task_executor_lost(self, request: TaskExecutorLost) -> Acknowledge:
        """Treat the attempts on a TaskExecutor as failed."""
        self._lose_task_executor(request.resource_id, request.reason)
        return ACKNOWLEDGE

    async def cancel_job(self, request: CancelJob) -> Acknowledge:
        """Cancel all tasks; a job that ends already goes on to its end."""
        is_reconciling = self._status is JobStatus.RECONCILING
        if self._status in (JobStatus.CREATED, JobStatus.RECONCILING, *GOING_ON) and not self._is_ending:
            _log.info("job %s is being cancelled", request.job_id)
            self._enter(JobStatus.CANCELLING)
            self._journal.append(CancelAsked(self._clock.wall_ms()))
            if is_reconciling:
                self._drop_tasks()
            else:
                self._cancel_tasks(self._graph)
                self._advance()
            await self._journal.flush()
        return ACKNOWLEDGE

    # ---- the job's way ----

    def _learn(self, report: TaskReport) -> ExecutionVertex | None:
        """Take note of a report; return the subtask that it changed."""
        vertex = self._graph.update(report, self._clock)
        self._stall.moved()
        if vertex is not None and vertex.current.state.is_terminal:
            reach("job.reported")
            self._scheduler.subtask_ended(vertex, self._pool)
            times = {state.value: time_ms for state, time_ms in vertex.current.timestamps_ms.items()}
            ended = msgspec.structs.replace(report, state=vertex.current.state.value)
            self._journal.append(TaskEnded(ended, times))
            if vertex.current.state is ExecutionState.FINISHED:
                for address, partitions in partitions_to_release(vertex).items():
                    self._tell(address, ReleasePartitions(partitions))
        return vertex

    def _report(self, report: TaskReport) -> None:
        vertex = self._learn(report)
        if vertex is None:
            return
        state = vertex.current.state
        slot = vertex.current.slot
        if report.failure is not None and report.failure.type_name == DiskFullError.__name__ and slot is not None:
            self._pool.avoided.add(slot.resource_id)
        if state is ExecutionState.FAILED:
            failure = report.failure or FailureInfo("JobExecutionError", "the task failed without a reason")
            if slot is not None and self._repeated.failed(failure, slot.resource_id):
                self._pool.avoided.add(slot.resource_id)  # it may be the machine
            self._fail(failure, [vertex])
        elif state is ExecutionState.CANCELED and self._status in GOING_ON and not self._failover.covers(vertex):
            self._fail(cancelled_elsewhere(vertex.name), [vertex])
        elif state is ExecutionState.FINISHED:
            self._replan(vertex)
        self._advance()

    def _replan(self, finished: ExecutionVertex) -> None:
        """Have the real size of a finished result change the plan of what has not begun."""
        if self._status is not JobStatus.RUNNING or self._failover.restart_count:
            return
        try:
            decisions = self._planner.replan(finished)
        except PlanError as error:
            self._fail(failure_info(error))
            return
        for decision in decisions:
            _log.info("job %s: %s", self.job_graph.job_id, decision.text)
        if decisions:
            self.job_graph = self._graph.job_graph
            self._journal.append(Replanned(decisions))
            self._commit.revise(self.job_graph)
            self._withdraw_requests(self._scheduler.revise())

    def _fail(self, failure: FailureInfo, subtasks: Sequence[ExecutionVertex] = (), is_new: bool = True) -> None:
        """Run the regions of ``subtasks`` again, if that may help, or end the job."""
        if is_new:
            self._note_failure(failure)
        if self._status not in (JobStatus.CREATED, JobStatus.RECONCILING, *GOING_ON) or self._is_ending:
            return
        if subtasks and self._restart(failure, subtasks):
            return
        _log.info("job %s fails: %s: %s", self.job_graph.job_id, failure.type_name, failure.message)
        self._enter_failing()
        self._cancel_tasks(self._graph)
        self._advance()

    def _restart(self, failure: FailureInfo, subtasks: Sequence[ExecutionVertex]) -> bool:
        """Begin to run regions again; return whether that is so."""
        if not failure.retryable:
            # A task that hangs while its region is being cancelled is not why the job should fail.
            return failure.type_name == "JobExecutionError" and all(map(self._failover.covers, subtasks))
        self._graph.note_damage(failure.partition)
        self._look_after_holder(failure.partition)
        pause_s = self._failover.begin(subtasks, self._clock.monotonic_s())
        if pause_s is None:
            return False
        self._withdraw_requests(self._scheduler.withdraw_requests())
        if self._status is JobStatus.RUNNING:
            job_id = self.job_graph.job_id
            _log.info("job %s: restart in %.1f s: %s: %s", job_id, pause_s, failure.type_name, failure.message)
            self._slot_deadline.watch(is_stuck=False)
            self._enter(JobStatus.RESTARTING)
            self._failed_ms = self._clock.wall_ms()
            self._note_restart(self._failover.restart_count, pause_s)
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
        subtasks = self._failover.subtasks
        if self._is_given_up(subtasks):
            return
        for address, partitions in self._failover.finish().items():
            self._tell(address, ReleasePartitions(partitions))
        self._journal.append(Restarted(tuple(each.current.attempt for each in subtasks), self._failed_ms))
        self._failures.mended()
        self._enter(JobStatus.RUNNING)
        self._advance()

    def _is_given_up(self, subtasks: Sequence[ExecutionVertex]) -> bool:
        """End the job when trying again makes no sense; return whether that is so."""
        failure = self._repeated.verdict(self._failures, subtasks, self._graph, self._clock.monotonic_s())
        if failure is not None:
            self._failures.mended()  # by this one, which says more
            self._fail(failure)
        return failure is not None

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
        for _ in range(TRIES):
            try:
                await gateway.ask(CancelTask(execution.attempt))
                return
            except FencedError:
                return  # another one leads, and sees to it
            except EngineError as error:  # also an answer that cannot be trusted
                reason = str(error)
        self._give_up_task_executor(execution.slot.resource_id, reason)

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

    # ---- TaskExecutors ----

    def _holders(self) -> tuple[str, ...]:
        return self._task_executors.addresses if self._is_reattached else tuple(self._state.task_executors.values())

    def _look_after_holder(self, partition: ResultPartitionId | None) -> None:
        """Ask who holds a partition that could not be read: where nobody listens, everything there is lost at once."""
        vertex = self._graph.vertex_of(partition.producer) if partition is not None else None
        if vertex is not None and vertex.current.slot is not None:
            self._task_executors.look_after(vertex.current.slot.resource_id)

    def _lose_task_executor(self, resource_id: ResourceId, reason: str) -> None:
        self._forget_task_executor(resource_id)
        if self._status is JobStatus.RECONCILING:
            if self._reattachment is not None:
                self._reattachment.lose(resource_id)
            return
        hurt = self._graph.lose_task_executor(resource_id, self._clock)
        for vertex in hurt:
            self._scheduler.subtask_ended(vertex, self._pool)
        if hurt:
            self._fail(lost_task_executor(str(resource_id), reason, hurt[0].name), hurt)
        self._advance()

    def _forget_task_executor(self, resource_id: ResourceId) -> None:
        self._task_executors.forget(resource_id)
        slots = [slot.allocation_id for slot in self._pool.slots if slot.resource_id == resource_id]
        self._lost.setdefault(resource_id, []).extend(slots)
        # What is missing of the others may have been meant to come from there.
        self._close_requests({*self._pool.remove_task_executor(resource_id), *self._pool.incomplete})

    def _end_what_was_lost(self, resource_id: ResourceId, address: str) -> None:
        """Have a TaskExecutor that is back end what it ran when it was lost: its slots can be used again."""
        for allocation_id in self._lost.pop(resource_id, ()):
            self._tell(address, FreeSlot(allocation_id))
