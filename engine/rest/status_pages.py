"""Pages for people, made here and not in the browser: they need no script and load nothing from anywhere.

GET /                               slots, TaskManagers, jobs
GET /jobs/{job_id}/page             a job (job_page.py)
GET /jobs/{job_id}/log-files        the log files of its attempts
GET /taskmanagers/{taskmanager_id}/page, /jobmanager/page      a process (process_pages.py)

A page of something that still changes reloads itself every few seconds. Errors are pages as well.
"""

from __future__ import annotations

from engine.gateways.messages import JobList, JobOverview, ListJobs
from engine.gateways.task_executors import ListTaskExecutors, TaskExecutorList
from engine.rest.cluster_routes import overview_document
from engine.rest.html import Html, cards, link, page, state_badge, table, tag
from engine.rest.job_details import job_details
from engine.rest.job_document import ENDED_JOB_STATES, duration_ms
from engine.rest.job_log_routes import job_log_files
from engine.rest.job_page import View, job_page, waiting_badge
from engine.rest.process_pages import job_manager_page, log_files_page, task_manager_page
from engine.rest.quantities import bytes_text, duration_text, time_text
from engine.rest.services import RestServices, explained, job_id_of, number_of
from engine.rpc.http_messages import Access, Handler, HttpError, HttpRequest, HttpResponse, Route

_REFRESH_S = 3
_JOBS_SHOWN = 200
_VERTICES_MAX = 1_000_000
#: headers that forbid the page to load anything else
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}


def status_page_routes(services: RestServices) -> tuple[Route, ...]:
    """Return the routes of this module."""

    async def cluster(_: HttpRequest) -> HttpResponse:
        jobs = await services.ask_dispatcher(ListJobs())
        if services.is_history:
            return _html(history_page(jobs, services.clock.wall_ms()))
        registered = await services.ask_resource_manager(ListTaskExecutors())
        return _html(cluster_page(jobs, registered, services.clock.wall_ms()))

    async def job(request: HttpRequest) -> HttpResponse:
        details = await job_details(services, request)
        vertex = int(number_of(request, "vertex", -1, _VERTICES_MAX))
        view = View(vertex if vertex >= 0 else None, request.query.get("refresh") != "off", not services.is_history)
        return _html(job_page(details, services.clock.wall_ms(), view))

    async def log_files(request: HttpRequest) -> HttpResponse:
        job_id = job_id_of(request)
        return _html(log_files_page(job_id, await job_log_files(services, job_id)))

    async def task_manager(request: HttpRequest) -> HttpResponse:
        return _html(await task_manager_page(services, request.variables["taskmanager_id"]))

    async def job_manager(_: HttpRequest) -> HttpResponse:
        return _html(await job_manager_page(services))

    pages: tuple[tuple[str, Handler], ...] = (
        ("/", cluster),
        ("/jobs/{job_id}/page", job),
        ("/jobs/{job_id}/log-files", log_files),
        ("/taskmanagers/{taskmanager_id}/page", task_manager),
        ("/jobmanager/page", job_manager),
    )
    return tuple(Route("GET", path, _with_error_page(handler), Access.OPEN_GET) for path, handler in pages)


def _html(content: Html, status: int = 200) -> HttpResponse:
    return HttpResponse(status, content.encode(), content_type="text/html; charset=utf-8", headers=_HEADERS)


def _with_error_page(handler: Handler) -> Handler:
    """Return the handler with its errors as pages."""
    with_status = explained(handler)

    async def answered(request: HttpRequest) -> HttpResponse:
        try:
            return await with_status(request)
        except HttpError as error:
            heading = "Not found" if error.status == 404 else "Not possible at present"
            content = page(
                f"{heading} – Drey", tag("p", link("/", "← all jobs")), tag("h1", heading), tag("p", str(error))
            )
            return _html(content, error.status)

    return answered


