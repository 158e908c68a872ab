"""CallingRequests: calls as HTTP requests of their own, to processes whose programs know no frames.

    connection to a process ─► refused: no such route ─► note(authority) ─► calls are requests ─► 10 s, or it is gone
                                                                                              └─► a connection is tried

The last release answers in this way alone. It goes, with ``called_requests``, when the last release knows frames.

A request is signed and its reply sealed: each is proved as a frame is. So a forged answer that there is no such route
makes calls slower, and nothing else.

A caller sends its next call to the same endpoint only after the headers of the answer, so calls start in the order in
which they were made, and a call that waits holds up no other. A call that is refused was not begun; it is sent once
more, since it may have been changed on the way. While a call is not begun, no connection is tried: none overtakes it.

Thread: the event loop only.

Held by: tests/rpc/test_calling_requests.py
"""

from __future__ import annotations

import asyncio
import hashlib
import ssl
from typing import Final, NamedTuple

import aiohttp

from engine.rpc.called_requests import CONTENT_TYPE, DEADLINE_HEADER, METHOD, REQUEST_PATH
from engine.rpc.credentials import AUTHORIZATION, SEAL_BYTES, Credentials
from engine.rpc.errors import AccessDeniedError, EndpointUnreachableError, UntrustedReplyError, reason_of
from engine.rpc.http_messages import RefusedAnswerError, is_refusal
from engine.rpc.http_server import EPOCH_HEADER, HttpServer
from engine.rpc.program import PROGRAM_HEADER, header_of

#: seconds until a connection is tried again to a process that knew none: another one may be there
_KNOWN_S: Final = 10.0
_CONNECT_S: Final = 5.0
#: seconds until idle connections are closed: less than the server's, so that no call meets a closing one
_KEEPALIVE_S: Final = 15.0
#: status codes of calls that were not begun
_NOT_BEGUN: Final = (400, 401, 403, 404, 405, 412)


class RequestedCall(NamedTuple):
    """A call to an endpoint of a process."""

    name: str
    epoch: int
    message: bytes
    timeout_s: float | None


class CallingRequests:
    """The way to processes that take requests alone.

    Args:
        server: of this process, which knows its program.
        credentials: prove this process to others, and others to it.
        tls: client context when the others speak TLS.
    """

    def __init__(self, server: HttpServer, credentials: Credentials | None, tls: ssl.SSLContext | None) -> None:
        self._server = server
        self._credentials = credentials
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None
        self._is_closed = False
        #: processes that take requests alone, by ``host:port``
        self._processes: dict[str, _Process] = {}

    def note(self, authority: str) -> None:
        """Remember for a while that a process takes requests alone."""
        self._processes = {key: process for key, process in self._processes.items() if process.is_known}
        self._processes.setdefault(authority, _Process()).note()

    def knows(self, authority: str) -> bool:
        """Return whether the process there takes requests alone, as far as is known now."""
        process = self._processes.get(authority)
        return process is not None and process.is_known

    async def call(self, authority: str, call: RequestedCall) -> bytes:
        """Return the reply of a process that was noted.

        Raises:
            TimeoutError: the deadline has passed.
            RefusedAnswerError: it refuses the call, twice, or fails.
            UntrustedReplyError: the reply proves nothing.
            OSError: nothing answers; ssl.SSLError when the two do not trust each other's certificates.
        """
        process = self._processes[authority]
        try:
            async with asyncio.timeout(call.timeout_s):
                answer = await self._exchange(authority, process, call)
        except aiohttp.ClientSSLError as error:
            raise ssl.SSLError(str(error)) from error
        except (aiohttp.ClientError, ConnectionError, RuntimeError) as error:
            # RuntimeError: the library, of a connection that we closed ourselves
            process.forget()
            raise ConnectionError(_reason(error)) from error
        return self._proved(authority, answer)

    async def close(self) -> None:
        """Close all connections, for good."""
        self._is_closed = True
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _exchange(self, authority: str, process: _Process, call: RequestedCall) -> _Answer:
        process.not_begun += 1
        try:
            async with process.turn(call.name):
                response, signature = await self._send(authority, call)
                if response.status in _NOT_BEGUN:
                    response.close()
                    response, signature = await self._send(authority, call)
        finally:
            process.not_begun -= 1
        async with response:
            body = await response.read()
        return _Answer(response.status, body, response.headers.get(PROGRAM_HEADER), signature)

    def _proved(self, authority: str, answer: _Answer) -> bytes:
        """Return the reply of an answer."""
        # A sealed reply is what it is, whatever became of its status on the way.
        if is_refusal(answer.status) or (self._credentials is None and answer.status != 200):
            raise RefusedAnswerError(answer.status, answer.body)
        reply = answer.body
        if self._credentials is not None:
            reply, seal = reply[:-SEAL_BYTES], reply[-SEAL_BYTES:]
            try:
                self._credentials.check_seal(answer.signature, reply, seal, answer.said or "")
            except AccessDeniedError as error:
                raise UntrustedReplyError(str(error)) from error
        if self._server.program is not None:
            self._server.program.check(answer.said, authority)
        return reply

    async def _send(self, authority: str, call: RequestedCall) -> tuple[aiohttp.ClientResponse, str]:
        """Return the answer as far as its headers, and the signature that it was asked for with."""
        target, epoch = REQUEST_PATH.format(name=call.name), str(call.epoch)
        headers = {EPOCH_HEADER: epoch, "Content-Type": CONTENT_TYPE}
        said = header_of(self._server.program)
        if said:
            headers[PROGRAM_HEADER] = said
        if call.timeout_s is not None:
            headers[DEADLINE_HEADER] = str(max(1, int(call.timeout_s * 1000)))
        if self._credentials is not None:
            digest = hashlib.sha256(call.message).hexdigest()
            headers[AUTHORIZATION] = self._credentials.sign(METHOD, target, digest, epoch)
        scheme = "https" if self._tls is not None else "http"
        url = f"{scheme}://{authority}{target}"
        response = await self._client().request(METHOD, url, data=call.message, headers=headers, allow_redirects=False)
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


class _Answer(NamedTuple):
    """Answer of a process to a request."""

    status: int
    body: bytes
    #: header with its program
    said: str | None
    #: signature of the request
    signature: str


class _Process:
    """A process that takes requests alone."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._known_until_s = 0.0
        #: calls whose answers have not begun
        self.not_begun = 0
        #: locks by the names of endpoints: one call at a time is not begun
        self._turns: dict[str, asyncio.Lock] = {}

    @property
    def is_known(self) -> bool:
        return self.not_begun > 0 or self._loop.time() < self._known_until_s

    def note(self) -> None:
        self._known_until_s = self._loop.time() + _KNOWN_S

    def forget(self) -> None:
        self._known_until_s = 0.0

    def turn(self, name: str) -> asyncio.Lock:
        return self._turns.setdefault(name, asyncio.Lock())


def _reason(error: BaseException) -> str:
    if isinstance(error, aiohttp.ClientPayloadError | aiohttp.ServerDisconnectedError):
        return "the connection broke"  # the library's words are about transfer encodings
    return reason_of(error)
