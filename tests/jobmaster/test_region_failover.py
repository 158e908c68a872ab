"""Fail-over by regions: what runs again follows from what was lost, and nothing else does."""

import asyncio
import errno
import threading
import time
from collections import Counter

import pytest

from engine.clock import ManualClock
from engine.errors import DataError, DiskFullError, PartitionNotFoundError, ResourceError
from engine.gateways.messages import RequestJobOutcome, SubmitJob
from engine.gateways.task_executors import ListTaskExecutors
from engine.graph.source_spec import SinkSpec
from engine.jobmaster.execution_graph import build_execution_graph
from engine.jobmaster.execution_state import ExecutionState
from engine.jobmaster.job_master_settings import JobMasterSettings
from engine.jobmaster.region_failover import RegionFailover
from engine.jobmaster.restart_strategy import FixedDelayRestart
from engine.jobmaster.scheduler import Scheduler
from engine.resourcemanager.resource_manager import RESOURCE_MANAGER_ADDRESS
from tests.dispatcher.test_cluster_components import EPOCH, Cluster
from tests.jobmaster.job_graphs import BLOCKING, PIPELINED, Edge, job_graph
from tests.jobmaster.test_execution_graph import RUN, advance
from tests.jobmaster.test_scheduler import pool_with, slot

WAIT_S = 60.0


class RestartingCluster(Cluster):
    """A cluster whose jobs are restarted up to ``attempts`` times."""

    attempts = 5

    def settings(self):
        return JobMasterSettings(
            WAIT_S,
            self.heartbeat_s,
            4 * self.heartbeat_s,
            RESOURCE_MANAGER_ADDRESS,
            restart_strategy=lambda _: FixedDelayRestart(self.attempts, 0.01),
        )


def scenario(slots, body, heartbeat_s=5.0):
    async def run():
        async with RestartingCluster(slots, heartbeat_s) as cluster:
            await body(cluster)
            assert cluster.faults == []

    asyncio.run(asyncio.wait_for(run(), 2 * WAIT_S))


def attempts_of(cluster):
    """Return how many attempts each (vertex, subtask) had, over all TaskExecutors."""
    return Counter(
        (descriptor.vertex_name, descriptor.subtask_index)
        for resources in cluster.resources
        for descriptor in resources.descriptors
    )


def fail_once(error, subtask=0):
    """Return a body that raises on the first attempt of one subtask."""

    def body(task):
        if task.descriptor.subtask_index == subtask and task.descriptor.attempt.attempt_number == 0:
            raise error

    return body


def all_do(cluster, **bodies):
    for resources in cluster.resources:
        resources.bodies.update(bodies)


def test_a_failed_subtask_alone_runs_again_behind_a_stored_result():
    async def body(cluster):
        all_do(cluster, reduce=fail_once(ResourceError("lost"), subtask=1))
        outcome = await cluster.run(job_graph([3, 3], [Edge(0, 1, result_type=BLOCKING)], ["map", "reduce"]))
        assert outcome.status == "FINISHED"
        assert attempts_of(cluster) == {
            **{("map", index): 1 for index in range(3)},
            ("reduce", 0): 1,
            ("reduce", 1): 2,
            ("reduce", 2): 1,
        }

    scenario([4], body)


def test_a_pipelined_region_runs_again_as_a_whole():
    async def body(cluster):
        all_do(cluster, reduce=fail_once(ResourceError("lost"), subtask=1))
        outcome = await cluster.run(job_graph([2, 2], [Edge(0, 1, result_type=PIPELINED)], ["map", "reduce"]))
        assert outcome.status == "FINISHED"
        assert set(attempts_of(cluster).values()) == {2}

    scenario([4], body)


