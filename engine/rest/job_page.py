"""The page of one job: its plan, every vertex with the numbers of its subtasks, what went wrong, logs.

Its address says what is open and whether the page reloads itself, so that a reload changes neither:
``?vertex=3`` opens the subtasks of one vertex, ``?refresh=off`` stops.

Held by: tests/rest/test_status_pages.py
"""

from __future__ import annotations

from typing import NamedTuple

from engine.config.secret_keys import shown_settings
from engine.gateways.job_details import AttemptDetails, JobDetails
from engine.gateways.job_queue import WaitingJob, waiting_text
from engine.rest.html import Html, cards, join, link, page, state_badge, table, tag
from engine.rest.job_document import ENDED_JOB_STATES, accumulators, duration_ms, stack_trace
from engine.rest.plan_drawing import plan_drawing
from engine.rest.quantities import bytes_text, chain_text, count_text, duration_text, time_text

_REFRESH_S = 3
_SUBTASKS_SHOWN = 500
_CAUSE_CHARACTERS = 160


class View(NamedTuple):
    """The views of a job's page."""

    #: position of the vertex whose subtasks are shown
    vertex: int | None = None
    refreshes: bool = True
    #: True if TaskManagers, with their logs, can be asked from here
    has_processes: bool = True


def job_page(job: JobDetails, now_ms: int, view: View | None = None) -> Html:
    """Return the page of a job."""
    view = view or View()
    subtasks = [attempt for vertex in job.vertices for attempt in vertex.subtasks]
    has_ended = job.status in ENDED_JOB_STATES
    return page(
        f"{job.name} – Drey",
        tag("p", link("/", "← all jobs")),
        tag(
            "h1",
            job.name or "(no name)",
            " ",
            state_badge(job.status) if job.waiting is None else waiting_badge(job.waiting),
        ),
        tag("div", tag("code", job.job_id), f" started {time_text(job.start_ms)}", class_="quiet"),
        Html("") if has_ended else _refreshing(view),
        cards(
            (
                ("duration", duration_text(duration_ms(job.start_ms, job.end_ms, now_ms))),
                ("subtasks finished", f"{sum(each.state == 'FINISHED' for each in subtasks)} of {len(subtasks)}"),
                ("spilled", bytes_text(sum(each.counters.spilled_bytes for each in subtasks))),
                ("restarted attempts", sum(len(vertex.prior) for vertex in job.vertices)),
            )
        ),
        _failures(job),
        tag("h2", "Plan"),
        tag("p", "A dashed line: the result is stored before it is read.", class_="quiet"),
        plan_drawing(job),
        _decisions(job),
        tag("h2", "Vertices"),
        tag(
            "p",
            "Most memory at one time: managed, of a subtask; Arrow's, of its process; of its Python worker.",
            class_="quiet",
        ),
        _vertices_table(job, now_ms, view),
        tag("h2", "Subtasks"),
        *(_subtasks(job, position, now_ms, view) for position in range(len(job.vertices))),
        _counted(subtasks),
        _settings(job),
        _further(job, view),
        refresh_s=_REFRESH_S if view.refreshes and not has_ended else None,
    )


def waiting_badge(waiting: WaitingJob) -> Html:
    """Return the badge of a waiting job, with its place in the queue for slots."""
    return join((state_badge("WAITING"), " ", tag("span", waiting_text(waiting), class_="quiet")))


def _address(vertex: int | None, *, refreshes: bool) -> str:
    """Return the address of this page in another view."""
    query = [] if vertex is None else [f"vertex={vertex}"]
    query += [] if refreshes else ["refresh=off"]
    return "?" + "&".join(query)


def _refreshing(view: View) -> Html:
    other = link(_address(view.vertex, refreshes=not view.refreshes), "stop" if view.refreshes else "begin again")
    does = f"loads itself again every {_REFRESH_S} s" if view.refreshes else "stands still"
    return tag("div", f"This page {does}: ", other, class_="quiet")


def _failures(job: JobDetails) -> Html:
    # Tasks of a job that is cancelled may fail while they end; that is not worth showing.
    cancelled_ms = job.timestamps_ms.get("CANCELLING", -1)
    failures = [each for each in job.failures if cancelled_ms < 0 or each.time_ms < cancelled_ms]
    if not failures:
        return Html("")
    listed = [
        tag(
            "details",
            tag(
                "summary",
                f"{time_text(each.time_ms)} {chain_text(each.failure.task or 'the job')}: {each.failure.type_name}",
            ),
            tag("pre", stack_trace(each.failure), tabindex=0),
            **({"open": "open"} if position == 0 else {}),
        )
        for position, each in enumerate(failures)
    ]
    return join((tag("h2", "What went wrong"), *listed))


def _decisions(job: JobDetails) -> Html:
    if not job.decisions:
        return Html("")
    listed = tag("ul", *(tag("li", chain_text(decision.text)) for decision in job.decisions))
    return join((tag("h2", "Decided while it ran"), listed))


