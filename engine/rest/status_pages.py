"""Pages for people, made here and not in the browser: they need no script and load nothing from anywhere.

GET /                       slots, TaskManagers, jobs
GET /jobs/{job_id}/page     the plan, every vertex with the numbers of its subtasks, what went wrong, logs

A page of what still goes on loads itself again every few seconds.
"""

from __future__ import annotations

from engine.gateways.job_details import AttemptDetails, JobDetails
from engine.gateways.messages import JobList, JobOverview, ListJobs, ListTaskExecutors, TaskExecutorList
from engine.rest.cluster_routes import overview_document
from engine.rest.html import Html, join, page, table, tag
from engine.rest.job_details import job_details
from engine.rest.job_document import ENDED_JOB_STATES, duration_ms, stack_trace
from engine.rest.plan_drawing import plan_drawing
from engine.rest.quantities import bytes_text, count_text, duration_text, time_text
from engine.rest.services import RestServices
from engine.rpc.http_messages import Access, HttpRequest, HttpResponse, Route

_REFRESH_S = 3
_JOBS_SHOWN = 200
_SUBTASKS_SHOWN = 500
#: nothing but what is in the page itself
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}


def status_page_routes(services: RestServices) -> tuple[Route, ...]:
    """Return the routes of this module."""

    async def cluster(_: HttpRequest) -> HttpResponse:
        jobs = await services.ask_dispatcher(ListJobs())
        registered = await services.ask_resource_manager(ListTaskExecutors())
        return _html(cluster_page(jobs, registered, services.clock.wall_ms()))

    async def job(request: HttpRequest) -> HttpResponse:
        return _html(job_page(await job_details(services, request), services.clock.wall_ms()))

    return (
        Route("GET", "/", cluster, Access.OPEN_GET),
        Route("GET", "/jobs/{job_id}/page", job, Access.OPEN_GET),
    )


def _html(content: Html) -> HttpResponse:
    return HttpResponse(body=content.encode(), content_type="text/html; charset=utf-8", headers=_HEADERS)


# ---- the cluster ----


def cluster_page(jobs: JobList, registered: TaskExecutorList, now_ms: int) -> Html:
    """Return the page of the cluster."""
    overview = overview_document(registered, jobs)
    cards = (
        ("TaskManagers", "taskmanagers"),
        ("slots", "slots-total"),
        ("free slots", "slots-available"),
        ("running jobs", "jobs-running"),
        ("finished", "jobs-finished"),
        ("failed", "jobs-failed"),
        ("cancelled", "jobs-cancelled"),
    )
    latest = sorted(jobs.jobs, key=lambda job: (job.status in ENDED_JOB_STATES, -job.start_ms))[:_JOBS_SHOWN]
    return page(
        "Drey",
        tag("h1", "Drey"),
        tag("div", f"version {overview['flink-version']}", class_="quiet"),
        tag("div", *(_card(label, overview[name]) for label, name in cards), class_="cards"),
        tag("h2", "Jobs"),
        _jobs_table(latest, now_ms) if latest else tag("p", "No job has been submitted yet.", class_="quiet"),
        tag("h2", "TaskManagers"),
        _executors_table(registered, now_ms),
        tag("p", _link("/jobmanager/log", "the JobManager's log"), " · ", _link("/jobmanager/config", "configuration")),
        refresh_s=_REFRESH_S,
    )


def _card(label: str, value: object) -> Html:
    return tag("div", tag("b", value), label, class_="card")


def _jobs_table(jobs: list[JobOverview], now_ms: int) -> Html:
    rows = (
        (
            _link(f"/jobs/{job.job_id}/page", job.name or "(no name)"),
            _state(job.status),
            time_text(job.start_ms),
            duration_text(duration_ms(job.start_ms, job.end_ms, now_ms)),
            tag("code", job.job_id),
        )
        for job in jobs
    )
    return table(("job", "state", "started", "duration#", "id"), rows)


def _executors_table(registered: TaskExecutorList, now_ms: int) -> Html:
    if not registered.task_executors:
        return tag("p", "No TaskManager is registered: bin/taskmanager.sh start", class_="quiet")
    rows = (
        (
            _link(f"/taskmanagers/{each.resource_id}", each.resource_id.value[:8]),
            each.hardware.host or each.address,
            f"{each.free_slot_count} of {each.slot_count}",
            each.hardware.cpu_cores,
            bytes_text(each.hardware.managed_memory),
            f"{duration_text(max(0, now_ms - each.seen_ms))} ago",
            _link(f"/taskmanagers/{each.resource_id}/log", "log"),
        )
        for each in registered.task_executors
    )
    heads = ("TaskManager", "host", "free slots", "processors#", "managed memory#", "last heard of#", "")
    return table(heads, rows)


# ---- a job ----


