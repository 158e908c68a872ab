"""Pages for people, made here and not in the browser: they need no script and load nothing from anywhere.

GET /                               slots, jobs, TaskManagers, JobManagers (overview_page.py)
GET /overview/events                the same as it changes (overview_feed.py)
GET /jobs/{job_id}/page             a job (engine.profile)
GET /jobs/{job_id}/log-files        the log files of its attempts
GET /taskmanagers/{taskmanager_id}/page, /jobmanager/page      a process (process_pages.py)
GET /taskmanagers/{taskmanager_id}/flame-graph, /jobmanager/flame-graph   ?seconds=5: what its time goes into
                                    (flame_graph_page.py); with ?format=folded as text

A page of something that still changes reloads itself every few seconds; the overview has a script of its own, by its
hash, that needs no reload (overview_script.py), and the page of a job one where the person that sees it may cancel the
job (engine.profile.cancel_script). Errors are pages as well.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from functools import partial

from engine.config.options import WEB_CANCEL
from engine.errors import LogNotFoundError
from engine.gateways.insight import SampleStacks, StackSample
from engine.gateways.job_details import JobDetails
from engine.graph.job_graph import USER_KEY
from engine.ids import JobId
from engine.insight.stack_sampler import SECONDS_MAX
from engine.profile.cancel_script import CANCEL_HASH
from engine.profile.page_view import View
from engine.profile.profile_making import profile_of
from engine.profile.profile_page import profile_page
from engine.rest.flame_graph_page import flame_graph_page, folded_text
from engine.rest.job_details import job_details
from engine.rest.job_log_routes import job_log_end, job_log_files
from engine.rest.overview_feed import EVENT_STREAM, OverviewFeed
from engine.rest.overview_page import overview_page, overview_parts
from engine.rest.overview_query import OverviewQuery
from engine.rest.overview_script import SCRIPT_HASH
from engine.rest.process_pages import job_manager_page, log_files_page, task_manager_page
from engine.rest.services import RestServices, explained, job_id_of, number_of
from engine.rest.taskmanager_routes import find_task_executor, insight_gateway
from engine.rpc.http_messages import Access, Handler, HttpError, HttpRequest, HttpResponse, Route
from engine.rpc.principal import Principal, Role
from engine.shown_pages import link, page, tag

#: seconds that a flame graph takes, and that the process has beside them
_FLAMES_S, _FLAMES_BESIDE_S = 5.0, 20.0
#: seconds after which the page of an error that may be over by then loads itself again
_AGAIN_S = 3
#: headings of pages of errors whose status tells more than its class
_HEADINGS = {400: "Not a valid address", 404: "Not found"}
_VERTICES_MAX = 1_000_000
#: headers that forbid the page to load anything else
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}
#: the same for the overview, which may run its own script, hear events from here and send its form here
_LIVE_HEADERS = {
    **_HEADERS,
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'self'; "
    f"frame-ancestors 'none'; connect-src 'self'; script-src '{SCRIPT_HASH}'",
}
#: the same for a job that the person who sees it may cancel
_CANCEL_HEADERS = {
    **_HEADERS,
    "Content-Security-Policy": f"{_HEADERS['Content-Security-Policy']}; connect-src 'self'; script-src '{CANCEL_HASH}'",
}
_LOG_NAME = re.compile(r"v\d{1,6}-\d{1,6}-\d{1,6}\.log")


def status_page_routes(services: RestServices) -> tuple[Route, ...]:
    """Return the routes of this module."""
    feed = OverviewFeed(services)

    async def overview(request: HttpRequest) -> HttpResponse:
        query = OverviewQuery.of(request.query)
        shown = overview_page(await feed.snapshot(), query, is_history=services.is_history)
        return _html(shown, headers=_LIVE_HEADERS)

    async def events(request: HttpRequest) -> HttpResponse:
        parts = partial(overview_parts, query=OverviewQuery.of(request.query), is_history=services.is_history)
        if request.method == "HEAD":
            return HttpResponse(content_type=EVENT_STREAM)  # no body to wait for
        return await feed.events(parts)

    async def job(request: HttpRequest) -> HttpResponse:
        details = await job_details(services, request)
        vertex = int(number_of(request, "vertex", -1, _VERTICES_MAX))
        opened = vertex if vertex >= 0 else None
        refreshes = request.query.get("refresh") != "off"
        log, end = await _log_end(services, request, details.job_id)
        may = not services.is_history and _may_cancel(services, request.principal, details)
        view = View(f"/jobs/{details.job_id}", not services.is_history, opened, refreshes, log, end, may)
        now_ms = services.clock.wall_ms()
        # Of a hundred thousand subtasks it takes seconds, in which this process has more to do.
        content = await asyncio.to_thread(lambda: profile_page(profile_of(details, now_ms), view))
        return _html(content, headers=_CANCEL_HEADERS if may else _HEADERS)

    async def log_files(request: HttpRequest) -> HttpResponse:
        job_id = job_id_of(request)
        return _html(log_files_page(job_id, await job_log_files(services, job_id)))

    async def task_manager(request: HttpRequest) -> HttpResponse:
        return _html(await task_manager_page(services, request.variables["taskmanager_id"]))

    async def job_manager(_: HttpRequest) -> HttpResponse:
        return _html(await job_manager_page(services))

    pages: tuple[tuple[str, Handler], ...] = (
        ("/", overview),
        ("/jobs/{job_id}/page", job),
        ("/jobs/{job_id}/log-files", log_files),
        ("/taskmanagers/{taskmanager_id}/page", task_manager),
        ("/jobmanager/page", job_manager),
        *_flame_pages(services),
    )
    return (
        *(Route("GET", path, _with_error_page(handler), Access.OPEN_GET) for path, handler in pages),
        Route("GET", "/overview/events", events, Access.OPEN_GET),
    )


def _may_cancel(services: RestServices, principal: Principal, job: JobDetails) -> bool:
    """Whether a person may cancel a job from its page."""
    if services.configuration.get(WEB_CANCEL):
        return not principal.name or principal.role > Role.READ
    is_own = principal.role is Role.SUBMIT and principal.name == job.configuration.get(USER_KEY)
    return bool(principal.name) and (principal.role is Role.ADMIN or is_own)


def _flame_pages(services: RestServices) -> tuple[tuple[str, Handler], ...]:
    """Return the handlers of flame graphs by path."""

    async def task_manager_flames(request: HttpRequest) -> HttpResponse:
        executor = await find_task_executor(services, request.variables["taskmanager_id"])
        seconds = _seconds(request)
        sample = await insight_gateway(services, executor).ask(SampleStacks(seconds), seconds + _FLAMES_BESIDE_S)
        path = f"/taskmanagers/{executor.resource_id}"
        return _flames(request, f"TaskManager {executor.resource_id.value[:8]}", path, sample)

    async def job_manager_flames(request: HttpRequest) -> HttpResponse:
        name = "history server" if services.is_history else "JobManager"
        return _flames(request, name, "/jobmanager", await services.stacks.sample(_seconds(request)))

    return (
        ("/taskmanagers/{taskmanager_id}/flame-graph", task_manager_flames),
        ("/jobmanager/flame-graph", job_manager_flames),
    )


async def _log_end(services: RestServices, request: HttpRequest, job_id: JobId) -> tuple[str, str]:
    """Return the name of the log file that the query names, and its end."""
    name = request.query.get("log", "")
    if not name or services.is_history:
        return "", ""
    if _LOG_NAME.fullmatch(name) is None:
        raise HttpError(400, "log is no name of a log file of an attempt: v<vertex>-<subtask>-<attempt>.log")
    try:
        return name, await job_log_end(services, job_id, name)
    except LogNotFoundError as error:
        return name, str(error)


def _seconds(request: HttpRequest) -> float:
    return max(0.1, number_of(request, "seconds", _FLAMES_S, SECONDS_MAX))


def _flames(request: HttpRequest, name: str, path: str, sample: StackSample) -> HttpResponse:
    form = request.query.get("format", "html")
    if form not in ("html", "folded"):
        raise HttpError(400, f"format {form[:20]!r}: choose html or folded")
    if form == "folded":
        return HttpResponse(body=folded_text(sample).encode(), content_type="text/plain; charset=utf-8")
    return _html(flame_graph_page(name, path, sample))


def _html(content: str, status: int = 200, headers: Mapping[str, str] = _HEADERS) -> HttpResponse:
    return HttpResponse(status, content.encode(), content_type="text/html; charset=utf-8", headers=headers)


def _with_error_page(handler: Handler) -> Handler:
    """Return the handler with its errors as pages."""
    with_status = explained(handler)

    async def answered(request: HttpRequest) -> HttpResponse:
        try:
            return await with_status(request)
        except HttpError as error:
            heading = _HEADINGS.get(error.status, "Not possible at present" if error.status >= 500 else "Refused")
            content = page(
                f"{heading} – Drey",
                tag("p", link("/", "← all jobs")),
                tag("h1", heading),
                tag("p", str(error)),
                refresh_s=_AGAIN_S if error.status in (503, 504) else None,
            )
            return _html(content, error.status)

    return answered
