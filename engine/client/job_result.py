"""JobResult: what ``env.execute()`` returns, and its JSON for ``--json``.

JobResult(job_id, name, state, runtime_ms, vertices, counters)
  ├── VertexResult(name, subtasks) ── SubtaskResult(index, rows_in, rows_out, bytes_in, bytes_out, spilled_bytes, ...)
  ├── splits: heavy keys that the planner split
  └── decisions: what was decided while it ran, in order

Peaks of a vertex are those of the subtask that held most, since subtasks may run one after another. ``report`` is all
of this for people, one line for each vertex and each decision.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from engine.gateways.messages import JobOutcome
from engine.graph.deployment import OperatorCounters, PublishedOutput, operator_totals, store_totals
from engine.graph.run_time_decision import RunTimeDecision
from engine.shown_html import folded_html, headed_html, table_html
from engine.shown_sizes import size_text, store_lines

#: shortest time that is shown, microseconds
_SHOWN_US = 10_000


class SubtaskResult(msgspec.Struct, frozen=True):
    """Rows and bytes of one subtask."""

    index: int
    rows_in: int
    rows_out: int
    bytes_in: int
    bytes_out: int
    spilled_bytes: int
    #: number of malformed rows left out (``on_bad_row="skip"``)
    bad_rows: int = 0
    #: peak of bytes in pages, and of network buffers
    managed_bytes_peak: int = 0
    network_buffers_peak: int = 0
    #: number of attempts
    attempts: int = 1
    #: peak of Arrow's memory in its process while it ran, and of the memory of one of its Python workers
    arrow_bytes_peak: int = 0
    worker_bytes_peak: int = 0
    #: rows, bytes, time and memory of each operator, in order of the chain
    operators: tuple[OperatorCounters, ...] = ()
    #: bytes of results written to disk for consumers
    stored_bytes: int = 0
    #: time of sending rows to other tasks, without waiting for room
    output_us: int = 0
    #: notes for the author of the program, by topic
    notes: dict[str, str] = {}
    #: requests, bytes read and bytes written, by scheme and bucket of the object store
    stores: dict[str, tuple[int, int, int]] = {}


class VertexResult(msgspec.Struct, frozen=True):
    """One vertex: the operators chained in it, by name, and its subtasks in order."""

    name: str
    subtasks: tuple[SubtaskResult, ...]

    @property
    def managed_bytes_peak(self) -> int:
        """Most bytes of pages that one of its subtasks held at a time."""
        return max((subtask.managed_bytes_peak for subtask in self.subtasks), default=0)

    @property
    def network_buffers_peak(self) -> int:
        """Most network buffers that the results of one of its subtasks held at a time."""
        return max((subtask.network_buffers_peak for subtask in self.subtasks), default=0)

    @property
    def arrow_bytes_peak(self) -> int:
        """Most memory that Arrow held in a process while one of its subtasks ran there."""
        return max((subtask.arrow_bytes_peak for subtask in self.subtasks), default=0)

    @property
    def worker_bytes_peak(self) -> int:
        """Most memory that one of its Python workers held."""
        return max((subtask.worker_bytes_peak for subtask in self.subtasks), default=0)

    @property
    def spilled_bytes(self) -> int:
        """Bytes that all of its subtasks spilled."""
        return sum(subtask.spilled_bytes for subtask in self.subtasks)

    @property
    def stored_bytes(self) -> int:
        """Bytes of its results that were written to disk."""
        return sum(subtask.stored_bytes for subtask in self.subtasks)

    @property
    def operators(self) -> tuple[OperatorCounters, ...]:
        """Rows, bytes, time and memory of each operator in all subtasks, in order of the chain."""
        return operator_totals(subtask.operators for subtask in self.subtasks)


class JobResult(msgspec.Struct, frozen=True):
    """A job that has finished. ``job_id`` is 32 hex digits, ``state`` FINISHED."""

    job_id: str
    name: str
    state: str
    runtime_ms: int
    vertices: tuple[VertexResult, ...]
    decisions: tuple[RunTimeDecision, ...] = ()
    #: counters of rich functions by name, summed over all subtasks
    counters: dict[str, int] = {}
    #: heavy keys that the optimizer split, a line for each join
    splits: tuple[str, ...] = ()
    #: outputs, each with what its place tells of it, such as the version of a table
    outputs: tuple[PublishedOutput, ...] = ()
    #: requests, bytes read and bytes written of the plan and of publication, by store
    other_stores: dict[str, tuple[int, int, int]] = {}

    @property
    def bad_rows(self) -> int:
        """Malformed rows of the input that were left out (``on_bad_row="skip"``), of all sources."""
        return sum(subtask.bad_rows for vertex in self.vertices for subtask in vertex.subtasks)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the author of the program about its input, such as members of JSON that were not read."""
        found: dict[str, str] = {}
        for subtask in (subtask for vertex in self.vertices for subtask in vertex.subtasks):
            found = {**subtask.notes, **found}
        return tuple(found[subject] for subject in sorted(found))

    @property
    def stores(self) -> dict[str, tuple[int, int, int]]:
        """Requests, bytes read and bytes written of plan, tasks and publication, by scheme and bucket of the store."""
        of_tasks = (subtask.stores for vertex in self.vertices for subtask in vertex.subtasks)
        return store_totals([self.other_stores, *of_tasks])

    def __repr__(self) -> str:
        return f"<JobResult {self._head}>"

    @property
    def _head(self) -> str:
        left_out = f", {_counted(self.bad_rows, 'bad row')} left out" if self.bad_rows else ""
        return f"{self.job_id} ({self.name}) {self.state} after {self.runtime_ms / 1000:.1f} s{left_out}"

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows: a line for each vertex, and the whole report when it is unfolded."""
        rows = [
            (
                vertex.name,
                len(vertex.subtasks),
                f"{sum(subtask.rows_out for subtask in vertex.subtasks):,}",
                size_text(vertex.spilled_bytes),
            )
            for vertex in self.vertices
        ]
        vertices = table_html(("vertex", "subtasks", "rows out", "spilled"), rows)
        return headed_html(f"job {self._head}", vertices, folded_html("report", "\n".join(self.report)))

    def __str__(self) -> str:
        head = f"job {self._head}"
        return "\n".join((head, *(f"  {line}" for line in self.report)))

    @property
    def report(self) -> tuple[str, ...]:
        """Lines for people: what each vertex took, what was decided while it ran, what functions counted."""
        vertices = (
            f"{vertex.name}: {_counted(len(vertex.subtasks), 'subtask')}, "
            f"{_counted(sum(subtask.rows_out for subtask in vertex.subtasks), 'row')} out, "
            f"{_left_out(vertex)}{size_text(vertex.spilled_bytes)} spilled{_spilled_by(vertex)}{_stored(vertex)}"
            f"{_begun_again(vertex)}{_peaks(vertex)}{_times(vertex)}"
            for vertex in self.vertices
        )
        decided = (*self.splits, *(decision.text for decision in self.decisions))
        counted = (f"counted {name}: {count}" for name, count in sorted(self.counters.items()))
        asked = store_lines(self.stores)
        return (*vertices, *asked, *(f"decided: {text}" for text in decided), *counted)

    def to_json_dict(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints: a contract, nothing else in it."""
        return {
            "job_id": self.job_id,
            "state": self.state,
            "runtime_ms": self.runtime_ms,
            "bad_rows": self.bad_rows,
            "stores": {
                store: {"requests": requests, "read_bytes": read, "written_bytes": written}
                for store, (requests, read, written) in sorted(self.stores.items())
            },
            "vertices": [
                {
                    "name": vertex.name,
                    "subtasks": [
                        {
                            "index": subtask.index,
                            "rows_in": subtask.rows_in,
                            "rows_out": subtask.rows_out,
                            "bytes_in": subtask.bytes_in,
                            "bytes_out": subtask.bytes_out,
                            "spilled_bytes": subtask.spilled_bytes,
                        }
                        for subtask in vertex.subtasks
                    ],
                }
                for vertex in self.vertices
            ],
        }


