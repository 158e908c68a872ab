"""A job's run as a trace that Perfetto and chrome://tracing open: ``flink-run job trace ID``.

    trace_document(job, vertices, times, attempts)     from documents of REST, of a job that runs or has ended; pure

    process 0            the job, a track for its states and one for each vertex, its operators as arguments
    process 1, 2, ...    a TaskManager each; a track for each subtask: a span for each state of its latest attempt, and
                         one for each attempt before

Times are in us since 1970. A state that goes on has a span to the moment that the JobManager answered.

Source: the Trace Event Format of Chromium.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from engine.cli.cluster_jobs import parse_job_id
from engine.client.cluster_client import ClusterClient

_US_PER_MS = 1000
_ENDED = frozenset({"FINISHED", "CANCELED", "FAILED"})

Document = Mapping[str, Any]


def write_trace(options: argparse.Namespace, client: ClusterClient) -> int:
    """Print the trace of a job, or write it to a file."""
    job_id = parse_job_id(options.job_id)
    job = client.document(f"/jobs/{job_id}")
    paths = [f"/jobs/{job_id}/vertices/{vertex['id']}" for vertex in job["vertices"]]
    vertices = [client.document(path) for path in paths]
    times = [client.document(f"{path}/subtasktimes") for path in paths]
    earlier = [
        [
            client.document(f"{path}/subtasks/{subtask['subtask']}/attempts/{number}")
            for subtask in vertex["subtasks"]
            for number in range(subtask["attempt"])
        ]
        for path, vertex in zip(paths, vertices, strict=True)
    ]
    text = json.dumps(trace_document(job, vertices, times, earlier))
    if options.file:
        Path(options.file).write_text(f"{text}\n", encoding="utf-8")
        print(f"The trace is in {options.file}: open it in https://ui.perfetto.dev.", file=sys.stderr)
    else:
        print(text)
    return 0


def trace_document(
    job: Document, vertices: Sequence[Document], times: Sequence[Document], earlier: Sequence[Sequence[Document]]
) -> dict[str, object]:
    """Return the trace; ``vertices``, their ``times`` and ``earlier`` attempts are in the order of the job's."""
    now_ms = job["now"]
    trace = _Trace()
    trace.track(0, 0, f"job {job['name']}", "states")
    reached = {state: at for state, at in job["timestamps"].items() if at > 0}
    trace.states(0, 0, reached, now_ms, {"job": job["jid"], "decisions": job["decisions"]})
    for number, (vertex, timed, before) in enumerate(zip(vertices, times, earlier, strict=True), 1):
        line = job["vertices"][number - 1]
        trace.track(0, number, f"job {job['name']}", vertex["name"])
        trace.span(0, number, vertex["name"], line["start-time"], line["end-time"], now_ms, _numbers(vertex))
        timestamps = {each["subtask"]: each["timestamps"] for each in timed["subtasks"]}
        for attempt in before:
            place = trace.place(vertex, number, attempt)
            name = f"attempt {attempt['attempt']}, {attempt['status']}"
            trace.span(*place, name, attempt["start-time"], attempt["end-time"], now_ms, attempt["metrics"])
        for attempt in vertex["subtasks"]:
            place = trace.place(vertex, number, attempt)
            reached = {state: at for state, at in timestamps[attempt["subtask"]].items() if at > 0}
            trace.states(*place, reached, now_ms, {"attempt": attempt["attempt"], **attempt["metrics"]})
    return {"traceEvents": trace.events, "displayTimeUnit": "ms"}


def _numbers(vertex: Document) -> dict[str, object]:
    # A JobManager of an earlier release says nothing of operators.
    return {"parallelism": vertex["parallelism"], "operators": vertex.get("operators", [])}


class _Trace:
    """Events, and the tracks that were named."""

    def __init__(self) -> None:
        self.events: list[dict[str, object]] = []
        self._processes: dict[str, int] = {}
        self._named: set[tuple[int, int]] = set()

    def place(self, vertex: Document, number: int, attempt: Document) -> tuple[int, int]:
        """Return process and track of an attempt."""
        manager = attempt["taskmanager-id"] or "no TaskManager"
        process = self._processes.setdefault(manager, len(self._processes) + 1)
        index = attempt["subtask"]
        track = number * 100_000 + index
        name = f"{vertex['name']} ({index + 1}/{vertex['parallelism']})"
        self.track(process, track, f"TaskManager {attempt['endpoint']} {manager}", name)
        return process, track

    def track(self, process: int, track: int, process_name: str, track_name: str) -> None:
        """Name a track, once."""
        if (process, track) in self._named:
            return
        self._named.add((process, track))
        place = {"ph": "M", "pid": process, "tid": track}
        self.events.append({**place, "name": "process_name", "args": {"name": process_name}})
        self.events.append({**place, "name": "thread_name", "args": {"name": track_name}})

    def states(self, process: int, track: int, reached: Mapping[str, int], now_ms: int, facts: Document) -> None:
        """Add a span for each state that was left or goes on; an ended one has no length."""
        entered = sorted(reached.items(), key=lambda item: item[1])
        for (state, began_ms), (_, left_ms) in pairwise([*entered, ("", now_ms)]):
            if state in _ENDED:
                instant = {"ph": "i", "s": "t", "pid": process, "tid": track, "ts": began_ms * _US_PER_MS}
                self.events.append({**instant, "name": state, "args": dict(facts)})
            else:
                self.span(process, track, state, began_ms, left_ms, now_ms, facts)

    def span(
        self, process: int, track: int, name: str, began_ms: int, ended_ms: int, now_ms: int, facts: Document
    ) -> None:
        """Add a span, if it has begun."""
        if began_ms < 0:
            return
        length_ms = max(0, (ended_ms if ended_ms >= 0 else now_ms) - began_ms)
        place = {"ph": "X", "pid": process, "tid": track}
        times = {"ts": began_ms * _US_PER_MS, "dur": length_ms * _US_PER_MS}
        self.events.append({**place, **times, "name": name, "cat": "job", "args": dict(facts)})
