"""The vertices of a job on its page: all in one table, then each with its operators and subtasks.

Of many subtasks the longest are listed, so that the page stays small: all of them are in the profile's JSON.

Held by: tests/profile/test_profile_page.py
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.profile.cause_rules import OFF_BY, off_by
from engine.profile.finding import file_name, rows_in_short, times_text
from engine.profile.job_profile import AttemptProfile, JobProfile, OperatorProfile, Spread, VertexProfile
from engine.profile.page_view import View
from engine.profile.spreads import spread_of
from engine.profile.time_parts import own_ms, run_ms
from engine.shown_pages import Html, join, link, state_badge, table, tag
from engine.shown_quantities import chain_text, count_text, duration_text
from engine.shown_sizes import size_text

#: subtasks that are listed of all vertices together, and of one
_LISTED, _LISTED_OF_ONE, _LISTED_LEAST = 300, 200, 3
_CAUSE_CHARACTERS = 160
_COUNTS = ("rows in", "rows out")


def vertices_table(job: JobProfile, view: View) -> Html:
    """Return a table of all vertices, marked where subtasks differ."""
    rows = (
        (
            link(view.vertex(place), chain_text(vertex.name)),
            state_badge(vertex.state),
            f"{sum(each.state == 'FINISHED' for each in vertex.current)} of {vertex.parallelism}",
            _between(spread_of(vertex, "time"), lambda value: duration_text(round(value))),
            _between(_more_uneven(vertex), rows_in_short),
            _sum(vertex, lambda each: each.rows_out, rows_in_short),
            _sum(vertex, lambda each: each.spilled_bytes, size_text),
            _peak(vertex),
        )
        for place, vertex in enumerate(job.vertices)
    )
    heads = (
        "vertex*",
        "state",
        "finished#",
        "time: least · median · most#",
        "rows: least · median · most#",
        "rows out#",
        "spilled#",
        "memory of a subtask#",
    )
    return table("vertices", heads, rows)


def _more_uneven(vertex: VertexProfile) -> Spread:
    taken, given = (spread_of(vertex, name) for name in _COUNTS)
    return given if given.is_uneven > taken.is_uneven or not taken.most else taken


def _between(spread: Spread, told: object) -> object:
    assert callable(told)
    if not spread.most:
        return ""
    text = f"{told(spread.least)} · {told(spread.median)} · {told(spread.most)}"
    return join((text, " ", _mark(spread))) if spread.is_uneven else text


def _mark(spread: Spread) -> Html:
    ratio = f"{times_text(spread.most / spread.median)}×" if spread.median else "nearly all"
    return tag("b", f"▲ {ratio}, subtask {spread.subtask + 1}", class_="bad")


def _sum(vertex: VertexProfile, take: object, told: object) -> str:
    assert callable(take) and callable(told)
    total = sum(take(each) for each in vertex.current)
    return str(told(total)) if total else ""


def _peak(vertex: VertexProfile) -> str:
    peak = max((each.managed_bytes_peak for each in vertex.current), default=0)
    return size_text(peak) if peak else ""


def vertex_section(job: JobProfile, place: int, view: View) -> Html:
    """Return one vertex: its operators, what differs between subtasks, the subtasks when it is unfolded."""
    vertex = job.vertices[place]
    shown = max(_LISTED_LEAST, min(_LISTED_OF_ONE, _LISTED // max(1, len(job.vertices))))
    return tag(
        "section",
        tag("h3", chain_text(vertex.name), " ", state_badge(vertex.state)),
        *(tag("p", cause.text, class_="bad") for cause in job.causes if cause.vertex == place),
        _operators(vertex) if vertex.operators else Html(""),
        _spreads(vertex) if vertex.spreads else Html(""),
        _subtasks(job, vertex, place, view, shown),
        id=f"v{place}",
    )


def _operators(vertex: VertexProfile) -> Html:
    total_ms = sum(each.time_ms for each in vertex.operators) or 1
    heads = ("operator*", "rows expected#", "rows#", "bytes#", "time#", "function#", "memory#", "spilled#")
    name = f"operators of {chain_text(vertex.name)}"
    return table(name, heads, (_operator(each, total_ms) for each in vertex.operators))


def _operator(operator: OperatorProfile, total_ms: float) -> Iterable[object]:
    ratio = off_by(operator.expected_rows, operator.rows_found)
    expected: object = "" if operator.expected_rows < 0 else rows_in_short(operator.expected_rows)
    if ratio > OFF_BY:
        expected = tag("b", f"{expected} ▲ {times_text(ratio)}× off", class_="bad", title=operator.origin)
    where = f"{file_name(operator.file)}, line {operator.line}" if operator.line else operator.strategy
    memory = f"{size_text(operator.managed_bytes_peak)} of {size_text(operator.managed_bytes)}"
    return (
        join((operator.name, " ", tag("span", where, class_="quiet"))) if where else operator.name,
        expected,
        rows_in_short(operator.rows_out),
        size_text(operator.bytes_out),
        f"{duration_text(round(operator.time_ms))} ({operator.time_ms / total_ms:.0%})",
        duration_text(round(operator.function_ms)) if operator.function_ms else "",
        memory if operator.managed_bytes else "",
        size_text(operator.spilled_bytes) if operator.spilled_bytes else "",
    )


def _spreads(vertex: VertexProfile) -> Html:
    if len(vertex.current) == 1:
        return Html("")
    rows = [(each.name, *_three(each), _mark(each) if each.is_uneven else "") for each in vertex.spreads]
    return table("spread over subtasks", ("of a subtask", "least#", "median#", "most#", "uneven"), rows)


def _three(spread: Spread) -> list[str]:
    values = (spread.least, spread.median, spread.most)
    if spread.name == "time":
        return [duration_text(round(value)) for value in values]
    return [rows_in_short(value) if spread.name in _COUNTS else size_text(value) for value in values]


_HEADS = (
    "subtask!", "state", "TaskManager", "time#", "rows in#", "rows out#", "read#", "written#", "spilled#",
    "managed#", "Arrow#", "worker#", "waited for input#", "for room#",
)  # fmt: skip


def _subtasks(job: JobProfile, vertex: VertexProfile, place: int, view: View, shown: int) -> Html:
    latest = {(each.subtask, each.attempt) for each in vertex.current}
    by_need = sorted(
        vertex.attempts,
        key=lambda each: ((each.subtask, each.attempt) in latest, -own_ms(each, job.duration_ms), each.subtask),
    )
    listed = sorted(by_need[:shown], key=lambda each: (each.subtask, each.attempt))
    rest = len(vertex.attempts) - len(listed)
    has_failed = any(each.failure for each in listed)
    heads = (*_HEADS, *(("went wrong*",) if has_failed else ()))
    rows = (
        (*_subtask(job, place, each, view), *((_shortened(each.failure),) if has_failed else ())) for each in listed
    )
    if not listed:
        return Html("")
    more = f"and {count_text(rest)} more, which took less time" if rest else ""
    return tag(
        "details",
        tag("summary", f"{vertex.parallelism} subtask{'' if vertex.parallelism == 1 else 's'}"),
        table(f"subtasks of {chain_text(vertex.name)}", heads, rows),
        tag("p", more, class_="quiet") if more else "",
        **({"open": "open"} if view.opened == place else {}),
    )


def _subtask(job: JobProfile, place: int, attempt: AttemptProfile, view: View) -> Iterable[object]:
    name: object = f"{attempt.subtask + 1}" + (f", attempt {attempt.attempt + 1}" if attempt.attempt else "")
    if view.has_processes and attempt.deployed_ms >= 0:
        log = f"v{place}-{attempt.subtask}-{attempt.attempt}.log"
        there = f"{view.address(view.opened, refreshes=view.refreshes, log=log)}#log"
        name = join((f"{name} · ", link(there, "log")))
    sizes = (
        attempt.bytes_in,
        attempt.bytes_out,
        attempt.spilled_bytes,
        attempt.managed_bytes_peak,
        attempt.arrow_bytes_peak,
        attempt.worker_bytes_peak,
    )
    return (
        name,
        state_badge(attempt.state),
        _task_manager(job, attempt, view),
        duration_text(run_ms(attempt, job.duration_ms)) if attempt.running_ms >= 0 else "",
        count_text(attempt.rows_in),
        count_text(attempt.rows_out),
        *(size_text(size) if size else "" for size in sizes),
        *(duration_text(wait) if wait else "" for wait in (attempt.input_ms, attempt.buffers_ms)),
    )


def _task_manager(job: JobProfile, attempt: AttemptProfile, view: View) -> object:
    if not 0 <= attempt.task_manager < len(job.task_managers):
        return ""
    name = job.task_managers[attempt.task_manager]
    return link(f"/taskmanagers/{name}/page", name[:8]) if view.has_processes else name[:8]


def _shortened(text: str) -> str:
    line = text.partition("\n")[0]
    return line if len(line) <= _CAUSE_CHARACTERS else f"{line[: _CAUSE_CHARACTERS - 1]}…"
