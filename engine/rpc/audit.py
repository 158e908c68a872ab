"""Audit: a record of every request that changes something, with its caller and its outcome.

    audited(routes, note)      the same routes; those that change something tell ``note`` of each request they answered

    {"what": "cancel", "address": "10.0.0.7", "credential": "secret", "caller": "", "status": 202, "outcome": "done",
     "job": "5f...", "path": "/jobs/5f..."}

Requests without a good credential are no entries: any caller could fill the record with them. They are counted and
told in ``refusals``. Messages between processes (``/rpc/...``) are none either: what they do follows from what is here.
What a user lacks the role for is an entry: the server tells it before the handler is asked (``Route.on_refused``).
An entry has no header, no query and no body of a request, so no secret; a handler adds what it names, such as a job.

A standby has an entry of what it passes on, with the caller's address; the leader's entry has the standby's.

Held by: tests/rpc/test_audit.py
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

import msgspec

from engine.rpc.errors import AccessDeniedError
from engine.rpc.http_messages import Caller, Handler, HttpError, HttpRequest, HttpResponse, Route

#: words for what a route does; others are told by method and path
_WORDS = {
    ("POST", "/jobs"): "submit",
    ("PATCH", "/jobs/{job_id}"): "cancel",
    ("DELETE", "/cluster"): "stop-cluster",
    ("PATCH", "/taskmanagers/{taskmanager_id}"): "end-taskmanager",
    ("PUT", "/jobs/{job_id}/blobs/{key}"): "upload",
}
_READING = frozenset({"GET", "HEAD"})
_TEXT_MAX = 300


class AuditEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A change that was asked for, or that a process tells of itself."""

    what: str
    #: done, refused (nothing was changed), failed, or abandoned by the caller
    outcome: str
    address: str = ""
    #: proof that the caller has shown: secret, user-token, certificate, read-token; none on this machine
    credential: str = ""
    #: name of the user, or the one in the caller's certificate
    caller: str = ""
    status: int = 0
    path: str = ""
    #: reason of a refusal
    reason: str = ""
    #: id and name of a job, settings of a process, and the like
    details: dict[str, str] = {}


def audited(routes: Iterable[Route], note: Callable[[AuditEntry], None]) -> tuple[Route, ...]:
    """Return routes of which those that change something are recorded."""
    return tuple(
        route
        if route.method in _READING or route.path.startswith("/rpc/")
        else replace(
            route,
            handler=_recorded(route, route.handler, note),
            on_refused=partial(_note_refused, _word_of(route), note),
        )
        for route in routes
    )


def _word_of(route: Route) -> str:
    path = route.path.removeprefix("/v1")
    return _WORDS.get((route.method, path), f"{route.method} {path}")


def _note_refused(what: str, note: Callable[[AuditEntry], None], caller: Caller, path: str, why: str) -> None:
    """Record what a user asked for without the role that it needs."""
    known = caller.address, caller.credential, caller.name, 403, path[:_TEXT_MAX], why[:_TEXT_MAX]
    note(AuditEntry(what, "refused", *known))


def _recorded(route: Route, handler: Handler, note: Callable[[AuditEntry], None]) -> Handler:
    what = _word_of(route)

    async def answered(request: HttpRequest) -> HttpResponse:
        entry = AuditEntry(
            what,
            "abandoned",
            request.caller.address,
            request.caller.credential,
            request.caller.name,
            path=request.path[:_TEXT_MAX],
            details={name: value[:_TEXT_MAX] for name, value in request.variables.items()},
        )
        try:
            response = await handler(request)
        except HttpError as error:
            outcome = "refused" if error.status < 500 else "failed"
            note(msgspec.structs.replace(entry, outcome=outcome, status=error.status, reason=str(error)[:_TEXT_MAX]))
            raise
        except AccessDeniedError as error:  # the body is not the one that was signed
            note(msgspec.structs.replace(entry, outcome="refused", status=401, reason=str(error)[:_TEXT_MAX]))
            raise
        except asyncio.CancelledError:
            note(entry)
            raise
        except Exception as error:
            note(msgspec.structs.replace(entry, outcome="failed", status=500, reason=type(error).__name__))
            raise
        outcome = "done" if response.status < 400 else "refused" if response.status < 500 else "failed"
        details = {**entry.details, **{name: text[:_TEXT_MAX] for name, text in response.audit.items()}}
        note(msgspec.structs.replace(entry, outcome=outcome, status=response.status, details=details))
        return response

    return answered
