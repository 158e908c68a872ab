"""The plan of a job as a drawing (SVG): sources on the left, a box for each vertex, a line for each thing it reads.

layer of a vertex = 1 + the largest layer of what it reads; within a layer the order is that of the plan. A source
stands right before its first reader, so few lines pass boxes, and boxes cover them. Several lines to one vertex arrive
at different places, each with the way its rows travel.

Held by: tests/rest/test_status_pages.py
"""

from __future__ import annotations

from engine.gateways.job_details import JobDetails, VertexDetails
from engine.rest.html import Html, scrolled, tag
from engine.rest.quantities import chain_text

_BOX_WIDTH, _BOX_HEIGHT = 190, 58
_GAP_X, _GAP_Y = 110, 22
_NAME_CHARACTERS = 22
_VERTICES_MAX = 200


def plan_drawing(job: JobDetails) -> Html:
    """Return the drawing; nothing for a plan too large to be looked at."""
    if not job.vertices or len(job.vertices) > _VERTICES_MAX:
        return Html("")
    places = _places(job.vertices)
    lines = [
        _line(places[each.vertex], places[vertex.id], (number + 1) / (len(vertex.inputs) + 1), each.ship_strategy,
              each.exchange)
        for vertex in job.vertices
        for number, each in enumerate(vertex.inputs)
        if each.vertex in places
    ]  # fmt: skip
    boxes = [_box(position, vertex, *places[vertex.id]) for position, vertex in enumerate(job.vertices)]
    width = max(x for x, _ in places.values()) + _BOX_WIDTH + 2
    height = max(y for _, y in places.values()) + _BOX_HEIGHT + 2
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


def _places(vertices: tuple[VertexDetails, ...]) -> dict[str, tuple[int, int]]:
    layers = _layers(vertices)
    filled: dict[int, int] = {}
    places = {}
    for vertex in vertices:
        layer = layers[vertex.id]
        row = filled.get(layer, 0)
        filled[layer] = row + 1
        places[vertex.id] = (1 + layer * (_BOX_WIDTH + _GAP_X), 1 + row * (_BOX_HEIGHT + _GAP_Y))
    return places


def _layers(vertices: tuple[VertexDetails, ...]) -> dict[str, int]:
    layers: dict[str, int] = {}
    for vertex in vertices:  # in topological order
        layers[vertex.id] = max((layers[each.vertex] + 1 for each in vertex.inputs if each.vertex in layers), default=0)
    first_reader: dict[str, int] = {}
    for vertex in vertices:
        for each in vertex.inputs:
            first_reader[each.vertex] = min(first_reader.get(each.vertex, layers[vertex.id]), layers[vertex.id])
    for vertex in vertices:
        if not vertex.inputs and vertex.id in first_reader:
            layers[vertex.id] = first_reader[vertex.id] - 1
    return layers


def _box(position: int, vertex: VertexDetails, x: int, y: int) -> Html:
    whole = chain_text(vertex.name)
    name = whole if len(whole) <= _NAME_CHARACTERS else f"{whole[: _NAME_CHARACTERS - 1]}…"
    rows = sum(attempt.counters.rows_out for attempt in vertex.subtasks)
    return tag(
        "a",
        tag("title", whole),
        tag("rect", x=x, y=y, width=_BOX_WIDTH, height=_BOX_HEIGHT, rx=6, class_=vertex.status),
        tag("text", name, x=x + 10, y=y + 22, class_="name"),
        tag("text", f"{vertex.parallelism}× {vertex.status.lower()}, {rows:,} rows", x=x + 10, y=y + 42),
        href=f"#v{position}",
    )


def _line(begin: tuple[int, int], end: tuple[int, int], port: float, ship: str, exchange: str) -> Html:
    """Return a line from the middle of a box to a place (a share of its height) on another's left side."""
    x0, y0 = begin[0] + _BOX_WIDTH, begin[1] + _BOX_HEIGHT // 2
    x1, y1 = end[0], end[1] + round(_BOX_HEIGHT * port)
    middle = x1 - _GAP_X // 2
    dashes = "5 4" if exchange.lower().startswith("blocking") else "none"
    travels = ship.removeprefix("PARTITION_").lower().replace("_", " ")
    return tag(
        "g",
        tag("path", d=f"M{x0} {y0} C{x0 + _GAP_X // 2} {y0} {middle} {y1} {x1} {y1}", stroke_dasharray=dashes),
        tag("text", travels, x=x1 - 6, y=y1 - 4, text_anchor="end", class_="label"),
    )
