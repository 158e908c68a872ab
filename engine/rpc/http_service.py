"""Calls between processes: HttpRpcService.

    POST /rpc/<name>       body: a message (codec.py)      headers: signature, epoch, milliseconds until the deadline
    200                    body: the reply, or the error that the called component raised, and its seal (credentials.py)

    ask ─► same process? short way ─► [in turn per address] signed request ─► headers of the answer ─► its body

Both sides say which program they are, and each refuses another one (``program``). The called side checks that and the
epoch before it decodes anything, starts the handler, and sends the headers at once; the body follows when the handler
has ended. A caller sends its next call to the same address only after those headers, so calls start in the order they
were made, as within a process, and a call that waits holds up no other. A call that is refused was not begun; it is
sent once more, since it may have been changed on the way.

A deadline goes with the call: when it passes, or the caller's connection closes, the handler is cancelled (one that
must not stop half-way uses ``RpcEndpoint.complete``). A closed socket is EndpointUnreachableError at once. Connections
are kept and reused. Nothing else is sent twice: only the caller knows whether a call may be repeated.

Thread: the event loop only.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import json
import socket
import ssl
import weakref
from collections.abc import Callable
from typing import cast

import aiohttp

from engine.errors import VersionMismatchError
from engine.rpc.codec import MessageCodec
from engine.rpc.credentials import AUTHORIZATION, SEAL_BYTES, Credentials
from engine.rpc.endpoint import RpcEndpoint
from engine.rpc.errors import (
    AccessDeniedError,
    EndpointUnreachableError,
    RemoteCallError,
    RpcTimeoutError,
    UntrustedReplyError,
)
from engine.rpc.gateway import ASK_TIMEOUT_S, Gateway, R
from engine.rpc.http_messages import Access, HttpError, HttpRequest, HttpResponse, Route
from engine.rpc.http_server import DEADLINE_HEADER, EPOCH_HEADER, HttpServer
from engine.rpc.local_gateway import LocalRpcService
from engine.rpc.program import PROGRAM_HEADER
from engine.rpc.request import Request

#: largest message: a JobGraph or a task's descriptor with the functions in it
MESSAGE_LIMIT = 64 * 1024 * 1024
_CONTENT_TYPE = "application/msgpack"
_CONNECT_S = 5.0
#: seconds until idle connections are closed: less than the server's, so that no call meets a closing one
_KEEPALIVE_S = 15.0
_REFUSED = (401, 403)
_OTHER_PROGRAM = 412
#: status codes of calls that were not begun
_NOT_BEGUN = (400, 404, 405, _OTHER_PROGRAM, *_REFUSED)
_TEXT_MAX = 500


class HttpRpcService:
    """Endpoints of this process behind its server, and the way to those of others.

    Args:
        server: carries the calls; its route is added here, so before it starts.
        codec: of all messages.
        credentials: signs calls to others.
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
        self._session: aiohttp.ClientSession | None = None
        self._is_closed = False
        #: locks by address: one call at a time connects
        self._turns: weakref.WeakValueDictionary[str, asyncio.Lock] = weakref.WeakValueDictionary()
        server.add_routes([Route("POST", "/rpc/{name}", self._answer, Access.SECRET, MESSAGE_LIMIT, is_internal=True)])

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
        turn = self._turns.get(address)
        if turn is None:
            turn = self._turns[address] = asyncio.Lock()
        return HttpGateway(self, address, epoch, turn)

    async def close(self) -> None:
        """Close the connections to others, for good; the server is closed by its owner."""
        self._is_closed = True
        if self._session is not None:
            await self._session.close()
            self._session = None

    # ---- the called side ----

    async def _answer(self, request: HttpRequest) -> HttpResponse:
        epoch, timeout_s = _call_headers(request)
        name = request.variables["name"]
        endpoint = self._endpoints.get(name)
        try:
            if endpoint is None:
                raise EndpointUnreachableError(f"nothing answers at {self._server.address}/{name[:100]}")
            endpoint.check_epoch(epoch)
            message = self._codec.decode(request.body)
        except Exception as error:
            reply = self._codec.encode_error(error)
            return HttpResponse(body=reply + self._seal(request, reply), content_type=_CONTENT_TYPE)
        call = asyncio.get_running_loop().create_task(endpoint.dispatch(epoch, message), name=f"call of {name}")
        seal = functools.partial(self._seal, request)
        return HttpResponse(content_type=_CONTENT_TYPE, parts=_Reply(call, self._codec, timeout_s, seal))

    def _seal(self, request: HttpRequest, reply: bytes) -> bytes:
        """Return the seal that follows a reply and proves its origin to a caller that signed its request."""
        header = request.headers.get(AUTHORIZATION)
        if self._credentials is None or not header:
            return b""
        return self._credentials.seal(header, reply, self._program_header)

    @property
    def _program_header(self) -> str:
        return "" if self._server.program is None else self._server.program.header

    # ---- the calling side ----

    async def call(self, gateway: HttpGateway, request: Request[R], timeout_s: float | None) -> R:
        """Send a call and return its reply."""
        body = self._codec.encode(request)
        what = type(request).__name__
        try:
            async with asyncio.timeout(timeout_s):
                status, answer, header, said = await self._exchange(gateway, body, timeout_s)
        except aiohttp.ClientSSLError as error:
            raise AccessDeniedError(f"{gateway.address} and this process do not trust each other: {error}") from error
        except (aiohttp.ClientError, ConnectionError) as error:
            hint = " (or it refuses the certificate of this process)" if self._tls is not None else ""
            raise EndpointUnreachableError(f"nothing answers at {gateway.address}: {_reason(error)}{hint}") from error
        except TimeoutError as error:
            raise RpcTimeoutError(f"{gateway.address} did not answer {what} within {timeout_s} s") from error
        except (OSError, RuntimeError) as error:  # RuntimeError: the library, of a connection that we closed ourselves
            raise EndpointUnreachableError(f"nothing answers at {gateway.address}: {_reason(error)}") from error
        if status in _REFUSED:
            raise AccessDeniedError(f"{gateway.address} refuses {what} of {socket.gethostname()}: {_text(answer)}")
        if status == _OTHER_PROGRAM:
            raise VersionMismatchError(_text(answer))
        # A sealed reply is what it is, whatever became of its status on the way.
        if 400 <= status < 600 or (self._credentials is None and status != 200):
            raise RemoteCallError(f"{gateway.address} answers {what} with {status}: {_text(answer)}")
        if self._credentials is not None:
            answer, seal = answer[:-SEAL_BYTES], answer[-SEAL_BYTES:]
            try:
                self._credentials.check_seal(header, answer, seal, said or "")
            except AccessDeniedError as error:
                raise UntrustedReplyError(f"{gateway.address} answers {what}, but {error}") from error
        if self._server.program is not None:
            self._server.program.check(said, gateway.address)
        if self._codec.is_error(answer):
            raise self._codec.decode_error(answer)
        return cast("R", self._codec.decode(answer))

    async def _exchange(
        self, gateway: HttpGateway, body: bytes, timeout_s: float | None
    ) -> tuple[int, bytes, str, str | None]:
        """Return status and body of the answer, the credential that it was asked for with, and whose it is."""
        async with gateway.turn:
            response, header = await self._send(gateway, body, timeout_s)
            if response.status in _NOT_BEGUN:
                response.close()
                response, header = await self._send(gateway, body, timeout_s)
        async with response:
            return response.status, await response.read(), header, response.headers.get(PROGRAM_HEADER)

    async def _send(
        self, gateway: HttpGateway, body: bytes, timeout_s: float | None
    ) -> tuple[aiohttp.ClientResponse, str]:
        """Return the answer as far as its headers, and the credential that it was asked for with."""
        authority, _, name = gateway.address.rpartition("/")
        target, epoch = f"/rpc/{name}", str(gateway.epoch)
        headers = {EPOCH_HEADER: epoch, "Content-Type": _CONTENT_TYPE}
        if self._program_header:
            headers[PROGRAM_HEADER] = self._program_header
        if timeout_s is not None:
            headers[DEADLINE_HEADER] = str(max(1, int(timeout_s * 1000)))
        if self._credentials is not None:
            digest = hashlib.sha256(body).hexdigest()
            headers[AUTHORIZATION] = self._credentials.sign("POST", target, digest, epoch)
        scheme = "https" if self._tls is not None else "http"
        url = f"{scheme}://{authority}{target}"
        response = await self._client().post(url, data=body, headers=headers, allow_redirects=False)
        return response, headers.get(AUTHORIZATION, "")

    def _client(self) -> aiohttp.ClientSession:
        if self._is_closed:
            raise EndpointUnreachableError("this process makes no more calls: it is ending")
        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=0, keepalive_timeout=_KEEPALIVE_S, ssl=self._tls if self._tls is not None else True
            )
            # Calls have deadlines of their own; only a connection that is not accepted has one here.
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S)
            self._session = aiohttp.ClientSession(
                connector=connector, timeout=timeout, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False
            )
        return self._session


