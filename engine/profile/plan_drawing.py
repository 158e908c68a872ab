"""The plan of a job as a drawing (SVG): sources on the left, a box for each vertex, a line for each thing it reads.

    ┌ scan orders ┐   5.1 M rows, 38 MB    ┌ group by customer ┐
    │ 4× 1.2 s    │───────────────────────►│ 4× 48.0 s  ▲17×   │      a bar in the box: its part of the job's time
    └▆────────────┘   hash                 └▆▆▆▆▆▆▆▆───────────┘      red: where an estimate is off by more than 10

layer of a vertex = 1 + the largest layer of what it reads; within a layer the order is that of the plan. A source
stands right before its first reader, so few lines pass boxes, and boxes cover them. Several lines to one vertex arrive
at different places, each with the way its rows travel; a box is as high as the texts of its lines need.

Held by: tests/profile/test_profile_page.py
"""

from __future__ import annotations

from typing import NamedTuple

from engine.profile.cause_rules import OFF_BY, off_by
from engine.profile.finding import rows_in_short, times_text
from engine.profile.job_profile import EdgeProfile, JobProfile, VertexProfile
from engine.profile.spreads import spread_of
from engine.shown_pages import Html, join, scrolled, tag
from engine.shown_quantities import chain_text, duration_text
from engine.shown_sizes import size_text

_BOX_WIDTH, _BOX_HEIGHT = 200, 64
#: height of the two texts of a line
_PORT_HEIGHT = 34
_GAP_X, _GAP_Y = 170, 34
_NAME_CHARACTERS = 24
_VERTICES_MAX = 200


class Place(NamedTuple):
    """The upper left corner of a box, and its height."""

    x: int
    y: int
    height: int


def plan_drawing(job: JobProfile) -> Html:
    """Return the drawing; nothing for a plan too large to be looked at."""
    if not job.vertices or len(job.vertices) > _VERTICES_MAX:
        return Html("")
    places = _places(job.vertices)
    lines = [
        _line(places[each.source], places[position], (number + 0.5) / len(vertex.inputs), each, vertex)
        for position, vertex in enumerate(job.vertices)
        for number, each in enumerate(vertex.inputs)
    ]
    at_fault = {cause.vertex for cause in job.causes[:1] if cause.kind != "longest"}
    boxes = [
        _box(position, vertex, places[position], job, is_cause=position in at_fault)
        for position, vertex in enumerate(job.vertices)
    ]
    width = max(each.x for each in places) + _BOX_WIDTH + 3
    height = max(each.y + each.height for each in places) + 3
    label = f"plan: {len(job.vertices)} vertices"
    drawing = tag(
        "svg",
        *lines,
        *boxes,
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        role="group",
        aria_label=label,
    )
    return scrolled(label, drawing)


def _places(vertices: tuple[VertexProfile, ...]) -> list[Place]:
    layers = _layers(vertices)
    filled: dict[int, int] = {}
    places = []
    for layer, vertex in zip(layers, vertices, strict=True):
        y, height = filled.get(layer, 2), max(_BOX_HEIGHT, _PORT_HEIGHT * len(vertex.inputs))
        filled[layer] = y + height + _GAP_Y
        places.append(Place(2 + layer * (_BOX_WIDTH + _GAP_X), y, height))
    return places


def _layers(vertices: tuple[VertexProfile, ...]) -> list[int]:
    layers: list[int] = []
    for vertex in vertices:  # in topological order
        layers.append(max((layers[each.source] + 1 for each in vertex.inputs), default=0))
    first_reader: dict[int, int] = {}
    for position, vertex in enumerate(vertices):
        for each in vertex.inputs:
            first_reader[each.source] = min(first_reader.get(each.source, layers[position]), layers[position])
    for position, vertex in enumerate(vertices):
        if not vertex.inputs and position in first_reader:
            layers[position] = first_reader[position] - 1
    return layers


def _box(position: int, vertex: VertexProfile, place: Place, job: JobProfile, *, is_cause: bool) -> Html:
    x, y, height = place
    whole = chain_text(vertex.name)
    name = whole if len(whole) <= _NAME_CHARACTERS else f"{whole[: _NAME_CHARACTERS - 1]}…"
    time = spread_of(vertex, "time")
    uneven = [each for each in vertex.spreads if each.is_uneven]
    mark = max((each.most / max(each.median, each.most / 99) for each in uneven), default=0.0)
    state = vertex.state if vertex.state.isalpha() else ""
    part = round(min(1.0, time.most / max(1, job.duration_ms)) * (_BOX_WIDTH - 20))
    return tag(
        "a",
        tag("title", f"{whole}: {vertex.state.lower()}, a subtask took up to {duration_text(round(time.most))}"),
        tag("rect", x=x, y=y, width=_BOX_WIDTH, height=height, rx=6, class_=f"{state}{' cause' * is_cause}"),
        tag("text", name, x=x + 10, y=y + 20, class_="name"),
        tag(
            "text",
            f"{vertex.parallelism}× {vertex.state.lower()}, {duration_text(round(time.most))}",
            x=x + 10,
            y=y + 39,
        ),
        tag("text", f"▲{times_text(mark)}×", x=x + _BOX_WIDTH - 10, y=y + 39, text_anchor="end", class_="bad")
        if uneven
        else "",
        tag("rect", x=x + 10, y=y + 49, width=_BOX_WIDTH - 20, height=6, class_="rail"),
        tag("rect", x=x + 10, y=y + 49, width=part, height=6, class_="part"),
        href=f"#v{position}",
    )


def _line(begin: Place, end: Place, port: float, edge: EdgeProfile, reader: VertexProfile) -> Html:
    """Return a line from the middle of a box to a place (a share of its height) on another's left side."""
    x0, y0 = begin.x + _BOX_WIDTH, begin.y + begin.height // 2
    x1, y1 = end.x, end.y + round(end.height * port)
    middle = x1 - _GAP_X // 2
    ratio = off_by(edge.expected_rows, edge.rows)
    has_begun = reader.state not in ("CREATED", "SCHEDULED")
    is_off = ratio > OFF_BY and max(edge.rows, edge.expected_rows) >= 100 and has_begun
    kind = {"class_": "off"} if is_off else {}
    travels = edge.ship_strategy.removeprefix("PARTITION_").lower().replace("_", " ")
    expected = f"{travels}, {rows_in_short(edge.expected_rows)} expected" if is_off else travels
    texts = (f"{rows_in_short(edge.rows)} rows, {size_text(edge.bytes)}", expected)
    dashes = "5 4" if edge.is_stored else "none"
    path = f"M{x0} {y0} C{x0 + _GAP_X // 2} {y0} {middle} {y1} {x1} {y1}"
    return tag(
        "g",
        tag("path", d=path, stroke_dasharray=dashes),
        join(
            tag("text", text, x=x1 - 6, y=y1 + down, text_anchor="end", class_="label")
            for text, down in zip(texts, (-5, 12), strict=True)
        ),
        **kind,
    )
