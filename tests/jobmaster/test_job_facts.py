"""A job rebuilt from its events is the job that wrote them, and every beginning of them is a job."""

from __future__ import annotations

import logging
import random

import pytest

from engine.clock import ManualClock
from engine.graph.deployment import FailureInfo, RangeSamples, TaskReport
from engine.graph.ship_strategy import SORTED_RUNS
from engine.ids import AllocationId, ExecutionAttemptId, ResourceId
from engine.jobmaster.execution_state import ExecutionState
from engine.jobmaster.job_event import (
    BoundsChosen,
    CancelAsked,
    FailureNoted,
    Led,
    Prepared,
    Restarted,
    Scheduled,
    ScheduledAttempt,
    TaskEnded,
)
from engine.jobmaster.job_facts import JobFacts
from engine.jobmaster.range_bounds import choose_bounds, consumer_range
from engine.jobmaster.restart_strategy import FailureRateRestart, FixedDelayRestart
from engine.jobmaster.scheduler import RegionState
from engine.jobmaster.slot_pool import AllocatedSlot, FormerSlot
from tests.jobmaster.job_graphs import BLOCKING, Edge, job_graph
from tests.jobmaster.recovery_world import SimWorld
from tests.jobmaster.test_recovery_schedules import adaptive_job, ends, random_job
from tests.jobmaster.virtual_time import run

HERE = ResourceId("a" * 32)


def rebuilt(graph, events, strategy=None, clock=None):
    return JobFacts.rebuild(graph, strategy or (lambda: FixedDelayRestart(10_000, 0.0)), clock or ManualClock(), events)


def slot():
    return AllocatedSlot(AllocationId.random(), HERE, "here", "data", 100)


def attempt_of(graph, vertex, subtask=0, number=0):
    return ExecutionAttemptId.create(graph.vertices[vertex].id, subtask, number)


def scheduled(*attempts, at=None):
    place = at or slot()
    return Scheduled(tuple(ScheduledAttempt(attempt, place) for attempt in attempts), 5)


def ended(attempt, state="FINISHED", **details):
    return TaskEnded(TaskReport(attempt, state, **details), {"SCHEDULED": 5, "DEPLOYING": 6, state: 9})


def journal_of(seed, graph_of, **settings):
    """Run a job under one leader, with losses; return its graph, its events and its JobMaster."""
    chance = random.Random(seed)

    async def main(loop):
        world = SimWorld(loop, chance, [3, 3, 3], **settings)
        graph = graph_of(chance)
        try:
            await ends(world, graph, chance, kills=0, trouble=3, cut=None)
            return graph, list(world.journal.events), world.job_master
        finally:
            await world.close()

    return run(main)


def facts(state_graph, scheduler):
    return [
        (
            vertex.current.attempt,
            vertex.current.state,
            vertex.current.slot,
            vertex.current.staged_files,
            vertex.current.subpartition_bytes,
            [(each.attempt.attempt_number, each.state.is_terminal) for each in vertex.prior],
            [(partition.is_released, sorted(partition.finished_consumers)) for partition in vertex.partitions],
            [[(edge.partition.producer.id, edge.subpartition_index) for edge in edges] for edges in vertex.inputs],
            scheduler.region_of(vertex).state,
        )
        for vertex in state_graph
    ]


@pytest.mark.parametrize("graph_of", [random_job, adaptive_job])
@pytest.mark.parametrize("seed", range(15))
def test_all_events_rebuild_the_job_that_wrote_them(seed, graph_of, caplog):
    graph, events, job_master = journal_of(seed, graph_of, failure_rate=0.05)
    caplog.clear()
    state = rebuilt(graph, events)
    assert not caplog.records, "every event fits"
    assert facts(state.graph, state.scheduler) == facts(job_master.state.facts.graph, job_master.state.facts.scheduler)
    assert state.planner.decisions == job_master.state.facts.planner.decisions
    assert state.graph.job_graph == job_master.job_graph
    assert state.failover.restart_count == job_master.state.facts.failover.restart_count
    assert state.graph.is_finished and state.pool.slots == ()
    assert [past.failure for past in state.failures.latest] == [
        past.failure for past in job_master.state.facts.failures.latest
    ]


@pytest.mark.parametrize("graph_of", [random_job, adaptive_job])
@pytest.mark.parametrize("seed", range(15))
def test_every_beginning_of_the_events_is_a_job(seed, graph_of, caplog):
    graph, events, _ = journal_of(seed, graph_of, failure_rate=0.05)
    caplog.clear()
    for count in range(len(events) + 1):
        state = rebuilt(graph, events[:count])
        state.graph.job_graph.validate()
        used = {each.allocation_id for each in state.pool.slots}
        for vertex in state.graph:
            region, execution = state.scheduler.region_of(vertex), vertex.current
            assert execution.state.is_terminal or execution.state in (ExecutionState.CREATED, ExecutionState.SCHEDULED)
            assert (region.state is RegionState.WAITING) == (execution.state is ExecutionState.CREATED)
            assert (execution.slot is None) == (execution.state is ExecutionState.CREATED)
            if execution.state is ExecutionState.SCHEDULED:
                assert region.state is RegionState.RUNNING and execution.slot.allocation_id in used
        for result in state.graph.results.values():
            finished = {
                partition.producer.subtask_index
                for partition in result.partitions
                if partition.producer.current.state is ExecutionState.FINISHED
            }
            assert set(result.finished_producers) == finished
    assert not caplog.records