def test_a_result_that_cannot_be_read_has_its_producer_run_again():
    async def body(cluster):
        def reduce(task):
            if task.descriptor.subtask_index == 0 and task.descriptor.attempt.attempt_number == 0:
                error = PartitionNotFoundError("gone")
                error.partition = task.descriptor.gates[0].channels[1].partition
                raise error

        all_do(cluster, reduce=reduce)
        outcome = await cluster.run(job_graph([3, 2], [Edge(0, 1, result_type=BLOCKING)], ["map", "reduce"]))
        assert outcome.status == "FINISHED"
        attempts = attempts_of(cluster)
        assert (attempts["map", 0], attempts["map", 1], attempts["map", 2]) == (1, 2, 1)
        assert attempts["reduce", 0] == 2

    scenario([1], body)


@pytest.mark.parametrize(("kind", "again"), [("HASH", 1), ("REBALANCE", 2)])
def test_finished_consumers_run_again_only_where_rows_were_dealt_in_turn(kind, again):
    async def body(cluster):
        def reduce(task):
            if task.descriptor.subtask_index == 1 and task.descriptor.attempt.attempt_number == 0:
                error = PartitionNotFoundError("gone")
                error.partition = task.descriptor.gates[0].channels[0].partition
                raise error

        all_do(cluster, reduce=reduce)  # one slot: subtask 0 has finished when subtask 1 begins
        graph = job_graph([1, 2], [Edge(0, 1, kind, BLOCKING)], ["map", "reduce"])
        assert (await cluster.run(graph)).status == "FINISHED"
        assert attempts_of(cluster) == {("map", 0): 2, ("reduce", 0): again, ("reduce", 1): 2}

    scenario([1], body)


@pytest.mark.parametrize("error", [DataError("bad row"), ValueError("the user's")])
def test_what_a_new_attempt_cannot_mend_fails_at_once(error):
    async def body(cluster):
        all_do(cluster, map=fail_once(error))
        outcome = await cluster.run(job_graph([2], names=["map"]))
        assert outcome.status == "FAILED"
        assert outcome.failure.message.startswith(str(error))
        assert set(attempts_of(cluster).values()) == {1}

    scenario([2], body)


def test_attempts_are_used_up_and_the_cause_is_told():
    async def body(cluster):
        def always(task):
            raise ResourceError(f"attempt {task.descriptor.attempt.attempt_number}")

        all_do(cluster, map=always)
        outcome = await cluster.run(job_graph([1], names=["map"]))
        assert (outcome.status, outcome.failure.message) == ("FAILED", "attempt 5")
        assert attempts_of(cluster) == {("map", 0): 6}

    scenario([1], body)


def test_a_restart_of_an_earlier_leader_has_used_up_an_attempt():
    graph = build_execution_graph(job_graph([1], []))
    (subtask,) = graph
    advance(subtask, ExecutionState.SCHEDULED, ExecutionState.FAILED)
    failover = RegionFailover(graph, Scheduler(graph), FixedDelayRestart(2, 0.5))
    failover.adopt([subtask], 0.0)
    assert [failover.begin([subtask], now_s) for now_s in (1.0, 2.0)] == [0.5, None]
    assert failover.restart_count == 2


@pytest.mark.parametrize("is_lost", [False, True])
def test_old_results_are_released_where_their_task_executor_is_still_there(is_lost):
    graph = build_execution_graph(job_graph([1, 1], [Edge(0, 1, result_type=BLOCKING)]))
    scheduler, place = Scheduler(graph), slot()
    producer, _ = graph
    pool = pool_with(place)
    scheduler.start_regions(pool, ManualClock())
    advance(producer, *RUN[1:], ExecutionState.FINISHED)
    assert scheduler.subtask_ended(producer, pool)
    results = tuple(partition.id for partition in producer.partitions)
    producer.current.is_lost = is_lost
    failover = RegionFailover(graph, scheduler, FixedDelayRestart(1, 0.0))
    failover.begin([producer], 0.0)
    assert failover.finish() == ({} if is_lost else {place.address: results})


