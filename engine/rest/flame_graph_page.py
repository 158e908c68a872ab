"""The flame graph of a process: a page made of samples of its stacks, without a script. Pure.

    ┌ all: 4.1 s ───────────────────────────────┐      width: time, of the wider of what is beside it first
    ├ task 1 of scan ────────────┬ task 2 ──────┤      rows: callers above what they call
    ├ BatchTask.run ─────────────┼ ...          │
    └ score (job.py:12) ─────────┘              ┘

Each frame is an SVG of its own within the drawing: its place and width are shares, so the drawing is as wide as the
page, and its text ends where the frame ends. Below it is a table of the frames that have most time of their own.

Held by: tests/rest/test_flame_graph.py
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from engine.gateways.insight import StackSample
from engine.shown_pages import Html, join, link, page, scrolled, table, tag
from engine.shown_quantities import count_text, duration_text

_ROW: Final = 18
#: share of the whole below which a frame is not drawn, in per cent, and rows that are drawn
_SEEN, _ROWS_MAX = 0.15, 60
_LISTED: Final = 15
#: begin of every thread, which is not drawn
_BEGINNINGS: Final = "Thread._bootstrap"
_STYLE = """
.flame svg { display: inline; } .flame > svg { display: block; min-width: 700px; }
.flame rect { fill: var(--f-other); stroke: var(--back); stroke-width: 1; }
.flame text { fill: #16181d; font-size: 11px; }
.flame .engine rect { fill: var(--f-engine); } .flame .root rect { fill: var(--f-root); }
:root { --f-engine: #fbbf6b; --f-other: #8fd3b6; --f-root: #c9ced8; }
""".strip()


class Frame(msgspec.Struct):
    """A frame of the drawing: what is called there, with the time spent in it."""

    name: str
    time_us: int = 0
    calls: dict[str, Frame] = {}


def flame_graph_page(name: str, path: str, sample: StackSample) -> Html:
    """Return the page. ``path``: of the process in the REST API."""
    busy = [(each.frames, each.busy_us) for each in sample.stacks if each.busy_us]
    waiting = [(each.frames, each.waiting_us) for each in sample.stacks if each.waiting_us]
    again = [part for seconds in (5, 30) for part in (" · ", link(f"?seconds={seconds}", f"again, for {seconds} s"))]
    return page(
        f"Flame graph of {name} – Drey",
        tag("p", link(f"{path}/page", f"← {name}")),
        tag("h1", f"Flame graph of {name}"),
        tag("div", f"{sample.seconds:.1f} s, by {sample.taken_by}", *again, class_="quiet"),
        *_notes(sample),
        tag("h2", "On a processor"),
        tag(
            "p",
            f"All threads together: {_time(sum(each for _, each in busy))} of {sample.seconds:.1f} s.",
            class_="quiet",
        ),
        flame_graph(busy, "time on processors") if busy else tag("p", "Nothing ran.", class_="quiet"),
        _hottest(busy) if busy else "",
        tag("details", tag("summary", "Waiting"), flame_graph(waiting, "time that threads waited")) if waiting else "",
        style=_STYLE,
    )


def folded_text(sample: StackSample) -> str:
    """Return the stacks with their processor time in microseconds, a line each, as other tools read them."""
    lines = (f"{';'.join(each.frames)} {each.busy_us}\n" for each in sample.stacks if each.busy_us)
    return "".join(lines)


def _notes(sample: StackSample) -> Iterator[Html]:
    said = [sample.note] if sample.note else []
    if sample.taken_by != "py-spy":
        said.append("Processes of Python functions are not in it. Where py-spy is installed, they are.")
    if sample.left_out:
        said.append(f"{count_text(sample.left_out)} stacks with less time are left out.")
    yield from (tag("p", each, class_="quiet") for each in said)


def flame_graph(stacks: Iterable[tuple[tuple[str, ...], int]], label: str) -> Html:
    """Return the drawing of stacks with their times in microseconds."""
    root = Frame("all", calls={})
    for frames, time_us in stacks:
        root.time_us += time_us
        at = root
        for name in frames:
            if name.startswith(_BEGINNINGS):
                continue
            at = at.calls.setdefault(name, Frame(name, calls={}))
            at.time_us += time_us
    drawn, rows = _drawn(root)
    height = rows * _ROW
    drawing = tag("svg", *drawn, width="100%", height=height, role="img", aria_label=label)
    return tag("div", scrolled(label, tag("div", drawing, class_="flame")))


def _drawn(root: Frame) -> tuple[list[Html], int]:
    """Return all frames that are wide enough, and the number of rows."""
    drawn, deepest = [], 0
    left: list[tuple[Frame, float, int]] = [(root, 0.0, 0)]
    while left:
        frame, x, row = left.pop()
        share = 100 * frame.time_us / root.time_us
        if share < _SEEN or row >= _ROWS_MAX:
            continue
        deepest = max(deepest, row)
        drawn.append(_box(frame, x, row, share))
        for called in sorted(frame.calls.values(), key=lambda each: (-each.time_us, each.name)):
            left.append((called, x, row + 1))
            x += 100 * called.time_us / root.time_us
    return drawn, deepest + 1


def _box(frame: Frame, x: float, row: int, share: float) -> Html:
    place = {"x": f"{x:.3f}%", "y": row * _ROW, "width": f"{share:.3f}%", "height": _ROW}
    return tag(
        "svg",
        tag("title", f"{frame.name}: {_time(frame.time_us)}, {share:.1f} %"),
        tag("rect", width="100%", height=_ROW),
        tag("text", frame.name, x=4, y=13) if share > 1.5 else "",
        class_="root" if row < 2 else "engine" if "(engine/" in frame.name else "other",
        **place,
    )


def _hottest(stacks: Iterable[tuple[tuple[str, ...], int]]) -> Html:
    own: Counter[str] = Counter()
    within: Counter[str] = Counter()
    for frames, time_us in stacks:
        own[frames[-1]] += time_us
        within.update(dict.fromkeys(frames, time_us))
    whole = own.total()
    rows = (
        (name, _time(time_us), f"{time_us / whole:.0%}", _time(within[name]))
        for name, time_us in own.most_common(_LISTED)
    )
    return join(
        (
            tag("h2", "Most time of their own"),
            table("frames with most time of their own", ("frame*", "own#", "share#", "with calls#"), rows),
        )
    )


def _time(time_us: int) -> str:
    return duration_text(round(time_us / 1000))