def cluster_page(jobs: JobList, registered: TaskExecutorList, now_ms: int) -> Html:
    """Return the page of a cluster."""
    overview = overview_document(registered, jobs)
    numbers = (
        ("TaskManagers", "taskmanagers"),
        ("slots", "slots-total"),
        ("free slots", "slots-available"),
        ("running jobs", "jobs-running"),
        ("waiting jobs", "jobs-waiting"),
        ("finished", "jobs-finished"),
        ("failed", "jobs-failed"),
        ("cancelled", "jobs-cancelled"),
    )
    return page(
        "Drey",
        tag("h1", "Drey"),
        tag("div", f"version {overview['flink-version']}, protocol {overview['protocol']}", class_="quiet"),
        cards((label, overview[name]) for label, name in numbers),
        tag("h2", "Jobs"),
        _jobs(jobs, now_ms),
        tag("h2", "TaskManagers"),
        _executors_table(registered, now_ms),
        tag("p", link("/jobmanager/page", "the JobManager: configuration, log files, threads")),
        refresh_s=_REFRESH_S,
    )


def history_page(jobs: JobList, now_ms: int) -> Html:
    """Return the page of a server that knows jobs only, which have ended."""
    overview = overview_document(TaskExecutorList(()), jobs)
    numbers = (("finished", "jobs-finished"), ("failed", "jobs-failed"), ("cancelled", "jobs-cancelled"))
    return page(
        "History – Drey",
        tag("h1", "Drey: jobs that have ended"),
        tag("div", f"version {overview['flink-version']}, protocol {overview['protocol']}", class_="quiet"),
        cards((label, overview[name]) for label, name in numbers),
        tag("h2", "Jobs"),
        _jobs(jobs, now_ms),
        refresh_s=_REFRESH_S,
    )


def _jobs(jobs: JobList, now_ms: int) -> Html:
    if not jobs.jobs:
        return tag("p", "No job is known yet.", class_="quiet")
    latest = sorted(jobs.jobs, key=_place_on_page)
    shown = _jobs_table(latest[:_JOBS_SHOWN], now_ms)
    rest = len(latest) - _JOBS_SHOWN
    if rest <= 0:
        return shown
    return tag("div", shown, tag("p", f"and {rest} older ones: ", link("/jobs/overview", "as JSON"), class_="quiet"))


def _place_on_page(job: JobOverview) -> tuple[int, int, int]:
    """Sort running jobs first, then waiting ones in the order of their turns, then ended ones, the latest first."""
    group = 2 if job.status in ENDED_JOB_STATES else 0 if job.waiting is None else 1
    return group, job.waiting.place if job.waiting is not None else 0, -job.start_ms


def _jobs_table(jobs: list[JobOverview], now_ms: int) -> Html:
    rows = (
        (
            link(f"/jobs/{job.job_id}/page", job.name or "(no name)"),
            state_badge(job.status) if job.waiting is None else waiting_badge(job.waiting),
            f"{job.tasks.get('FINISHED', 0)} of {sum(job.tasks.values())}" if job.tasks else "",
            time_text(job.start_ms),
            duration_text(duration_ms(job.start_ms, job.end_ms, now_ms)),
            tag("code", job.job_id),
        )
        for job in jobs
    )
    return table("jobs", ("job*", "state", "subtasks finished#", "started!", "duration#", "id"), rows)


def _executors_table(registered: TaskExecutorList, now_ms: int) -> Html:
    if not registered.task_executors:
        return tag("p", "No TaskManager is registered: bin/taskmanager.sh start", class_="quiet")
    rows = (
        (
            link(f"/taskmanagers/{each.resource_id}/page", each.resource_id.value[:8]),
            each.hardware.host or each.address,
            f"{each.free_slot_count} of {each.slot_count}",
            each.program.version,
            each.hardware.cpu_cores,
            bytes_text(each.hardware.managed_memory),
            f"{duration_text(max(0, now_ms - each.seen_ms))} ago",
            link(f"/taskmanagers/{each.resource_id}/log", "log"),
        )
        for each in registered.task_executors
    )
    heads = (
        "TaskManager",
        "host",
        "free slots#",
        "version",
        "processors#",
        "managed memory#",
        "last heard of#",
        "its log",
    )
    return table("TaskManagers", heads, rows)
