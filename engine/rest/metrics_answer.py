"""Metrics as Flink answers them.

of one thing      a list of names, or with ``?get=a,b`` the values of those, as text
of several        the same names, or with ``?get=a,b`` least, greatest, sum and mean of each over all that have it;
                  ``agg=min,max,sum,avg`` takes some of them, ``jobs=``, ``taskmanagers=``, ``subtasks=0-2,5`` some
                  of the things

Held by: tests/rest/test_job_detail_routes.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from engine.rest.services import answer
from engine.rpc.http_messages import HttpError, HttpRequest, HttpResponse

_AGGREGATES: dict[str, Callable[[list[float]], float]] = {
    "min": min,
    "max": max,
    "avg": lambda values: sum(values) / len(values),
    "sum": sum,
}


def metrics_answer(request: HttpRequest, values: Mapping[str, float]) -> HttpResponse:
    """Return all names, or the values of those that the query names; unknown ones are left out."""
    wanted = request.query.get("get")
    if wanted is None:
        return answer([{"id": name} for name in sorted(values)])
    names = [name for name in wanted.split(",") if name in values]
    return answer([{"id": name, "value": number_text(values[name])} for name in names])


def aggregated_metrics_answer(request: HttpRequest, each: Iterable[Mapping[str, float]]) -> HttpResponse:
    """Return all names, or aggregates of those that the query names over all that have them."""
    values: dict[str, list[float]] = {}
    for one in each:
        for name, value in one.items():
            values.setdefault(name, []).append(value)
    wanted = request.query.get("get")
    if wanted is None:
        return answer([{"id": name} for name in sorted(values)])
    asked = [name for name in request.query.get("agg", "").split(",") if name] or list(_AGGREGATES)
    unknown = [name[:20] for name in asked if name.lower() not in _AGGREGATES]
    if unknown:
        raise HttpError(400, f"agg={','.join(unknown)}: choose from {', '.join(_AGGREGATES)}")
    aggregates = {name.lower(): _AGGREGATES[name.lower()] for name in asked}
    names = [name for name in wanted.split(",") if name in values]
    return answer([{"id": name, **{word: of(values[name]) for word, of in aggregates.items()}} for name in names])


def chosen(request: HttpRequest, parameter: str) -> frozenset[str] | None:
    """Return the names in a query such as ``jobs=a,b``; None where it has none, which means all."""
    text = request.query.get(parameter)
    return None if text is None else frozenset(part.strip() for part in text.split(",") if part.strip())


def chosen_numbers(request: HttpRequest, parameter: str, count: int) -> frozenset[int]:
    """Return the numbers below ``count`` that ``subtasks=0-2,5`` names; all of them where it does not."""
    texts = chosen(request, parameter)
    if texts is None:
        return frozenset(range(count))
    numbers: set[int] = set()
    for text in texts:
        first, dash, last = text.partition("-")
        if not (first.isdecimal() and first.isascii() and (not dash or (last.isdecimal() and last.isascii()))):
            raise HttpError(400, f"{parameter}={text[:20]}: write numbers and ranges, 0-2,5")
        numbers.update(range(min(int(first), count), min(int(last if dash else first) + 1, count)))
    return frozenset(numbers)


def number_text(value: float) -> str:
    """Return a number as Flink writes it: as text, whole when it is."""
    return str(int(value)) if float(value).is_integer() else repr(value)
