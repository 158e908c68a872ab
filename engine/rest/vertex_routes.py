"""The vertices of a job, their subtasks and attempts.

GET /jobs/{job_id}/vertices/{vertex_id}  and /subtasktimes /taskmanagers /accumulators /metrics /backpressure
GET .../subtasks/metrics /accumulators   of all subtasks; metrics: ?get=a,b aggregates over them, or ?subtasks=0-2,5
GET .../subtasks/{index}                 the current attempt, and /metrics; .../subtasks/{index}/attempts/{attempt} any

Held by: tests/rest/test_job_detail_routes.py
Held by: tests/operators/test_task_activity.py
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from engine.errors import EngineError
from engine.gateways.insight import PressureSample, SamplePressure, TaskPressure
from engine.gateways.job_details import AttemptDetails, JobDetails, VertexDetails
from engine.gateways.task_executors import ListTaskExecutors, TaskExecutorOverview
from engine.ids import JobId
from engine.rest.job_details import job_details
from engine.rest.job_document import accumulators
from engine.rest.metrics_answer import aggregated_metrics_answer, chosen_numbers, metrics_answer
from engine.rest.services import RestServices, answer
from engine.rest.taskmanager_routes import insight_gateway
from engine.rest.vertex_document import (
    accumulators_document,
    metric_values,
    pressure_document,
    subtask_accumulators_document,
    subtask_document,
    subtask_metrics,
    taskmanagers_document,
    times_document,
    vertex_document,
)
from engine.rpc.http_messages import Access, Handler, HttpError, HttpRequest, HttpResponse, Route

_VERTEX = "/jobs/{job_id}/vertices/{vertex_id}"
_SUBTASK = f"{_VERTEX}/subtasks/{{index}}"
#: seconds that an answer may take in addition to the samples
_SAMPLE_GRACE_S = 10.0
#: samples of a job's tasks for one answer about back pressure, and the milliseconds between two
_SAMPLES, _SAMPLE_INTERVAL_MS = 100, 50


def vertex_routes(services: RestServices) -> tuple[Route, ...]:
    """Return the routes of this module."""

    async def vertex_of(request: HttpRequest) -> VertexDetails:
        return find_vertex(await job_details(services, request), request)

    def of_vertex(document: Callable[[VertexDetails, int], object]) -> Handler:
        async def handler(request: HttpRequest) -> HttpResponse:
            return answer(document(await vertex_of(request), services.clock.wall_ms()))

        return handler

    async def metrics(request: HttpRequest) -> HttpResponse:
        return metrics_answer(request, metric_values(await vertex_of(request)))

    async def back_pressure(request: HttpRequest) -> HttpResponse:
        job = await job_details(services, request)
        vertex = find_vertex(job, request)
        position = job.vertices.index(vertex)
        is_running = any(attempt.state == "RUNNING" for attempt in vertex.subtasks)
        sampled = await _sampled_pressure(services, job.job_id) if is_running else []
        own = [each for each in sampled if each.attempt.vertex.index == position]
        return answer(pressure_document(vertex, own, services.clock.wall_ms()))

    async def metrics_of_subtasks(request: HttpRequest) -> HttpResponse:
        vertex = await vertex_of(request)
        wanted = chosen_numbers(request, "subtasks", vertex.parallelism)
        each = [subtask_metrics(attempt) for attempt in vertex.subtasks if attempt.index in wanted]
        return aggregated_metrics_answer(request, each)

    async def metrics_of_subtask(request: HttpRequest) -> HttpResponse:
        return metrics_answer(request, subtask_metrics(_attempt_of(await vertex_of(request), request)))

    async def subtask(request: HttpRequest) -> HttpResponse:
        attempt = _attempt_of(await vertex_of(request), request)
        return answer(subtask_document(attempt, services.clock.wall_ms()))

    async def subtask_accumulators(request: HttpRequest) -> HttpResponse:
        attempt = _attempt_of(await vertex_of(request), request)
        numbers = {"subtask": attempt.index, "attempt": attempt.attempt}
        return answer({**numbers, "user-accumulators": accumulators([attempt])})

    table: tuple[tuple[str, Handler], ...] = (
        (_VERTEX, of_vertex(vertex_document)),
        (f"{_VERTEX}/subtasktimes", of_vertex(times_document)),
        (f"{_VERTEX}/taskmanagers", of_vertex(taskmanagers_document)),
        (f"{_VERTEX}/accumulators", of_vertex(lambda vertex, _: accumulators_document(vertex))),
        (f"{_VERTEX}/metrics", metrics),
        (f"{_VERTEX}/backpressure", back_pressure),
        (f"{_VERTEX}/subtasks/metrics", metrics_of_subtasks),
        (f"{_VERTEX}/subtasks/accumulators", of_vertex(lambda vertex, _: subtask_accumulators_document(vertex))),
        (_SUBTASK, subtask),
        (f"{_SUBTASK}/metrics", metrics_of_subtask),
        (f"{_SUBTASK}/attempts/{{attempt}}", subtask),
        (f"{_SUBTASK}/attempts/{{attempt}}/accumulators", subtask_accumulators),
    )
    return tuple(Route("GET", path, handler, Access.OPEN_GET) for path, handler in table)


def find_vertex(job: JobDetails, request: HttpRequest) -> VertexDetails:
    """Return the vertex that the path names; HttpError 404 for any other."""
    wanted = request.variables["vertex_id"]
    for vertex in job.vertices:
        if vertex.id == wanted:
            return vertex
    raise HttpError(404, f"job {job.job_id} has no vertex of that id")


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


async def _sampled_pressure(services: RestServices, job_id: JobId) -> list[TaskPressure]:
    """Return the activities of a job's attempts, sampled by all TaskManagers at the same time."""
    question = SamplePressure(job_id, _SAMPLES, _SAMPLE_INTERVAL_MS)
    limit_s = _SAMPLES * _SAMPLE_INTERVAL_MS / 1000 + _SAMPLE_GRACE_S

    async def ask(executor: TaskExecutorOverview) -> PressureSample:
        try:
            return await insight_gateway(services, executor).ask(question, limit_s)
        except EngineError:
            return PressureSample(())  # it is going away, and so are its tasks

    registered = (await services.ask_resource_manager(ListTaskExecutors())).task_executors
    return [task for sample in await asyncio.gather(*map(ask, registered)) for task in sample.tasks]
