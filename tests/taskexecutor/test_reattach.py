"""What runs and lies in a TaskExecutor goes on under the next leader: what its JobMaster names, and nothing else."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from engine.clock import SystemClock
from engine.errors import FencedError, TaskCancelledError
from engine.gateways.insight import TaskActivity
from engine.gateways.job_master import JobMasterGateway, job_master_name
from engine.gateways.memory_use import MemoryInUse
from engine.gateways.messages import (
    MESSAGE_TYPES,
    CancelTask,
    ReattachJob,
    RequestSlot,
    SlotOfferReply,
    SubmitTasks,
    UpdateTaskStates,
)
from engine.graph.deployment import TaskCounters, TaskDeploymentDescriptor
from engine.ids import (
    AllocationId,
    ExecutionAttemptId,
    IntermediateDataSetId,
    JobId,
    JobVertexId,
    ResourceId,
    ResultPartitionId,
)
from engine.resourcemanager.resource_manager import ResourceManager, ResourceManagerSettings
from engine.rpc.codec import MessageCodec
from engine.rpc.endpoint import RpcEndpoint
from engine.rpc.fencing import LeaderFence
from engine.rpc.local_gateway import LocalRpcService
from engine.rpc.request import ACKNOWLEDGE
from engine.taskexecutor.task_executor import TaskExecutor
from engine.taskexecutor.task_executor_settings import TaskExecutorSettings

WAIT_S = 60.0


class Waiting:
    """An invokable that runs until it is told to end."""

    def __init__(self):
        self.finish = threading.Event()
        self.is_cancelled = False

    def run(self):
        assert self.finish.wait(WAIT_S)
        if self.is_cancelled:
            raise TaskCancelledError("told to")

    def cancel(self):
        self.is_cancelled = True
        self.finish.set()

    def counters(self):
        return TaskCounters(rows_out=7)

    def activity(self):
        return TaskActivity.BUSY

    def wait(self):
        return None

    def staged_files(self):
        return ()

    partition_rows = partition_bytes = subpartition_bytes = partition_samples = staged_files


class Resources:
    def __init__(self):
        self.invokables = {}
        self.partitions = set()
        self.released_jobs = []

    def create_invokable(self, descriptor):
        self.partitions.add(partition_of(descriptor.attempt))
        self.invokables[descriptor.attempt] = Waiting()
        return self.invokables[descriptor.attempt]

    def held_partitions(self, attempts):
        return [partition for partition in self.partitions if partition.producer in set(attempts)]

    def release_partition(self, partition):
        self.partitions.discard(partition)

    def memory_in_use(self, resource_id):
        return MemoryInUse(resource_id)

    def release_attempts(self, job_id, attempts):
        self.released_jobs.append(job_id)
        self.partitions = {partition for partition in self.partitions if partition.producer not in set(attempts)}


class JobMaster(RpcEndpoint):
    """Takes every slot and notes every report."""

    protocol = JobMasterGateway

    def __init__(self, job_id, epoch):
        super().__init__(job_master_name(job_id), LeaderFence(epoch))
        self.slots = asyncio.Queue()
        self.reports = {}
        self.changed = asyncio.Condition()

    async def slots_short(self, request):
        return ACKNOWLEDGE

    async def offer_slots(self, request):
        await self.slots.put(request.slots[0])
        return SlotOfferReply(tuple(offer.allocation_id for offer in request.slots))

    async def update_task_states(self, request):
        async with self.changed:
            for report in request.reports:
                self.reports.setdefault(report.attempt, []).append(report.state)
            self.changed.notify_all()
        return ACKNOWLEDGE

    async def heard(self, attempt, state):
        async with self.changed:
            await asyncio.wait_for(self.changed.wait_for(lambda: state in self.reports.get(attempt, ())), WAIT_S)

    async def report_progress(self, request):
        return ACKNOWLEDGE

    task_executor_lost = task_executor_draining = cancel_job = request_job_status = request_job_progress = (
        report_progress
    )
    request_job_details = request_job_exceptions = request_job_outcome = report_progress


def partition_of(attempt):
    return ResultPartitionId(IntermediateDataSetId(attempt.vertex, 0), attempt)


def task_in(job_id, allocation, index=0):
    attempt = ExecutionAttemptId.create(JobVertexId(0), index, 0)
    return TaskDeploymentDescriptor(job_id, "job", attempt, allocation, "v", index, 4, 128, (), (), (), (), (), (), {})


class House:
    """One TaskExecutor of four slots and whoever leads it."""

    def __init__(self, reattach_timeout_s=WAIT_S, end_process=None):
        self.rpc = LocalRpcService(MessageCodec(MESSAGE_TYPES))
        self.work = ThreadPoolExecutor(2)
        self.resources = Resources()
        self.failures = []
        self.known_jobs = set()
        settings = TaskExecutorSettings(4, 64, 10.0, 50.0, 30.0, reattach_timeout_s=reattach_timeout_s)
        self.executor = TaskExecutor(
            ResourceId.random(),
            self.rpc,
            settings,
            self.resources,
            SystemClock(),
            self.work,
            self.failures.append,
            end_process,
        )
        self.leader = None

    async def __aenter__(self):
        self.rpc.start(self.executor)
        self.executor.start()
        return self

    async def __aexit__(self, *error):
        for invokable in self.resources.invokables.values():
            invokable.finish.set()
        for endpoint in (*self.leader, self.executor):
            await endpoint.stop()
        self.work.shutdown()
        assert self.failures == []

    async def lead(self, epoch, *job_ids):
        """Replace the leader; return the JobMasters of its jobs."""
        await self.abdicate()
        self.known_jobs = set(job_ids)
        manager = ResourceManager(
            self.rpc,
            epoch,
            ResourceManagerSettings(10.0, 50.0),
            SystemClock(),
            self.failures.append,
            lambda job_id: job_id in self.known_jobs,
        )
        masters = [JobMaster(job_id, epoch) for job_id in job_ids]
        self.leader = (manager, *masters)
        for endpoint in self.leader:
            self.rpc.start(endpoint)
        return masters

    async def lead_and_register(self, epoch, job_id):
        """Replace the leader, of which the TaskExecutor hears; return the JobMaster of its one job."""
        (master,) = await self.lead(epoch, job_id)
        await self.executor.connect("resourcemanager", epoch)
        return master

    async def abdicate(self):
        for endpoint in self.leader or ():
            await endpoint.stop()
            self.rpc.stop(endpoint)
        self.leader = None

    async def run_task(self, master, job_id, epoch, index=0):
        """Run an attempt in a slot of its own; return its id and allocation."""
        allocation = await self.slot(master, job_id, epoch, index)
        task = task_in(job_id, allocation, index)
        reply = await self.rpc.connect(self.executor.address, epoch).ask(SubmitTasks((task,), master.address))
        assert reply.refused == ()
        await master.heard(task.attempt, "RUNNING")
        return task.attempt, allocation

    async def slot(self, master, job_id, epoch, index=0):
        """Return the allocation of a slot that a job gets."""
        allocation = AllocationId.random()
        gateway = self.rpc.connect(self.executor.address, epoch)
        await gateway.ask(RequestSlot(index, job_id, allocation, master.address, 1))
        await asyncio.wait_for(master.slots.get(), WAIT_S)
        return allocation

    async def reattach(self, master, job_id, epoch, attempts=(), slots=(), partitions=None):
        wanted = tuple(map(partition_of, attempts)) if partitions is None else partitions
        request = ReattachJob(job_id, master.address, tuple(attempts), wanted, tuple(slots))
        return await self.rpc.connect(self.executor.address, epoch).ask(request)


async def until(condition):
    async with asyncio.timeout(WAIT_S):
        while not condition():
            await asyncio.sleep(0.005)


def pass_time(seconds):
    """Have everything on this loop wake up that sleeps so long."""
    loop = asyncio.get_running_loop()
    now_s = loop.time
    loop.time = lambda: now_s() + seconds


def run(work):
    return asyncio.run(work)


@pytest.mark.parametrize("registers_first", [True, False])
def test_a_running_task_goes_on_and_reports_to_the_next_job_master(registers_first):
    async def work():
        job_id = JobId.random()
        async with House() as house:
            master = await house.lead_and_register(1, job_id)
            attempt, allocation = await house.run_task(master, job_id, 1)
            (master,) = await house.lead(2, job_id)
            if registers_first:
                await house.executor.connect("resourcemanager", 2)
            attached = await house.reattach(master, job_id, 2, [attempt], [allocation])
            if not registers_first:
                await house.executor.connect("resourcemanager", 2)
            assert attached.slots == (allocation,)
            assert [(report.attempt, report.state) for report in attached.reports] == [(attempt, "RUNNING")]
            house.resources.invokables[attempt].finish.set()
            await master.heard(attempt, "FINISHED")
            assert house.resources.partitions == {partition_of(attempt)}

    run(work())


def test_tasks_come_together_and_one_that_is_refused_is_named_while_the_others_run():
    async def work():
        job_id = JobId.random()
        async with House() as house:
            master = await house.lead_and_register(1, job_id)
            allocation = await house.slot(master, job_id, 1)
            first, last = (task_in(job_id, allocation, index) for index in (0, 2))
            lost = task_in(job_id, AllocationId.random(), 1)
            gateway = house.rpc.connect(house.executor.address, 1)
            reply = await gateway.ask(SubmitTasks((first, lost, last), master.address))
            assert [each.attempt for each in reply.refused] == [lost.attempt]
            assert "there is no slot with allocation" in reply.refused[0].failure.message
            for task in (first, last):
                await master.heard(task.attempt, "RUNNING")

    run(work())


def test_what_tasks_report_while_a_report_is_on_its_way_is_one_message():
    async def work():
        job_id = JobId.random()
        async with House() as house:
            master = await house.lead_and_register(1, job_id)
            attempts = [(await house.run_task(master, job_id, 1, index))[0] for index in range(4)]
            messages, may_answer = [], asyncio.Event()

            async def slow(request):
                messages.append([(report.attempt, report.state) for report in request.reports])
                await may_answer.wait()
                return ACKNOWLEDGE

            master._handlers[UpdateTaskStates] = slow
            for attempt in attempts:
                house.resources.invokables[attempt].finish.set()
                await until(lambda attempt=attempt: attempt not in house.executor._tasks)
            may_answer.set()
            await until(lambda: len(messages) == 2)
            assert messages == [[(attempts[0], "FINISHED")], [(each, "FINISHED") for each in attempts[1:]]]

    run(work())


def test_a_task_that_ends_while_nobody_leads_is_told_to_the_next_job_master():
    async def work():
        job_id = JobId.random()
        async with House() as house:
            master = await house.lead_and_register(1, job_id)
            attempt, allocation = await house.run_task(master, job_id, 1)
            await house.abdicate()
            house.resources.invokables[attempt].finish.set()
            await until(lambda: house.executor._tasks == {})
            (master,) = await house.lead(2, job_id)
            attached = await house.reattach(master, job_id, 2, [attempt], [allocation])
            assert [report.state for report in attached.reports] == ["FINISHED"]
            assert attached.partitions == (partition_of(attempt),)
            # It is told by itself as well: the answer may be lost.
            await master.heard(attempt, "FINISHED")

    run(work())


def test_what_the_next_job_master_does_not_name_is_cancelled_dropped_and_freed():
    async def work():
        job_id = JobId.random()
        async with House() as house:
            master = await house.lead_and_register(1, job_id)
            kept, allocation = await house.run_task(master, job_id, 1, 0)
            unknown, _ = await house.run_task(master, job_id, 1, 1)
            ended, _ = await house.run_task(master, job_id, 1, 2)
            house.resources.invokables[ended].finish.set()
            await master.heard(ended, "FINISHED")
            master = await house.lead_and_register(2, job_id)
            attached = await house.reattach(master, job_id, 2, [kept, ended], [allocation], partitions=())
            assert attached.slots == (allocation,)
            assert {report.attempt for report in attached.reports} == {kept, ended}
            assert attached.partitions == ()
            assert house.resources.invokables[unknown].is_cancelled
            assert not house.resources.invokables[kept].is_cancelled
            assert house.resources.partitions == {partition_of(kept)}
            await until(lambda: house.executor.slot_table.free_count == 3)

    run(work())


def test_what_ends_while_others_are_being_cancelled_is_kept():
    async def work():
        job_id = JobId.random()
        async with House() as house:
            master = await house.lead_and_register(1, job_id)
            kept, allocation = await house.run_task(master, job_id, 1, 0)
            unknown, _ = await house.run_task(master, job_id, 1, 1)
            (master,) = await house.lead(2, job_id)
            slow = house.resources.invokables[unknown]
            slow.cancel = lambda: setattr(slow, "is_cancelled", True)  # it takes its time
            attaching = asyncio.ensure_future(house.reattach(master, job_id, 2, [kept], [allocation], partitions=()))
            await until(lambda: slow.is_cancelled)
            house.resources.invokables[kept].finish.set()
            await until(lambda: kept not in house.executor._tasks)
            slow.finish.set()
            attached = await attaching
            assert [report.state for report in attached.reports] == ["FINISHED"]
            assert house.resources.partitions == {partition_of(kept)}

    run(work())


def test_jobs_that_the_next_leader_does_not_know_are_dropped():
    async def work():
        job_id = JobId.random()
        async with House() as house:
            master = await house.lead_and_register(1, job_id)
            attempt, _ = await house.run_task(master, job_id, 1)
            await house.lead(2)
            await house.executor.connect("resourcemanager", 2)
            assert house.resources.invokables[attempt].is_cancelled
            assert house.resources.released_jobs == [job_id]
            assert house.executor.slot_table.is_idle

    run(work())


def test_a_job_whose_job_master_does_not_come_is_dropped_after_a_while():
    async def work():
        job_id = JobId.random()
        async with House(reattach_timeout_s=0.05) as house:
            master = await house.lead_and_register(1, job_id)
            attempt, _ = await house.run_task(master, job_id, 1)
            await house.lead(2, job_id)
            await house.executor.connect("resourcemanager", 2)
            await until(lambda: house.resources.released_jobs == [job_id])
            assert house.resources.invokables[attempt].is_cancelled

    run(work())


def test_a_job_that_gets_new_slots_is_not_waited_for():
    async def work():
        job_id = JobId.random()
        async with House() as house:
            master = await house.lead_and_register(1, job_id)
            first, _ = await house.run_task(master, job_id, 1, 0)
            house.resources.invokables[first].finish.set()
            await master.heard(first, "FINISHED")
            master = await house.lead_and_register(2, job_id)
            second, _ = await house.run_task(master, job_id, 2, 1)
            waiting = {task for task in asyncio.all_tasks() if "JobMaster of job" in task.get_name()}
            assert waiting
            pass_time(WAIT_S)
            await asyncio.wait(waiting)
            assert not house.resources.invokables[second].is_cancelled
            assert house.resources.released_jobs == []

    run(work())


def test_the_former_leader_is_refused_once_the_next_one_was_heard():
    async def work():
        job_id = JobId.random()
        async with House() as house:
            master = await house.lead_and_register(1, job_id)
            attempt, allocation = await house.run_task(master, job_id, 1)
            (master,) = await house.lead(2, job_id)
            await house.reattach(master, job_id, 2, [attempt], [allocation])
            with pytest.raises(FencedError):
                await house.rpc.connect(house.executor.address, 1).ask(CancelTask(attempt))
            assert not house.resources.invokables[attempt].is_cancelled

    run(work())


def test_attaching_twice_says_the_same():
    async def work():
        job_id = JobId.random()
        async with House() as house:
            master = await house.lead_and_register(1, job_id)
            attempt, allocation = await house.run_task(master, job_id, 1)
            (master,) = await house.lead(2, job_id)
            first = await house.reattach(master, job_id, 2, [attempt], [allocation])
            assert await house.reattach(master, job_id, 2, [attempt], [allocation]) == first

    run(work())
