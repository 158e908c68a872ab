"""Memory and spill over time, as a drawing (SVG): of all TaskManagers of the job together.

    1.2 GB ┤      ╭──╮        line: all of the processes       areas: pages, memory of Arrow, network buffers, stacked
           │  ▄▄▄▄████▄▄
    8.0 GB ┤           ▄██    area below: bytes spilled so far
           └──────────────────  the same time as that of attempts

A point stands for the interval before it, with the most memory in it, so no peak is lost where points are joined. The
interval under the pointer is marked, and its values are told: nothing here needs a script.

Held by: tests/profile/test_memory_drawing.py
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import msgspec

from engine.gateways.memory_use import MemoryPoint
from engine.profile.job_profile import JobProfile
from engine.shown_pages import Html, join, scrolled, tag
from engine.shown_quantities import duration_text
from engine.shown_sizes import size_text

_LEFT, _WIDTH, _TOP, _GAP = 70, 970, 18, 16
_MEMORY_HEIGHT, _SPILL_HEIGHT = 110, 50
_TICKS: Final = 5
#: time between the first reports of a TaskManager
_INTERVAL_MS: Final = 200
#: parts of memory by the field of a point, from the lowest: what they are called
_PARTS: Final = {"managed_bytes": "managed", "arrow_bytes": "Arrow", "network_bytes": "network"}
#: rules of the drawing and its legend
STYLE: Final = "".join(
    f"\nsvg.memory path.{kind} {{ fill: var(--{colour}); stroke: none; }} .m-{kind} {{ background: var(--{colour}); }}"
    for kind, colour in (("managed", "p-work"), ("arrow", "p-input"), ("network", "p-buffers"), ("spilled", "p-spill"))
) + (
    "\nsvg.memory path.resident { stroke: var(--text); stroke-width: 1.5; } .m-resident { background: var(--text); }"
    "\nsvg.memory path.tick { stroke: var(--line); }"
    "\nsvg.memory rect { fill: var(--text); opacity: 0; } svg.memory rect:hover { opacity: 0.15; }"
)


class Frame(NamedTuple):
    """A part of the drawing with an axis: its upper edge, height, and the value that is at the top."""

    top: int
    height: int
    most: int
    duration_ms: int

    def place(self, time_ms: int, value: int) -> str:
        """Return the place of a value."""
        x = _LEFT + _WIDTH * min(time_ms, self.duration_ms) / self.duration_ms
        return f"{x:.1f} {self.top + self.height * (1 - value / self.most):.1f}"


def memory_drawing(job: JobProfile) -> Html:
    """Return the drawing with its legend; nothing for a job that ended before anything was known."""
    points = job.memory
    if points:  # the first one has an interval before it, too
        first = msgspec.structs.replace(points[0], time_ms=max(0, points[0].time_ms - _INTERVAL_MS))
        points = (first, *points)
    if not points or not job.duration_ms or not max(each.resident_bytes for each in points):
        return Html("")
    spilled = points[-1].spilled_bytes
    memory = Frame(_TOP, _MEMORY_HEIGHT, max(map(_highest, points)), job.duration_ms)
    spill = Frame(_TOP + _MEMORY_HEIGHT + _GAP, _SPILL_HEIGHT, max(1, spilled), job.duration_ms)
    bottom = spill.top + spill.height if spilled else memory.top + memory.height
    label = f"memory over time, at most {size_text(memory.most)}; spilled {size_text(spilled)}"
    drawing = tag(
        "svg",
        *_axes(memory, bottom),
        *_areas(points, memory),
        tag("path", d=_line(points, "resident_bytes", memory), class_="resident"),
        *((_value(spill), tag("path", d=_area(points, "spilled_bytes", spill), class_="spilled")) if spilled else ()),
        *(_moment(before, point, memory, bottom) for before, point in pairwise(points)),
        viewBox=f"0 0 {_LEFT + _WIDTH + 2} {bottom + 4}",
        width=_LEFT + _WIDTH + 2,
        height=bottom + 4,
        role="img",
        aria_label=label,
        class_="memory",
    )
    return join((_legend(points), scrolled(label, drawing)))


def _highest(point: MemoryPoint) -> int:
    parts: int = sum(getattr(point, name) for name in _PARTS)
    return max(1, point.resident_bytes, parts)


def _legend(points: Sequence[MemoryPoint]) -> Html:
    managers = max(each.task_managers for each in points)
    whose = f"of {managers} TaskManagers, most of one {_most(points, 'largest_bytes')}" if managers > 1 else ""
    shown = [("resident", f"all of the process{'es' if managers > 1 else ''}", _most(points, "resident_bytes"), whose)]
    shown += [
        (name.removesuffix("_bytes"), f"{text} memory", _most(points, name), "")
        for name, text in _PARTS.items()
        if any(getattr(each, name) for each in points)
    ]
    if points[-1].spilled_bytes:
        shown.append(("spilled", "spilled so far", size_text(points[-1].spilled_bytes), ""))
    keys = (
        tag("li", tag("i", class_=f"m-{kind}"), f"{text}, at most ", tag("b", most), f" {more}")
        if kind != "spilled"
        else tag("li", tag("i", class_="m-spilled"), f"{text}: ", tag("b", most))
        for kind, text, most, more in shown
    )
    return tag("ul", *keys, class_="legend")


def _most(points: Sequence[MemoryPoint], name: str) -> str:
    return size_text(max(getattr(each, name) for each in points))


def _axes(memory: Frame, bottom: int) -> list[Html]:
    drawn = []
    for tick in range(_TICKS + 1):
        x = _LEFT + _WIDTH * tick // _TICKS
        anchor = "end" if tick == _TICKS else "middle" if tick else "start"
        text = duration_text(memory.duration_ms * tick // _TICKS) if tick else "0"
        drawn.append(tag("path", d=f"M{x} {_TOP - 4}V{bottom}", class_="tick"))
        drawn.append(tag("text", text, x=x, y=10, text_anchor=anchor, class_="label"))
    return [*drawn, _value(memory)]


def _moment(before: MemoryPoint, point: MemoryPoint, frame: Frame, bottom: int) -> Html:
    """Return the interval between two points, with the values of the later one for the pointer."""
    (left, _), (right, _) = (map(float, frame.place(each.time_ms, 0).split()) for each in (before, point))
    told = [f"{duration_text(point.time_ms)}: {size_text(point.resident_bytes)}"]
    told += [f"{text} {size_text(getattr(point, name))}" for name, text in _PARTS.items() if getattr(point, name)]
    told += [f"spilled {size_text(point.spilled_bytes)}"] if point.spilled_bytes else []
    place = {"x": f"{left:.1f}", "y": _TOP, "width": f"{max(0.0, right - left):.1f}", "height": bottom - _TOP}
    return tag("rect", tag("title", ", ".join(told)), **place)


def _value(frame: Frame) -> Html:
    """Return the value at the top of a frame, and the line at its bottom."""
    bottom = frame.top + frame.height
    return join(
        (
            tag("path", d=f"M{_LEFT} {bottom}H{_LEFT + _WIDTH}", class_="tick"),
            tag("text", size_text(frame.most), x=_LEFT - 6, y=frame.top + 9, text_anchor="end", class_="label"),
            tag("text", "0", x=_LEFT - 6, y=bottom, text_anchor="end", class_="label"),
        )
    )


def _areas(points: Sequence[MemoryPoint], frame: Frame) -> list[Html]:
    """Return the parts of memory as areas that lie on each other: the highest, which has all below it, first."""
    drawn, names = [], list(_PARTS)
    while names:
        if any(getattr(each, names[-1]) for each in points):
            tops = [(each.time_ms, sum(getattr(each, name) for name in names)) for each in points]
            drawn.append(tag("path", d=_closed(tops, frame), class_=names[-1].removesuffix("_bytes")))
        names.pop()
    return drawn


def _area(points: Sequence[MemoryPoint], name: str, frame: Frame) -> str:
    return _closed([(each.time_ms, getattr(each, name)) for each in points], frame)


def _closed(tops: Sequence[tuple[int, int]], frame: Frame) -> str:
    first, last = tops[0][0], tops[-1][0]
    line = "L".join(frame.place(*top) for top in tops)
    return f"M{frame.place(first, 0)}L{line}L{frame.place(last, 0)}Z"


def _line(points: Sequence[MemoryPoint], name: str, frame: Frame) -> str:
    return "M" + "L".join(frame.place(each.time_ms, getattr(each, name)) for each in points)
