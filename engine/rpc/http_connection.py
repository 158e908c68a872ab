"""Connections of the HTTP server under guard: each has a deadline for what it sends, and their number is bounded.

    open ─► [first byte] ─► head complete ─► request_begins ─► request_ends ─► idle (keep-alive) ─► ...
    a head that is not complete ``head_timeout_s`` after the connection opened or its first byte came: closed
    more than ``connections`` of them: the oldest one that never proved the secret is closed, else the new one

The library bounds the length of heads and the number of headers; bodies are bounded by the server. What cannot be
parsed is answered with 400 and a fixed text, and the connection is closed.

Held by: tests/rpc/test_http_server.py
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Any, cast

from aiohttp import web

#: seconds until idle connections are closed; clients close them sooner, so that no request meets a closed one
KEEPALIVE_S = 75.0
#: seconds for which the rest of a refused body is read and dropped, so that its sender can read why
_LINGER_S = 2.0

_log = logging.getLogger(__name__)
#: the library's log of broken requests, with which any client could fill the log
_silent = logging.Logger("silent", logging.CRITICAL + 1)


@dataclass(frozen=True)
class ConnectionLimits:
    """Number of connections, and how long the head of a request may take."""

    connections: int = 512
    head_timeout_s: float = 10.0


class GuardedConnection(web.RequestHandler):
    """One connection."""

    __slots__ = ("_guard", "head_began_s", "is_busy", "is_trusted")

    def __init__(self, guard: ConnectionGuard, manager: web.Server, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(
            manager,
            loop=loop,
            keepalive_timeout=KEEPALIVE_S,
            access_log=cast("logging.Logger", None),
            logger=_silent,
            lingering_time=_LINGER_S,
            auto_decompress=False,
        )
        self._guard = guard
        #: time at which the current, incomplete head began; None between requests
        self.head_began_s: float | None = loop.time()
        self.is_busy = False
        #: True if a request of this connection has proved the secret
        self.is_trusted = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection, if there is room for it."""
        super().connection_made(transport)
        self._guard.opened(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Remove the connection."""
        self._guard.closed(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Record when a head begins."""
        if not self.is_busy and self.head_began_s is None:
            self.head_began_s = asyncio.get_running_loop().time()
        super().data_received(data)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what could not be parsed, or what failed outside of all handlers, without telling details."""
        if status >= web.HTTPInternalServerError.status_code:
            _log.error("a request failed in the HTTP server", exc_info=exc)
        text = "the request is malformed" if status == web.HTTPBadRequest.status_code else "the server failed"
        response = web.json_response({"errors": [text]}, status=status)
        response.force_close()
        return response


class ConnectionGuard:
    """All connections of a server; also what asyncio calls for a new one."""

    def __init__(self, server: web.Server, limits: ConnectionLimits) -> None:
        self._server = server
        self._limits = limits
        #: open connections, oldest first
        self._connections: dict[GuardedConnection, None] = {}
        self._sweeper: asyncio.Task[None] | None = None

    def __call__(self) -> GuardedConnection:
        """Return the protocol of a new connection."""
        return GuardedConnection(self, self._server, asyncio.get_running_loop())

    def __len__(self) -> int:
        return len(self._connections)

    def start(self) -> None:
        """Begin to watch."""
        self._sweeper = asyncio.get_running_loop().create_task(self._sweep(), name="http connections")

    async def stop(self) -> None:
        """Watch no more."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            await asyncio.wait([self._sweeper])

    def opened(self, connection: GuardedConnection) -> None:
        """Count a connection; close one when there are too many."""
        self._connections[connection] = None
        if len(self._connections) > self._limits.connections:
            victim = next((known for known in self._connections if not known.is_trusted), connection)
            del self._connections[victim]
            victim.force_close()

    def closed(self, connection: GuardedConnection) -> None:
        """Remove a connection."""
        self._connections.pop(connection, None)

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(1.0, self._limits.head_timeout_s / 4))
            oldest_s = loop.time() - self._limits.head_timeout_s
            for connection in tuple(self._connections):
                began_s = connection.head_began_s
                if not connection.is_busy and began_s is not None and began_s < oldest_s:
                    connection.force_close()


def request_begins(protocol: Any) -> None:
    """Record that a head is complete."""
    protocol.is_busy = True


def request_ends(protocol: Any) -> None:
    """Record that a request is answered: the next byte begins a head."""
    protocol.is_busy = False
    protocol.head_began_s = None
