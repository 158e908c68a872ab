"""StallWatch: a job in which every task waits for another one does not run for ever.

    note(progress, now) -> text once nothing has moved for the time-out        with every report of counters
    moved()                                                                     whenever an attempt changes its state

A task reports that it waits when it waits for input, for room in its output or for another task of its process, and
its counters are those of the report before. A task that does anything else is at work, however long it takes: a Python
function, a source that is held back, a file system that does not answer. So is a task that has not begun or is being
cancelled. A job that only waits for slots has no task that runs, and nothing is counted then.

The job is stalled when all tasks that run have waited so for the time-out without a break. Time is counted between
reports, and at most STEP_MAX_S of each: neither a process that was stopped nor one that is silent uses it up (one that
is silent for long is lost, ``heartbeat.timeout``). Pure.

Source: own. Flink leaves such a job to the user who looks at its back pressure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from engine.config.durations import duration_text
from engine.gateways.messages import TaskProgress
from engine.graph.task_wait import TaskWait, WaitKind
from engine.ids import ExecutionAttemptId, ResultPartitionId
from engine.jobmaster.execution_graph import ExecutionGraph
from engine.jobmaster.execution_state import ExecutionState
from engine.jobmaster.execution_vertex import ExecutionVertex

#: limit of the time that one report accounts for, seconds
STEP_MAX_S: Final = 2.0
#: limit of tasks that the text names
_NAMED_MAX = 8
_AT_WORK = frozenset(
    {ExecutionState.SCHEDULED, ExecutionState.DEPLOYING, ExecutionState.INITIALIZING, ExecutionState.CANCELING}
)


class StallWatch:
    """Waits of the tasks of one job.

    Args:
        graph: as it is now.
        timeout_s: how long all may wait; 0: for ever.
    """

    def __init__(self, graph: ExecutionGraph, timeout_s: float) -> None:
        self._graph = graph
        self._timeout_s = timeout_s
        self._waits: dict[ExecutionAttemptId, TaskWait] = {}
        self._quiet_s = 0.0
        self._last_s: float | None = None

    def moved(self) -> None:
        """Count anew: something was done."""
        self._quiet_s = 0.0

    def note(self, progress: Iterable[TaskProgress], now_s: float) -> str | None:
        """Take note of what running tasks report; return what to tell people when the job is stalled."""
        if self._timeout_s == 0:
            return None
        last_s = now_s if self._last_s is None else self._last_s
        self._quiet_s += min(max(0.0, now_s - last_s), STEP_MAX_S)
        self._last_s = now_s
        for each in progress:
            if each.wait is None:
                self._waits.pop(each.attempt, None)
                self._quiet_s = 0.0
            else:
                self._waits[each.attempt] = each.wait
        if self._quiet_s < self._timeout_s:
            return None
        waiting = self._all_waiting()
        if waiting is None:
            self._quiet_s = 0.0
            return None
        return stalled_text(self._graph, waiting, self._timeout_s)

    def _all_waiting(self) -> list[tuple[ExecutionVertex, TaskWait]] | None:
        """Return every task that runs with its wait; None when one does not wait, or none runs."""
        waiting = []
        for vertex in self._graph:
            state = vertex.current.state
            if state in _AT_WORK:
                return None
            if state is ExecutionState.RUNNING:
                wait = self._waits.get(vertex.current.attempt)
                if wait is None:
                    return None
                waiting.append((vertex, wait))
        self._waits = {vertex.current.attempt: wait for vertex, wait in waiting}
        return waiting or None


def stalled_text(graph: ExecutionGraph, waiting: list[tuple[ExecutionVertex, TaskWait]], timeout_s: float) -> str:
    """Describe the waits of a stalled job, one task a line, those with full outputs first. Pure."""
    ordered = sorted(waiting, key=lambda each: each[1].kind is not WaitKind.ROOM)
    lines = [f"  {vertex.name}: {wait_text(graph, vertex, wait)}" for vertex, wait in ordered[:_NAMED_MAX]]
    if len(ordered) > _NAMED_MAX:
        lines.append(f"  and {len(ordered) - _NAMED_MAX} more")
    head = (
        f"nothing has moved for {duration_text(timeout_s)}: each of {len(waiting)} running tasks waits "
        "(execution.stalled.timeout)"
    )
    return "\n".join([head, *lines])


def wait_text(graph: ExecutionGraph, vertex: ExecutionVertex, wait: TaskWait) -> str:
    """Describe what one task waits for. Pure."""
    more = f" and {wait.more} more" if wait.more else ""
    if wait.kind is WaitKind.TASK:
        return f"{wait.operator} waits for {wait.text}"
    if wait.kind is WaitKind.INPUT:
        numbers = wait.subpartitions or (0,) * len(wait.partitions)
        sources = [
            f"{_producer(graph, partition)} (partition {partition}, subpartition {number})"
            for partition, number in zip(wait.partitions, numbers, strict=True)
        ]
        return f"{wait.operator} waits for rows of {', '.join(sources) or 'nobody'}{more}"
    (partition,) = wait.partitions or (None,)
    readers = [f"subpartition {number}, read by {_readers(vertex, partition, number)}" for number in wait.subpartitions]
    return f"{wait.operator} waits for room in its output: partition {partition}, {'; '.join(readers) or 'all'}{more}"


def _producer(graph: ExecutionGraph, partition: ResultPartitionId) -> str:
    producer = graph.vertex_of(partition.producer)
    return "a task that is no more" if producer is None else producer.name


def _readers(vertex: ExecutionVertex, partition_id: ResultPartitionId | None, subpartition: int) -> str:
    names = [
        edge.consumer.name
        for partition in vertex.partitions
        if partition.id == partition_id
        for edge in partition.consumers
        if 0 <= subpartition - edge.subpartition_index < edge.subpartition_count
    ]
    return ", ".join(names) or "nobody"
