"""All jobs that the Dispatcher knows, oldest first.

GET /jobs            ids and states
GET /jobs/overview   with names, users, times, tasks by state, and the places of jobs that wait for slots
    ?name=TEXT       those in whose names it is, in letters of any case      ?user=NAME     of that user
    ?state=A,B       in one of these states; WAITING: waiting for slots      ?since=MS      running, or ended since then

Held by: tests/rest/test_job_routes.py
"""

from __future__ import annotations

from collections.abc import Callable

from engine.gateways.messages import JobOverview, ListJobs
from engine.rest.job_document import EXECUTION_STATES, JOB_STATES, duration_ms, waiting_document
from engine.rest.services import RestServices, answer, number_of
from engine.rpc.http_messages import Access, HttpError, HttpRequest, HttpResponse, Route

#: state of a job that has no slot, beside those of all jobs
_WAITING = "WAITING"


def job_list_routes(services: RestServices) -> tuple[Route, ...]:
    """Return the routes of this module."""

    async def jobs(_: HttpRequest) -> HttpResponse:
        known = await services.ask_dispatcher(ListJobs())
        return answer({"jobs": [{"id": job.job_id.value, "status": job.status} for job in known.jobs]})

    async def overview(request: HttpRequest) -> HttpResponse:
        is_wanted = _filter_of(request)
        known = await services.ask_dispatcher(ListJobs())
        now_ms = services.clock.wall_ms()
        return answer({"jobs": [job_line(job, now_ms) for job in known.jobs if is_wanted(job)]})

    return (
        Route("GET", "/jobs", jobs, Access.OPEN_GET),
        Route("GET", "/jobs/overview", overview, Access.OPEN_GET),
    )


def _filter_of(request: HttpRequest) -> Callable[[JobOverview], bool]:
    """Return a test of the jobs that a request asks for; HttpError 400 for what no job could be."""
    name, user = request.query.get("name", "").casefold(), request.query.get("user")
    states = frozenset(filter(None, request.query.get("state", "").upper().split(",")))
    unknown = states - {*JOB_STATES, _WAITING}
    if unknown:
        raise HttpError(400, f"state {min(unknown)[:20]!r} is none of {', '.join((*JOB_STATES, _WAITING))}")
    since_ms = number_of(request, "since", 0.0, 1e15)

    def is_wanted(job: JobOverview) -> bool:
        state = _WAITING if job.waiting is not None else job.status
        return (
            name in job.name.casefold()
            and user in (None, job.user)
            and (not states or state in states or job.status in states)
            and (job.end_ms < 0 or job.end_ms >= since_ms)
        )

    return is_wanted


def job_line(job: JobOverview, now_ms: int) -> dict[str, object]:
    """Return a job as ``/jobs/overview`` shows it."""
    tasks = {state.lower(): job.tasks.get(state, 0) for state in EXECUTION_STATES}
    return {
        "jid": job.job_id.value,
        "name": job.name,
        "user": job.user,
        "state": job.status,
        "start-time": job.start_ms,
        "end-time": job.end_ms,
        "duration": duration_ms(job.start_ms, job.end_ms, now_ms),
        "last-modification": max(job.start_ms, job.end_ms),
        "tasks": {"total": sum(job.tasks.values()), **tasks},
        "waiting": waiting_document(job.waiting),
    }
