"""TaskExecutor: the endpoint that runs attempts.

    connect ─► registers its slots at the ResourceManager; jobs that the leader does not know are dropped
    stay_connected ─► returns while the ResourceManager is there and knows it, else raises
    disconnect ─► tells the ResourceManager that it leaves
    RequestSlot ─► slot ALLOCATED ─► offered to the JobMaster ─► ACTIVE ─► SubmitTasks * ─► FreeSlot ─► told to the RM
    SubmitTasks ─► Task * (a thread each) ─► reports ─► JobMaster
    ReleaseJob ─► tasks cancelled, threads ended, partitions and workers of the job gone, slots free
    DrainTaskExecutor ─► no more slots; the process ends when nothing of a job is left (``Drain``)
    ReattachJob ─► the next leader's JobMaster goes on with what runs and lies here; what it does not name is dropped

It serves the leader: the highest epoch seen is in force, lower ones are refused. While none leads tasks run on
and reports wait. A JobMaster that stops sending heartbeats though its leader is there, and one that does not come
after its predecessor's leader was replaced, is lost: its tasks are cancelled and its slots given back.

Source: Flink's TaskExecutor.
Held by: tests/taskexecutor/test_reattach.py
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Protocol

from engine.clock import Clock
from engine.errors import EngineError, ResourceError
from engine.fault_points import reach
from engine.gateways.failure_info import failure_info
from engine.gateways.insight import TaskActivity
from engine.gateways.memory_use import MemoryInUse
from engine.gateways.messages import (
    AttachedJob,
    CancelTask,
    EndProcess,
    FreeSlot,
    Heartbeat,
    HeartbeatReply,
    OfferSlots,
    ReattachJob,
    ReleaseJob,
    ReleasePartitions,
    RequestSlot,
    SlotOffer,
    SubmitTasks,
    SubmitTasksReply,
)
from engine.gateways.task_executor import TaskExecutorGateway
from engine.gateways.task_executors import DrainTaskExecutor
from engine.graph.deployment import TaskDeploymentDescriptor, TaskReport
from engine.ids import ExecutionAttemptId, JobId, ResourceId, ResultPartitionId
from engine.memory.blocks import drop_spare_blocks
from engine.memory.heap import FREED_MEMORY
from engine.rpc.endpoint import RpcEndpoint
from engine.rpc.fencing import FollowerFence
from engine.rpc.gateway import Gateway, RpcService
from engine.rpc.heartbeat import HeartbeatMonitor
from engine.rpc.request import ACKNOWLEDGE, Acknowledge
from engine.taskexecutor.drain import Drain
from engine.taskexecutor.job_table import JobTable
from engine.taskexecutor.resource_manager_link import ResourceManagerLink
from engine.taskexecutor.slot_table import SlotTable, TaskSlot
from engine.taskexecutor.task import Invokable, Task
from engine.taskexecutor.task_executor_settings import TaskExecutorSettings
from engine.taskexecutor.task_reporter import TaskReporter
from engine.taskexecutor.task_rows import TaskRow
from engine.taskexecutor.task_state import TaskState
from engine.taskexecutor.task_threads import TaskThreads
from engine.taskexecutor.task_totals import TaskTotals

_log = logging.getLogger(__name__)

#: seconds without a task after which freed memory goes back to the system
_IDLE_S = 0.25


class TaskResources(Protocol):
    """The resources of tasks as the endpoint sees them (``task_resources.py``)."""

    def create_invokable(self, descriptor: TaskDeploymentDescriptor) -> Invokable:
        """Make what a task runs; called in the task's thread."""
        ...

    def held_partitions(self, attempts: Iterable[ExecutionAttemptId]) -> list[ResultPartitionId]:
        """Return the partitions of those attempts that are here."""
        ...

    def release_partition(self, partition: ResultPartitionId) -> None:
        """Drop one result partition; unknown ones are ignored."""
        ...

    def release_attempts(self, job_id: JobId, attempts: Iterable[ExecutionAttemptId]) -> None:
        """Drop all that attempts of an ended job left: partitions, workers. Blocking."""
        ...

    def memory_in_use(self, resource_id: ResourceId) -> MemoryInUse:
        """Return the memory of this process now, of the TaskManager of that id."""
        ...


