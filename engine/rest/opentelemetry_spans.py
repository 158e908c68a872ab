"""SpanExport: each job that has ended as a trace, sent by OTLP: a span of the job, of each vertex and of each attempt.

    ended(job) ─► queue ─► RequestJobDetails ─► job_spans() ─► exporter of the SDK ─► POST <endpoint>/v1/traces

The id of the trace is the id of the job, which has as many digits, and those of spans follow from it: a job that
another leader tells again has the same ones. The longest SPANS_MAX attempts of a job have spans. A failure is told by
the name of its error alone, since its text may quote data.

Held by: tests/rest/test_opentelemetry_spans.py
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from engine import __version__
from engine.errors import EngineError
from engine.gateways.job_details import AttemptDetails, JobDetails, RequestJobDetails, VertexDetails
from engine.gateways.messages import JobOverview
from engine.ids import JobId
from engine.rest.otlp_sender import OtlpSender

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan

_log = logging.getLogger(__name__)

#: attempts of one job that have spans, at most
SPANS_MAX: Final = 10_000
#: jobs that wait to be told, at most
_WAITING_MAX: Final = 100

#: function that asks the Dispatcher
Ask = Callable[[RequestJobDetails], Awaitable[JobDetails]]


class SpanExport:
    """The traces of a JobManager. Thread: the event loop."""

    def __init__(self, sender: OtlpSender, resource: Resource, ask: Ask) -> None:
        self._sender, self._resource, self._ask = sender, resource, ask
        self._ended: asyncio.Queue[JobId] = asyncio.Queue(_WAITING_MAX)

    def ended(self, job: JobOverview) -> None:
        """Have a job told, some time."""
        try:
            self._ended.put_nowait(job.job_id)
        except asyncio.QueueFull:
            _log.warning("OpenTelemetry: there is no trace of job %s: %d jobs wait", job.job_id, _WAITING_MAX)

    async def run(self) -> None:
        """Send the trace of each job that ends, until it is cancelled."""
        try:
            while True:
                job_id = await self._ended.get()
                try:
                    details = await self._ask(RequestJobDetails(job_id))
                except EngineError as error:
                    _log.warning("OpenTelemetry: there is no trace of job %s: %s", job_id, error)
                else:
                    await self._sender.send(partial(job_spans, details, self._resource))
        finally:
            self._sender.close()


def job_spans(job: JobDetails, resource: Resource) -> list[ReadableSpan]:
    """Return the spans of a job that has ended, its own first."""
    trace = _Trace(job, resource)
    attempts = [
        (vertex, attempt)
        for vertex in job.vertices
        for attempt in (*vertex.prior, *vertex.subtasks)
        if 0 < attempt.start_ms <= attempt.end_ms
    ]
    kept = sorted(attempts, key=lambda each: each[1].start_ms - each[1].end_ms)[:SPANS_MAX]
    told = {"drey.job.id": job.job_id.value, "drey.job.status": job.status, "drey.attempts": len(attempts)}
    if len(kept) < len(attempts):
        told["drey.attempts_without_span"] = len(attempts) - len(kept)
    error = job.failures[0].failure.type_name if job.failures else ""
    spans = [trace.span("", job.name, (job.start_ms, job.end_ms), told, error if job.status == "FAILED" else None)]
    spans += [_of_vertex(trace, each) for each in job.vertices if 0 < each.start_ms <= each.end_ms]
    return [*spans, *(_of_attempt(trace, vertex, each) for vertex, each in kept)]


def _of_vertex(trace: _Trace, vertex: VertexDetails) -> ReadableSpan:
    told = {"drey.vertex.parallelism": vertex.parallelism, "drey.vertex.status": vertex.status}
    return trace.span(vertex.id, vertex.name, (vertex.start_ms, vertex.end_ms), told)


def _of_attempt(trace: _Trace, vertex: VertexDetails, attempt: AttemptDetails) -> ReadableSpan:
    counters = attempt.counters
    told = {
        "drey.subtask": attempt.index,
        "drey.attempt": attempt.attempt,
        "drey.attempt.state": attempt.state,
        "drey.taskmanager": attempt.task_manager,
        "drey.rows_in": counters.rows_in,
        "drey.rows_out": counters.rows_out,
        "drey.spilled_bytes": counters.spilled_bytes,
    }
    name = f"{vertex.name} ({attempt.index + 1}/{vertex.parallelism})"
    error = None if attempt.failure is None else attempt.failure.type_name
    place = f"{vertex.id}/{attempt.index}/{attempt.attempt}"
    return trace.span(place, name, (attempt.start_ms, attempt.end_ms), told, error)


class _Trace:
    """The trace of one job."""

    def __init__(self, job: JobDetails, resource: Resource) -> None:
        self._job, self._resource = job, resource

    def span(
        self, place: str, name: str, times_ms: tuple[int, int], told: dict[str, Any], error: str | None = None
    ) -> ReadableSpan:
        """Return a span of a place, ``vertex/subtask/attempt``; the parent is the span of the vertex, or the job's."""
        from opentelemetry.sdk.trace import ReadableSpan
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope
        from opentelemetry.trace.status import Status, StatusCode

        parent = None if not place else self._context(place.partition("/")[0] if "/" in place else "")
        start_ms, end_ms = times_ms
        return ReadableSpan(
            name,
            self._context(place),
            parent,
            self._resource,
            told | ({} if error is None else {"error.type": error}),
            status=Status(StatusCode.UNSET if error is None else StatusCode.ERROR),
            start_time=start_ms * 1_000_000,
            end_time=max(start_ms, end_ms) * 1_000_000,
            instrumentation_scope=InstrumentationScope("drey", __version__),
        )

    def _context(self, place: str) -> Any:
        from opentelemetry.trace import SpanContext, TraceFlags

        digest = hashlib.blake2b(f"{self._job.job_id.value}/{place}".encode(), digest_size=8).digest()
        trace_id, span_id = int(self._job.job_id.value, 16), int.from_bytes(digest, "big")
        return SpanContext(trace_id, span_id, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))
