"""Metrics as Flink answers them: a list of names, or with ``?get=a,b`` the values of those."""

from __future__ import annotations

from collections.abc import Mapping

from engine.rest.services import answer
from engine.rpc.http_messages import HttpRequest, HttpResponse


def metrics_answer(request: HttpRequest, values: Mapping[str, float]) -> HttpResponse:
    """Return all names, or the values of those that the query names; unknown ones are left out."""
    wanted = request.query.get("get")
    if wanted is None:
        return answer([{"id": name} for name in sorted(values)])
    names = [name for name in wanted.split(",") if name in values]
    return answer([{"id": name, "value": number_text(values[name])} for name in names])


def number_text(value: float) -> str:
    """Return a number as Flink writes it: as text, whole when it is."""
    return str(int(value)) if float(value).is_integer() else repr(value)
