"""A TaskExecutor that drains takes no slots, and ends its process when no job misses anything by it."""

import asyncio

import pytest

from engine.errors import ResourceError
from engine.gateways.messages import ReleasePartitions, RequestSlot
from engine.gateways.task_executors import DrainTaskExecutor
from engine.ids import AllocationId, JobId
from tests.taskexecutor.test_reattach import House, partition_of, until


def run(scenario, **settings):
    ends = []

    async def body():
        async with House(end_process=lambda: ends.append(True), **settings) as house:
            job_id = JobId.random()
            await scenario(house, await house.lead_and_register(1, job_id), job_id, ends)

    asyncio.run(body())


def ask(house, request, epoch=1):
    return house.rpc.connect(house.executor.address, epoch).ask(request)


def drain(house, limit_s=None, epoch=1):
    return ask(house, DrainTaskExecutor(house.executor.resource_id, "a test", limit_s), epoch)


async def soon():
    """Let pass what a drain needs to find out that nothing is left, twice."""
    await asyncio.sleep(0.25)


def test_it_ends_when_the_last_result_has_been_dropped():
    async def scenario(house, master, job_id, ends):
        attempt, _ = await house.run_task(master, job_id, 1)
        await drain(house)
        with pytest.raises(ResourceError, match="it drains"):
            await ask(house, RequestSlot(1, job_id, AllocationId.random(), master.address, 2))
        await soon()
        assert not ends, "a task runs"
        house.resources.invokables[attempt].finish.set()
        await master.heard(attempt, "FINISHED")
        for slot in house.executor.slot_table.slots_of(job_id):
            house.executor._free(slot)
        await soon()
        assert not ends, "a result is kept for its readers"
        await ask(house, ReleasePartitions((partition_of(attempt),)))
        await until(lambda: ends)
        await soon()
        assert ends == [True]

    run(scenario)


def test_it_waits_for_the_job_master_of_the_next_leader():
    async def scenario(house, master, job_id, ends):
        attempt, _ = await house.run_task(master, job_id, 1)
        await drain(house)
        house.resources.invokables[attempt].finish.set()
        await master.heard(attempt, "FINISHED")
        house.resources.partitions.clear()
        master = await house.lead_and_register(2, job_id)
        for slot in house.executor.slot_table.slots_of(job_id):
            house.executor._free(slot)
        await soon()
        assert not ends, "the next one has not asked what became of the task"
        answer = await house.reattach(master, job_id, 2, [attempt])
        assert answer.is_draining and [report.state for report in answer.reports] == ["FINISHED"]
        await until(lambda: ends)

    run(scenario)


def test_it_ends_in_time_whatever_is_left():
    async def scenario(house, master, job_id, ends):
        await house.run_task(master, job_id, 1)
        await drain(house)
        await drain(house, limit_s=0.05)
        await until(lambda: ends)

    run(scenario)


def test_one_that_the_cluster_may_not_end_is_not_drained():
    async def body():
        async with House() as house:
            await house.lead_and_register(1, JobId.random())
            with pytest.raises(ResourceError, match="part of another process"):
                await drain(house)
            await house.run_task(house.leader[1], JobId.random(), 1)

    asyncio.run(body())
