"""HttpForwarder: passes a request on to the server of another process, and that one's answer back.

    HttpForwarder(tls) ─► forward(request, "host:port") -> HttpResponse ─► close

Method, path and query go as they came, and all headers that are not of one connection: the credential in them is
still good, and the other side verifies it itself. Bodies in both directions are passed on part by part, as fast as the
slower side takes them; a short answer is read whole. A header marks a request that was passed on, so that two processes
that take each other for the leader do not pass it back and forth; another one in the answer says where it comes from.

Thread: the event loop only.

Held by: tests/rest/test_forwarding.py
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator

import aiohttp
from yarl import URL

from engine.rpc.errors import EndpointUnreachableError
from engine.rpc.http_messages import HttpError, HttpRequest, HttpResponse

#: header of a request that was passed on
FORWARDED_HEADER = "X-Drey-Forwarded"
#: header with the process that gave the answer
ANSWERED_BY_HEADER = "X-Drey-Answered-By"

_CONNECT_S = 5.0
#: seconds of silence, longer than any route waits on purpose
_SILENCE_S = 150.0
#: limit of answers that are read whole
_WHOLE_BYTES = 1 << 20
#: headers of one connection only, or rewritten for the next one
_OWN_HEADERS = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
#: headers of an answer that this server writes itself
_SAID_HERE = _OWN_HEADERS | {"content-type", "date", "server", "cache-control", "x-content-type-options"}


class HttpForwarder:
    """Connections to other servers, opened when they are needed.

    Args:
        tls: client context when the others speak TLS.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None

    async def forward(self, request: HttpRequest, address: str) -> HttpResponse:
        """Return the answer of ``address``; EndpointUnreachableError when there is none."""
        if not request.target.startswith("/"):
            raise HttpError(400, "the target is not a path")
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _OWN_HEADERS}
        headers[FORWARDED_HEADER] = "1"
        body = _Upload(request)
        if request.chunks is not None and request.content_length >= 0:
            headers["Content-Length"] = str(request.content_length)
        scheme = "http" if self._tls is None else "https"
        try:
            response = await self._client().request(
                request.method,
                URL(f"{scheme}://{address}{request.target}", encoded=True),
                headers=headers,
                data=body.parts() if request.chunks is not None else request.body or None,
                allow_redirects=False,
            )
            return await _answer(response, request.method, address)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if body.error is not None:  # the caller's fault: its body breaks off, or is not the one that it signed
                raise body.error from error
            raise EndpointUnreachableError(f"{address} does not answer: {error or type(error).__name__}") from error

    async def close(self) -> None:
        """Close all connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, ssl=self._tls if self._tls is not None else True),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=_SILENCE_S),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
            )
        return self._session


class _Upload:
    """The body of a streamed request; remembers what its reading failed with."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request
        self.error: Exception | None = None

    async def parts(self) -> AsyncIterator[bytes]:
        assert self._request.chunks is not None, "only streamed bodies come in parts"
        try:
            async for part in self._request.chunks:
                yield part
        except Exception as error:
            self.error = error
            raise


class _Download:
    """Parts of an answer, as they come."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._response.content.iter_any()

    async def aclose(self) -> None:
        """Close the connection unless it was read to its end."""
        self._response.close()


async def _answer(response: aiohttp.ClientResponse, method: str, address: str) -> HttpResponse:
    headers = {name: value for name, value in response.headers.items() if name.lower() not in _SAID_HERE}
    headers[ANSWERED_BY_HEADER] = address
    content_type = response.headers.get("Content-Type", "application/octet-stream")
    length = response.content_length
    if method == "HEAD" or (length is not None and length <= _WHOLE_BYTES):
        async with response:
            return HttpResponse(response.status, await response.read(), content_type, headers)
    if length is not None:
        headers["Content-Length"] = str(length)
    return HttpResponse(response.status, b"", content_type, headers, parts=_Download(response))
