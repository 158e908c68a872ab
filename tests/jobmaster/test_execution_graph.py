"""The execution graph: vertices, attempts, results and edges of a job at run time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.clock import ManualClock
from engine.errors import PlanError
from engine.graph.deployment import TaskCounters, TaskReport
from engine.graph.ship_strategy import DistributionPattern, ResultPartitionType
from engine.ids import ExecutionAttemptId
from engine.jobmaster.edge_pattern import consumers_of, producers_of, subpartition_count, subpartition_index
from engine.jobmaster.execution_graph import build_execution_graph
from engine.jobmaster.execution_state import ExecutionState
from engine.jobmaster.partition_tracker import partitions_to_release
from tests.jobmaster.job_graphs import BLOCKING, Edge, job_graph, splits

CLOCK = ManualClock()


def edges_of(graph):
    return [
        (edge.partition.producer.subtask_index, edge.subpartition_index, edge.consumer.subtask_index)
        for vertex in graph.vertices[-1].subtasks
        for edges in vertex.inputs
        for edge in edges
    ]


@pytest.mark.parametrize(
    ("producers", "consumers", "kind", "expected"),
    [
        (2, 2, "FORWARD", [(0, 0, 0), (1, 0, 1)]),
        (2, 4, "RESCALE", [(0, 0, 0), (0, 1, 1), (1, 0, 2), (1, 1, 3)]),
        (4, 2, "RESCALE", [(0, 0, 0), (1, 0, 0), (2, 0, 1), (3, 0, 1)]),
        (2, 3, "HASH", [(0, 0, 0), (1, 0, 0), (0, 1, 1), (1, 1, 1), (0, 2, 2), (1, 2, 2)]),
        (2, 2, "BROADCAST", [(0, 0, 0), (1, 0, 0), (0, 1, 1), (1, 1, 1)]),
    ],
)
def test_edges_connect_producers_subpartitions_and_consumers(producers, consumers, kind, expected):
    graph = build_execution_graph(job_graph([producers, consumers], [Edge(0, 1, kind)]))
    assert edges_of(graph) == expected
    for subtask in graph.vertices[0].subtasks:
        (partition,) = subtask.partitions
        assert partition.subpartition_count == len(partition.consumers)


@given(st.integers(1, 40), st.integers(1, 40), st.sampled_from(DistributionPattern))
def test_both_sides_agree_and_every_subtask_is_connected_evenly(producers, consumers, pattern):
    pairs = {(p, c) for p in range(producers) for c in consumers_of(pattern, producers, consumers, p)}
    assert pairs == {(p, c) for c in range(consumers) for p in producers_of(pattern, producers, consumers, c)}
    for p in range(producers):
        fed = consumers_of(pattern, producers, consumers, p)
        indexes = [subpartition_index(pattern, producers, consumers, p, c) for c in fed]
        assert indexes == list(range(subpartition_count(pattern, producers, consumers, p)))
    if pattern is DistributionPattern.POINTWISE:
        assert len(pairs) == max(producers, consumers)
        widths = [len(producers_of(pattern, producers, consumers, c)) for c in range(consumers)]
        assert max(widths) - min(widths) <= 1 or producers < consumers
    else:
        assert len(pairs) == producers * consumers


def test_one_vertex_of_parallelism_100_has_100_execution_vertices_with_unique_attempts():
    graph = build_execution_graph(job_graph([100]))
    assert len(graph.vertices) == 1 and len({vertex.current.attempt for vertex in graph}) == 100


def test_map_2_reduce_2_has_2_partitions_of_2_subpartitions():
    graph = build_execution_graph(job_graph([2, 2], [Edge(0, 1)]))
    (result,) = graph.results.values()
    assert [partition.subpartition_count for partition in result.partitions] == [2, 2]


def test_splits_of_a_source_are_divided_among_its_subtasks():
    graph = build_execution_graph(job_graph([2], source_splits=splits(1, 1, 2)))
    assert [[split.path for split in vertex.splits] for vertex in graph] == [["file-0", "file-1"], ["file-2"]]


def test_the_unsupported_result_type_is_refused():
    with pytest.raises(PlanError, match=r"Unsupported result partition type\."):
        build_execution_graph(job_graph([1, 1], [Edge(0, 1, result_type=ResultPartitionType.PIPELINED_PERSISTENT)]))


def advance(vertex, *states):
    for state in states:
        vertex.current.transition(state, CLOCK)


RUN = (ExecutionState.SCHEDULED, ExecutionState.DEPLOYING, ExecutionState.INITIALIZING, ExecutionState.RUNNING)


def test_a_report_that_was_kept_counts_from_when_it_was_made_but_not_before_the_last_state():
    graph = build_execution_graph(job_graph([1]))
    (vertex,), clock = graph.vertices[0].subtasks, ManualClock()
    for state in (ExecutionState.SCHEDULED, ExecutionState.DEPLOYING):
        vertex.current.transition(state, clock)
    begun_ms = clock.wall_ms()
    clock.advance(1.0)
    graph.update(TaskReport(vertex.current.attempt, "INITIALIZING", age_ms=5000), clock)
    graph.update(TaskReport(vertex.current.attempt, "RUNNING", age_ms=400), clock)
    times = vertex.current.timestamps_ms
    assert times[ExecutionState.INITIALIZING] == begun_ms
    assert times[ExecutionState.RUNNING] == begun_ms + 600


def test_a_report_that_was_kept_does_not_replace_counters_that_came_meanwhile():
    graph = build_execution_graph(job_graph([1]))
    (vertex,) = graph
    attempt = vertex.current.attempt
    advance(vertex, *RUN[:2])
    vertex.current.counters = TaskCounters(spilled_bytes=650)  # from the progress of running tasks
    assert graph.update(TaskReport(attempt, "RUNNING", TaskCounters(), age_ms=90), CLOCK) is vertex
    assert vertex.current.counters.spilled_bytes == 650
    assert graph.update(TaskReport(attempt, "FINISHED", TaskCounters(spilled_bytes=700), age_ms=3), CLOCK) is vertex
    assert vertex.current.counters.spilled_bytes == 700


def test_reports_of_other_attempts_and_late_ones_change_nothing():
    graph = build_execution_graph(job_graph([1]))
    (vertex,) = graph
    attempt = vertex.current.attempt
    advance(vertex, *RUN)
    stranger = ExecutionAttemptId.create(attempt.vertex, 0, 0)
    assert graph.update(TaskReport(stranger, "FAILED"), CLOCK) is None
    assert graph.update(TaskReport(attempt, "RUNNING"), CLOCK) is None
    assert graph.update(TaskReport(attempt, "FINISHED", TaskCounters(rows_in=3)), CLOCK) is vertex
    assert graph.update(TaskReport(attempt, "FAILED"), CLOCK) is None
    assert vertex.current.state is ExecutionState.FINISHED and vertex.current.counters.rows_in == 3


def finish(graph, vertex):
    graph.update(TaskReport(vertex.current.attempt, "FINISHED"), CLOCK)


def test_a_new_attempt_has_a_new_partition_id_and_the_old_one_is_kept():
    graph = build_execution_graph(job_graph([1, 1], [Edge(0, 1)]))
    producer, consumer = graph
    old = producer.partitions[0].id
    for vertex in graph:
        advance(vertex, *RUN)
        finish(graph, vertex)
    assert graph.is_finished
    graph.restart(producer)
    assert producer.partitions[0].id != old and producer.current.attempt.attempt_number == 1
    assert [execution.state for execution in producer.prior] == [ExecutionState.FINISHED]
    (result,) = graph.results.values()
    assert not graph.is_finished and not result.is_finished
    advance(producer, *RUN)
    finish(graph, producer)
    assert graph.is_finished and result.is_finished
    graph.restart(consumer)
    assert not producer.partitions[0].finished_consumers


def test_a_blocking_partition_is_released_when_its_last_consumer_has_finished():
    graph = build_execution_graph(job_graph([1, 2], [Edge(0, 1, result_type=BLOCKING)]))
    producer = graph.vertices[0].subtasks[0]
    producer.current.slot = SLOT
    first, second = graph.vertices[1].subtasks
    advance(first, *RUN)
    finish(graph, first)
    assert partitions_to_release(first) == {}
    advance(second, *RUN)
    finish(graph, second)
    assert partitions_to_release(second) == {"there": (producer.partitions[0].id,)}
    assert partitions_to_release(second) == {}


def _slot():
    from engine.ids import AllocationId, ResourceId
    from engine.jobmaster.slot_pool import AllocatedSlot

    return AllocatedSlot(AllocationId.random(), ResourceId.random(), "there", "", 100)


SLOT = _slot()
