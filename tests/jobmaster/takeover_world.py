"""Leaders that come and go over TaskExecutors that stay: one process, no Dispatcher."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from engine.clock import SystemClock
from engine.errors import FencedError
from engine.gateways.messages import MESSAGE_TYPES
from engine.ids import ResourceId
from engine.jobmaster.job_facts import RecoveredJob
from engine.jobmaster.job_master import JobMaster
from engine.jobmaster.job_master_settings import JobMasterSettings
from engine.jobmaster.restart_strategy import FixedDelayRestart
from engine.resourcemanager.resource_manager import RESOURCE_MANAGER_ADDRESS, ResourceManager, ResourceManagerSettings
from engine.rpc.codec import MessageCodec
from engine.rpc.leadership import Leadership
from engine.rpc.local_gateway import LocalRpcService
from engine.taskexecutor.task_executor import TaskExecutor
from engine.taskexecutor.task_executor_settings import TaskExecutorSettings
from tests.jobmaster.folder_storage import FolderStorage
from tests.minicluster.fake_tasks import FakeResources

WAIT_S = 30.0


class Held(FakeResources):
    """Knows which partitions are there."""

    def held_partitions(self, attempts):
        wanted = set(attempts)
        return [
            partition.id
            for descriptor in self.descriptors
            if descriptor.attempt in wanted
            for partition in descriptor.partitions
            if partition.id not in self.released
        ]


class MemoryJournal:
    """Events in memory, durable at once."""

    is_durable = True

    def __init__(self, events=()):
        self.events = list(events)

    def append(self, event):
        self.events.append(event)

    async def flush(self):
        pass

    async def close(self):
        pass


class Storage(FolderStorage):
    """Refuses who has been followed by another leader."""

    def __init__(self, world, epoch, job_id):
        super().__init__(world.folder, job_id)
        self.world, self.epoch = world, epoch

    def decide(self, decision):
        self.check()
        return super().decide(decision)

    def record(self, end):
        self.check()
        self.world.ends.append(end)
        super().record(end)

    def check(self):
        if not self.world.leads(self.epoch):
            raise FencedError(self.world.epoch, self.epoch)


class World:
    """TaskExecutors with their slots; ``lead`` makes the next leader's JobMaster."""

    def __init__(self, slots, folder, heartbeat_s=0.1, reattach_s=10.0):
        self.rpc = LocalRpcService(MessageCodec(MESSAGE_TYPES))
        self.folder, self.heartbeat_s, self.reattach_s = folder, heartbeat_s, reattach_s
        self.clock, self.work = SystemClock(), ThreadPoolExecutor(4)
        self.faults, self.ends = [], []
        self.epoch, self.refused = 0, set()
        self.resource_manager = None
        self.job_master = None
        self.resources = [Held() for _ in slots]
        self.task_executors = [self._task_executor(index, count) for index, count in enumerate(slots)]

    def _task_executor(self, index, count):
        settings = TaskExecutorSettings(
            count,
            4096,
            self.heartbeat_s,
            20 * self.heartbeat_s,
            5.0,
            f"data-{index}",
            reattach_timeout_s=self.reattach_s,
        )
        return TaskExecutor(
            ResourceId.random(), self.rpc, settings, self.resources[index], self.clock, self.work, self.faults.append
        )

    async def __aenter__(self):
        for task_executor in self.task_executors:
            self.rpc.start(task_executor)
            task_executor.start()
        return self

    async def __aexit__(self, *_):
        await self.depose()
        for task_executor in self.task_executors:
            self.rpc.stop(task_executor)
            await task_executor.stop()
        self.work.shutdown()

    async def lead(self, graph, journal=None, recovered=None, attempts=5, work=None):
        """Follow whoever led; return the JobMaster, which is started."""
        await self.depose()
        self.epoch += 1
        epoch, fault = self.epoch, self.faults.append
        self.resource_manager = ResourceManager(
            self.rpc, epoch, ResourceManagerSettings(self.heartbeat_s, 20 * self.heartbeat_s), self.clock, fault
        )
        settings = JobMasterSettings(
            10.0,
            self.heartbeat_s,
            20 * self.heartbeat_s,
            RESOURCE_MANAGER_ADDRESS,
            restart_strategy=lambda _: FixedDelayRestart(attempts, 0.01),
            reattach_timeout_s=self.reattach_s,
        )
        self.journal = journal if journal is not None else MemoryJournal(recovered.events if recovered else ())
        leadership = Leadership(self.rpc, epoch, self.clock, work or self.work, lambda: self.leads(epoch), fault)
        self.job_master = JobMaster(
            graph,
            leadership,
            settings,
            Storage(self, epoch, graph.job_id),
            self.journal,
            recovered,
        )
        self.rpc.start(self.resource_manager)
        self.resource_manager.start()
        self.rpc.start(self.job_master)
        self.job_master.start()
        for task_executor in self.task_executors:
            if self.rpc._endpoints.get(task_executor.address) is task_executor:
                await task_executor.connect(RESOURCE_MANAGER_ADDRESS, epoch)
        return self.job_master

    async def take_over(self, graph, events=None, decision=None, **settings):
        """Have the next leader go on with what is in the journal, or with those events."""
        await self.depose()
        known = tuple(self.journal.events if events is None else events)
        return await self.lead(graph, recovered=RecoveredJob(known, decision), **settings)

    def leads(self, epoch):
        """Whether the leader of ``epoch`` is in force; who is told otherwise stands in ``refused``."""
        if self.epoch != epoch:
            self.refused.add(epoch)
        return self.epoch == epoch

    async def depose(self):
        """End the present leader as if it had died: it says nothing to anybody."""
        if self.job_master is None:
            return
        self.rpc.stop(self.job_master)
        self.rpc.stop(self.resource_manager)
        await self.job_master.stop()
        await self.resource_manager.stop()
        self.job_master = None

    async def lose(self, index):
        """Have a TaskExecutor's process die."""
        lost = self.task_executors[index]
        self.rpc.stop(lost)
        for resources in self.resources[index : index + 1]:
            for event in getattr(resources, "holds", ()):
                event.set()
        await lost.stop()

    def attempts(self):
        """Return (vertex name, subtask index, attempt number) of everything that was ever begun, in order."""
        return [
            (each.vertex_name, each.subtask_index, each.attempt.attempt_number)
            for resources in self.resources
            for each in resources.descriptors
        ]

    def ended(self, name):
        """Return how many tasks of a vertex have come to their end."""
        return sum(event[:2] == ("end", name) for resources in self.resources for event in resources.events)

    def started(self, name):
        return sum(event[:2] == ("start", name) for resources in self.resources for event in resources.events)

    def all_do(self, **bodies):
        for resources in self.resources:
            resources.bodies.update(bodies)

    async def until(self, condition):
        deadline = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < deadline, "it never came to be"
            await asyncio.sleep(0.005)


def hold(event: threading.Event):
    """Return a body that waits for an event, or for its cancellation."""

    def body(task):
        while not event.wait(0.01):
            if task.cancelled.is_set():
                return

    return body


def scenario(slots, folder, body, **settings):
    async def run():
        async with World(slots, folder, **settings) as world:
            await body(world)
            assert world.faults == []

    asyncio.run(asyncio.wait_for(run(), 90))
