"""Greeting: how a connection of calls begins, as a request to the HTTP server of the other process.

    POST /rpc      Upgrade, program, signature                 ─►
                                                               ◄─  101   program, nonce, seal of both
    frames (``frames``), with keys of the secret, the request's signature, the nonce and both programs

The server checks the caller as it does for any request (``http_server``): the signature is good once, for a minute. The
seal proves the server, before a byte of what it says is believed. Keys depend on fresh random bytes of both sides, so
that no frame is good on a second connection. A request that is refused may have been changed on the way, so it is made
once more, unless there is no such route: then calls are requests (``calling_requests``).

Held by: tests/rpc/test_http_service.py
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from typing import Final, NamedTuple

from engine.errors import EngineError
from engine.network_address import plain_host, split_address
from engine.rpc.credentials import AUTHORIZATION, Credentials
from engine.rpc.errors import AccessDeniedError, UntrustedReplyError
from engine.rpc.http_messages import HttpError, HttpRequest, RefusedAnswerError, is_refusal
from engine.rpc.program import PROGRAM_HEADER, Program, header_of

METHOD: Final = "POST"
PATH: Final = "/rpc"
#: name of the protocol in the header Upgrade
PROTOCOL_NAME: Final = "drey-calls"
NONCE_HEADER: Final = "X-Drey-Nonce"
SEAL_HEADER: Final = "X-Drey-Seal"
#: keys of calls and of replies
Keys = tuple[bytes | None, bytes | None]

_SWITCHING: Final = 101
#: status codes of a server that takes no connections of calls
NO_SUCH_ROUTE: Final = (404, 405)
#: status codes of requests that were not begun
_NOT_BEGUN: Final = (400, 401, 403, 412, 426)
#: seconds for a connection to be accepted; with TLS it greets in them, too
_CONNECT_S: Final = 5.0
_CONNECT_TLS_S: Final = 15.0
#: seconds for an accepted one to be answered: longer than callers wait for one reply
_ANSWER_S: Final = 30.0
#: longest head, and longest text of a refusal
_HEAD_MAX: Final = 64 * 1024


class Greeted(NamedTuple):
    """A connection whose two sides know each other. ``stream`` owns the transport until the connection has ended."""

    stream: asyncio.StreamWriter
    keys: Keys


class Asked(NamedTuple):
    """The side of the caller."""

    authority: str
    credentials: Credentials | None
    program: Program | None
    tls: ssl.SSLContext | None


async def greet(asked: Asked) -> Greeted:
    """Connect to a process.

    Raises:
        RefusedAnswerError: it refuses this one, twice, or takes no connections of calls.
        OSError: there is nothing that answers; ssl.SSLError when the two do not trust each other's certificates.
    """
    try:
        return await _greet(asked)
    except RefusedAnswerError as error:
        if error.status not in _NOT_BEGUN:
            raise
    return await _greet(asked)


async def _greet(asked: Asked) -> Greeted:
    host, port = split_address(asked.authority)
    try:
        async with asyncio.timeout(_CONNECT_S if asked.tls is None else _CONNECT_TLS_S):
            reader, stream = await asyncio.open_connection(plain_host(host), port, ssl=asked.tls, limit=_HEAD_MAX)
    except TimeoutError as error:
        raise ConnectionError("the connection is not accepted") from error
    try:
        async with asyncio.timeout(_ANSWER_S):
            return await _said(asked, reader, stream)
    except BaseException as error:
        stream.transport.abort()
        if isinstance(error, EngineError):
            raise
        if isinstance(error, TimeoutError):
            raise ConnectionError("the connection is accepted, but not answered") from error
        if isinstance(error, EOFError | asyncio.LimitOverrunError | ValueError):
            raise ConnectionError("the connection broke") from error
        raise


async def _said(asked: Asked, reader: asyncio.StreamReader, stream: asyncio.StreamWriter) -> Greeted:
    said = header_of(asked.program)
    headers = {"Host": asked.authority, "Content-Length": "0", "Connection": "Upgrade", "Upgrade": PROTOCOL_NAME}
    if said:
        headers[PROGRAM_HEADER] = said
    signature = "" if asked.credentials is None else asked.credentials.sign(METHOD, PATH)
    if signature:
        headers[AUTHORIZATION] = signature
    lines = [f"{METHOD} {PATH} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    stream.write("\r\n".join(lines).encode())
    status, heard = _parsed(await reader.readuntil(b"\r\n\r\n"))
    keys: Keys = None, None
    # A sealed answer is what it is, whatever became of its status on the way.
    if asked.credentials is not None and (SEAL_HEADER.lower() in heard or not is_refusal(status)):
        keys = _proved_keys(asked.credentials, signature, said, heard)
    elif status != _SWITCHING:
        length = min(int(heard.get("content-length", "0")), _HEAD_MAX)
        raise RefusedAnswerError(status, await reader.readexactly(length))
    if asked.program is not None:
        asked.program.check(heard.get(PROGRAM_HEADER.lower()), asked.authority)
    return Greeted(stream, keys)


def _proved_keys(credentials: Credentials, signature: str, said: str, heard: Mapping[str, str]) -> Keys:
    nonce, theirs = heard.get(NONCE_HEADER.lower(), ""), heard.get(PROGRAM_HEADER.lower(), "")
    try:
        seal = bytes.fromhex(heard.get(SEAL_HEADER.lower(), ""))
        credentials.check_seal(signature, nonce.encode(), seal, theirs)
    except (AccessDeniedError, ValueError) as error:
        text = "the reply does not come from a process with the cluster's secret"
        raise UntrustedReplyError(text) from error
    return credentials.connection_keys(signature, nonce, said, theirs)


def answer_greeting(request: HttpRequest, credentials: Credentials | None, program: str) -> tuple[dict[str, str], Keys]:
    """Return the headers of the answer to a caller that was checked, and the keys; HttpError when it asks for less."""
    named = {name.lower(): value for name, value in request.headers.items()}
    if named.get("upgrade", "").lower() != PROTOCOL_NAME:
        raise HttpError(426, f"{METHOD} {PATH} begins a connection of calls: it takes the header Upgrade")
    headers = {"Upgrade": PROTOCOL_NAME, "Connection": "Upgrade"}
    signature = named.get(AUTHORIZATION.lower(), "")
    if credentials is None:
        return headers, (None, None)
    if not signature:
        raise RuntimeError("the server has let in a caller without a signature")
    nonce, said = Credentials.challenge().hex(), named.get(PROGRAM_HEADER.lower(), "")
    headers[NONCE_HEADER] = nonce
    headers[SEAL_HEADER] = credentials.seal(signature, nonce.encode(), program).hex()
    return headers, credentials.connection_keys(signature, nonce, said, program)


def _parsed(head: bytes) -> tuple[int, dict[str, str]]:
    """Return status and headers, by their names in small letters."""
    line, *fields = head.decode("latin-1").split("\r\n")
    pairs = (field.partition(":") for field in fields if field)
    return int(line.split(" ", 2)[1]), {name.strip().lower(): value.strip() for name, _, value in pairs}
