"""A job whose tasks all wait for each other is found and told; one in which anybody is at work is not."""

from __future__ import annotations

import pytest

from engine.clock import ManualClock
from engine.gateways.messages import TaskProgress
from engine.graph.deployment import TaskCounters
from engine.graph.task_wait import TaskWait, WaitKind
from engine.jobmaster.execution_graph import build_execution_graph
from engine.jobmaster.execution_state import ExecutionState
from engine.jobmaster.stall_watch import STEP_MAX_S, StallWatch
from tests.jobmaster.job_graphs import Edge, job_graph

RUNNING = (
    ExecutionState.SCHEDULED,
    ExecutionState.DEPLOYING,
    ExecutionState.INITIALIZING,
    ExecutionState.RUNNING,
)


def set_state(vertex, *states):
    for state in states:
        vertex.current.transition(state, ManualClock())


@pytest.fixture
def graph():
    """A producer of two consumers, of which one waits for a full output that nobody reads."""
    made = build_execution_graph(job_graph((1, 2), (Edge(0, 1, "BROADCAST"),), names=("make", "take")))
    for vertex in made:
        set_state(vertex, *RUNNING)
    return made


def waits_of(graph):
    make, *takers = graph
    partition = make.partitions[0].id
    waits = [TaskProgress(make.current.attempt, TaskCounters(), TaskWait(WaitKind.ROOM, "map", (partition,), (1, 7)))]
    for index, taker in enumerate(takers):
        wait = TaskWait(WaitKind.INPUT, "join", (partition,), (index,), more=index)
        waits.append(TaskProgress(taker.current.attempt, TaskCounters(), wait))
    return waits


def at_work(progress):
    return TaskProgress(progress.attempt, TaskCounters(rows_in=1))


def noted(watch, *reports, step_s=1.0, begin_s=100.0):
    """Return what came of reports, and how many there were until then."""
    for count, report in enumerate(reports, 1):
        text = watch.note(report, begin_s + count * step_s)
        if text is not None:
            return text, count
    return None, len(reports)


def test_when_all_wait_for_so_long_it_is_told_who_for_whom(graph):
    text, count = noted(StallWatch(graph, 5.0), *[waits_of(graph)] * 20)
    assert count == 6
    partition = graph.vertices[0].subtasks[0].partitions[0].id
    assert text.splitlines() == [
        "nothing has moved for 5 s: each of 3 running tasks waits (execution.stalled.timeout)",
        f"  make (1/1): map waits for room in its output: partition {partition}, subpartition 1, read by take (2/2); "
        "subpartition 7, read by nobody",
        f"  take (1/2): join waits for rows of make (1/1) (partition {partition}, subpartition 0)",
        f"  take (2/2): join waits for rows of make (1/1) (partition {partition}, subpartition 1) and 1 more",
    ]


def test_a_task_of_the_same_process_is_named_by_what_it_does(graph):
    first, *rest = waits_of(graph)
    wait = TaskWait(WaitKind.TASK, "join", text="the table that another subtask builds")
    text, _ = noted(StallWatch(graph, 2.0), *[[TaskProgress(first.attempt, TaskCounters(), wait), *rest]] * 20)
    assert "make (1/1): join waits for the table that another subtask builds" in text


def test_one_that_is_at_work_in_between_begins_the_time_anew(graph):
    waits = waits_of(graph)
    busy = [at_work(waits[0]), *waits[1:]]
    assert noted(StallWatch(graph, 5.0), *([waits] * 4 + [busy]) * 4) == (None, 20)
    assert noted(StallWatch(graph, 5.0), *[waits] * 4, busy, *[waits] * 20)[1] == 10


def test_one_that_is_silent_is_what_it_said_last(graph):
    waits = waits_of(graph)
    assert noted(StallWatch(graph, 5.0), [at_work(waits[0])], *[waits[1:]] * 30) == (None, 31)
    assert noted(StallWatch(graph, 5.0), *[waits[1:]] * 30) == (None, 30), "it has said nothing yet"
    assert noted(StallWatch(graph, 5.0), waits, *[waits[1:]] * 30)[0] is not None


@pytest.mark.parametrize(
    "states",
    [
        RUNNING[:1],
        RUNNING[:2],
        RUNNING[:3],
        (*RUNNING, ExecutionState.CANCELING),
    ],
)
def test_nobody_is_blamed_while_one_begins_or_is_being_cancelled(states):
    graph = build_execution_graph(job_graph((1, 2), (Edge(0, 1, "BROADCAST"),)))
    make, *takers = graph
    set_state(make, *states)
    for taker in takers:
        set_state(taker, *RUNNING)
    assert noted(StallWatch(graph, 5.0), *[waits_of(graph)[1:]] * 30) == (None, 30)


def test_a_job_that_waits_for_slots_has_nobody_who_waits():
    graph = build_execution_graph(job_graph((1, 2), (Edge(0, 1, "BROADCAST"),)))
    assert noted(StallWatch(graph, 5.0), *[[]] * 30) == (None, 30)


def test_a_change_of_state_and_a_process_that_was_stopped_use_up_no_time(graph):
    waits, watch = waits_of(graph), StallWatch(graph, 5.0)
    assert noted(watch, *[waits] * 5) == (None, 5)
    watch.moved()
    assert noted(watch, *[waits] * 2, begin_s=105.0) == (None, 2)
    assert watch.note(waits, 5000.0) is None, f"counts for {STEP_MAX_S} s"
    assert watch.note(waits, 5001.0) is not None


def test_without_a_time_out_nobody_is_watched(graph):
    assert noted(StallWatch(graph, 0.0), *[waits_of(graph)] * 30, step_s=1000.0) == (None, 30)


def test_many_tasks_are_counted_and_some_named():
    graph = build_execution_graph(job_graph((1, 20), (Edge(0, 1, "BROADCAST"),)))
    for vertex in graph:
        set_state(vertex, *RUNNING)
    text, _ = noted(StallWatch(graph, 2.0), *[waits_of(graph)] * 20)
    assert "each of 21 running tasks" in text and text.endswith("and 13 more") and len(text.splitlines()) == 10
