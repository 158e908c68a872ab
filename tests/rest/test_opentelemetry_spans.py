"""Traces of jobs that have ended: spans, their parents and ids, and what becomes of a job that cannot be told."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from engine.errors import JobNotFoundError
from engine.gateways.job_details import AttemptDetails, JobDetails, JobFailure, VertexDetails
from engine.gateways.messages import JobOverview
from engine.graph.deployment import FailureInfo, TaskCounters
from engine.ids import JobId
from engine.rest import opentelemetry_spans
from engine.rest.opentelemetry_spans import SpanExport, job_spans
from engine.rest.otlp_sender import otlp_sender, resource_of
from tests.rest.test_opentelemetry_export import receiver, settings, until

__all__ = ["receiver"]

FAILURE = FailureInfo("ValueError", "hidden value 7", "")
JOB_ID = JobId("0123456789abcdef" * 2)


def attempt(index, number, begin_ms, end_ms, failure=None):
    state = "FINISHED" if failure is None else "FAILED"
    counters = TaskCounters(rows_in=5, rows_out=3)
    return AttemptDetails(index, number, state, "tm", "host:1", begin_ms, end_ms, {}, counters, failure)


def vertex(name, attempts, prior=()):
    return VertexDetails(name, f"vertex {name}", 2, 128, "FINISHED", 1_100, 1_900, attempts, (), prior)


def job(**changes):
    whole = vertex(
        "v", (attempt(0, 1, 1_500, 1_900), attempt(1, 0, 1_100, 1_300)), (attempt(0, 0, 1_100, 1_400, FAILURE),)
    )
    details = JobDetails(JOB_ID, "daily", "FINISHED", 1_000, 2_000, {}, (whole, vertex("w", (attempt(0, 0, -1, -1),))))
    return msgspec.structs.replace(details, **changes)


def test_a_job_is_a_trace_of_its_vertices_and_all_of_their_attempts():
    spans = job_spans(job(), resource_of("jobmanager"))
    root, *others = spans
    assert root.name == "daily" and root.parent is None and root.end_time - root.start_time == 10**9
    assert {span.context.trace_id for span in spans} == {int(JOB_ID.value, 16)}
    assert len({span.context.span_id for span in spans}) == len(spans) == 6
    by_name = {}
    for span in others:
        by_name.setdefault(span.name, []).append(span)
    assert {name: len(found) for name, found in by_name.items()} == {
        "vertex v": 1,
        "vertex w": 1,
        "vertex v (1/2)": 2,
        "vertex v (2/2)": 1,
    }, "an attempt that never began has none"
    (of_vertex,) = by_name["vertex v"]
    assert of_vertex.parent.span_id == root.context.span_id
    assert {span.parent.span_id for span in by_name["vertex v (1/2)"]} == {of_vertex.context.span_id}
    assert [span.context for span in job_spans(job(), resource_of("x"))] == [span.context for span in spans]


def test_a_failure_is_told_by_its_name_alone():
    spans = job_spans(job(status="FAILED", failures=(JobFailure(1_400, FAILURE),)), resource_of("jobmanager"))
    failed = [span for span in spans if not span.status.is_unset]
    assert [span.name for span in failed] == ["daily", "vertex v (1/2)"]
    assert {span.attributes["error.type"] for span in failed} == {"ValueError"}
    assert "hidden" not in "".join(span.to_json() for span in spans)


def test_of_many_attempts_the_longest_have_spans_and_the_number_of_the_others_is_told(monkeypatch):
    monkeypatch.setattr(opentelemetry_spans, "SPANS_MAX", 2)
    root, *others = job_spans(job(), resource_of("jobmanager"))
    assert root.attributes["drey.attempts"] == 3 and root.attributes["drey.attempts_without_span"] == 1
    lengths = [span.end_time - span.start_time for span in others if "(" in span.name]
    assert lengths == [400 * 10**6, 300 * 10**6]


@pytest.mark.parametrize("is_known", [True, False])
def test_a_job_that_ends_is_asked_for_and_sent(receiver, caplog, is_known):
    async def ask(request):
        if not is_known and request.job_id == JOB_ID:
            raise JobNotFoundError("gone")
        return job(job_id=request.job_id)

    async def body():
        with ThreadPoolExecutor() as executor:
            export = SpanExport(otlp_sender(settings(receiver.url), "traces", executor), resource_of("x"), ask)
            for job_id in (JOB_ID, JobId.random()):
                export.ended(JobOverview(job_id, "", "FINISHED", 0, 1, {}))
            running = asyncio.create_task(export.run())
            await until(lambda: len(receiver.heard) == 1 + is_known)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(body())
    assert {path for path, *_ in receiver.heard} == {"/v1/traces"}
    assert ("there is no trace of job" in caplog.text) is not is_known


def test_jobs_beyond_the_queue_are_told_in_the_log(caplog):
    async def body():
        with ThreadPoolExecutor() as executor:
            export = SpanExport(otlp_sender(settings("http://localhost:1"), "traces", executor), resource_of("x"), None)
            for _ in range(101):
                export.ended(JobOverview(JobId.random(), "", "FINISHED", 0, 1, {}))

    asyncio.run(body())
    assert caplog.text.count("there is no trace of job") == 1