_NUMBER_HEADS = (
    "rows in#",
    "rows out#",
    "read#",
    "written#",
    "spilled#",
    "managed#",
    "Arrow#",
    "worker#",
    "waited for input#",
    "waited for room#",
)


def _numbers(attempts: tuple[AttemptDetails, ...]) -> tuple[str, ...]:
    counters = [attempt.counters for attempt in attempts]
    return (
        count_text(sum(each.rows_in for each in counters)),
        count_text(sum(each.rows_out for each in counters)),
        bytes_text(sum(each.bytes_in for each in counters)),
        bytes_text(sum(each.bytes_out for each in counters)),
        bytes_text(sum(each.spilled_bytes for each in counters)),
        bytes_text(max((each.managed_bytes_peak for each in counters), default=0)),
        bytes_text(max((each.arrow_bytes_peak for each in counters), default=0)),
        bytes_text(max((each.worker_bytes_peak for each in counters), default=0)),
        duration_text(sum(each.idle_ms for each in counters)),
        duration_text(sum(each.back_pressured_ms for each in counters)),
    )


def _vertices_table(job: JobDetails, now_ms: int, view: View) -> Html:
    rows = (
        (
            link(f"{_address(position, refreshes=view.refreshes)}#v{position}", chain_text(vertex.name)),
            state_badge(vertex.status),
            f"{sum(each.state == 'FINISHED' for each in vertex.subtasks)} of {len(vertex.subtasks)}",
            duration_text(duration_ms(vertex.start_ms, vertex.end_ms, now_ms)),
            *_numbers(vertex.subtasks),
        )
        for position, vertex in enumerate(job.vertices)
    )
    return table("vertices", ("vertex*", "state", "finished#", "duration#", *_NUMBER_HEADS), rows)


def _subtasks(job: JobDetails, position: int, now_ms: int, view: View) -> Html:
    vertex = job.vertices[position]
    listed = sorted((*vertex.subtasks, *vertex.prior), key=lambda each: (each.index, each.attempt))
    has_failed = any(each.failure is not None for each in listed)
    heads = ("subtask!", "state", "TaskManager", "duration#", *_NUMBER_HEADS, *(("went wrong*",) if has_failed else ()))
    rows = (
        (
            _subtask_name(job, position, each, view),
            state_badge(each.state),
            _task_manager(each, view),
            duration_text(duration_ms(each.start_ms, each.end_ms, now_ms)),
            *_numbers((each,)),
            *((_cause(each),) if has_failed else ()),
        )
        for each in listed[:_SUBTASKS_SHOWN]
    )
    rest = len(listed) - _SUBTASKS_SHOWN
    return tag(
        "details",
        tag("summary", f"{chain_text(vertex.name)} ({len(vertex.subtasks)})"),
        table(f"subtasks of {chain_text(vertex.name)}", heads, rows),
        tag("p", f"and {rest} more", class_="quiet") if rest > 0 else Html(""),
        id=f"v{position}",
        **({"open": "open"} if view.vertex == position else {}),
    )


def _subtask_name(job: JobDetails, position: int, attempt: AttemptDetails, view: View) -> object:
    name = f"{attempt.index + 1}" + (f", attempt {attempt.attempt + 1}" if attempt.attempt else "")
    if not view.has_processes or attempt.start_ms < 0:
        return name
    log = link(f"/jobs/{job.job_id}/logs/v{position}-{attempt.index}-{attempt.attempt}.log", "log")
    return join((f"{name} · ", log))


def _task_manager(attempt: AttemptDetails, view: View) -> object:
    name = attempt.task_manager[:8]
    return link(f"/taskmanagers/{attempt.task_manager}/page", name) if name and view.has_processes else name


def _cause(attempt: AttemptDetails) -> str:
    if attempt.failure is None:
        return ""
    text = f"{attempt.failure.type_name}: {attempt.failure.message}".partition("\n")[0]
    return text if len(text) <= _CAUSE_CHARACTERS else f"{text[: _CAUSE_CHARACTERS - 1]}…"


def _counted(subtasks: list[AttemptDetails]) -> Html:
    totals = accumulators(subtasks)
    if not totals:
        return Html("")
    rows = ((each["name"], count_text(int(str(each["value"])))) for each in totals)
    return join((tag("h2", "Counted by functions"), table("counters of functions", ("counter*", "value#"), rows)))


def _settings(job: JobDetails) -> Html:
    if not job.configuration:
        return Html("")
    shown = shown_settings(job.configuration)
    rows = ((tag("code", key), value) for key, value in shown.items())
    return tag(
        "details",
        tag("summary", f"Settings that came with the job ({len(shown)})"),
        table("settings of the job", ("key", "value*"), rows),
    )


def _further(job: JobDetails, view: View) -> Html:
    path = f"/jobs/{job.job_id}"
    links = [link(f"{path}/log-files", "log files"), " · "] if view.has_processes else []
    documents = (("job", path), ("exceptions", f"{path}/exceptions"), ("plan", f"{path}/plan"))
    as_json = [part for name, target in documents for part in (" ", link(target, name))]
    return tag("p", *links, "as JSON:", *as_json)
