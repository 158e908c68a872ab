"""TaskExecutor: the endpoint that runs attempts.

    connect ─► registers its slots at the ResourceManager; what ran under an older epoch is dropped first
    stay_connected ─► returns while the ResourceManager is there and knows it, else raises
    disconnect ─► tells the ResourceManager that it leaves
    RequestSlot ─► slot ALLOCATED ─► offered to the JobMaster ─► ACTIVE ─► SubmitTask * ─► FreeSlot ─► told to the RM
    SubmitTask ─► Task (a thread) ─► reports ─► JobMaster
    ReleaseJob ─► tasks cancelled, threads ended, partitions and workers of the job gone, slots free

It serves whoever leads: the highest epoch seen is in force, lower ones are refused. A JobMaster that stops sending
heartbeats is lost: its tasks are cancelled and its slots given back.

Source: Flink's TaskExecutor.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Protocol

from engine.clock import Clock
from engine.errors import EngineError, ResourceError
from engine.fault_points import reach
from engine.gateways.insight import TaskActivity
from engine.gateways.messages import (
    CancelTask,
    DisconnectTaskExecutor,
    FreeSlot,
    Heartbeat,
    HeartbeatReply,
    NotifySlotFree,
    OfferSlots,
    RegisterTaskExecutor,
    ReleaseJob,
    ReleasePartitions,
    RequestSlot,
    SlotOffer,
    StayConnected,
    SubmitTask,
    TaskExecutorHardware,
)
from engine.gateways.task_executor import TaskExecutorGateway
from engine.graph.deployment import TaskDeploymentDescriptor
from engine.ids import ExecutionAttemptId, JobId, ResourceId, ResultPartitionId
from engine.rpc.endpoint import RpcEndpoint
from engine.rpc.fencing import FollowerFence
from engine.rpc.gateway import Gateway, RpcService
from engine.rpc.heartbeat import HeartbeatMonitor
from engine.rpc.request import ACKNOWLEDGE, Acknowledge
from engine.taskexecutor.slot_table import SlotTable, TaskSlot
from engine.taskexecutor.task import Invokable, Task
from engine.taskexecutor.task_reporter import TaskReporter
from engine.taskexecutor.task_state import TaskState

_log = logging.getLogger(__name__)


#: seconds that a process which ends waits for the ResourceManager to hear of it
_LEAVE_S = 2.0


class TaskResources(Protocol):
    """What tasks are lent, seen from the endpoint (``task_resources.py``)."""

    def create_invokable(
        self, descriptor: TaskDeploymentDescriptor, on_consumable: Callable[[ResultPartitionId], None]
    ) -> Invokable:
        """Make what a task runs; called in the task's thread."""
        ...

    def release_partition(self, partition: ResultPartitionId) -> None:
        """Drop one result partition; unknown ones are ignored."""
        ...

    def release_attempts(self, job_id: JobId, attempts: Iterable[ExecutionAttemptId]) -> None:
        """Drop all that attempts of an ended job left: partitions, workers. Blocking."""
        ...


