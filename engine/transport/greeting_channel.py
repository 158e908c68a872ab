"""GreetingChannel: the bytes of a data connection until it is greeted, plain or within TLS, by a deadline for all.

    channel = GreetingChannel(socket, seconds) ─► secure_as_reader(context, host) | secure_as_writer(context)
        ─► send, receive (handshake.py) ─► session(): what the connection goes on with, None when it is plain

    completed(greeting)                  a greeting over a channel that blocks, in the thread of the side that connects
    LoopGreetingChannel(socket, ...)     one that waits in an event loop: unproved peers get no thread (greeter.py)

TLS 1.3 with certificates on both sides: the reader checks that the writer's names the host that was called, both check
the authority and the dates. A refused side learns why from the other side's alert where there is one; a reader's
certificate is judged after its own handshake has ended, so the reason meets its first ``receive``. Nothing is received
beyond the TLS record that is needed: the session begins where a record begins.

Every failure is a PartitionConnectionError with one line of text.

Thread: one, or one event loop.

Held by: tests/transport/test_data_tls.py
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import Coroutine
from typing import Any, Final, NoReturn, TypeVar

from engine.errors import PartitionConnectionError
from engine.transport.wire import TlsSession

T = TypeVar("T")

_PIECE_BYTES: Final = 16 << 10
_RECORD_HEADER_BYTES: Final = 5
#: first bytes of a TLS alert, which answers a greeting that is not TLS
_ALERT: Final = b"\x15\x03"
#: alert (fatal, protocol_version) for a peer that does not speak TLS, for which OpenSSL sends none
_SPEAK_TLS: Final = _ALERT + b"\x03\x00\x02\x02\x46"
_NOT_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST", "UNEXPECTED_MESSAGE"})


class GreetingChannel:
    """Args: connection: connected, closed by its owner; seconds: for everything until ``session``."""

    def __init__(self, connection: socket.socket, seconds: float) -> None:
        self._connection = connection
        self._deadline = time.monotonic() + seconds
        self._seconds = seconds
        self._tls: ssl.SSLObject | None = None
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._record_header = b""
        self._record_left = 0

    async def secure_as_reader(self, context: ssl.SSLContext, host: str) -> None:
        """Begin TLS with a writer that was called by that name."""
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        await self._shake_hands()

    async def secure_as_writer(self, context: ssl.SSLContext) -> None:
        """Begin TLS with the peer that has connected."""
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        await self._shake_hands()

    async def send(self, data: bytes) -> None:
        """Send all of it."""
        if self._tls is not None:
            self._tls.write(data)
            data = self._outgoing.read()
        await self._to_socket(data)

    async def receive(self, size: int) -> bytes:
        """Return exactly that many bytes."""
        parts = bytearray()
        while len(parts) < size:
            piece = await self._receive_some(size - len(parts))
            if not piece:
                if self._tls is None and parts.startswith(_ALERT):
                    raise PartitionConnectionError(
                        "the other side speaks TLS: set security.ssl.enabled on all machines"
                    )
                raise PartitionConnectionError("the other side closed the connection instead of greeting")
            parts += piece
        return bytes(parts)

    def session(self) -> TlsSession | None:
        """Return the TLS session that encrypts from now on; None: the connection is plain."""
        if self._tls is None:
            return None
        return TlsSession(self._tls, self._incoming, self._outgoing)

    async def _receive_some(self, size: int) -> bytes:
        if self._tls is None:
            return await self._from_socket(size)
        while True:
            try:
                return self._tls.read(size)
            except ssl.SSLWantReadError:
                piece = await self._from_record()
                if not piece:
                    return b""
                self._incoming.write(piece)
            except ssl.SSLError as error:
                raise PartitionConnectionError(_refusal(error)) from error

    async def _shake_hands(self) -> None:
        while not await self._is_shaken():
            piece = await self._from_record()
            if not piece:
                raise PartitionConnectionError("the other side closed the connection during the TLS handshake")
            self._incoming.write(piece)

    async def _is_shaken(self) -> bool:
        """Go on with the handshake; False: the other side has to say something first."""
        assert self._tls is not None
        is_shaken = True
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            is_shaken = False
        except ssl.SSLError as error:
            await self._refuse(self._outgoing.read() or _SPEAK_TLS)
            raise PartitionConnectionError(_refusal(error)) from error
        if self._outgoing.pending:
            await self._to_socket(self._outgoing.read())
        return is_shaken

    async def _refuse(self, alert: bytes) -> None:
        """Send the alert. Closing with unread data would reset the connection and lose the alert: it is all read."""
        with contextlib.suppress(OSError, PartitionConnectionError):
            await self._to_socket(alert)
            self._connection.shutdown(socket.SHUT_WR)
            while await self._from_socket(_PIECE_BYTES):
                pass

    async def _from_record(self) -> bytes:
        """Receive some bytes of the TLS record that comes, none of the next one."""
        if self._record_left > 0:
            piece = await self._from_socket(self._record_left)
            self._record_left -= len(piece)
            return piece
        piece = await self._from_socket(_RECORD_HEADER_BYTES - len(self._record_header))
        self._record_header += piece
        if len(self._record_header) == _RECORD_HEADER_BYTES:
            self._record_left = int.from_bytes(self._record_header[3:], "big")
            self._record_header = b""
        return piece

    async def _to_socket(self, data: bytes) -> None:
        self._wait()
        try:
            self._connection.sendall(data)
        except TimeoutError:
            self._raise_late()
        except OSError as error:
            raise _failed(error) from error

    async def _from_socket(self, size: int) -> bytes:
        self._wait()
        try:
            return self._connection.recv(size)
        except TimeoutError:
            self._raise_late()
        except ConnectionResetError:
            return b""
        except OSError as error:
            raise _failed(error) from error

    def _wait(self) -> None:
        """Set the time-out of the next operation to the deadline."""
        self._connection.settimeout(self._left_s())

    def _left_s(self) -> float:
        left_s = self._deadline - time.monotonic()
        if left_s <= 0:
            self._raise_late()
        return left_s

    def _raise_late(self) -> NoReturn:
        raise PartitionConnectionError(f"the other side did not greet within {self._seconds:g} s")


class LoopGreetingChannel(GreetingChannel):
    """The same in an event loop; the socket does not block."""

    async def _to_socket(self, data: bytes) -> None:
        try:
            async with asyncio.timeout(self._left_s()):
                await asyncio.get_running_loop().sock_sendall(self._connection, data)
        except TimeoutError:
            self._raise_late()
        except OSError as error:
            raise _failed(error) from error

    async def _from_socket(self, size: int) -> bytes:
        try:
            async with asyncio.timeout(self._left_s()):
                return await asyncio.get_running_loop().sock_recv(self._connection, size)
        except TimeoutError:
            self._raise_late()
        except ConnectionResetError:
            return b""
        except OSError as error:
            raise _failed(error) from error


def completed(greeting: Coroutine[Any, Any, T]) -> T:
    """Run a greeting over channels that block to its end, and return its result."""
    try:
        greeting.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    raise AssertionError("a blocking channel suspends no caller")


def _failed(error: OSError) -> PartitionConnectionError:
    return PartitionConnectionError(f"the connection failed: {error.strerror or error}")


def _refusal(error: ssl.SSLError) -> str:
    """Describe in one line which side does not trust the other."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"this process does not trust the other side's certificate: {error.verify_message}"
    reason = str(error.reason or error)
    if "ALERT" in reason:
        return f"the other side refuses the certificate of this process, or TLS with it ({reason})"
    if reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
        return "the other side shows no certificate"
    if reason in _NOT_TLS:
        return f"the other side does not speak TLS: set security.ssl.enabled on all machines ({reason})"
    return f"no TLS with the other side ({reason})"