def _spilled_by(vertex: VertexResult) -> str:
    """Describe the operators that spilled, with bytes, and how much of them are sorted runs for consumers."""
    spilled = [
        f"{size_text(each.spilled_bytes)} of {size_text(each.bytes_in)} by {each.name}"
        for each in vertex.operators
        if each.spilled_bytes
    ]
    results = vertex.spilled_bytes - sum(each.spilled_bytes for each in vertex.operators)
    if spilled and results > 0:
        spilled.append(f"{size_text(results)} of sorted results")
    return f" ({', '.join(spilled)})" if spilled else ""


def _left_out(vertex: VertexResult) -> str:
    """Describe the malformed rows that were left out, if any."""
    count = sum(subtask.bad_rows for subtask in vertex.subtasks)
    return f"{_counted(count, 'bad row')} left out, " if count else ""


def _stored(vertex: VertexResult) -> str:
    """Describe the results that were written to disk, if any."""
    return f", {size_text(vertex.stored_bytes)} of results on disk" if vertex.stored_bytes else ""


def _begun_again(vertex: VertexResult) -> str:
    """Describe how often subtasks were restarted, if any was."""
    times = sum(subtask.attempts - 1 for subtask in vertex.subtasks)
    return f", begun again {_counted(times, 'time')}" if times else ""


