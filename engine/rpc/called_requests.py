"""CalledRequests: calls that come as HTTP requests of their own, from processes whose programs know no frames.

    POST /rpc/<name>       body: a message (codec.py)      headers: signature, epoch, milliseconds until the deadline
    200                    body: the reply, or the error that the called component raised, and its seal (credentials.py)

The last release calls in this way alone. It goes, with ``calling_requests``, when the last release knows frames.

The epoch is checked before anything is decoded. Then the handler starts, and the headers of the answer are sent at
once; the body follows when the handler has ended. The deadline, and the end of the caller's connection, cancel the
handler.

Thread: the event loop only.

Held by: tests/rpc/test_calling_requests.py
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Mapping
from typing import Final

from engine.rpc.codec import MessageCodec
from engine.rpc.credentials import AUTHORIZATION, Credentials
from engine.rpc.endpoint import RpcEndpoint
from engine.rpc.errors import EndpointUnreachableError, RpcTimeoutError
from engine.rpc.frames import MESSAGE_LIMIT
from engine.rpc.http_messages import Access, HttpError, HttpRequest, HttpResponse, Route
from engine.rpc.http_server import EPOCH_HEADER, HttpServer
from engine.rpc.program import header_of

METHOD: Final = "POST"
REQUEST_PATH: Final = "/rpc/{name}"
DEADLINE_HEADER: Final = "X-Drey-Deadline-Ms"
CONTENT_TYPE: Final = "application/msgpack"


class CalledRequests:
    """Answers requests to the endpoints of this process.

    Args:
        server: of this process, which knows its address and program.
        endpoints: by name, as they are at the time of a call.
        credentials: prove this process to callers.
    """

    def __init__(
        self,
        server: HttpServer,
        endpoints: Mapping[str, RpcEndpoint],
        codec: MessageCodec,
        credentials: Credentials | None,
    ) -> None:
        self._server = server
        self._endpoints = endpoints
        self._codec = codec
        self._credentials = credentials
        self.route: Final = Route(METHOD, REQUEST_PATH, self._answer, Access.SECRET, MESSAGE_LIMIT, is_internal=True)

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
            return HttpResponse(body=reply + self._seal(request, reply), content_type=CONTENT_TYPE)
        call = asyncio.get_running_loop().create_task(endpoint.dispatch(epoch, message), name=f"call of {name}")
        seal = functools.partial(self._seal, request)
        return HttpResponse(content_type=CONTENT_TYPE, parts=_Reply(call, self._codec, timeout_s, seal))

    def _seal(self, request: HttpRequest, reply: bytes) -> bytes:
        """Return the seal that follows a reply and proves its origin to a caller that signed its request."""
        header = request.headers.get(AUTHORIZATION)
        if self._credentials is None or not header:
            return b""
        return self._credentials.seal(header, reply, header_of(self._server.program))


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