def test_an_event_that_does_not_fit_ends_the_events(caplog):
    graph = job_graph([2], [])
    first, second = attempt_of(graph, 0), attempt_of(graph, 0, 1)
    events = [Led(1, 0), Prepared({}), scheduled(first), ended(second), ended(first), CancelAsked(1)]
    state = rebuilt(graph, events)
    assert [vertex.current.state.value for vertex in state.graph] == ["SCHEDULED", "CREATED"]
    assert not state.is_cancelling
    (record,) = caplog.records
    assert "before event 3" in record.getMessage()


@pytest.mark.parametrize(
    "misfit",
    [
        lambda graph: scheduled(attempt_of(graph, 0, 7)),
        lambda graph: scheduled(attempt_of(graph, 0, 0, 1)),
        lambda graph: scheduled(attempt_of(graph, 0, 0), attempt_of(graph, 0, 1)),
        lambda graph: Restarted((attempt_of(graph, 0, 0, 1),), 0),
        lambda graph: ended(attempt_of(graph, 0)),
    ],
)
def test_no_event_can_make_a_job_that_there_never_was(misfit, caplog):
    caplog.set_level(logging.CRITICAL)
    graph = job_graph([2], [])
    state = rebuilt(graph, [Led(1, 0), misfit(graph)])
    assert {vertex.current.state for vertex in state.graph} == {ExecutionState.CREATED}
    assert {region.state for region in state.scheduler.regions} == {RegionState.WAITING}


def test_a_subtask_keeps_report_times_and_slot():
    graph = job_graph([1])
    attempt, place = attempt_of(graph, 0), slot()
    state = rebuilt(graph, [scheduled(attempt, at=place), ended(attempt, partition_rows=(4,))])
    (vertex,) = state.graph
    left = FormerSlot(place.resource_id, place.address, place.data_address)
    assert (vertex.current.attempt, vertex.current.slot, vertex.current.partition_rows) == (attempt, left, (4,))
    assert vertex.current.timestamps_ms[ExecutionState.FINISHED] == 9
    assert state.graph.is_finished and state.task_executors == {HERE: "here"}


def test_attempts_that_share_a_slot_share_one_object():
    graph = job_graph([1, 1], [Edge(0, 1)])
    first, second = attempt_of(graph, 0), attempt_of(graph, 1)
    state = rebuilt(graph, [Scheduled((ScheduledAttempt(first, slot()),) * 1, 0)])
    assert {vertex.current.state for vertex in state.graph} == {ExecutionState.CREATED}, "half a region is none"
    place = slot()
    copy = AllocatedSlot(place.allocation_id, place.resource_id, place.address, place.data_address, place.pages)
    state = rebuilt(graph, [Scheduled((ScheduledAttempt(first, place), ScheduledAttempt(second, copy)), 0)])
    one, other = (vertex.current.slot for vertex in state.graph)
    assert one is other and len(state.pool.slots) == 1


def test_restarts_that_were_counted_are_counted():
    graph, clock = job_graph([1]), ManualClock(1000.0)
    events = [Led(1, 0)]
    for number in range(3):
        attempt = attempt_of(graph, 0, 0, number)
        events += [
            scheduled(attempt),
            ended(attempt, "FAILED", failure=FailureInfo("ResourceError", "lost", retryable=True)),
            FailureNoted(FailureInfo("ResourceError", "lost", retryable=True), 900_000),
            Restarted((attempt_of(graph, 0, 0, number + 1),), 900_000 + number * 40_000),
        ]
    state = rebuilt(graph, events, lambda: FixedDelayRestart(4, 0.0), clock)
    assert state.failover.restart_count == 3 and state.failures.unmended == ()
    (vertex,) = state.graph
    assert len(vertex.prior) == 3 and vertex.current.attempt.attempt_number == 3
    assert state.failover.begin([], 0.0) == 0.0 and not state.failover.covers(vertex)
    state = rebuilt(graph, events, lambda: FixedDelayRestart(3, 0.0), clock)
    assert state.failover.begin([vertex], clock.monotonic_s()) is None
    # two of them came within the last minute and a half, at 940 and 980 s
    state = rebuilt(graph, events, lambda: FailureRateRestart(2, 90.0, 0.0), clock)
    assert state.failover.begin([vertex], clock.monotonic_s()) is None
    state = rebuilt(graph, events, lambda: FailureRateRestart(3, 90.0, 0.0), clock)
    assert state.failover.begin([], clock.monotonic_s()) == 0.0


def test_bounds_of_a_sorted_result_stay_whatever_its_producers_report_later():
    graph = job_graph([1, 2], [Edge(0, 1, SORTED_RUNS, BLOCKING)])
    producer = attempt_of(graph, 0)
    samples = RangeSamples((b"a", b"b", b"c"), (1, 1, 1))
    events = [scheduled(producer), ended(producer, partition_samples=(samples,))]
    state = rebuilt(graph, events)
    readers = state.graph.vertices[1].subtasks
    (chosen,) = choose_bounds(readers)
    assert choose_bounds(readers) == []
    other = ended(producer, partition_samples=(RangeSamples((b"x", b"y"), (1, 1)),))
    state = rebuilt(graph, [events[0], other, BoundsChosen(*chosen)])
    ranges = [consumer_range(reader.inputs[0]) for reader in state.graph.vertices[1].subtasks]
    assert [each.lower for each in ranges] == [None, chosen[1][0]]


def test_slot_requests_have_other_ids_than_those_of_the_leader_before():
    ids = {rebuilt(job_graph([1]), [Led(1, 0)]).pool.open_request(1) for _ in range(20)}
    assert len(ids) == 20