def test_a_lost_task_executor_takes_its_stored_results_with_it(tmp_path):
    """Formula: a producer runs again for each loss of its result while a consumer has still to read it."""

    async def body(cluster):
        hold = threading.Event()

        def reduce(task):
            while not hold.wait(0.02):
                if task.cancelled.is_set():
                    return

        all_do(cluster, reduce=reduce)
        sinks = {1: SinkSpec("csv", str(tmp_path / "out"))}
        graph = job_graph([4, 2], [Edge(0, 1, result_type=BLOCKING)], ["map", "reduce"], sinks=sinks)
        await cluster.gateway.ask(SubmitJob(graph))
        outcome = asyncio.ensure_future(cluster.gateway.ask(RequestJobOutcome(graph.job_id), None))
        deadline = time.monotonic() + WAIT_S
        while sum(attempts_of(cluster)[("reduce", index)] for index in range(2)) < 2:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.01)
        lost = cluster.task_executors[0]
        lost_maps = {
            descriptor.subtask_index
            for descriptor in cluster.resources[0].descriptors
            if descriptor.vertex_name == "map"
        }
        assert 0 < len(lost_maps) < 4
        cluster.rpc.dead.add(lost.address)
        while min(attempts_of(cluster)[("reduce", index)] for index in range(2)) < 2:
            assert time.monotonic() < deadline, attempts_of(cluster)
            await asyncio.sleep(0.01)
        hold.set()
        assert (await outcome).status == "FINISHED"
        attempts = attempts_of(cluster)
        assert {index: attempts["map", index] for index in range(4)} == {
            index: 2 if index in lost_maps else 1 for index in range(4)
        }
        assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["part-00000.csv", "part-00001.csv"]
        cluster.rpc.dead.clear()

    scenario([2, 2], body, heartbeat_s=0.1)


def test_where_nobody_listens_all_results_there_are_lost_in_one_restart_before_anybody_else_asks_for_them():
    async def body(cluster):
        cluster.attempts = 1

        def reduce_at(here):
            there = 1 - here

            def reduce(task):
                if task.descriptor.attempt.attempt_number:
                    return
                made_there = {descriptor.attempt for descriptor in cluster.resources[there].descriptors}
                channels = task.descriptor.gates[0].channels
                error = PartitionNotFoundError("connection refused")
                error.partition = next(each.partition for each in channels if each.partition.producer in made_there)
                cluster.rpc.gone.add(cluster.task_executors[there].address)
                raise error

            return reduce

        for index, resources in enumerate(cluster.resources):
            resources.bodies["reduce"] = reduce_at(index)
        graph = job_graph([4, 1], [Edge(0, 1, result_type=BLOCKING)], ["map", "reduce"])
        outcome = await cluster.run(graph)
        assert outcome.status == "FINISHED", outcome.failure
        (left,) = (each for each in cluster.task_executors if each.address not in cluster.rpc.gone)
        lost = cluster.resources[1 - cluster.task_executors.index(left)].descriptors
        again = {descriptor.subtask_index for descriptor in lost}
        attempts = attempts_of(cluster)
        assert len(again) == 2
        assert {index: attempts["map", index] for index in range(4)} == {
            index: 2 if index in again else 1 for index in range(4)
        }
        known = await cluster.rpc.connect(RESOURCE_MANAGER_ADDRESS, EPOCH).ask(ListTaskExecutors())
        assert [each.resource_id for each in known.task_executors] == [left.resource_id]

    scenario([2, 2], body, heartbeat_s=60.0)


@pytest.mark.parametrize(
    "error",
    [DiskFullError("no spill directory has room"), OSError(errno.EMFILE, "Too many open files")],
    ids=["disk", "descriptors"],
)
def test_after_a_full_disk_or_machine_other_task_executors_are_tried_first(error):
    async def body(cluster):
        full = cluster.resources[0]

        def map_(task):
            if task.resources is full:
                raise error

        all_do(cluster, map=map_)
        assert (await cluster.run(job_graph([2], names=["map"]))).status == "FINISHED"
        assert max(attempts_of(cluster).values()) <= 2

    scenario([2, 2], body)


def test_after_a_full_disk_the_same_task_executor_is_used_when_there_is_no_other():
    async def body(cluster):
        all_do(cluster, map=fail_once(DiskFullError("no spill directory has room")))
        assert (await cluster.run(job_graph([2], names=["map"]))).status == "FINISHED"

    scenario([1], body)