def job_page(job: JobDetails, now_ms: int) -> Html:
    """Return the page of a job."""
    subtasks = [attempt for vertex in job.vertices for attempt in vertex.subtasks]
    has_ended = job.status in ENDED_JOB_STATES
    cards = (
        ("duration", duration_text(duration_ms(job.start_ms, job.end_ms, now_ms))),
        ("subtasks", f"{sum(each.state == 'FINISHED' for each in subtasks)} of {len(subtasks)} finished"),
        ("spilled", bytes_text(sum(each.counters.spilled_bytes for each in subtasks))),
        ("restarted attempts", sum(len(vertex.prior) for vertex in job.vertices)),
    )
    return page(
        f"{job.name} – Drey",
        tag("p", _link("/", "← all jobs")),
        tag("h1", job.name or "(no name)", " ", _state(job.status)),
        tag("div", tag("code", job.job_id), f" started {time_text(job.start_ms)}", class_="quiet"),
        tag("div", *(_card(label, value) for label, value in cards), class_="cards"),
        _failures(job),
        tag("h2", "Plan"),
        tag("p", "A dashed line: the result is stored before it is read.", class_="quiet"),
        plan_drawing(job),
        _decisions(job),
        tag("h2", "Vertices"),
        _vertices_table(job, now_ms),
        tag("h2", "Subtasks"),
        *(_subtasks(job, position, now_ms) for position in range(len(job.vertices))),
        tag(
            "p",
            _link(f"/jobs/{job.job_id}", "as JSON"),
            " · ",
            _link(f"/jobs/{job.job_id}/exceptions", "exceptions"),
            " · ",
            _link(f"/jobs/{job.job_id}/logs", "log files"),
        ),
        refresh_s=None if has_ended else _REFRESH_S,
    )


def _failures(job: JobDetails) -> Html:
    if not job.failures:
        return Html("")
    listed = [
        tag(
            "details",
            tag("summary", f"{time_text(each.time_ms)} {each.failure.task or 'the job'}: {each.failure.type_name}"),
            tag("pre", stack_trace(each.failure)),
            **({"open": "open"} if position == 0 else {}),
        )
        for position, each in enumerate(job.failures)
    ]
    return join((tag("h2", "What went wrong"), *listed))


def _decisions(job: JobDetails) -> Html:
    if not job.decisions:
        return Html("")
    listed = tag("ul", *(tag("li", decision.text) for decision in job.decisions))
    return join((tag("h2", "Decided while it ran"), listed))


_NUMBER_HEADS = ("rows in#", "rows out#", "read#", "written#", "spilled#", "memory#", "waited for input#", "for room#")


def _numbers(attempts: tuple[AttemptDetails, ...]) -> tuple[str, ...]:
    counters = [attempt.counters for attempt in attempts]
    return (
        count_text(sum(each.rows_in for each in counters)),
        count_text(sum(each.rows_out for each in counters)),
        bytes_text(sum(each.bytes_in for each in counters)),
        bytes_text(sum(each.bytes_out for each in counters)),
        bytes_text(sum(each.spilled_bytes for each in counters)),
        bytes_text(max((each.managed_bytes_peak for each in counters), default=0)),
        duration_text(sum(each.idle_ms for each in counters)),
        duration_text(sum(each.back_pressured_ms for each in counters)),
    )


def _vertices_table(job: JobDetails, now_ms: int) -> Html:
    rows = (
        (
            vertex.name,
            _state(vertex.status),
            f"{sum(each.state == 'FINISHED' for each in vertex.subtasks)} of {len(vertex.subtasks)}",
            duration_text(duration_ms(vertex.start_ms, vertex.end_ms, now_ms)),
            *_numbers(vertex.subtasks),
        )
        for vertex in job.vertices
    )
    return table(("vertex", "state", "finished#", "duration#", *_NUMBER_HEADS), rows)


def _subtasks(job: JobDetails, position: int, now_ms: int) -> Html:
    vertex = job.vertices[position]
    shown = sorted((*vertex.subtasks, *vertex.prior), key=lambda each: (each.index, each.attempt))[:_SUBTASKS_SHOWN]
    rows = (
        (
            f"{each.index + 1}" + (f", attempt {each.attempt + 1}" if each.attempt else ""),
            _state(each.state),
            each.task_manager[:8],
            duration_text(duration_ms(each.start_ms, each.end_ms, now_ms)),
            *_numbers((each,)),
            _link(f"/jobs/{job.job_id}/logs/v{position}-{each.index}-{each.attempt}.log", "log"),
        )
        for each in shown
    )
    heads = ("subtask", "state", "TaskManager", "duration#", *_NUMBER_HEADS, "")
    return tag("details", tag("summary", f"{vertex.name} ({len(vertex.subtasks)})"), table(heads, rows))


def _state(state: str) -> Html:
    known = state if state.isalpha() else ""
    return tag("span", state, class_=f"state {known}")


def _link(path: str, text: object) -> Html:
    return tag("a", text, href=path)
