"""What the ResourceManager makes of TaskExecutors that refuse, fail and are not heard."""

from __future__ import annotations

import asyncio
import socket

import msgspec
import pytest

from engine.clock import SystemClock
from engine.errors import EngineError, ResourceError
from engine.gateways.messages import (
    DisconnectTaskExecutor,
    Heartbeat,
    RegisterTaskExecutor,
    ReleaseJob,
    RequestSlot,
    RequestSlotOverview,
    RequestSlots,
    SlotStatus,
    StayConnected,
    SuspectTaskExecutor,
    TaskExecutorLost,
)
from engine.gateways.task_executors import (
    DrainTaskExecutor,
    ListTaskExecutors,
    TaskExecutorDraining,
    TaskExecutorHardware,
)
from engine.ids import JobId, ResourceId
from engine.resourcemanager import resource_manager
from engine.resourcemanager.resource_manager import ResourceManager, ResourceManagerSettings
from engine.rpc.errors import AccessDeniedError, EndpointUnreachableError, RemoteCallError, RpcTimeoutError
from engine.rpc.request import ACKNOWLEDGE

WAIT_S = 30.0


class Peers:
    """An RpcService whose other side raises what it is told to."""

    def __init__(self) -> None:
        self.asked: list[object] = []
        self.failures: dict[type, EngineError] = {}

    def address_of(self, name):
        return f"here/{name}"

    def connect(self, address, epoch):
        return self

    async def ask(self, request, timeout_s=None):
        self.asked.append(request)
        if type(request) in self.failures:
            raise self.failures[type(request)]
        return ACKNOWLEDGE

    def count(self, kind):
        return sum(isinstance(request, kind) for request in self.asked)


def run(scenario, heartbeat_s=0.01, led_jobs=()):
    async def body():
        fatal: list[BaseException] = []
        peers = Peers()
        manager = ResourceManager(
            peers,
            1,
            ResourceManagerSettings(heartbeat_s, 2 * WAIT_S),
            SystemClock(),
            fatal.append,
            led_jobs=lambda: led_jobs,
        )
        manager.start()
        try:
            await asyncio.wait_for(scenario(manager, peers), WAIT_S)
        finally:
            await manager.stop()
        assert not fatal

    asyncio.run(body())


def registration(resource_id, slot_count, place=""):
    free = tuple(SlotStatus(index, None, None) for index in range(slot_count))
    return RegisterTaskExecutor(resource_id, f"{place or resource_id}/taskexecutor-{resource_id}", free)


async def until(condition):
    while not condition():
        await asyncio.sleep(0.002)


def test_a_slot_that_was_refused_comes_back_when_its_task_executor_registers_again():
    async def scenario(manager, peers):
        resource_id = ResourceId.random()
        await manager.register_task_executor(registration(resource_id, 2))
        await manager.stay_connected(StayConnected(resource_id))
        peers.failures[RequestSlot] = ResourceError("slot 1 of 2 is not free")
        await manager.request_slots(RequestSlots(JobId.random(), "a job", "here/jobmaster", 1, 2))
        while (await manager.request_slot_overview(RequestSlotOverview())).total_count:
            await asyncio.sleep(0.002)
        assert peers.count(RequestSlot) == 2
        with pytest.raises(ResourceError, match="refused a slot"):
            await manager.stay_connected(StayConnected(resource_id))
        del peers.failures[RequestSlot]
        await manager.register_task_executor(registration(resource_id, 2))
        await until(lambda: peers.count(RequestSlot) == 4)
        assert (await manager.request_slot_overview(RequestSlotOverview())).total_count == 2
        await manager.stay_connected(StayConnected(resource_id))

    run(scenario)


@pytest.mark.parametrize("failure", [RemoteCallError("500"), EngineError("odd")])
def test_whatever_is_wrong_with_one_heartbeat_is_nothing_to_the_others(failure):
    async def scenario(manager, peers):
        peers.failures[Heartbeat] = failure
        for _ in range(2):
            await manager.register_task_executor(registration(ResourceId.random(), 1))
        await until(lambda: peers.count(Heartbeat) > 6)
        assert (await manager.request_slot_overview(RequestSlotOverview())).task_executor_count == 2

    run(scenario)


