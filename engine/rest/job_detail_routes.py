"""One job in detail: itself, its vertices, its attempts.

GET /jobs/{job_id}                     and /status /config /exceptions /plan /execution-result /accumulators /metrics
GET /jobs/{job_id}/vertices/{id}       and /subtasktimes /taskmanagers /accumulators /metrics /backpressure
GET .../subtasks/{index}               the current attempt; .../subtasks/{index}/attempts/{attempt} any
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from engine.config.options import BACK_PRESSURE_INTERVAL, BACK_PRESSURE_SAMPLES
from engine.errors import EngineError
from engine.gateways.insight import PressureSample, SamplePressure, TaskPressure
from engine.gateways.job_details import AttemptDetails, JobDetails, RequestJobExceptions, VertexDetails
from engine.gateways.messages import ListTaskExecutors, RequestJobStatus, TaskExecutorOverview
from engine.ids import JobId
from engine.rest.job_details import job_details
from engine.rest.job_document import (
    accumulators,
    duration_ms,
    exceptions_document,
    job_document,
    plan_document,
    result_document,
)
from engine.rest.metrics_answer import metrics_answer
from engine.rest.services import RestServices, answer, job_id_of, number_of
from engine.rest.taskmanager_routes import insight_gateway
from engine.rest.vertex_document import (
    accumulators_document,
    metric_values,
    pressure_document,
    subtask_document,
    taskmanagers_document,
    times_document,
    vertex_document,
)
from engine.rpc.http_messages import Access, Handler, HttpError, HttpRequest, HttpResponse, Route

_JOB = "/jobs/{job_id}"
_VERTEX = f"{_JOB}/vertices/{{vertex_id}}"
_SUBTASK = f"{_VERTEX}/subtasks/{{index}}"
_EXCEPTIONS_SHOWN = 20
_EXCEPTIONS_MAX = 1000
#: seconds that an answer may take beyond the samples themselves
_SAMPLE_GRACE_S = 10.0


def vertex_of(job: JobDetails, request: HttpRequest) -> VertexDetails:
    """Return the vertex that the path names; HttpError 404 for any other."""
    wanted = request.variables["vertex_id"]
    for vertex in job.vertices:
        if vertex.id == wanted:
            return vertex
    raise HttpError(404, f"job {job.job_id} has no vertex of that id")


def job_detail_routes(services: RestServices) -> tuple[Route, ...]:
    """Return the routes of this module."""

    def of_job(document: Callable[[JobDetails, int], object]) -> Handler:
        async def handler(request: HttpRequest) -> HttpResponse:
            return answer(document(await job_details(services, request), services.clock.wall_ms()))

        return handler

    def of_vertex(document: Callable[[VertexDetails, int], object]) -> Handler:
        async def handler(request: HttpRequest) -> HttpResponse:
            vertex = vertex_of(await job_details(services, request), request)
            return answer(document(vertex, services.clock.wall_ms()))

        return handler

    async def status(request: HttpRequest) -> HttpResponse:
        overview = await services.ask_dispatcher(RequestJobStatus(job_id_of(request)))
        return answer({"status": overview.status})

    async def exceptions(request: HttpRequest) -> HttpResponse:
        limit = int(number_of(request, "maxExceptions", _EXCEPTIONS_SHOWN, _EXCEPTIONS_MAX))
        known = await services.ask_dispatcher(RequestJobExceptions(job_id_of(request)))
        return answer(exceptions_document(known.failures, is_truncated=known.is_truncated, limit=limit))

    async def metrics(request: HttpRequest) -> HttpResponse:
        return metrics_answer(request, _job_metrics(await job_details(services, request), services.clock.wall_ms()))

    async def vertex_metrics(request: HttpRequest) -> HttpResponse:
        return metrics_answer(request, metric_values(vertex_of(await job_details(services, request), request)))

    async def back_pressure(request: HttpRequest) -> HttpResponse:
        job = await job_details(services, request)
        position = job.vertices.index(vertex_of(job, request))
        sampled = [
            each for each in await _sampled_pressure(services, job.job_id) if each.attempt.vertex.index == position
        ]
        return answer(pressure_document(job.vertices[position], sampled, services.clock.wall_ms()))

    async def subtask(request: HttpRequest) -> HttpResponse:
        attempt = _attempt_of(vertex_of(await job_details(services, request), request), request)
        return answer(subtask_document(attempt, services.clock.wall_ms()))

    async def subtask_accumulators(request: HttpRequest) -> HttpResponse:
        attempt = _attempt_of(vertex_of(await job_details(services, request), request), request)
        numbers = {"subtask": attempt.index, "attempt": attempt.attempt}
        return answer({**numbers, "user-accumulators": accumulators([attempt])})

    table: tuple[tuple[str, Handler], ...] = (
        (_JOB, of_job(job_document)),
        (f"{_JOB}/status", status),
        (f"{_JOB}/config", of_job(_config_document)),
        (f"{_JOB}/exceptions", exceptions),
        (f"{_JOB}/plan", of_job(lambda job, _: {"plan": plan_document(job)})),
        (f"{_JOB}/execution-result", of_job(lambda job, _: result_document(job))),
        (f"{_JOB}/accumulators", of_job(_accumulators_document)),
        (f"{_JOB}/metrics", metrics),
        (_VERTEX, of_vertex(vertex_document)),
        (f"{_VERTEX}/subtasktimes", of_vertex(times_document)),
        (f"{_VERTEX}/taskmanagers", of_vertex(taskmanagers_document)),
        (f"{_VERTEX}/accumulators", of_vertex(lambda vertex, _: accumulators_document(vertex))),
        (f"{_VERTEX}/metrics", vertex_metrics),
        (f"{_VERTEX}/backpressure", back_pressure),
        (_SUBTASK, subtask),
        (f"{_SUBTASK}/attempts/{{attempt}}", subtask),
        (f"{_SUBTASK}/attempts/{{attempt}}/accumulators", subtask_accumulators),
    )
    return tuple(Route("GET", path, handler, Access.OPEN_GET) for path, handler in table)


def _attempt_of(vertex: VertexDetails, request: HttpRequest) -> AttemptDetails:
    index = _small_number(request.variables["index"])
    wanted = request.variables.get("attempt")
    number = None if wanted is None else _small_number(wanted)
    for attempt in (*vertex.subtasks, *vertex.prior):
        if attempt.index == index and number in (None, attempt.attempt):
            return attempt
    raise HttpError(404, f"vertex {vertex.id} has no such subtask or attempt")


def _small_number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise HttpError(400, "a subtask and an attempt are whole numbers")
    return int(text)


def _config_document(job: JobDetails, _: int) -> dict[str, object]:
    return {
        "jid": job.job_id.value,
        "name": job.name,
        "execution-config": {
            "execution-mode": "BATCH",
            "restart-strategy": "Cluster level default restart strategy",
            "job-parallelism": max((vertex.parallelism for vertex in job.vertices), default=-1),
            "object-reuse-mode": False,
            "user-config": {},
        },
    }


def _accumulators_document(job: JobDetails, _: int) -> dict[str, object]:
    attempts = (attempt for vertex in job.vertices for attempt in vertex.subtasks)
    return {
        "job-accumulators": [],
        "user-task-accumulators": accumulators(attempts),
        "serialized-user-task-accumulators": {},
    }


def _job_metrics(job: JobDetails, now_ms: int) -> dict[str, float]:
    prior = [attempt for vertex in job.vertices for attempt in vertex.prior]
    current = [attempt.counters for vertex in job.vertices for attempt in vertex.subtasks]
    return {
        "runtime": float(duration_ms(job.start_ms, job.end_ms, now_ms)),
        "numRestarts": float(max((attempt.attempt + 1 for attempt in prior), default=0)),
        "numFailures": float(len(job.failures)),
        "numBytesSpilled": float(sum(counters.spilled_bytes for counters in current)),
    }


async def _sampled_pressure(services: RestServices, job_id: JobId) -> list[TaskPressure]:
    """Return what the attempts of a job do, sampled by every TaskManager at one time."""
    count = services.configuration.get(BACK_PRESSURE_SAMPLES)
    interval_ms = services.configuration.get(BACK_PRESSURE_INTERVAL)
    question = SamplePressure(job_id, count, interval_ms)

    async def ask(executor: TaskExecutorOverview) -> PressureSample:
        try:
            return await insight_gateway(services, executor).ask(question, count * interval_ms / 1000 + _SAMPLE_GRACE_S)
        except EngineError:
            return PressureSample(())  # it is going away, and what ran there as well

    registered = (await services.ask_resource_manager(ListTaskExecutors())).task_executors
    return [task for sample in await asyncio.gather(*map(ask, registered)) for task in sample.tasks]