class HttpGateway:
    """An endpoint of another process, under one epoch."""

    def __init__(self, service: HttpRpcService, address: str, epoch: int, turn: asyncio.Lock) -> None:
        self._service = service
        self._address = address
        self.epoch = epoch
        self.turn = turn

    @property
    def address(self) -> str:
        """The address of the component."""
        return self._address

    async def ask(self, request: Request[R], timeout_s: float | None = ASK_TIMEOUT_S) -> R:
        """Send a request and return the reply (``Gateway.ask``)."""
        return await self._service.call(self, request, timeout_s)


class _Reply:
    """The bytes of a call's outcome, in one part, once it has ended; ``aclose`` cancels what has not."""

    def __init__(
        self,
        call: asyncio.Task[object],
        codec: MessageCodec,
        timeout_s: float | None,
        seal: Callable[[bytes], bytes],
    ) -> None:
        self._call = call
        self._seal = seal
        self._codec = codec
        self._timeout_s = timeout_s
        self._is_told = False

    def __aiter__(self) -> _Reply:
        return self

    async def __anext__(self) -> bytes:
        if self._is_told:
            raise StopAsyncIteration
        self._is_told = True
        reply = await self._outcome()
        return reply + self._seal(reply)

    async def _outcome(self) -> bytes:
        try:
            async with asyncio.timeout(self._timeout_s):
                return self._codec.encode(await self._call)
        except TimeoutError as error:
            if self._call.cancelled():
                late = RpcTimeoutError(f"the call was not answered within {self._timeout_s} s")
                return self._codec.encode_error(late)
            return self._codec.encode_error(error)
        except Exception as error:
            return self._codec.encode_error(error)

    async def aclose(self) -> None:
        """End the call if it has not ended."""
        self._call.cancel()


def _call_headers(request: HttpRequest) -> tuple[int, float | None]:
    try:
        epoch = int(request.headers[EPOCH_HEADER])
        deadline = request.headers.get(DEADLINE_HEADER)
        return epoch, None if deadline is None else max(0.001, int(deadline) / 1000)
    except (KeyError, ValueError, OverflowError) as error:
        raise HttpError(400, f"{EPOCH_HEADER} or {DEADLINE_HEADER} is not a number") from error


def _reason(error: BaseException) -> str:
    if isinstance(error, aiohttp.ClientPayloadError | aiohttp.ServerDisconnectedError):
        return "the connection broke"  # the library's words are about transfer encodings
    return str(getattr(error, "strerror", None) or error or type(error).__name__)


def _text(answer: bytes) -> str:
    """Return the reason that a refusal gives."""
    text = answer[:_TEXT_MAX].decode(errors="replace")
    try:
        reasons = json.loads(text)["errors"]
        return "; ".join(map(str, reasons))
    except (ValueError, TypeError, KeyError, RecursionError):
        return text
