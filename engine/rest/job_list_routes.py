"""All jobs that the Dispatcher knows, oldest first.

GET /jobs            ids and states
GET /jobs/overview   with names, times and tasks by state
"""

from __future__ import annotations

import asyncio
from collections import Counter

from engine.errors import EngineError
from engine.gateways.messages import JobOverview, JobProgress, ListJobs, RequestJobProgress
from engine.rest.services import RestServices, answer
from engine.rpc.http_messages import Access, HttpRequest, HttpResponse, Route

#: states of tasks, in Flink's order and writing
TASK_STATES = (
    "created",
    "scheduled",
    "deploying",
    "running",
    "finished",
    "canceling",
    "canceled",
    "failed",
    "reconciling",
    "initializing",
)


def job_list_routes(services: RestServices) -> tuple[Route, ...]:
    """Return the routes of this module."""

    async def jobs(_: HttpRequest) -> HttpResponse:
        known = await services.ask_dispatcher(ListJobs())
        return answer({"jobs": [{"id": job.job_id.value, "status": job.status} for job in known.jobs]})

    async def overview(_: HttpRequest) -> HttpResponse:
        known = await services.ask_dispatcher(ListJobs())
        now_ms = services.clock.wall_ms()
        tasks = await asyncio.gather(*(_progress(services, job) for job in known.jobs))
        lines = [job_line(job, progress, now_ms) for job, progress in zip(known.jobs, tasks, strict=True)]
        return answer({"jobs": lines})

    return (
        Route("GET", "/jobs", jobs, Access.OPEN_GET),
        Route("GET", "/jobs/overview", overview, Access.OPEN_GET),
    )


async def _progress(services: RestServices, job: JobOverview) -> JobProgress | None:
    try:
        return await services.ask_dispatcher(RequestJobProgress(job.job_id))
    except EngineError:
        return None  # it went out of the history meanwhile


def job_line(job: JobOverview, progress: JobProgress | None, now_ms: int) -> dict[str, object]:
    """Return a job as ``/jobs/overview`` shows it."""
    states: Counter[str] = Counter()
    for vertex in progress.vertices if progress is not None else ():
        states.update(vertex.subtasks)
    return {
        "jid": job.job_id.value,
        "name": job.name,
        "state": job.status,
        "start-time": job.start_ms,
        "end-time": job.end_ms,
        "duration": max(0, (now_ms if job.end_ms < 0 else job.end_ms) - job.start_ms),
        "last-modification": max(job.start_ms, job.end_ms),
        "tasks": {"total": states.total(), **task_counts(states)},
    }


def task_counts(states: Counter[str]) -> dict[str, int]:
    """Return the number of tasks in each state, every state named."""
    return {state: states[state.upper()] for state in TASK_STATES}
