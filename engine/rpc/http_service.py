"""Calls between processes: HttpRpcService.

    ask ─► same process? short way ─► the connection to that process, kept ─► CALL ─► REPLY     (``calling_connection``)
    POST /rpc ─► greeting ─► connection ─► CALL ─► epoch ─► message ─► handler ─► REPLY          (``called_connection``)

There is one connection from a process to each other one that it calls. It begins as a request to the HTTP server of
the other one (``greeting``), with all checks of that, and both sides learn which program the other one is, and refuse
another one (``program``). From then on each call is a frame with a proof (``frames``). Calls to a process whose program
knows no connections are requests, each for itself (``calling_requests``), and those of such a process are answered
(``called_requests``).

Calls to a process start in the order they were made, as within a process, and a call that waits holds up no other. A
call that did not reach its handler, since it was changed on the way, is sent once more.

A deadline goes with the call: when it passes, the caller gives up, or its connection ends, the handler is cancelled
(one that must not stop half-way uses ``RpcEndpoint.complete``). A closed socket is EndpointUnreachableError at once.
Nothing else is sent twice: only the caller knows whether a call may be repeated.

Thread: the event loop only.

Held by: tests/rpc/test_http_service.py
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from typing import cast

from engine.errors import VersionMismatchError
from engine.rpc.called_connection import CalledConnection
from engine.rpc.called_requests import CalledRequests
from engine.rpc.calling_connection import CallingConnection, NotBegunError
from engine.rpc.calling_requests import CallingRequests, RequestedCall
from engine.rpc.codec import MessageCodec
from engine.rpc.credentials import Credentials
from engine.rpc.endpoint import RpcEndpoint
from engine.rpc.errors import (
    AccessDeniedError,
    ClockDifferenceError,
    EndpointUnreachableError,
    RemoteCallError,
    RpcTimeoutError,
    UntrustedReplyError,
    reason_of,
)
from engine.rpc.frames import MESSAGE_LIMIT
from engine.rpc.gateway import ASK_TIMEOUT_S, Gateway, R
from engine.rpc.greeting import METHOD, NO_SUCH_ROUTE, PATH, Asked, answer_greeting
from engine.rpc.http_messages import Access, HttpRequest, HttpResponse, RefusedAnswerError, Route
from engine.rpc.http_server import HttpServer
from engine.rpc.local_gateway import LocalRpcService
from engine.rpc.program import header_of
from engine.rpc.request import Request

_REFUSED = (401, 403)
_OTHER_PROGRAM = 412
_TEXT_MAX = 500
#: seconds for connections to end when the service is closed
_CLOSE_S = 1.0


class HttpRpcService:
    """Endpoints of this process behind its server, and the way to those of others.

    Args:
        server: takes the calls of others; their routes are added here, so before it starts.
        codec: of all messages.
        credentials: prove this process to others, and others to it.
        tls: client context when the others speak TLS.
        checks_local: calls within this process pass the codec as well.
    """

    def __init__(
        self,
        server: HttpServer,
        codec: MessageCodec,
        credentials: Credentials | None,
        tls: ssl.SSLContext | None = None,
        checks_local: bool = False,
    ) -> None:
        self._server = server
        self._codec = codec
        self._credentials = credentials
        self._tls = tls
        self._local = LocalRpcService(codec if checks_local else None)
        self._endpoints: dict[str, RpcEndpoint] = {}
        #: connections that take calls, by ``host:port``
        self._connections: dict[str, CallingConnection] = {}
        #: all that have not ended
        self._not_ended: set[CallingConnection] = set()
        self._requests = CallingRequests(server, credentials, tls)
        self._is_closed = False
        greeting = Route(METHOD, PATH, self._begin, Access.SECRET, 0, is_internal=True)
        server.add_routes([greeting, CalledRequests(server, self._endpoints, codec, credentials).route])

    # ---- RpcService ----

    def start(self, endpoint: RpcEndpoint) -> None:
        """Make an endpoint reachable; a name that is taken raises ValueError."""
        self._local.start(endpoint)
        self._endpoints[endpoint.address] = endpoint

    def stop(self, endpoint: RpcEndpoint) -> None:
        """Make it unreachable; idempotent."""
        self._local.stop(endpoint)
        if self._endpoints.get(endpoint.address) is endpoint:
            del self._endpoints[endpoint.address]

    def address_of(self, name: str) -> str:
        """Return ``host:port/name``; the server has started."""
        if not self._server.port:
            raise RuntimeError("the server has no port before it starts")
        return f"{self._server.address}/{name}"

    def connect(self, address: str, epoch: int) -> Gateway:
        """Return a gateway to ``host:port/name``, or to a name of this process."""
        authority, _, name = address.rpartition("/")
        if not authority or authority == self._server.address:
            return self._local.connect(name, epoch)
        return HttpGateway(self, address, epoch)

    async def close(self) -> None:
        """Close the connections to others, for good; the server is closed by its owner."""
        self._is_closed = True
        ending = [connection.ended for connection in self._not_ended]
        for connection in tuple(self._not_ended):
            connection.close()
        if ending:
            await asyncio.wait(ending, timeout=_CLOSE_S)
        await self._requests.close()

    # ---- the called side ----

    async def _begin(self, request: HttpRequest) -> HttpResponse:
        headers, keys = answer_greeting(request, self._credentials, header_of(self._server.program))
        check_time = None if self._credentials is None else self._credentials.check_time
        connection = CalledConnection(
            self._endpoints, self._codec, self._server.address, request.caller.address, keys, check_time
        )
        return HttpResponse(headers=headers, upgraded=connection)

    # ---- the calling side ----

    async def call(self, address: str, epoch: int, request: Request[R], timeout_s: float | None) -> R:
        """Send a call and return its reply."""
        body = self._codec.encode(request)
        what = type(request).__name__
        if len(body) > MESSAGE_LIMIT:
            raise RemoteCallError(
                f"{address} does not take {what}: it has {len(body)} bytes, at most {MESSAGE_LIMIT} are allowed"
            )
        try:
            answer = await self._exchange(address, epoch, body, timeout_s)
        except RefusedAnswerError as error:
            raise _refusal(address, what, error) from error
        except UntrustedReplyError as error:
            raise UntrustedReplyError(f"{address} answers {what}, but {error}") from error
        except VersionMismatchError as error:
            raise VersionMismatchError(str(error)) from error
        except ssl.SSLError as error:
            raise AccessDeniedError(f"{address} and this process do not trust each other: {error}") from error
        except TimeoutError as error:
            raise RpcTimeoutError(f"{address} did not answer {what} within {timeout_s} s") from error
        except (OSError, ValueError) as error:  # ValueError: no address
            hint = " (or it refuses the certificate of this process)" if self._tls is not None else ""
            raise EndpointUnreachableError(f"nothing answers at {address}: {reason_of(error)}{hint}") from error
        if self._codec.is_error(answer):
            told = self._codec.decode_error(answer)
            if isinstance(told, ClockDifferenceError):
                raise ClockDifferenceError(f"{address} refuses {what} of {socket.gethostname()}: {told}")
            raise told
        return cast("R", self._codec.decode(answer))

    async def _exchange(self, address: str, epoch: int, body: bytes, timeout_s: float | None) -> bytes:
        authority, _, name = address.rpartition("/")
        began_s = asyncio.get_running_loop().time()
        if authority in self._connections or not self._requests.knows(authority):
            try:
                return await self._framed(authority, name, epoch, body, timeout_s)
            except RefusedAnswerError as error:
                if error.status not in NO_SUCH_ROUTE:
                    raise
            self._requests.note(authority)
            if timeout_s is not None:
                timeout_s -= asyncio.get_running_loop().time() - began_s
        return await self._requests.call(authority, RequestedCall(name, epoch, body, timeout_s))

    async def _framed(self, authority: str, name: str, epoch: int, body: bytes, timeout_s: float | None) -> bytes:
        try:
            return await self._connection(authority).call(name, epoch, body, timeout_s)
        except NotBegunError:
            return await self._connection(authority).call(name, epoch, body, timeout_s)

    def _connection(self, authority: str) -> CallingConnection:
        if self._is_closed:
            raise EndpointUnreachableError("this process makes no more calls: it is ending")
        known = self._connections.get(authority)
        if known is not None:
            return known
        asked = Asked(authority, self._credentials, self._server.program, self._tls)
        connection = CallingConnection(asked, lambda retired: self._retired(authority, retired))
        self._connections[authority] = connection
        self._not_ended.add(connection)
        connection.ended.add_done_callback(lambda _: self._not_ended.discard(connection))
        return connection

    def _retired(self, authority: str, connection: CallingConnection) -> None:
        if self._connections.get(authority) is connection:
            del self._connections[authority]


class HttpGateway:
    """An endpoint of another process, under one epoch."""

    def __init__(self, service: HttpRpcService, address: str, epoch: int) -> None:
        self._service = service
        self._address = address
        self.epoch = epoch

    @property
    def address(self) -> str:
        """The address of the component."""
        return self._address

    async def ask(self, request: Request[R], timeout_s: float | None = ASK_TIMEOUT_S) -> R:
        """Send a request and return the reply (``Gateway.ask``)."""
        return await self._service.call(self._address, self.epoch, request, timeout_s)


def _refusal(address: str, what: str, refused: RefusedAnswerError) -> Exception:
    text = _text(refused.text)
    if refused.status in _REFUSED:
        return AccessDeniedError(f"{address} refuses {what} of {socket.gethostname()}: {text}")
    if refused.status == _OTHER_PROGRAM:
        return VersionMismatchError(text)
    return RemoteCallError(f"{address} answers {what} with {refused.status}: {text}")


def _text(answer: bytes) -> str:
    """Return the reason that a refusal gives."""
    text = answer[:_TEXT_MAX].decode(errors="replace")
    try:
        reasons = json.loads(text)["errors"]
        return "; ".join(map(str, reasons))
    except (ValueError, TypeError, KeyError, RecursionError):
        return text
