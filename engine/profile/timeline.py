"""Attempts over time, as a drawing (SVG): a lane for each subtask, a bar for each attempt, in the colours of its parts.

    scan orders     1 │░░███████████▒▒▒▒        │      ░ slot   █ work   ▒ input   ...
                    2 │░░█████▒▒▒               │

A bar is as long as the attempt, from the moment at which it could have begun. What is before it runs is where it was;
the parts of the run are sums, one after the other. The bar of an attempt that failed has a red frame. Of a vertex with
many subtasks the longest are shown.

Held by: tests/profile/test_profile_page.py
"""

from __future__ import annotations

from engine.profile.job_profile import AttemptProfile, JobProfile, VertexProfile
from engine.profile.time_parts import PARTS, time_parts
from engine.shown_pages import Html, join, scrolled, tag
from engine.shown_quantities import chain_text, duration_text

_LEFT, _WIDTH, _LANE, _BAR, _HEAD = 70, 970, 13, 10, 24
#: lanes of all vertices together, and of one
_LANES, _LANES_OF_ONE, _LANES_LEAST = 240, 24, 2
_TICKS = 5
_AXIS = 18
_NAME_CHARACTERS = 100
#: least width of a part that is drawn
_SEEN = 0.3


def timeline(job: JobProfile) -> Html:
    """Return the drawing with its legend; nothing for a job of which nothing has begun."""
    shown = [(place, vertex) for place, vertex in enumerate(job.vertices) if any(_begins(e) for e in vertex.attempts)]
    if not shown or not job.duration_ms:
        return Html("")
    lanes = max(_LANES_LEAST, min(_LANES_OF_ONE, _LANES // len(shown)))
    drawn, y = [], _AXIS
    for place, vertex in shown:
        part, y = _vertex(job, place, vertex, y, lanes)
        drawn.append(part)
    width = _LEFT + _WIDTH + 2
    label = "attempts of subtasks over time"
    drawing = tag(
        "svg",
        _axis(job.duration_ms, y),
        *drawn,
        viewBox=f"0 0 {width} {y + 4}",
        width=width,
        height=y + 4,
        role="img",
        aria_label=label,
        class_="time",
    )
    return join((_legend(job), scrolled(label, drawing)))


def _begins(attempt: AttemptProfile) -> bool:
    return attempt.scheduled_ms >= 0 or attempt.ready_ms >= 0


def _legend(job: JobProfile) -> Html:
    summed = ((name, sum(vertex.parts.get(name, 0) for vertex in job.vertices)) for name in PARTS)
    totals = {name: size for name, size in summed if size}
    whole = sum(totals.values()) or 1
    keys = [
        tag("li", tag("i", class_=f"p-{name}"), f"{PARTS[name]} ", tag("b", f"{size / whole:.0%}"))
        for name, size in totals.items()
    ]
    bar = [tag("i", class_=f"p-{name}", style=f"flex:{size}") for name, size in totals.items()]
    return join((tag("div", *bar, class_="parts", aria_hidden="true"), tag("ul", *keys, class_="legend")))


def _axis(duration_ms: int, bottom: int) -> Html:
    marks = []
    for tick in range(_TICKS + 1):
        x = _LEFT + _WIDTH * tick // _TICKS
        anchor = "end" if tick == _TICKS else "middle" if tick else "start"
        text = duration_text(duration_ms * tick // _TICKS) if tick else "0"
        marks.append(tag("path", d=f"M{x} {_AXIS - 4}V{bottom}", class_="tick"))
        marks.append(tag("text", text, x=x, y=10, text_anchor=anchor, class_="label"))
    return join(marks)


def _vertex(job: JobProfile, place: int, vertex: VertexProfile, y: int, lanes: int) -> tuple[Html, int]:
    """Return the lanes of a vertex below its name, and where they end."""
    of_subtasks: dict[int, list[AttemptProfile]] = {}
    for attempt in vertex.attempts:
        of_subtasks.setdefault(attempt.subtask, []).append(attempt)

    def length(subtask: int) -> int:
        first, last = of_subtasks[subtask][0], of_subtasks[subtask][-1]
        return (last.end_ms if last.end_ms >= 0 else job.duration_ms) - max(0, first.ready_ms)

    longest = sorted(of_subtasks, key=lambda subtask: (-length(subtask), subtask))[:lanes]
    rest = len(of_subtasks) - len(longest)
    whole = chain_text(vertex.name)
    name = (whole if len(whole) <= _NAME_CHARACTERS else f"{whole[: _NAME_CHARACTERS - 1]}…") + (
        f" (the {len(longest)} longest of {len(of_subtasks)})" if rest else ""
    )
    drawn = [tag("a", tag("text", name, x=_LEFT, y=y + 16, class_="name"), href=f"#v{place}")]
    y += _HEAD
    for subtask in sorted(longest):
        drawn.append(tag("text", subtask + 1, x=_LEFT - 8, y=y + 9, text_anchor="end", class_="label"))
        drawn.extend(_bar(job, each, y) for each in of_subtasks[subtask])
        y += _LANE
    return join(drawn), y


def _bar(job: JobProfile, attempt: AttemptProfile, y: int) -> Html:
    parts = time_parts(attempt, job.duration_ms)
    if not parts:
        return Html("")
    scale = _WIDTH / job.duration_ms
    x = _LEFT + max(0, attempt.ready_ms if attempt.ready_ms >= 0 else attempt.scheduled_ms) * scale
    told = ", ".join(f"{PARTS[name]} {duration_text(size)}" for name, size in parts.items())
    again = f", attempt {attempt.attempt + 1}" if attempt.attempt else ""
    drawn = [tag("title", f"subtask {attempt.subtask + 1}{again}, {attempt.state.lower()}: {told}")]
    for name, size in parts.items():
        width = size * scale
        if width >= _SEEN:
            drawn.append(tag("rect", x=f"{x:.4g}", y=y, width=f"{width:.3g}", height=_BAR, class_=f"p-{name}"))
        x += width
    if attempt.state == "FAILED":
        width = sum(parts.values()) * scale
        drawn.append(tag("rect", x=f"{x - width:.4g}", y=y, width=f"{width:.4g}", height=_BAR, class_="failed"))
    return tag("g", *drawn)
