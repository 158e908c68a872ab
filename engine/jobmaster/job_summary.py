"""Counters of a job for people: while it runs (JobProgress) and at its end (VertexResult). Pure.

Held by: tests/dispatcher/test_cluster_components.py
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from engine.gateways.messages import VertexProgress
from engine.graph.deployment import SubtaskResult, TaskCounters, VertexResult, operator_totals, store_totals
from engine.jobmaster.execution_graph import ExecutionGraph

_NUMBERS = tuple(
    name for name in TaskCounters.__struct_fields__ if name not in ("functions", "operators", "notes", "stores")
)


def add_counters(counters: Iterable[TaskCounters]) -> TaskCounters:
    """Return the sum of counters, field by field; of peaks the largest, and of notes about one subject the first."""
    listed = list(counters)
    totals: dict[str, Any] = {"functions": sum((Counter(each.functions) for each in listed), Counter())}
    totals["notes"] = {subject: note for each in reversed(listed) for subject, note in each.notes.items()}
    totals["stores"] = store_totals(each.stores for each in listed)
    for name in _NUMBERS:
        values = [getattr(each, name) for each in listed]
        totals[name] = max(values, default=0) if name.endswith("_peak") else sum(values)
    return TaskCounters(**totals, operators=operator_totals(each.operators for each in listed))


def vertex_results(graph: ExecutionGraph) -> tuple[VertexResult, ...]:
    """Return the counters of every subtask's current attempt."""
    results = []
    for vertex in graph.vertices:
        subtasks = []
        for subtask in vertex.subtasks:
            current = subtask.current
            subtasks.append(SubtaskResult(subtask.subtask_index, current.counters, current.attempt.attempt_number + 1))
        results.append(VertexResult(vertex.job_vertex.name, tuple(subtasks)))
    return tuple(results)


def vertex_progress(graph: ExecutionGraph) -> tuple[VertexProgress, ...]:
    """Return the sums and states of every vertex."""
    return tuple(
        VertexProgress(
            vertex.job_vertex.name,
            vertex.job_vertex.parallelism,
            add_counters(subtask.current.counters for subtask in vertex.subtasks),
            dict(Counter(subtask.current.state.value for subtask in vertex.subtasks)),
        )
        for vertex in graph.vertices
    )