def test_a_task_executor_that_leaves_as_its_slot_is_assigned_takes_nobody_along():
    async def scenario(manager, peers):
        leaving, staying = ResourceId.random(), ResourceId.random()
        await manager.register_task_executor(registration(leaving, 1))
        await manager.request_slots(RequestSlots(JobId.random(), "a job", "here/jobmaster", 1, 1))
        await manager.disconnect_task_executor(DisconnectTaskExecutor(leaving, "it leaves"))
        await manager.register_task_executor(registration(staying, 1))
        await until(lambda: peers.count(RequestSlot) == 1)
        assert (await manager.request_slot_overview(RequestSlotOverview())).task_executor_count == 1

    run(scenario)


def test_one_that_drains_says_so_to_each_leader_and_the_job_masters_hear_it_once():
    job_id = JobId.random()

    async def scenario(manager, peers):
        resource_id = ResourceId.random()
        await manager.register_task_executor(registration(resource_id, 1))
        with pytest.raises(ResourceError, match="is not registered here"):
            await manager.drain_task_executor(DrainTaskExecutor(ResourceId.random(), "a test"))
        peers.failures[DrainTaskExecutor] = ResourceError("part of another process")
        with pytest.raises(ResourceError, match="part of another process"):
            await manager.drain_task_executor(DrainTaskExecutor(resource_id, "a test"))
        (listed,) = (await manager.list_task_executors(ListTaskExecutors())).task_executors
        assert not listed.is_draining, "one that refuses goes on"
        # As after a change of the leader.
        for _ in range(2):
            await manager.register_task_executor(
                msgspec.structs.replace(registration(resource_id, 1), is_draining=True)
            )
        await manager.request_slots(RequestSlots(JobId.random(), "a job", "here/jobmaster", 1, 1))
        await until(lambda: peers.count(TaskExecutorDraining) == 1)
        (listed,) = (await manager.list_task_executors(ListTaskExecutors())).task_executors
        assert listed.is_draining and peers.count(RequestSlot) == 0

    run(scenario, led_jobs=(job_id,))


def test_a_job_that_ended_without_a_job_master_is_dropped_by_those_who_came_with_it_until_they_answer():
    async def scenario(manager, peers):
        job_id, other = JobId.random(), JobId.random()
        holds = msgspec.structs.replace(registration(ResourceId.random(), 1), jobs=(job_id,))
        await manager.register_task_executor(holds)
        await manager.register_task_executor(registration(ResourceId.random(), 1))
        manager.release_job(other)
        peers.failures[ReleaseJob] = RpcTimeoutError("no answer")
        manager.release_job(job_id)
        await until(lambda: peers.count(ReleaseJob) >= 2)
        del peers.failures[ReleaseJob]
        asked = peers.count(ReleaseJob)
        await until(lambda: peers.count(ReleaseJob) > asked)
        assert {request for request in peers.asked if isinstance(request, ReleaseJob)} == {ReleaseJob(job_id)}

    run(scenario)


@pytest.mark.parametrize(
    ("ahead_s", "word"), [(0, ""), (4, ""), (-4, ""), (30, "30 s ahead of"), (-30, "30 s behind"), (None, "")]
)
def test_clocks_that_differ_are_told_at_registration_with_both_hosts(ahead_s, word, caplog):
    async def scenario(manager, peers):
        clock_ms = 0 if ahead_s is None else SystemClock().wall_ms() + 1000 * ahead_s
        request = msgspec.structs.replace(
            registration(ResourceId.random(), 1), clock_ms=clock_ms, hardware=TaskExecutorHardware("far-away")
        )
        note = (await manager.register_task_executor(request)).clock_note
        assert word in note and bool(note) == bool(word)
        assert (note in caplog.messages) == bool(word)
        if word:
            assert "far-away" in note and socket.gethostname() in note and "60 s" in note

    run(scenario)


JOBS = tuple(JobId(letter * 32) for letter in "ab")
#: longer than any test: nothing comes of heartbeats
NEVER_S = WAIT_S


def losses(peers):
    return [request.resource_id for request in peers.asked if isinstance(request, TaskExecutorLost)]


def test_every_job_hears_of_a_task_executor_that_says_goodbye_also_those_without_a_slot_there(caplog):
    async def scenario(manager, peers):
        leaving = ResourceId.random()
        await manager.register_task_executor(registration(leaving, 1))
        await manager.disconnect_task_executor(DisconnectTaskExecutor(leaving, "it is stopped"))
        await until(lambda: losses(peers) == [leaving] * 2)

    run(scenario, NEVER_S, JOBS)
    assert "given up" not in caplog.text, "it was asked to leave"


