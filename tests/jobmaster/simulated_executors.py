"""TaskExecutors without threads or data, in virtual time: they keep their promises, and break when they are told to.

What an attempt writes is named by what it read, and by its own id where another attempt would write something else.
Whoever reads what is gone says so in his report; a PIPELINED result that is read twice is a fault of the test's world.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from engine.errors import EngineError, ResourceError
from engine.gateways.failure_info import failure_info
from engine.gateways.messages import (
    AttachedJob,
    HeartbeatReply,
    NotifySlotFree,
    OfferSlots,
    RegisterTaskExecutor,
    SlotOffer,
    SlotStatus,
    StayConnected,
    SubmitTasksReply,
    UpdateTaskStates,
)
from engine.gateways.task_executor import TaskExecutorGateway
from engine.graph.deployment import FailureInfo, PartitionLocation, StagedFile, TaskDeploymentDescriptor, TaskReport
from engine.graph.operator_descriptor import SinkOperator
from engine.graph.packed_sizes import packed_sizes
from engine.ids import AllocationId, JobId, ResourceId
from engine.resourcemanager.resource_manager import RESOURCE_MANAGER_ADDRESS
from engine.rpc.endpoint import RpcEndpoint
from engine.rpc.fencing import FollowerFence
from engine.rpc.request import ACKNOWLEDGE

#: what a JobMaster and a ResourceManager ask, of all that a TaskExecutor answers
_ASKED = (
    "request_slot",
    "submit_tasks",
    "cancel_task",
    "free_slot",
    "release_partitions",
    "release_job",
    "reattach_job",
    "heartbeat",
)
_Answered = type("_Answered", (), {name: getattr(TaskExecutorGateway, name) for name in _ASKED})


@dataclass
class SimSlot:
    index: int
    allocation_id: AllocationId
    job_id: JobId
    address: str
    attempts: set = field(default_factory=set)
    is_releasing: bool = False


@dataclass
class SimTask:
    descriptor: TaskDeploymentDescriptor
    address: str
    slot: SimSlot
    is_cancelled: bool = False
    is_over: bool = False


class SimExecutor(RpcEndpoint):
    """One process. ``world`` has: rpc, chance, executors, sizes_of(descriptor), is_repeatable(partition descriptor)."""

    protocol = _Answered

    def __init__(self, world, slot_count):
        self.resource_id = ResourceId.random()
        super().__init__(f"taskexecutor-{self.resource_id}", FollowerFence(), world.faults.append)
        self.world = world
        self.data_address = f"data-{self.resource_id}"
        self.slot_count = slot_count
        self.slots: dict[AllocationId, SimSlot] = {}
        self.tasks = {}
        self.reports = {}
        self.told_address = world.rpc.address_of(self.address)
        self.resource_manager_address = RESOURCE_MANAGER_ADDRESS
        #: attempt -> its job
        self.job_of = {}
        #: partition id -> what is in it
        self.partitions = {}
        #: epoch of the last leader whose JobMaster asked, and when one was heard, by job
        self.attached = {}
        self.heard_s = {}
        #: a JobMaster that is silent for so long is lost
        self.patience_s = 20.0
        self.spawn(self.watch_job_master(), "heartbeats")

    # ---- leaders ----

    async def register(self):
        by_index = {slot.index: slot for slot in self.slots.values()}
        statuses = tuple(
            SlotStatus(index, by_index[index].allocation_id, by_index[index].job_id)
            if index in by_index
            else SlotStatus(index)
            for index in range(self.slot_count)
        )
        jobs = tuple(self.held_jobs())
        request = RegisterTaskExecutor(self.resource_id, self.told_address, statuses, self.data_address, jobs=jobs)
        reply = await self.ask(self.resource_manager_address, request)
        for job_id in reply.unknown_jobs:
            await self.drop(job_id)

    def held_jobs(self):
        """Return the jobs of which something is here."""
        held = {slot.job_id for slot in self.slots.values()} | {self.job_of[attempt] for attempt in self.tasks}
        return sorted(held | {self.job_of[partition.producer] for partition in self.partitions})

    def hear(self, job_id):
        self.heard_s[job_id] = self.world.clock.monotonic_s()

    async def follow(self, epoch):
        """Register at a new leader, again where it gave this one up, and watch whether its JobMaster lives."""
        self.check_epoch(epoch)
        self.begin_to_follow(epoch)
        while self._fence.epoch == epoch:
            try:
                self.check_epoch(self.world.epoch)
                await self.register()
                while self._fence.epoch == epoch:
                    request = StayConnected(self.resource_id)
                    await self.world.rpc.connect(self.resource_manager_address, epoch).ask(request, 25.0)
            except EngineError:
                await asyncio.sleep(1.0)

    def begin_to_follow(self, epoch):
        """Wait for the JobMasters of a new leader."""
        for job_id in self.held_jobs():
            self.hear(job_id)
            self.spawn(self.await_job_master(job_id, epoch), "JobMaster")

    async def watch_job_master(self):
        while True:
            await asyncio.sleep(5.0)
            for job_id in {slot.job_id for slot in self.slots.values()}:
                is_silent = self.world.clock.monotonic_s() - self.heard_s[job_id] > self.patience_s
                if is_silent and self.attached[job_id] == self._fence.epoch:
                    await self.drop(job_id)

    async def await_job_master(self, job_id, epoch):
        """Keep a job for the JobMaster of a new leader, for a while."""
        await asyncio.sleep(45.0)
        if self._fence.epoch == epoch and self.attached[job_id] < epoch:
            await self.drop(job_id)

    async def ask(self, address, request):
        return await self.world.rpc.connect(address, self._fence.epoch).ask(request)

    async def reattach_job(self, request):
        job_id = request.job_id
        self.hear(job_id)
        self.attached[job_id] = self._fence.epoch
        for slot in self.slots_of(job_id):
            slot.address = request.job_master_address
            if slot.allocation_id not in request.slots:
                self.free(slot)
        for attempt, task in self.tasks_of(job_id):
            task.address = request.job_master_address
            if attempt not in request.attempts:
                self.cancel(task)
        while [attempt for attempt, _ in self.tasks_of(job_id) if attempt not in request.attempts]:
            await asyncio.sleep(0.01)
        for partition in list(self.partitions):
            is_old = partition.producer not in self.tasks and partition not in request.partitions
            if is_old and self.job_of[partition.producer] == job_id:
                del self.partitions[partition]
        return AttachedJob(
            self.resource_id,
            tuple(each.allocation_id for each in self.slots_of(job_id) if not each.is_releasing),
            tuple(self.reports[attempt] for attempt in request.attempts if attempt in self.reports),
            tuple(partition for partition in self.partitions if partition in request.partitions),
        )

    def slots_of(self, job_id):
        return [slot for slot in self.slots.values() if slot.job_id == job_id]

    def tasks_of(self, job_id):
        return [(attempt, task) for attempt, task in self.tasks.items() if self.job_of[attempt] == job_id]

    async def heartbeat(self, request):
        for slot in self.slots.values():
            if slot.address == request.sender:
                self.hear(slot.job_id)
        return HeartbeatReply(self.resource_id)

    # ---- slots ----

    async def request_slot(self, request):
        used = {slot.index for slot in self.slots.values()}
        if request.allocation_id not in self.slots:
            if request.index in used or request.index >= self.slot_count:
                raise ResourceError(f"slot {request.index} is not free")
            slot = SimSlot(request.index, request.allocation_id, request.job_id, request.job_master_address)
            self.slots[request.allocation_id] = slot
            self.attached.setdefault(request.job_id, self._fence.epoch)
            self.hear(request.job_id)
            self.spawn(self.offer(slot, request.request_id), "offer")
        return ACKNOWLEDGE

    async def offer(self, slot, request_id):
        offer = SlotOffer(slot.index, slot.allocation_id, 4096, request_id)
        try:
            offers = OfferSlots(self.resource_id, self.told_address, self.data_address, (offer,))
            reply = await self.ask(slot.address, offers)
        except EngineError:
            self.free(slot)
            return
        if slot.allocation_id not in reply.accepted:
            self.free(slot)
        else:
            self.hear(slot.job_id)

    async def free_slot(self, request):
        slot = self.slots.get(request.allocation_id)
        if slot is not None:
            self.free(slot)
        return ACKNOWLEDGE

    def free(self, slot):
        slot.is_releasing = True
        for attempt in slot.attempts:
            self.cancel(self.tasks[attempt])
        if not slot.attempts and self.slots.pop(slot.allocation_id, None) is not None:
            self.spawn(self.tell_free(slot), "free")

    async def tell_free(self, slot):
        try:
            notice = NotifySlotFree(self.resource_id, slot.index, slot.allocation_id)
            await self.ask(self.resource_manager_address, notice)
        except EngineError:
            pass

    # ---- tasks ----

    async def submit_tasks(self, request):
        taken = [self.submit(each, request.job_master_address) for each in request.descriptors]
        refused = [each.attempt for each, is_taken in zip(request.descriptors, taken, strict=True) if not is_taken]
        failure = failure_info(ResourceError("cannot run here"))
        return SubmitTasksReply(tuple(TaskReport(attempt, "FAILED", failure=failure) for attempt in refused))

    def submit(self, descriptor, address):
        attempt = descriptor.attempt
        if attempt in self.tasks:
            return True
        slot = self.slots.get(descriptor.allocation_id)
        if attempt in self.reports or slot is None or slot.is_releasing:
            return False
        slot.attempts.add(attempt)
        self.job_of[attempt] = descriptor.job_id
        self.world.submitted.append(descriptor)
        task = self.tasks[attempt] = SimTask(descriptor, address, slot)
        self.reports[attempt] = TaskReport(attempt, "DEPLOYING")
        self.spawn(self.run(task), "task")
        return True

    async def run(self, task):
        for state in ("INITIALIZING", "RUNNING"):
            await self.world.pause()
            if not task.is_cancelled:
                await self.report(task, TaskReport(task.descriptor.attempt, state))
        await self.world.pause()
        report = await self.end_of(task)
        if report.state != "FINISHED":
            for partition in task.descriptor.partitions:
                self.partitions.pop(partition.id, None)
        task.is_over = True
        del self.tasks[task.descriptor.attempt]
        task.slot.attempts.discard(task.descriptor.attempt)
        if task.slot.is_releasing:
            self.free(task.slot)
        await self.report(task, report)

    async def end_of(self, task):
        """Wait for what the task reads, and return its last report."""
        attempt, read = task.descriptor.attempt, {}
        for gate in task.descriptor.gates:
            for channel in gate.channels:
                while not task.is_cancelled:
                    found = self.world.find(self, channel, gate.result_type.is_pipelined)
                    if found == "gone":
                        failure = FailureInfo(
                            "PartitionNotFoundError", "gone", retryable=True, partition=channel.partition
                        )
                        return TaskReport(attempt, "FAILED", failure=failure)
                    if found is not None:
                        key = (channel.partition.producer.vertex.index, channel.partition.producer.subtask_index)
                        key += (channel.partition.data_set.output_index,)
                        read[key] = found
                        break
                    await asyncio.sleep(0.05)
        if task.is_cancelled:
            return TaskReport(attempt, "CANCELED")
        failure = self.world.failure_of(task.descriptor)
        if failure is not None:
            return TaskReport(attempt, "FAILED", failure=failure)
        self.world.read[attempt] = read
        content = (attempt.vertex.index, attempt.subtask_index, tuple(sorted(read.items())))
        for partition in task.descriptor.partitions:
            own = () if self.world.is_repeatable(partition) else (attempt,)
            self.partitions[partition.id] = (*content, own)
        sizes = [self.world.sizes_of(partition) for partition in task.descriptor.partitions]
        return TaskReport(
            attempt,
            "FINISHED",
            partition_rows=tuple(sum(each) for each in sizes),
            partition_bytes=tuple(sum(each) for each in sizes),
            staged_files=tuple(
                StagedFile(
                    each.operator.sink_index, attempt.subtask_index, f"{attempt.subtask_index}-{attempt.nonce}", 1, 1
                )
                for each in task.descriptor.chain
                if isinstance(each.operator, SinkOperator)
            ),
            subpartition_bytes=tuple(
                b"" if partition.result_type.is_pipelined else packed_sizes(each)
                for partition, each in zip(task.descriptor.partitions, sizes, strict=True)
            ),
        )

    async def report(self, task, report):
        self.reports[report.attempt] = report
        while self.location(report.attempt) and (task.is_over or not task.is_cancelled):
            try:
                await self.ask(task.address, UpdateTaskStates((report,)))
                return
            except EngineError:
                await asyncio.sleep(0.2)

    def location(self, attempt):
        return attempt in self.reports

    def cancel(self, task):
        task.is_cancelled = True

    async def cancel_task(self, request):
        task = self.tasks.get(request.attempt)
        if task is not None:
            self.cancel(task)
        return ACKNOWLEDGE

    # ---- results and jobs ----

    async def release_partitions(self, request):
        for partition in request.partitions:
            self.partitions.pop(partition, None)
        return ACKNOWLEDGE

    async def release_job(self, request):
        await self.drop(request.job_id)
        return ACKNOWLEDGE

    async def drop(self, job_id):
        """Have nothing of a job any more."""
        for _, task in self.tasks_of(job_id):
            self.cancel(task)
        while self.tasks_of(job_id):
            await asyncio.sleep(0.01)
        for slot in self.slots_of(job_id):
            self.free(slot)
        for attempt in [attempt for attempt in self.reports if self.job_of[attempt] == job_id]:
            del self.reports[attempt]
        for partition in [key for key in self.partitions if self.job_of[key.producer] == job_id]:
            del self.partitions[partition]


def found_partition(world, reader, channel, is_pipelined):
    """Return what a channel brings: the content, None: not yet, "gone": never."""
    if channel.location is PartitionLocation.LOCAL:
        holders = [reader]
    else:
        holders = [each for each in world.executors if each.data_address == channel.address]
    for holder in holders:
        if channel.partition in holder.partitions:
            return holder.partitions[channel.partition]
        if is_pipelined and channel.partition.producer in holder.tasks:
            return None
    return "gone"
