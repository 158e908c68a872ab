"""The end of a ZooKeeper session whose process has died: a process with its number and password closes it in its place.

    the process   SessionHandle(...).encode() ──► a pipe, at each new session
    its guardian  SessionHandle.decode(...) ... the process dies ... end_session(handle) ──► its latch node is gone,
                                                                                            the next one leads at once

The password stays in memory and in the pipe. All servers are tried at the same time and the first one that answers is
used. The two messages of ZooKeeper's protocol are written here: its client takes a third more memory than
the whole guardian, and seconds to close.

    connect  length | version 0 | last zxid 0 | time-out | session | password | read-only     answer: time-out 0 = gone
    close    length | xid 1 | type -11

Source: ZooKeeper's ConnectRequest and closeSession.
"""

from __future__ import annotations

import contextlib
import errno
import json
import selectors
import socket
import struct
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from ha.zookeeper_hosts import parse_hosts

if TYPE_CHECKING:
    import ssl

#: address: family, socket address, and the name that a certificate must have
_Address: TypeAlias = tuple[socket.AddressFamily, Any, str]

_CLOSE = struct.pack(">iii", 8, 1, -11)
_PAUSE_S = 0.02
#: seconds in which a server that accepted a connection must answer
_ANSWER_S = 2.0


@dataclass(frozen=True)
class SessionHandle:
    """The handle that closes a session. ``ca``, ``certificate``, ``key``: files, "" without TLS."""

    hosts: str
    session_id: int
    password: bytes = field(repr=False)
    timeout_s: float
    ca: str = ""
    certificate: str = ""
    key: str = ""

    def encode(self) -> bytes:
        """Return a line, short enough for a pipe to keep it in one piece."""
        return json.dumps(asdict(self) | {"password": self.password.hex()}).encode() + b"\n"

    @classmethod
    def decode(cls, line: bytes) -> SessionHandle:
        """Parse a line; ValueError when it is cut."""
        fields = json.loads(line)
        return cls(**fields | {"password": bytes.fromhex(fields["password"])})


def end_session(handle: SessionHandle, within_s: float) -> bool:
    """Close a session; return whether it is closed for certain. Tries all servers until the time is over."""
    until_s = time.monotonic() + within_s
    context = _tls(handle) if handle.ca else None
    servers: list[_Address] = []
    left: list[_Address] = []
    while True:
        if not servers:  # no name could be resolved
            servers = _addresses(handle.hosts)
        left = left or list(servers)
        connection, server = _first_connection(left, until_s)
        if connection is not None:
            left.remove(server)
            with connection, contextlib.suppress(OSError, ValueError, struct.error):
                if _end_over(connection, server[2], handle, context):
                    return True
        else:
            left = []
        if time.monotonic() + _PAUSE_S >= until_s:
            return False
        time.sleep(0 if left else _PAUSE_S)


def _tls(handle: SessionHandle) -> ssl.SSLContext:
    import ssl

    context = ssl.create_default_context(cafile=handle.ca)
    if handle.certificate:
        context.load_cert_chain(handle.certificate, handle.key or None)
    return context


def _end_over(connection: socket.socket, host: str, handle: SessionHandle, context: ssl.SSLContext | None) -> bool:
    connection.settimeout(_ANSWER_S)
    if context is not None:
        connection = context.wrap_socket(connection, server_hostname=host)
    with connection:
        password = handle.password
        begin = struct.pack(">iqiqi", 0, 0, int(handle.timeout_s * 1000), handle.session_id, len(password))
        request = begin + password + b"\0"
        connection.sendall(struct.pack(">i", len(request)) + request)
        _, timeout_ms = struct.unpack_from(">ii", _frame(connection))
        if timeout_ms <= 0:
            return True  # it has expired, or is closed already
        connection.sendall(_CLOSE)
        while True:
            number, _, error = struct.unpack_from(">iqi", _frame(connection))
            if number == 1:
                return bool(error == 0)


def _first_connection(servers: list[_Address], until_s: float) -> tuple[socket.socket | None, _Address]:
    """Return a connection to whichever server takes one first."""
    with selectors.DefaultSelector() as selector, contextlib.ExitStack() as unused:
        for server in servers:
            end = unused.enter_context(socket.socket(server[0], socket.SOCK_STREAM))
            end.setblocking(False)
            with contextlib.suppress(OSError):
                if end.connect_ex(server[1]) in (0, errno.EINPROGRESS):
                    selector.register(end, selectors.EVENT_WRITE, server)
        while selector.get_map():
            ready = selector.select(max(until_s - time.monotonic(), 0))
            if not ready:
                break
            for key, _ in ready:
                end = cast("socket.socket", key.fileobj)
                selector.unregister(end)
                if end.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0:
                    return end.dup(), key.data
    return None, (socket.AF_UNSPEC, None, "")


def _addresses(hosts: str) -> list[_Address]:
    found: list[_Address] = []
    for host, port in parse_hosts(hosts):
        with contextlib.suppress(OSError):
            for family, _, _, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
                found.append((family, address, host))
    return found


def _frame(connection: socket.socket) -> bytes:
    (length,) = struct.unpack(">i", _exactly(connection, 4))
    if not 0 <= length <= 1 << 20:
        raise ValueError("this is no server of ZooKeeper")
    return _exactly(connection, length)


def _exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = connection.recv(count - len(data))
        if not part:
            raise ConnectionError("the server has closed the connection")
        data += part
    return data