def test_one_that_has_signed_off_is_listed_as_such_and_a_late_registration_of_it_is_refused(monkeypatch):
    monkeypatch.setattr(resource_manager, "_LEFT_MAX", 2)

    async def scenario(manager, peers):
        leaving = [ResourceId.random() for _ in range(3)]
        for each in leaving:
            await manager.register_task_executor(registration(each, 1))
            await manager.disconnect_task_executor(DisconnectTaskExecutor(each, "it is stopped"))
            with pytest.raises(ResourceError, match="has signed off"):
                await manager.register_task_executor(registration(each, 1))
        listed = await manager.list_task_executors(ListTaskExecutors())
        assert listed.task_executors == () and listed.left == tuple(leaving[1:])

    run(scenario, NEVER_S)


def test_who_registers_from_the_same_host_and_port_has_taken_the_place_of_another():
    async def scenario(manager, peers):
        former, elsewhere, newcomer = (ResourceId.random() for _ in range(3))
        await manager.register_task_executor(registration(former, 1, "host:7001"))
        await manager.register_task_executor(registration(elsewhere, 1, "host:7002"))
        await manager.register_task_executor(registration(newcomer, 1, "host:7001"))
        await manager.register_task_executor(registration(newcomer, 1, "host:7001"))
        await until(lambda: losses(peers) == [former] * 2)
        assert (await manager.request_slot_overview(RequestSlotOverview())).task_executor_count == 2

    run(scenario, NEVER_S, JOBS)


def test_task_executors_of_one_process_have_one_place_and_do_not_replace_each_other():
    async def scenario(manager, peers):
        for _ in range(2):
            resource_id = ResourceId.random()
            await manager.register_task_executor(
                RegisterTaskExecutor(resource_id, f"taskexecutor-{resource_id}", (), "data")
            )
        assert (await manager.request_slot_overview(RequestSlotOverview())).free_count == 0
        assert len((await manager.list_task_executors(ListTaskExecutors())).task_executors) == 2

    run(scenario, NEVER_S, JOBS)


@pytest.mark.parametrize("failure", [EndpointUnreachableError("refused"), AccessDeniedError("its clock is 75 s ahead")])
@pytest.mark.parametrize("how", ["a job suspects it", "a slot there is asked for", "no call is held open"])
def test_where_nobody_takes_a_message_a_task_executor_is_lost_at_once(how, failure, monkeypatch):
    monkeypatch.setattr(resource_manager, "_NEXT_CALL_S", 0.01 if how == "no call is held open" else NEVER_S)

    async def scenario(manager, peers):
        peers.failures[Heartbeat] = failure
        gone = ResourceId.random()
        await manager.register_task_executor(registration(gone, 1))
        if how == "a job suspects it":
            await manager.suspect_task_executor(SuspectTaskExecutor(gone))
        elif how == "a slot there is asked for":
            peers.failures[RequestSlot] = failure
            await manager.request_slots(RequestSlots(JOBS[0], "a job", "here/jobmaster", 1, 1))
        await until(lambda: losses(peers) == [gone] * 2)

    run(scenario, NEVER_S, JOBS)


def test_one_refused_connection_is_no_loss_when_the_next_one_is_taken():
    async def scenario(manager, peers):
        async def refuse_the_first(request, timeout_s=None):
            peers.asked.append(request)
            if isinstance(request, Heartbeat) and peers.count(Heartbeat) == 1:
                raise EndpointUnreachableError("refused")
            return ACKNOWLEDGE

        peers.ask = refuse_the_first
        there = ResourceId.random()
        await manager.register_task_executor(registration(there, 1))
        await manager.suspect_task_executor(SuspectTaskExecutor(there))
        await until(lambda: peers.count(Heartbeat) >= 2 or losses(peers))
        assert (await manager.request_slot_overview(RequestSlotOverview())).task_executor_count == 1
        assert losses(peers) == []

    run(scenario, NEVER_S, JOBS)


def test_a_suspicion_of_who_is_there_or_only_silent_changes_nothing():
    async def scenario(manager, peers):
        there = ResourceId.random()
        await manager.register_task_executor(registration(there, 1))
        for failure in (None, RpcTimeoutError("silent")):
            if failure is not None:
                peers.failures[Heartbeat] = failure
            asked = peers.count(Heartbeat)
            await manager.suspect_task_executor(SuspectTaskExecutor(there))
            await until(lambda asked=asked: peers.count(Heartbeat) > asked)
        assert (await manager.request_slot_overview(RequestSlotOverview())).task_executor_count == 1
        assert losses(peers) == []

    run(scenario, NEVER_S, JOBS)
