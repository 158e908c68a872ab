"""A TaskExecutor is registered whenever somebody leads, and gives up when nobody does."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from engine.clock import SystemClock
from engine.errors import ResourceError
from engine.gateways.memory_use import MemoryInUse
from engine.gateways.messages import MESSAGE_TYPES, RequestSlotOverview
from engine.ids import ResourceId
from engine.resourcemanager.resource_manager import ResourceManager, ResourceManagerSettings
from engine.rpc.codec import MessageCodec
from engine.rpc.local_gateway import LocalRpcService
from engine.taskexecutor.registration import Leader, Registration, RegistrationError, RegistrationSettings
from engine.taskexecutor.task_executor import TaskExecutor
from engine.taskexecutor.task_executor_settings import TaskExecutorSettings

SETTINGS = RegistrationSettings(0.005, 0.05, 30.0)


class NoResources:
    def release_partition(self, partition):
        pass

    def memory_in_use(self, resource_id):
        return MemoryInUse(resource_id)

    def release_attempts(self, job_id, attempts):
        pass


class FixedFinder:
    def __init__(self):
        self.epoch = None
        self.asked = 0

    async def find(self):
        self.asked += 1
        if self.epoch is None:
            raise ResourceError("no JobManager leads")
        return Leader("resourcemanager", self.epoch)


class Cluster:
    def __init__(self):
        self.rpc = LocalRpcService(MessageCodec(MESSAGE_TYPES))
        self.finder = FixedFinder()
        self.registered = asyncio.Queue()
        self.work = ThreadPoolExecutor(1)
        self.failures = []

    async def __aenter__(self):
        return self

    def start_resource_manager(self, epoch, interval_s=10.0):
        manager = ResourceManager(
            self.rpc, epoch, ResourceManagerSettings(interval_s, 5 * interval_s), SystemClock(), self.failures.append
        )
        self.rpc.start(manager)
        manager.start()
        self.finder.epoch = epoch
        return manager

    async def stop_resource_manager(self, manager):
        self.finder.epoch = None
        self.rpc.stop(manager)
        await manager.stop()

    def start_task_executor(self, settings=SETTINGS, interval_s=10.0):
        self.task_executor = TaskExecutor(
            ResourceId.random(),
            self.rpc,
            TaskExecutorSettings(3, 30, interval_s, 5 * interval_s, 1.0),
            NoResources(),
            SystemClock(),
            self.work,
            self.failures.append,
        )
        self.rpc.start(self.task_executor)
        self.task_executor.start()
        registration = Registration(
            self.task_executor, self.finder, settings, SystemClock(), self.registered.put_nowait
        )
        return self.task_executor.spawn(registration.run(), "registration")

    async def slots(self):
        overview = await self.rpc.connect("resourcemanager", self.finder.epoch).ask(RequestSlotOverview())
        return overview.total_count

    async def next_registration(self):
        return (await asyncio.wait_for(self.registered.get(), 30)).epoch

    async def __aexit__(self, *exc):
        self.rpc.stop(self.task_executor)
        await self.task_executor.stop()
        self.work.shutdown()


async def until(condition):
    for _ in range(3000):
        if await condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come true")


def test_it_waits_for_a_leader_and_follows_the_next_one():
    async def run():
        async with Cluster() as cluster:
            cluster.start_task_executor()

            async def has_asked_often():
                return cluster.finder.asked > 2

            await until(has_asked_often)
            first = cluster.start_resource_manager(7)
            assert await cluster.next_registration() == 7
            assert await cluster.slots() == 3
            await cluster.stop_resource_manager(first)
            second = cluster.start_resource_manager(8)
            assert await cluster.next_registration() == 8
            assert await cluster.slots() == 3
            await cluster.stop_resource_manager(second)
            assert cluster.failures == []

    asyncio.run(run())


def test_one_that_was_given_up_registers_again():
    async def run():
        async with Cluster() as cluster:
            manager = cluster.start_resource_manager(1, interval_s=0.05)
            cluster.start_task_executor(interval_s=0.05)
            await cluster.next_registration()
            manager._lose(cluster.task_executor.resource_id, "it is tested")
            assert await cluster.next_registration() == 1
            assert await cluster.slots() == 3
            await cluster.stop_resource_manager(manager)

    asyncio.run(run())


def test_one_that_leaves_is_forgotten_at_once():
    async def run():
        async with Cluster() as cluster:
            manager = cluster.start_resource_manager(1)
            registration = cluster.start_task_executor()
            await cluster.next_registration()
            registration.cancel()
            await cluster.task_executor.disconnect("it stops")
            assert await cluster.slots() == 0
            await cluster.stop_resource_manager(manager)

    asyncio.run(run())


def test_a_process_that_is_gone_is_noticed_by_its_broken_connection_not_by_its_silence():
    async def run():
        async with Cluster() as cluster:
            manager = cluster.start_resource_manager(1)
            registration = cluster.start_task_executor()
            await cluster.next_registration()
            cluster.rpc.stop(cluster.task_executor)

            async def call_is_held():
                return any("LocalGateway._answer" in str(task.get_coro()) for task in asyncio.all_tasks())

            await until(call_is_held)
            registration.cancel()
            for task in asyncio.all_tasks():  # what a transport does with the call of a caller that is gone
                if "LocalGateway._answer" in str(task.get_coro()):
                    task.cancel()

            async def is_forgotten():
                return await cluster.slots() == 0

            await until(is_forgotten)
            await cluster.stop_resource_manager(manager)

    asyncio.run(run())


def test_it_gives_up_when_nobody_leads_for_too_long():
    async def run():
        async with Cluster() as cluster:
            registration = cluster.start_task_executor(RegistrationSettings(0.005, 0.01, 0.05))
            with pytest.raises(RegistrationError, match="no JobManager leads"):
                await asyncio.wait_for(registration, 30)
            assert [type(error) for error in cluster.failures] == [RegistrationError]

    asyncio.run(run())


def test_neither_a_pause_nor_an_attempt_that_hangs_makes_it_give_up_later():
    class HangingFinder(FixedFinder):
        async def find(self):
            self.asked += 1
            if self.asked == 1:
                raise ResourceError("no JobManager leads")
            await asyncio.Event().wait()

    async def run(finder, first_pause_s):
        async with Cluster() as cluster:
            cluster.finder = finder
            settings = RegistrationSettings(first_pause_s, 300.0, 0.2)
            with pytest.raises(RegistrationError, match="no JobManager leads"):
                await asyncio.wait_for(cluster.start_task_executor(settings), 30)

    asyncio.run(run(FixedFinder(), 300.0))
    asyncio.run(run(HangingFinder(), 0.001))