@dataclass(frozen=True)
class TaskExecutorSettings:
    """What a TaskExecutor is configured with. Times in seconds."""

    slot_count: int
    managed_pages: int
    heartbeat_interval_s: float
    heartbeat_timeout_s: float
    cancellation_timeout_s: float
    #: where partitions are read from by other processes; "": by nobody
    data_address: str = ""
    hardware: TaskExecutorHardware = field(default_factory=TaskExecutorHardware)


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
    ) -> None:
        self._fence: FollowerFence
        super().__init__(f"taskexecutor-{resource_id}", FollowerFence(), on_fatal)
        self.resource_id = resource_id
        self.slot_table = SlotTable(settings.slot_count, settings.managed_pages)
        self._rpc = rpc
        self._settings = settings
        self._resources = resources
        self._blocking_work = blocking_work
        self._resource_manager = ""
        self._registered_epoch = 0
        self._tasks: dict[ExecutionAttemptId, Task] = {}
        #: every attempt of a job that ran here, until the job is released
        self._attempts: dict[JobId, list[ExecutionAttemptId]] = {}
        self._reporter = TaskReporter(self._gateway)
        self._heartbeats = HeartbeatMonitor[str](settings.heartbeat_interval_s, settings.heartbeat_timeout_s, clock)

    def start(self) -> None:
        """Begin to report progress and to watch JobMasters."""
        self.spawn(self._reporter.send_progress(self._tasks.values), "progress")
        self.spawn(self._watch_job_masters(), "heartbeats")

    async def connect(self, resource_manager_address: str, epoch: int) -> None:
        """Register at a leading ResourceManager."""
        self._fence.check(epoch)
        if epoch != self._registered_epoch:
            for job_id in self._job_ids():
                await self._drop_job(job_id)
        self._resource_manager = resource_manager_address
        await self._register()
        self._registered_epoch = epoch

    async def stay_connected(self) -> None:
        """Hold a call at the ResourceManager for a heartbeat's interval; raises EngineError when it is not there."""
        timeout_s = self._heartbeats.interval_s + self._settings.heartbeat_timeout_s
        await self._gateway(self._resource_manager).ask(StayConnected(self.resource_id), timeout_s)

    async def disconnect(self, reason: str) -> None:
        """Tell the ResourceManager that this TaskExecutor leaves, if it listens."""
        if not self._registered_epoch:
            return
        try:
            await self._gateway(self._resource_manager).ask(DisconnectTaskExecutor(self.resource_id, reason), _LEAVE_S)
        except EngineError as error:
            _log.warning("the ResourceManager was not told that this TaskManager leaves: %s", error)

    async def resize(self, slot_count: int) -> None:
        """Change the number of slots, all of which are free, and tell the ResourceManager."""
        self.slot_table.resize(slot_count)
        await self._register()

    async def _register(self) -> None:
        address, settings = self._rpc.address_of(self.address), self._settings
        slots = self.slot_table.statuses()
        request = RegisterTaskExecutor(self.resource_id, address, slots, settings.data_address, settings.hardware)
        await self._gateway(self._resource_manager).ask(request)

    # ---- slots ----

    async def request_slot(self, request: RequestSlot) -> Acknowledge:
        """Assign a free slot to a job; it is then offered to the JobMaster."""
        slot = self.slot_table.allocate(
            request.index, request.job_id, request.allocation_id, request.job_master_address
        )
        self.spawn(self._offer(slot, request.request_id), f"offer slot {slot.index}")
        return ACKNOWLEDGE

    async def _offer(self, slot: TaskSlot, request_id: int) -> None:
        offer = SlotOffer(slot.index, slot.allocation_id, slot.managed_pages, request_id)
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
        self.spawn(self._tell_free(slot), f"slot {slot.index} is free")

    async def _tell_free(self, slot: TaskSlot) -> None:
        request = NotifySlotFree(self.resource_id, slot.index, slot.allocation_id)
        try:
            await self._gateway(self._resource_manager).ask(request)
        except EngineError as error:
            _log.warning("the ResourceManager was not told that slot %d is free: %s", slot.index, error)

    # ---- tasks ----

    async def submit_task(self, request: SubmitTask) -> Acknowledge:
        """Start an attempt; the same attempt again changes nothing."""
        descriptor = request.descriptor
        if descriptor.attempt in self._tasks:
            return ACKNOWLEDGE
        if descriptor.attempt in self._attempts.get(descriptor.job_id, ()):
            raise ResourceError(f"attempt {descriptor.attempt} has run here already")
        self.slot_table.add_task(descriptor.allocation_id, descriptor.job_id, descriptor.attempt)
        task = Task(
            descriptor,
            request.job_master_address,
            self.resource_id,
            self._resources.create_invokable,
            self._reporter.report,
            self._partition_consumable,
        )
        self._tasks[descriptor.attempt] = task
        self._attempts.setdefault(descriptor.job_id, []).append(descriptor.attempt)
        self.spawn(self._reporter.send_reports(task), f"reports of {task.name}")
        self.spawn(self._await_end(task), f"end of {task.name}")
        reach("task.submitted")
        task.start()
        return ACKNOWLEDGE

    def _partition_consumable(self, task: Task, partition: ResultPartitionId) -> None:
        if not self._is_stopped:
            self.spawn(self._reporter.tell_consumable(task, partition), f"{partition} is consumable")

    async def _await_end(self, task: Task) -> None:
        await task.ended.wait()
        task.join()
        if task.state is not TaskState.FINISHED:
            await self._drop_partitions([descriptor.id for descriptor in task.descriptor.partitions])
        attempt = task.descriptor.attempt
        del self._tasks[attempt]
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
        """Return what each attempt of a job that runs here does at this moment."""
        return [
            (attempt, task.activity())
            for attempt, task in self._tasks.items()
            if task.descriptor.job_id == job_id and task.state is TaskState.RUNNING
        ]

    # ---- partitions and jobs ----

    async def release_partitions(self, request: ReleasePartitions) -> Acknowledge:
        """Drop result partitions."""
        await self.complete(self._drop_partitions(request.partitions))
        return ACKNOWLEDGE

    async def _drop_partitions(self, partitions: Sequence[ResultPartitionId]) -> None:
        """Drop result partitions off the loop: their files are removed, which may take its time."""
        loop = asyncio.get_running_loop()
        for partition in partitions:
            await loop.run_in_executor(self._blocking_work, self._resources.release_partition, partition)

    async def release_job(self, request: ReleaseJob) -> Acknowledge:
        """Drop everything of a job, once its task threads have ended."""
        await self.complete(self._drop_job(request.job_id))
        return ACKNOWLEDGE

    async def _drop_job(self, job_id: JobId) -> None:
        tasks = [task for task in self._tasks.values() if task.descriptor.job_id == job_id]
        for task in tasks:
            self._cancel(task)
        for task in tasks:
            await task.ended.wait()
        for slot in self.slot_table.slots_of(job_id):
            self._free(slot)
        attempts = self._attempts.pop(job_id, [])
        await asyncio.get_running_loop().run_in_executor(
            self._blocking_work, self._resources.release_attempts, job_id, attempts
        )

    # ---- leaders ----

    async def heartbeat(self, request: Heartbeat) -> HeartbeatReply:
        """Note the sender's sign of life and answer with one."""
        self._heartbeats.received(request.sender)
        return HeartbeatReply(self.resource_id)

    async def _watch_job_masters(self) -> None:
        while True:
            await asyncio.sleep(self._heartbeats.interval_s)
            for address in self._heartbeats.poll():
                _log.warning("%s has sent no heartbeats; its tasks are cancelled", address)
                jobs = {slot.job_id for slot in self._slots_of_job_master(address)}
                for job_id in jobs:
                    self.spawn(self._drop_job(job_id), f"drop job {job_id}")

    def _job_ids(self) -> set[JobId]:
        """Return the jobs that have anything here."""
        held = {status.job_id for status in self.slot_table.statuses() if status.job_id is not None}
        return held | set(self._attempts)

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
        await super().stop()
