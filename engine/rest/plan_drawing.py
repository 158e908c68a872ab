"""The plan of a job as a drawing (SVG): sources on the left, a box for each vertex, a line for each thing it reads.

layer of a vertex = 1 + the largest layer of what it reads; in a layer from top to bottom as the plan has them
"""

from __future__ import annotations

from engine.gateways.job_details import JobDetails, VertexDetails
from engine.rest.html import Html, tag

_BOX_WIDTH, _BOX_HEIGHT = 190, 58
_GAP_X, _GAP_Y = 110, 22
_NAME_CHARACTERS = 25
_VERTICES_MAX = 200


def plan_drawing(job: JobDetails) -> Html:
    """Return the drawing; nothing for a plan too large to be looked at."""
    if not job.vertices or len(job.vertices) > _VERTICES_MAX:
        return Html("")
    places = _places(job.vertices)
    lines = [
        _line(places[each.vertex], places[vertex.id], each.ship_strategy, each.exchange)
        for vertex in job.vertices
        for each in vertex.inputs
        if each.vertex in places
    ]
    boxes = [_box(vertex, *places[vertex.id]) for vertex in job.vertices]
    width = max(x for x, _ in places.values()) + _BOX_WIDTH + 2
    height = max(y for _, y in places.values()) + _BOX_HEIGHT + 2
    return tag("svg", *lines, *boxes, viewBox=f"0 0 {width} {height}", width=width, height=height, role="img")


def _places(vertices: tuple[VertexDetails, ...]) -> dict[str, tuple[int, int]]:
    layers: dict[str, int] = {}
    filled: dict[int, int] = {}
    places = {}
    for vertex in vertices:  # in topological order
        layer = max((layers[each.vertex] + 1 for each in vertex.inputs if each.vertex in layers), default=0)
        row = filled.get(layer, 0)
        layers[vertex.id], filled[layer] = layer, row + 1
        places[vertex.id] = (1 + layer * (_BOX_WIDTH + _GAP_X), 1 + row * (_BOX_HEIGHT + _GAP_Y))
    return places


def _box(vertex: VertexDetails, x: int, y: int) -> Html:
    name = vertex.name if len(vertex.name) <= _NAME_CHARACTERS else f"{vertex.name[: _NAME_CHARACTERS - 1]}…"
    rows = sum(attempt.counters.rows_out for attempt in vertex.subtasks)
    return tag(
        "g",
        tag("title", vertex.name),
        tag("rect", x=x, y=y, width=_BOX_WIDTH, height=_BOX_HEIGHT, rx=6, class_=vertex.status),
        tag("text", name, x=x + 10, y=y + 22, font_weight="bold"),
        tag("text", f"{vertex.parallelism}× {vertex.status.lower()}, {rows:,} rows", x=x + 10, y=y + 42),
    )


def _line(begin: tuple[int, int], end: tuple[int, int], ship: str, exchange: str) -> Html:
    x0, y0 = begin[0] + _BOX_WIDTH, begin[1] + _BOX_HEIGHT // 2
    x1, y1 = end[0], end[1] + _BOX_HEIGHT // 2
    middle = (x0 + x1) // 2
    dashes = "5 4" if exchange.lower().startswith("blocking") else "none"
    label_y = (y0 + y1) // 2 - 5
    return tag(
        "g",
        tag("path", d=f"M{x0} {y0} C{middle} {y0} {middle} {y1} {x1} {y1}", stroke_dasharray=dashes),
        tag("text", ship.removeprefix("PARTITION_").lower(), x=middle, y=label_y, text_anchor="middle", opacity=".7"),
    )
