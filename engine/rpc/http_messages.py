"""Requests and responses of the HTTP server, and Route: a path with its handler and access level.

    Route("GET", "/jobs/{job_id}", handler, Access.OPEN_GET) ─► HttpServer ─► handler(HttpRequest) -> HttpResponse

What is not known to be harmless needs the secret: Access.SECRET is for everything that changes something, OPEN_GET for
GETs that all users of this machine may see (off loopback they need the secret, too). ``HttpError`` is an answer as an
exception. Handlers know nothing of the server's library.

Held by: tests/rpc/test_http_server.py
"""

from __future__ import annotations

import asyncio
import enum
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from engine.errors import EngineError
from engine.rpc.principal import READER, Principal, Role

BODY_LIMIT = 16 * 1024 * 1024


class Access(enum.Enum):
    """Access levels of routes."""

    #: open to all, from everywhere and under any name: for answers that say nothing. GET, HEAD only
    ANYONE = "anyone"
    #: open to all on loopback; elsewhere to holders of the secret, the read token or a client certificate. GET, HEAD
    #: only
    OPEN_GET = "open"
    #: open as OPEN_GET where readers may cancel jobs; otherwise only to holders of the secret
    CANCEL = "cancel"
    #: open to holders of the secret
    SECRET = "signed"  # noqa: S105


@dataclass(frozen=True)
class Caller:
    """The caller of a request, as far as it is known."""

    address: str = ""
    #: proof that it has shown: secret, user-token, certificate, read-token; none: an open route on this machine
    credential: str = "none"
    #: name of the user, or the common name of its certificate
    name: str = ""


@dataclass(frozen=True)
class HttpRequest:
    """A request that has passed all checks. Without ``is_streamed`` its body is whole and its digest verified."""

    method: str
    path: str
    #: variables of the route's path, percent-decoded: untrusted data, to be checked
    variables: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""
    #: digest of a streamed body, checked when the handler has read ``chunks`` to the end
    body_digest: str = ""
    #: length of a streamed body; -1: not given
    content_length: int = 0
    chunks: AsyncIterator[bytes] | None = None
    #: path and query as received, which the signature covers
    target: str = ""
    caller: Caller = Caller()
    principal: Principal = READER

    def json(self) -> Any:
        """Return the body as JSON; HttpError 400 when it is not."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise HttpError(400, "the body is not JSON") from error


class Parts(Protocol):
    """A body that is sent as it comes. ``aclose`` is called once, also when no part was asked for."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Return the iterator of the parts."""
        ...

    async def aclose(self) -> None:
        """No more parts are asked for."""
        ...


class UpgradedConnection(asyncio.Protocol):
    """Protocol of a connection after the answer to a request with the header Upgrade."""

    #: future that is done when the connection has ended
    closed: asyncio.Future[None]

    def end(self) -> None:
        """Begin nothing more, since the server stops, and close the connection when nothing is left."""
        raise NotImplementedError


@dataclass(frozen=True)
class HttpResponse:
    """An answer: a body, a file, parts that are sent as they come, or another protocol."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    #: file that is sent instead of ``body``
    file: Path | None = None
    #: chunks that are sent instead of ``body``; the headers go out at once
    parts: Parts | None = None
    #: protocol of the connection from here on; ``headers`` name it, and the status is 101
    upgraded: UpgradedConnection | None = None
    #: names and texts for the record of changes (``audit``), such as the job's name; never a secret
    audit: Mapping[str, str] = field(default_factory=dict)


class HttpError(EngineError):
    """An answer with an error status; ``str()`` is shown to the caller."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def is_refusal(status: int) -> bool:
    """Return whether a status says why a request is refused or fails."""
    return 400 <= status < 600


class RefusedAnswerError(Exception):
    """The answer of another process has a status that says no; ``text`` is its body."""

    def __init__(self, status: int, text: bytes) -> None:
        super().__init__(f"status {status}")
        self.status = status
        self.text = text


Handler = Callable[[HttpRequest], Awaitable[HttpResponse]]


@dataclass(frozen=True)
class Route:
    """A path and the handler that answers it. ``path`` has variables in braces, each one segment."""

    method: str
    path: str
    handler: Handler
    access: Access = Access.SECRET
    #: largest body in bytes
    body_limit: int = BODY_LIMIT
    #: True if the handler reads the body in chunks, since memory should not hold it
    is_streamed: bool = False
    #: time limit of receiving a body, seconds
    body_timeout_s: float = 60.0
    #: True for messages between programs of one version: the caller must name its version
    is_internal: bool = False
    #: role that a user needs; None: users have no access, whatever their roles
    role: Role | None = None
    #: told of a user without that role: caller, path, reason
    on_refused: Callable[[Caller, str, str], None] | None = None

    def __post_init__(self) -> None:
        if self.access in (Access.ANYONE, Access.OPEN_GET) and self.method != "GET":
            raise ValueError(f"{self.method} {self.path}: only a GET may be open")


def json_response(value: object, status: int = 200) -> HttpResponse:
    """Return an answer of JSON."""
    return HttpResponse(status, json.dumps(value).encode())


def error_response(status: int, *messages: str) -> HttpResponse:
    """Return an error as all routes tell it."""
    return json_response({"errors": list(messages)}, status)
