"""All jobs that the Dispatcher knows, oldest first.

GET /jobs            ids and states
GET /jobs/overview   with names, times, tasks by state, and the places of jobs that wait for slots

Held by: tests/rest/test_job_routes.py
"""

from __future__ import annotations

from engine.gateways.messages import JobOverview, ListJobs
from engine.rest.job_document import EXECUTION_STATES, duration_ms, waiting_document
from engine.rest.services import RestServices, answer
from engine.rpc.http_messages import Access, HttpRequest, HttpResponse, Route


def job_list_routes(services: RestServices) -> tuple[Route, ...]:
    """Return the routes of this module."""

    async def jobs(_: HttpRequest) -> HttpResponse:
        known = await services.ask_dispatcher(ListJobs())
        return answer({"jobs": [{"id": job.job_id.value, "status": job.status} for job in known.jobs]})

    async def overview(_: HttpRequest) -> HttpResponse:
        known = await services.ask_dispatcher(ListJobs())
        now_ms = services.clock.wall_ms()
        return answer({"jobs": [job_line(job, now_ms) for job in known.jobs]})

    return (
        Route("GET", "/jobs", jobs, Access.OPEN_GET),
        Route("GET", "/jobs/overview", overview, Access.OPEN_GET),
    )


def job_line(job: JobOverview, now_ms: int) -> dict[str, object]:
    """Return a job as ``/jobs/overview`` shows it."""
    tasks = {state.lower(): job.tasks.get(state, 0) for state in EXECUTION_STATES}
    return {
        "jid": job.job_id.value,
        "name": job.name,
        "state": job.status,
        "start-time": job.start_ms,
        "end-time": job.end_ms,
        "duration": duration_ms(job.start_ms, job.end_ms, now_ms),
        "last-modification": max(job.start_ms, job.end_ms),
        "tasks": {"total": sum(job.tasks.values()), **tasks},
        "waiting": waiting_document(job.waiting),
    }