class TaskExecutor(RpcEndpoint):
    """One process's slots and tasks."""

    protocol = TaskExecutorGateway

    def __init__(
        self,
        resource_id: ResourceId,
        rpc: RpcService,
        settings: TaskExecutorSettings,
        resources: TaskResources,
        clock: Clock,
        blocking_work: Executor,
        on_fatal: Callable[[BaseException], None] | None = None,
        end_process: Callable[[], None] | None = None,
    ) -> None:
        self._fence: FollowerFence
        super().__init__(f"taskexecutor-{resource_id}", FollowerFence(), on_fatal)
        self._link = ResourceManagerLink(resource_id, self.address, rpc, self._fence, clock)
        #: callback that ends this process; None: the cluster may not end it
        self._end_process = end_process
        self.resource_id = resource_id
        self.slot_table = SlotTable(settings.slot_count, settings.pages, settings.spare_pages)
        self._rpc = rpc
        self._settings = settings
        self._resources = resources
        self._blocking_work = blocking_work
        self._tasks: dict[ExecutionAttemptId, Task] = {}
        self._threads = TaskThreads()
        self._totals = TaskTotals()
        #: events of attempts whose ends are waited for: each is set when its attempt is taken out of its slot
        self._ends: dict[ExecutionAttemptId, asyncio.Event] = {}
        self._jobs = JobTable()
        #: asyncio task that gives memory back in a moment
        self._giving_back: asyncio.Task[None] | None = None
        self._reporter = TaskReporter(self._gateway, self._jobs.__contains__, self.spawn)
        self._drain = Drain(self._is_empty, end_process, clock)
        self._heartbeats = HeartbeatMonitor[str](settings.heartbeat_interval_s, settings.heartbeat_timeout_s, clock)

    def start(self) -> None:
        """Begin to report progress and to watch JobMasters."""
        self.spawn(self._reporter.send_progress(self._tasks.values, self._memory_in_use), "progress")
        self.spawn(self._watch_job_masters(), "heartbeats")

    async def connect(self, resource_manager_address: str, epoch: int) -> None:
        """Register at a leading ResourceManager."""
        self._fence.check(epoch)
        is_new = epoch != self._link.registered_epoch
        held = self._job_ids()
        self._link.lead_by(resource_manager_address)
        unknown = await self._register(held)
        self._link.registered(epoch)
        for job_id in unknown & held:
            await self._drop_job(job_id)
        for job_id in held - unknown if is_new else ():
            self.spawn(self._await_job_master(job_id, epoch), f"JobMaster of job {job_id}")

    async def stay_connected(self) -> None:
        """Hold a call at the ResourceManager for a heartbeat's interval; raises EngineError when it is not there."""
        await self._link.stay_connected(self._heartbeats.interval_s + self._settings.heartbeat_timeout_s)

    @property
    def is_registered(self) -> bool:
        """Whether a ResourceManager has taken this TaskExecutor and is there, as far as is known."""
        return self._link.is_led

    async def disconnect(self, reason: str) -> None:
        """Tell the ResourceManager that this TaskExecutor leaves, if it can be reached."""
        await self._link.disconnect(reason)

    async def resize(self, slot_count: int) -> None:
        """Change the number of slots, all of which are free, and tell the ResourceManager."""
        self.slot_table.resize(slot_count)
        await self._register(self._job_ids())

    async def _register(self, held: set[JobId]) -> set[JobId]:
        settings = self._settings
        return await self._link.register(
            self.slot_table.statuses(),
            held,
            settings.data_address,
            settings.hardware,
            settings.program,
            is_draining=self._drain.is_draining,
        )

    async def end_process(self, request: EndProcess) -> Acknowledge:
        """Begin to end the process; the answer comes before its end."""
        if self._end_process is None:
            raise ResourceError("this TaskManager is part of another process, which the cluster does not end")
        _log.info("the process ends: %s", request.reason)
        self._end_process()
        return ACKNOWLEDGE

    async def drain_task_executor(self, request: DrainTaskExecutor) -> Acknowledge:
        """Take no more slots, and end the process once nothing of a job is left here."""
        if self._drain.begin(request.reason, request.limit_s):
            self.spawn(self._drain.run(), "drain")
        return ACKNOWLEDGE

    def _is_empty(self) -> bool:
        """Whether no job misses anything when the process ends now: tasks, results, reports the leader has not had."""
        has_news = not self._reporter.is_idle or not self._link.is_led
        if has_news or self._tasks or not self.slot_table.is_idle:
            return False
        epoch, attempts = self._fence.epoch, [each for job_id in self._jobs for each in self._jobs.attempts(job_id)]
        is_known = all(self._jobs.is_attached(job_id, epoch) for job_id in self._jobs)
        return is_known and not self._resources.held_partitions(attempts)

    # ---- slots ----

    async def request_slot(self, request: RequestSlot) -> Acknowledge:
        """Assign a free slot to a job; it is then offered to the JobMaster."""
        if self._drain.is_draining:
            raise ResourceError("this TaskManager takes no more slots: it drains")
        slot = self.slot_table.allocate(
            request.index, request.job_id, request.allocation_id, request.job_master_address
        )
        # A request for new slots means that the job goes on.
        self._jobs.attach(request.job_id, self._fence.epoch)
        self.spawn(self._offer(slot, request.request_id), f"offer slot {slot.index}")
        return ACKNOWLEDGE

    async def _offer(self, slot: TaskSlot, request_id: int) -> None:
        offer = SlotOffer(slot.index, slot.allocation_id, slot.pages, request_id, slot.spare_pages)
        address = self._rpc.address_of(self.address)
        request = OfferSlots(self.resource_id, address, self._settings.data_address, (offer,))
        try:
            reply = await self._gateway(slot.job_master_address).ask(request)
            is_accepted = slot.allocation_id in reply.accepted
        except EngineError as error:
            _log.warning("slot %d was not offered to %s: %s", slot.index, slot.job_master_address, error)
            is_accepted = False
        if is_accepted:
            self.slot_table.activate(slot.allocation_id)
            self._heartbeats.watch(slot.job_master_address)
        else:
            self._free(slot)

    async def free_slot(self, request: FreeSlot) -> Acknowledge:
        """Take a slot back; its tasks are cancelled."""
        slot = self.slot_table.find(request.allocation_id)
        if slot is not None:
            self._free(slot)
        return ACKNOWLEDGE

    def _free(self, slot: TaskSlot) -> None:
        for attempt in slot.attempts:
            self._cancel(self._tasks[attempt])
        if self.slot_table.release(slot):
            self._remove_slot(slot)

    def _remove_slot(self, slot: TaskSlot) -> None:
        self.slot_table.remove(slot)
        if not self.slot_table.slots_of(slot.job_id):
            self._heartbeats.unwatch(slot.job_master_address)
        self.spawn(self._link.tell_free(slot.index, slot.allocation_id), f"slot {slot.index} is free")

    # ---- tasks ----

    async def submit_tasks(self, request: SubmitTasks) -> SubmitTasksReply:
        """Start attempts; the same attempt again changes nothing."""
        if request.released:
            self.spawn(self._drop_partitions(request.released), "dropping results")
        refused, row = [], TaskRow(asyncio.get_running_loop())
        for descriptor in request.descriptors:
            try:
                self._submit(descriptor, request.job_master_address, row)
            except ResourceError as error:
                refused.append(TaskReport(descriptor.attempt, TaskState.FAILED.value, failure=failure_info(error)))
        row.begin()
        return SubmitTasksReply(tuple(refused))

    def _submit(self, descriptor: TaskDeploymentDescriptor, job_master_address: str, row: TaskRow) -> None:
        if descriptor.attempt in self._tasks:
            return
        if self._jobs.has(descriptor.job_id, descriptor.attempt):
            raise ResourceError(f"attempt {descriptor.attempt} has run here already")
        self.slot_table.add_task(descriptor.allocation_id, descriptor.job_id, descriptor.attempt)
        factory = self._resources.create_invokable
        task = Task(descriptor, job_master_address, self.resource_id, factory, self._report, self._threads)
        self._tasks[descriptor.attempt] = task
        self._jobs.add(descriptor.job_id, descriptor.attempt)
        self._jobs.attach(descriptor.job_id, self._fence.epoch)
        reach("task.submitted")
        task.start(row)

    def _report(self, task: Task, report: TaskReport) -> None:
        self._jobs.note(task.descriptor.job_id, report)
        self._reporter.report(task, report)
        if task.state.is_terminal:
            self._totals.note(report)
            task.join()
        if task.state is TaskState.FINISHED:
            self._remove_task(task)
        elif task.state.is_terminal:
            self.spawn(self._drop_task(task), f"end of {task.name}")

    async def _drop_task(self, task: Task) -> None:
        await self._drop_partitions([descriptor.id for descriptor in task.descriptor.partitions])
        self._remove_task(task)

    def _remove_task(self, task: Task) -> None:
        """Take an attempt whose thread is free, or was given up, out of its slot."""
        attempt = task.descriptor.attempt
        del self._tasks[attempt]
        if attempt in self._ends:
            self._ends.pop(attempt).set()
        slot = self.slot_table.remove_task(attempt)
        if slot is not None:
            self._remove_slot(slot)

    async def cancel_task(self, request: CancelTask) -> Acknowledge:
        """Begin to cancel an attempt; unknown ones have ended."""
        task = self._tasks.get(request.attempt)
        if task is not None:
            self._cancel(task)
        return ACKNOWLEDGE

    def _cancel(self, task: Task) -> None:
        self.spawn(self._cancel_and_watch(task), f"cancellation of {task.name}")

    async def _cancel_and_watch(self, task: Task) -> None:
        # Off the loop: partitions let go of their files, and may wait for a block that is being written.
        await asyncio.get_running_loop().run_in_executor(self._blocking_work, task.cancel)
        try:
            await asyncio.wait_for(task.ended.wait(), self._settings.cancellation_timeout_s)
        except TimeoutError:
            task.give_up(self._settings.cancellation_timeout_s)

    def activities(self, job_id: JobId) -> list[tuple[ExecutionAttemptId, TaskActivity]]:
        """Return the current activity of each running attempt of a job."""
        return [
            (attempt, task.activity())
            for attempt, task in self._tasks.items()
            if task.descriptor.job_id == job_id and task.state is TaskState.RUNNING
        ]

    # ---- partitions and jobs ----

    def _memory_in_use(self) -> MemoryInUse:
        return self._resources.memory_in_use(self.resource_id)

    def metrics(self) -> dict[str, float]:
        """Return sums over all attempts so far."""
        live = (task.counters() for task in self._tasks.values() if not task.state.is_terminal)
        return self._totals.metrics(counters for counters in live if counters is not None)

    async def release_partitions(self, request: ReleasePartitions) -> Acknowledge:
        """Drop result partitions."""
        await self.complete(self._drop_partitions(request.partitions))
        return ACKNOWLEDGE

    async def _drop_partitions(self, partitions: Sequence[ResultPartitionId]) -> None:
        """Drop result partitions off the loop, as removing files may take its time, and what their readers freed."""
        drop = self._resources.release_partition
        await _unless_at_end(self._blocking_work, lambda: (*map(drop, partitions), FREED_MEMORY.give_back()))

    async def release_job(self, request: ReleaseJob) -> Acknowledge:
        """Drop everything of a job, once its task threads have ended."""
        await self.complete(self._drop_job(request.job_id))
        return ACKNOWLEDGE

    async def _drop_job(self, job_id: JobId) -> None:
        tasks = self._tasks_of(job_id)
        for task in tasks:
            self._cancel(task)
        # A slot is free when its tasks have been taken out of it.
        for end in [self._ends.setdefault(task.descriptor.attempt, asyncio.Event()) for task in tasks]:
            await end.wait()
        for slot in self.slot_table.slots_of(job_id):
            self._free(slot)
        attempts = self._jobs.forget(job_id)
        release = partial(self._resources.release_attempts, job_id, attempts)
        await asyncio.get_running_loop().run_in_executor(self._blocking_work, release)
        if self._giving_back is None or self._giving_back.done():  # else it is about to be given back
            self._giving_back = self.spawn(self._give_back_when_idle(), "giving memory back")

    async def _give_back_when_idle(self) -> None:
        """Release what ended jobs have freed, unless the next one comes at once and would touch it first again."""
        await asyncio.sleep(_IDLE_S)
        if not self._tasks:
            await _unless_at_end(self._blocking_work, drop_spare_blocks)
            await _unless_at_end(self._blocking_work, FREED_MEMORY.give_back)

    # ---- leaders ----

    async def heartbeat(self, request: Heartbeat) -> HeartbeatReply:
        """Record the sender's sign of life and answer with one."""
        self._heartbeats.received(request.sender)
        return HeartbeatReply(self.resource_id)

    async def _watch_job_masters(self) -> None:
        while True:
            await asyncio.sleep(self._heartbeats.interval_s)
            for address in self._heartbeats.poll():
                if self._settings.reattach_timeout_s and not self._link.is_led:
                    # Its leader is not there: the next one's JobMaster goes on with the tasks.
                    self._heartbeats.watch(address)
                    continue
                _log.warning("%s has sent no heartbeats; its tasks are cancelled", address)
                jobs = {slot.job_id for slot in self._slots_of_job_master(address)}
                for job_id in jobs:
                    self.spawn(self._drop_job(job_id), f"drop job {job_id}")

    async def _await_job_master(self, job_id: JobId, epoch: int) -> None:
        """Keep a job for the JobMaster of a new leader, for a while."""
        if self._jobs.is_attached(job_id, epoch):
            return
        for slot in self.slot_table.slots_of(job_id):
            self._heartbeats.unwatch(slot.job_master_address)
        await asyncio.sleep(self._settings.reattach_timeout_s)
        if self._fence.epoch == epoch and not self._jobs.is_attached(job_id, epoch) and job_id in self._job_ids():
            _log.warning("no JobMaster goes on with job %s; what is here of it is dropped", job_id)
            await self._drop_job(job_id)

    async def reattach_job(self, request: ReattachJob) -> AttachedJob:
        """Go on with a job under another JobMaster; what it does not name is dropped."""
        job_id, address = request.job_id, request.job_master_address
        self._jobs.attach(job_id, self._fence.epoch)
        for slot in self.slot_table.slots_of(job_id):
            self._heartbeats.unwatch(slot.job_master_address)
            slot.job_master_address = address
            if slot.allocation_id not in request.slots:
                self._free(slot)
        for task in self._tasks_of(job_id):
            task.job_master_address = address
        self._reporter.turn_to(job_id, address)
        await self.complete(self._drop_unnamed(request))
        slots = tuple(slot.allocation_id for slot in self.slot_table.slots_of(job_id) if not slot.is_releasing)
        if slots:
            self._heartbeats.watch(address)
        held = self._resources.held_partitions(request.attempts)
        wanted = set(request.partitions)
        return AttachedJob(
            self.resource_id,
            slots,
            self._jobs.reports(job_id, request.attempts),
            tuple(partition for partition in held if partition in wanted),
            self._drain.is_draining,
        )

    async def _drop_unnamed(self, request: ReattachJob) -> None:
        """End and drop what a job has here and its JobMaster did not name."""
        wanted = set(request.partitions)
        # Chosen before anything is waited for: what ends meanwhile is news to the JobMaster, and kept for it.
        # A running attempt's partitions are its own business.
        ended, unnamed, to_cancel = self._jobs.sorted_out(request.job_id, set(request.attempts), self._tasks)
        unwanted = [partition for partition in self._resources.held_partitions(ended) if partition not in wanted]
        tasks = [self._tasks[attempt] for attempt in to_cancel]
        for task in tasks:
            _log.info("%s is cancelled: the JobMaster that goes on does not know it", task.name)
            self._cancel(task)
        for task in tasks:
            await task.ended.wait()
        await self._drop_partitions([*unwanted, *self._resources.held_partitions(unnamed)])

    def _tasks_of(self, job_id: JobId) -> list[Task]:
        return [task for task in self._tasks.values() if task.descriptor.job_id == job_id]

    def _job_ids(self) -> set[JobId]:
        """Return the jobs that have anything here."""
        held = {status.job_id for status in self.slot_table.statuses() if status.job_id is not None}
        return held | set(self._jobs)

    def _slots_of_job_master(self, address: str) -> list[TaskSlot]:
        statuses = [status.allocation_id for status in self.slot_table.statuses()]
        slots = [self.slot_table.find(allocation_id) for allocation_id in statuses if allocation_id is not None]
        return [slot for slot in slots if slot is not None and slot.job_master_address == address]

    def _gateway(self, address: str) -> Gateway:
        return self._rpc.connect(address, self._fence.epoch)

    async def stop(self) -> None:
        """Cancel all tasks, wait for their threads, and stop answering."""
        tasks = tuple(self._tasks.values())
        for task in tasks:
            self._cancel(task)
        for task in tasks:
            await task.ended.wait()
            task.join()
        await super().stop()
        self._threads.close()


async def _unless_at_end(executor: Executor, work: Callable[[], object]) -> None:
    """Run work off the loop, except where a script has come to its end meanwhile.

    Its executors take nothing any more; its files are removed as the embedded cluster closes, its memory goes with it.
    """
    try:
        begun = asyncio.get_running_loop().run_in_executor(executor, work)
    except RuntimeError:
        return
    await begun
