"""Dispatcher, JobMaster and ResourceManager with several TaskExecutors on one loop, without a MiniCluster."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from engine.clock import SystemClock
from engine.dispatcher.dispatcher import DISPATCHER_ADDRESS, Dispatcher
from engine.dispatcher.job_archive import EndedJob
from engine.dispatcher.job_store import JobStore
from engine.errors import FencedError, JobNotFoundError
from engine.gateways.job_details import JobDetails
from engine.gateways.messages import (
    MESSAGE_TYPES,
    CancelJob,
    JobOutcome,
    JobOverview,
    ListJobs,
    RequestJobOutcome,
    RequestJobProgress,
    RequestJobStatus,
    RequestSlotOverview,
    SubmitJob,
    SubmitTasks,
)
from engine.ids import JobId, ResourceId
from engine.jobmaster.job_master import JobMaster
from engine.jobmaster.job_master_settings import JobMasterSettings, job_turn
from engine.resourcemanager.resource_manager import RESOURCE_MANAGER_ADDRESS, ResourceManager, ResourceManagerSettings
from engine.rpc.codec import MessageCodec
from engine.rpc.errors import EndpointUnreachableError
from engine.rpc.leadership import Leadership
from engine.rpc.local_gateway import LocalRpcService
from engine.taskexecutor.task_executor import TaskExecutor
from engine.taskexecutor.task_executor_settings import TaskExecutorSettings
from tests.jobmaster.folder_storage import FolderStorage
from tests.jobmaster.job_graphs import BLOCKING, Edge, job_graph
from tests.minicluster.fake_tasks import FakeResources

EPOCH = 7


class RecordingRpc(LocalRpcService):
    """Notes the type of every message."""

    def __init__(self) -> None:
        super().__init__(MessageCodec(MESSAGE_TYPES))
        self.messages: list[str] = []
        self.dead: set[str] = set()
        #: where nobody listens any more
        self.gone: set[str] = set()

    async def deliver(self, address, epoch, message):
        self.messages.append(f"{type(message).__name__} -> {address.split('-')[0]}")
        if address in self.gone:
            raise EndpointUnreachableError(f"nothing answers at {address}: connection refused")
        if address in self.dead:
            await asyncio.sleep(3600)
        return await super().deliver(address, epoch, message)


class Cluster:
    def __init__(self, slots: list[int], heartbeat_s: float = 30.0) -> None:
        self.rpc = RecordingRpc()
        self.clock = SystemClock()
        self.faults: list[BaseException] = []
        self.work = ThreadPoolExecutor(2)
        self.heartbeat_s = heartbeat_s
        self.storage = tempfile.TemporaryDirectory()
        fault = self.faults.append
        self.leadership = Leadership(self.rpc, EPOCH, self.clock, self.work, lambda: True, fault)
        self.resource_manager = ResourceManager(
            self.rpc, EPOCH, ResourceManagerSettings(heartbeat_s, 4 * heartbeat_s), self.clock, fault
        )
        self.dispatcher = Dispatcher(self.rpc, EPOCH, self._job_master, fault)
        self.resources = [FakeResources() for _ in slots]
        self.task_executors = [
            TaskExecutor(
                ResourceId.random(),
                self.rpc,
                TaskExecutorSettings(count, 4096, heartbeat_s, 4 * heartbeat_s, 30.0, f"data-{index}"),
                self.resources[index],
                self.clock,
                self.work,
                fault,
            )
            for index, count in enumerate(slots)
        ]

    def settings(self):
        return JobMasterSettings(20.0, self.heartbeat_s, 4 * self.heartbeat_s, RESOURCE_MANAGER_ADDRESS)

    def _job_master(self, graph, journal, taken, order):
        return JobMaster(
            graph,
            self.leadership,
            self.settings(),
            FolderStorage(Path(self.storage.name), graph.job_id),
            turn=job_turn(graph, order),
        )

    def recovered_turns(self):
        return {}

    async def __aenter__(self):
        for endpoint in (self.resource_manager, self.dispatcher, *self.task_executors):
            self.rpc.start(endpoint)
        self.resource_manager.start(self.recovered_turns())
        for task_executor in self.task_executors:
            task_executor.start()
            await task_executor.connect(RESOURCE_MANAGER_ADDRESS, EPOCH)
        return self

    async def __aexit__(self, *_):
        self.rpc.dead.clear()
        self.rpc.gone.clear()
        for endpoint in (self.dispatcher, *self.task_executors, self.resource_manager):
            await endpoint.stop()
        self.work.shutdown()
        self.storage.cleanup()

    @property
    def gateway(self):
        return self.rpc.connect(DISPATCHER_ADDRESS, EPOCH)

    async def run(self, graph):
        await self.gateway.ask(SubmitJob(graph))
        return await self.gateway.ask(RequestJobOutcome(graph.job_id), None)


def scenario(slots, body, **settings):
    async def run():
        async with Cluster(slots, **settings) as cluster:
            await body(cluster)
            assert cluster.faults == []

    asyncio.run(asyncio.wait_for(run(), 100))


def test_a_job_that_is_cancelled_while_it_is_being_stored_does_not_run_to_its_end():
    async def body(cluster):
        put, is_stored = cluster.dispatcher._keeper.put, asyncio.Event()

        async def slow_put(*arguments):
            await is_stored.wait()
            return await put(*arguments)

        cluster.dispatcher._keeper.put = slow_put
        graph = job_graph([1], names=["wait"])
        for fakes in cluster.resources:
            fakes.bodies["wait"] = lambda task: task.wait_cancelled()
        submitting = asyncio.ensure_future(cluster.gateway.ask(SubmitJob(graph)))
        await asyncio.sleep(0)
        cancelling = asyncio.ensure_future(cluster.gateway.ask(CancelJob(graph.job_id)))
        await asyncio.sleep(0.05)
        is_stored.set()
        await asyncio.gather(submitting, cancelling)
        assert (await cluster.gateway.ask(RequestJobOutcome(graph.job_id), 20)).status == "CANCELED"

    scenario([1], body)


def test_a_job_master_that_cannot_stop_keeps_neither_the_others_nor_the_dispatcher_from_stopping():
    async def body(cluster):
        graphs = [job_graph([1], names=["wait"]) for _ in range(2)]
        for fakes in cluster.resources:
            fakes.bodies["wait"] = lambda task: task.wait_cancelled()
        for graph in graphs:
            await cluster.gateway.ask(SubmitJob(graph))
        first, second = (cluster.dispatcher._running[graph.job_id] for graph in graphs)
        stop = first.job_master.stop

        async def stop_and_fail():
            first.job_master.stop = stop
            await stop()
            raise OSError("the journal cannot be closed")

        first.job_master.stop = stop_and_fail
        with pytest.raises(OSError, match="journal"):
            await cluster.dispatcher.stop()
        assert second.outcome.done() and not cluster.dispatcher._background

    scenario([2], body)


def test_slots_are_registered_requested_assigned_offered_and_used_in_this_order():
    async def body(cluster):
        outcome = await cluster.run(job_graph([1]))
        assert outcome.status == "FINISHED"
        order = [
            "RegisterTaskExecutor -> resourcemanager",
            "RequestSlots -> resourcemanager",
            "RequestSlot -> taskexecutor",
            "OfferSlots -> jobmaster",
            "SubmitTasks -> taskexecutor",
            "UpdateTaskStates -> jobmaster",
            "ReleaseJob -> taskexecutor",
            "NotifySlotFree -> resourcemanager",
        ]
        positions = [cluster.rpc.messages.index(message) for message in order]
        assert positions == sorted(positions)
        overview = await cluster.rpc.connect(RESOURCE_MANAGER_ADDRESS, EPOCH).ask(RequestSlotOverview())
        assert overview.holders == ()

    scenario([1], body, heartbeat_s=10)


def test_a_region_may_span_task_executors_and_its_channels_are_remote():
    async def body(cluster):
        outcome = await cluster.run(job_graph([3, 3], [Edge(0, 1)]))
        assert outcome.status == "FINISHED"
        consumers = [d for each in cluster.resources for d in each.descriptors if d.gates]
        addresses = {channel.address for d in consumers for channel in d.gates[0].channels}
        assert len(consumers) == 3 and addresses == {"", "data-0", "data-1"}

    scenario([2, 1], body)


def test_two_jobs_have_two_job_masters_and_one_task_executor_serves_both():
    async def body(cluster):
        release = threading.Event()
        cluster.resources[0].bodies["hold"] = lambda task: release.wait(60)
        graphs = [job_graph([1], names=["hold"], name=name) for name in ("first", "second")]
        for graph in graphs:
            await cluster.gateway.ask(SubmitJob(graph))
        assert set(cluster.dispatcher.running_job_ids) == {graph.job_id for graph in graphs}
        listed = (await cluster.gateway.ask(ListJobs())).jobs
        assert [job.name for job in listed] == ["first", "second"]
        release.set()
        for graph in graphs:
            assert (await cluster.gateway.ask(RequestJobOutcome(graph.job_id), None)).status == "FINISHED"
        while cluster.dispatcher.running_job_ids:  # the outcome is told before the JobMaster has stopped
            await asyncio.sleep(0.01)
        listed = (await cluster.gateway.ask(ListJobs())).jobs
        assert {(job.status, job.end_ms >= job.start_ms) for job in listed} == {("FINISHED", True)}

    scenario([2], body)


def test_two_jobs_that_each_need_all_slots_run_one_after_the_other():
    async def body(cluster):
        graphs = [job_graph([4, 4, 1], [Edge(0, 1), Edge(1, 2, result_type=BLOCKING)]) for _ in range(2)]
        outcomes = await asyncio.gather(*(cluster.run(graph) for graph in graphs))
        assert [outcome.status for outcome in outcomes] == ["FINISHED", "FINISHED"]

    scenario([2, 2], body)


def test_a_silent_task_executor_is_lost_and_its_job_fails_with_a_clear_reason():
    async def body(cluster):
        cluster.resources[0].bodies["wait"] = lambda task: task.wait_cancelled()
        graph = job_graph([1], names=["wait"])
        await cluster.gateway.ask(SubmitJob(graph))
        while not cluster.resources[0].events:
            await asyncio.sleep(0.01)
        cluster.rpc.dead.add(cluster.task_executors[0].address)
        outcome = await cluster.gateway.ask(RequestJobOutcome(graph.job_id), None)
        assert outcome.status == "FAILED" and outcome.failure.retryable
        assert "was lost: it has not answered heartbeats" in outcome.failure.message
        # The TaskExecutor in turn hears nothing from the JobMaster and cleans up by itself.
        while cluster.resources[0].ended_jobs != [graph.job_id]:
            await asyncio.sleep(0.01)
        assert cluster.task_executors[0].slot_table.is_idle

    scenario([1], body, heartbeat_s=0.1)


def test_messages_of_another_leader_reach_no_component():
    async def body(cluster):
        graph = job_graph([1])
        for epoch in (EPOCH - 1, EPOCH + 1):
            for address, request in (
                (DISPATCHER_ADDRESS, SubmitJob(graph)),
                (RESOURCE_MANAGER_ADDRESS, RequestSlotOverview()),
            ):
                with pytest.raises(FencedError):
                    await cluster.rpc.connect(address, epoch).ask(request)
        stale = cluster.rpc.connect(cluster.task_executors[0].address, EPOCH - 1)
        await cluster.run(graph)
        with pytest.raises(FencedError):
            await stale.ask(SubmitTasks((cluster.resources[0].descriptors[0],), "jobmaster"))
        assert len(cluster.resources[0].events) == 2

    scenario([1], body)


def test_unknown_jobs_are_not_found_and_ended_ones_answer_from_the_store():
    async def body(cluster):
        for request in (CancelJob, RequestJobStatus, RequestJobProgress, RequestJobOutcome):
            with pytest.raises(JobNotFoundError, match=f"there is no job {'9' * 32}"):
                await cluster.gateway.ask(request(JobId("9" * 32)))
        graph = job_graph([2])
        outcome = await cluster.run(graph)
        await cluster.gateway.ask(CancelJob(graph.job_id))
        assert (await cluster.gateway.ask(RequestJobStatus(graph.job_id))).status == "FINISHED"
        progress = await cluster.gateway.ask(RequestJobProgress(graph.job_id))
        assert progress.vertices[0].counters.rows_in == 2
        assert await cluster.gateway.ask(RequestJobOutcome(graph.job_id)) == outcome
        assert (await cluster.gateway.ask(SubmitJob(graph))).is_new is False

    scenario([2], body)


def test_jobs_of_a_stopping_dispatcher_are_suspended():
    async def body(cluster):
        cluster.resources[0].bodies["wait"] = lambda task: task.wait_cancelled()
        graph = job_graph([1], names=["wait"])
        await cluster.gateway.ask(SubmitJob(graph))
        waiting = asyncio.ensure_future(cluster.gateway.ask(RequestJobOutcome(graph.job_id), None))
        while "RequestJobOutcome -> dispatcher" not in cluster.rpc.messages:
            await asyncio.sleep(0.01)
        await cluster.dispatcher.stop()
        assert (await waiting).status == "SUSPENDED"

    scenario([1], body)


def test_jobs_that_would_end_with_the_process_are_cancelled_before_it_stops():
    async def body(cluster):
        cluster.resources[0].bodies["wait"] = lambda task: task.wait_cancelled()
        graph = job_graph([1], names=["wait"])
        await cluster.gateway.ask(SubmitJob(graph))
        await cluster.dispatcher.cancel_all(30.0)
        assert (await cluster.gateway.ask(RequestJobOutcome(graph.job_id), None)).status == "CANCELED"
        await cluster.dispatcher.cancel_all(0.0)

    scenario([1], body)


def test_a_job_that_cannot_be_cancelled_in_time_holds_up_no_stop():
    async def body(cluster):
        is_over = threading.Event()
        cluster.resources[0].bodies["wait"] = lambda task: is_over.wait(60)
        graph = job_graph([1], names=["wait"])
        await cluster.gateway.ask(SubmitJob(graph))
        await cluster.dispatcher.cancel_all(0.05)
        assert not is_over.is_set()
        is_over.set()

    scenario([1], body)


def test_the_store_keeps_the_latest_jobs():
    store = JobStore(limit=2)
    for letter in "abc":
        job_id = JobId(letter * 32)
        overview = JobOverview(job_id, letter, "FINISHED", 0, 1)
        details = JobDetails(job_id, letter, "FINISHED", 0, 1, {}, ())
        store.add(EndedJob(overview, JobOutcome(job_id, letter, "FINISHED", 1, ()), details))
    assert [overview.name for overview in store.overviews] == ["b", "c"]
    assert store.get(JobId("a" * 32)) is None
