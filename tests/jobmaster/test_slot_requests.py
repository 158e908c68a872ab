"""What a JobMaster does with slots that come in part, and with the word that there are too few of them."""

from __future__ import annotations

import asyncio

from engine.errors import ResourceError
from engine.gateways.job_queue import SlotsShort
from engine.gateways.messages import FreeSlot, OfferSlots, RequestJobOutcome, SubmitJob
from engine.ids import AllocationId, ResourceId
from engine.jobmaster import job_scheduling
from engine.jobmaster.job_master_settings import JobMasterSettings
from engine.jobmaster.slot_pool import AllocatedSlot, SlotPool
from engine.resourcemanager.resource_manager import RESOURCE_MANAGER_ADDRESS
from tests.dispatcher.test_cluster_components import Cluster
from tests.jobmaster.job_graphs import Edge, job_graph

WAIT_S = 60.0


class Impatient(Cluster):
    """A cluster whose jobs wait a moment only where there are too few slots."""

    def settings(self):
        return JobMasterSettings(0.3, self.heartbeat_s, 4 * self.heartbeat_s, RESOURCE_MANAGER_ADDRESS)


def scenario(slots, body):
    async def run():
        async with Impatient(slots) as cluster:
            await body(cluster)
            assert cluster.faults == []

    asyncio.run(asyncio.wait_for(run(), 2 * WAIT_S))


def slot():
    return AllocatedSlot(AllocationId.random(), ResourceId.random(), "there", "", 1)


def test_a_request_is_incomplete_from_its_first_slot_to_its_last():
    pool = SlotPool()
    first, second = pool.open_request(2), pool.open_request(1)
    assert not pool.incomplete
    assert pool.offer(first, slot()) and pool.incomplete == {first}
    assert pool.offer(second, slot()) and pool.incomplete == {first}
    assert pool.offer(first, slot()) and not pool.incomplete


def test_a_request_that_has_its_slots_takes_no_more_of_them():
    pool, first = SlotPool(), slot()
    request_id = pool.open_request(1)
    assert pool.offer(request_id, first)
    assert pool.offer(request_id, first), "the same one again"
    assert not pool.offer(request_id, slot())
    assert pool.slots == (first,) and pool.take(1, request_id) == (first,)


def test_idle_slots_of_an_avoided_task_executor_are_not_taken_again():
    pool, slots = SlotPool(), (slot(), slot(), slot())
    request_id = pool.open_request(3)
    assert all(pool.offer(request_id, each) for each in slots)
    pool.close_request(request_id)
    pool.suspected, pool.unreached = {slots[0].resource_id}, frozenset({slots[1].resource_id})
    assert pool.take(2, None) is None
    assert pool.take(1, None) == (slots[2],)
    assert pool.release_idle() == slots[:2]


def test_a_part_of_the_slots_is_given_back_and_asked_for_anew_when_the_rest_does_not_come(monkeypatch):
    monkeypatch.setattr(job_scheduling, "COLLECTING_S", 0.05)

    async def body(cluster):
        deliver, lost = cluster.rpc.deliver, []

        async def lose_one_offer(address, epoch, message):
            if isinstance(message, OfferSlots) and not lost:
                lost.append(message)
                raise ResourceError("the offer was lost on its way")
            return await deliver(address, epoch, message)

        cluster.rpc.deliver = lose_one_offer
        outcome = await cluster.run(job_graph([2, 2], [Edge(0, 1)]))
        assert outcome.status == "FINISHED" and lost
        assert any(message.startswith(FreeSlot.__name__) for message in cluster.rpc.messages)

    scenario([1, 1], body)


def test_only_the_time_counts_in_which_there_are_too_few_slots():
    async def body(cluster):
        waiting = job_graph([2, 2], [Edge(0, 1)])
        await cluster.gateway.ask(SubmitJob(waiting))
        job_master = cluster.rpc.connect(f"jobmaster-{waiting.job_id}", 7)
        while not any(message.startswith(SlotsShort.__name__) for message in cluster.rpc.messages):
            await asyncio.sleep(0.005)
        # As if another TaskManager had come whose slots others have.
        await job_master.ask(SlotsShort(waiting.job_id, is_short=False))
        await asyncio.sleep(1.0)  # three times the time-out
        outcome = asyncio.ensure_future(cluster.gateway.ask(RequestJobOutcome(waiting.job_id), None))
        await asyncio.sleep(0.05)
        assert not outcome.done()
        await job_master.ask(SlotsShort(waiting.job_id, is_short=True))
        failure = (await outcome).failure
        assert failure.type_name == "SlotTimeoutError" and failure.message.startswith("2 slots needed at one time")

    scenario([1], body)
