"""Forwarding: a standby passes requests on to the JobManager that leads.

    forwarded(routes, leader, forwarder)    the same routes, each of which answers here when this process leads

Requests about the process itself (/jobmanager/..., /metrics) are always answered here.

The server has checked the caller's credential before; the leader checks it again. Without a leader, when it does not
answer, or when its components went while they were asked, the answer is 503 with Retry-After and one line that begins
with NOT_LEADING, so that clients look for another one.

Source: Flink's LeaderRetrievalHandler, which answers 503 or redirects; passing on is ours.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import replace
from typing import Any

from engine.client.leader_answers import NOT_LEADING
from engine.rest.prometheus_routes import METRICS_PATH
from engine.rpc.errors import EndpointUnreachableError
from engine.rpc.http_forwarding import FORWARDED_HEADER, HttpForwarder
from engine.rpc.http_messages import Handler, HttpError, HttpRequest, HttpResponse, Route, error_response

#: paths about a process itself, which is always the one that answers them
_OWN_PATHS = ("/jobmanager/", "/v1/jobmanager/")
_OWN = (METRICS_PATH, f"/v1{METRICS_PATH}")
_RETRY_S = "1"
_LOOK_S = 0.25


def forwarded(routes: Iterable[Route], leader: Callable[[], str | None], forwarder: HttpForwarder) -> tuple[Route, ...]:
    """Return routes that the leader answers. ``leader``: its ``host:port``, "" when there is none, None: it is here."""
    return tuple(
        route
        if route.path.startswith(_OWN_PATHS) or route.path in _OWN
        else replace(route, handler=_passing_on(route.handler, leader, forwarder))
        for route in routes
    )


def _passing_on(handler: Handler, leader: Callable[[], str | None], forwarder: HttpForwarder) -> Handler:
    async def answered(request: HttpRequest) -> HttpResponse:
        address = leader()
        if address is None:
            try:
                return await handler(request)
            except HttpError as error:
                if error.status < 500 or leader() is None:
                    raise
                return _unavailable(f"it did until now ({error})")
        if not address:
            return _unavailable("none does at present")
        if FORWARDED_HEADER in request.headers:
            return _unavailable(f"{address} does, as far as it knows")
        try:
            return await _while_it_leads(forwarder.forward(request, address), lambda: leader() == address)
        except EndpointUnreachableError as error:
            return _unavailable(str(error))

    return answered


async def _while_it_leads(forwarding: Coroutine[Any, Any, HttpResponse], leads: Callable[[], bool]) -> HttpResponse:
    """Wait for an answer, as long as the leader that was asked still leads."""
    asked = asyncio.ensure_future(forwarding)
    try:
        while not (await asyncio.wait({asked}, timeout=_LOOK_S))[0]:
            if not leads():
                raise EndpointUnreachableError("the JobManager that was asked leads no more, and has not answered")
        return asked.result()
    finally:
        if not asked.done():
            asked.cancel()
            await asyncio.wait({asked})


def _unavailable(why: str) -> HttpResponse:
    return replace(error_response(503, f"{NOT_LEADING}: {why}"), headers={"Retry-After": _RETRY_S})
