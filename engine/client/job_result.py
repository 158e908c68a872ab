"""JobResult: what ``env.execute()`` returns, and its JSON for ``--json``.

JobResult(job_id, name, state, runtime_ms, vertices)
  └── VertexResult(name, subtasks) ── SubtaskResult(index, rows_in, rows_out, bytes_in, bytes_out, spilled_bytes)
"""

from __future__ import annotations

from typing import Any

import msgspec

from engine.gateways.messages import JobOutcome


class SubtaskResult(msgspec.Struct, frozen=True):
    """Rows and bytes of one subtask."""

    index: int
    rows_in: int
    rows_out: int
    bytes_in: int
    bytes_out: int
    spilled_bytes: int
    #: rows of the input that were left out (``on_bad_row="skip"``)
    bad_rows: int = 0


class VertexResult(msgspec.Struct, frozen=True):
    """One vertex: the operators chained in it, by name, and its subtasks in order."""

    name: str
    subtasks: tuple[SubtaskResult, ...]


class JobResult(msgspec.Struct, frozen=True):
    """A job that has finished. ``job_id`` is 32 hex digits, ``state`` FINISHED."""

    job_id: str
    name: str
    state: str
    runtime_ms: int
    vertices: tuple[VertexResult, ...]

    def to_json_dict(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints: a contract, nothing else in it."""
        return {
            "job_id": self.job_id,
            "state": self.state,
            "runtime_ms": self.runtime_ms,
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
                )
                for subtask in vertex.subtasks
            ),
        )
        for vertex in outcome.vertices
    )
    return JobResult(outcome.job_id.value, outcome.name, outcome.status, outcome.runtime_ms, vertices)