def _peaks(vertex: VertexResult) -> str:
    """Describe the peaks of a subtask, its process and its Python workers, without zeros."""
    managed, buffers = vertex.managed_bytes_peak, vertex.network_buffers_peak
    arrow, worker = vertex.arrow_bytes_peak, vertex.worker_bytes_peak
    held = [
        *([f"{size_text(managed)} managed"] if managed else []),
        *([_counted(buffers, "network buffer")] if buffers else []),
        *([f"{size_text(arrow)} of Arrow in a process"] if arrow else []),
        *([f"{size_text(worker)} in Python workers"] if worker else []),
    ]
    return f"; at most {', '.join(held)}" if held else ""


def _times(vertex: VertexResult) -> str:
    """Return the times of a vertex, summed over its subtasks."""
    parts = [(each.name, each.time_us) for each in vertex.operators]
    parts.append(("handing rows on", sum(subtask.output_us for subtask in vertex.subtasks)))
    taken = [f"{name} {time_us / 1e6:.2f} s" for name, time_us in parts if time_us >= _SHOWN_US]
    return f"; time: {', '.join(taken)}" if taken else ""


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def job_result(outcome: JobOutcome) -> JobResult:
    """Return the result of an outcome."""
    vertices = tuple(
        VertexResult(
            vertex.name,
            tuple(
                SubtaskResult(
                    subtask.index,
                    subtask.counters.rows_in,
                    subtask.counters.rows_out,
                    subtask.counters.bytes_in,
                    subtask.counters.bytes_out,
                    subtask.counters.spilled_bytes,
                    subtask.counters.bad_rows,
                    subtask.counters.managed_bytes_peak,
                    subtask.counters.network_buffers_peak,
                    subtask.attempts,
                    subtask.counters.arrow_bytes_peak,
                    subtask.counters.worker_bytes_peak,
                    subtask.counters.operators,
                    subtask.counters.stored_bytes,
                    subtask.counters.output_us,
                    subtask.counters.notes,
                    subtask.counters.stores,
                )
                for subtask in vertex.subtasks
            ),
        )
        for vertex in outcome.vertices
    )
    counters: Counter[str] = Counter()
    for vertex in outcome.vertices:
        for subtask in vertex.subtasks:
            if subtask.counters.functions:
                counters.update(subtask.counters.functions)
    return JobResult(
        outcome.job_id.value,
        outcome.name,
        outcome.status,
        outcome.runtime_ms,
        vertices,
        outcome.decisions,
        dict(counters),
        outputs=outcome.outputs,
        other_stores=outcome.stores,
    )
