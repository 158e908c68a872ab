"""ConnectionManager: this process's connections to the data servers of others, one for each.

    peer = manager.acquire("unix:/...|host:port") ─► peer.connection.open_channel(...) ─► manager.release(peer)
    manager.close()

A connection is opened for the first channel, shared by all, and closed with the last one. When it breaks, all of its
channels have an error, and the next channel opens a new one. Channels that wait for the same connection fail together,
so that a machine which does not answer costs them its time-out once; a cancelled one waits no longer.
"""

from __future__ import annotations

import contextlib
import functools
import os
import socket
import threading
from typing import TYPE_CHECKING, Final

from engine.closing import close_all
from engine.errors import PartitionConnectionError, TaskCancelledError
from engine.network_address import address_text
from engine.transport.client_connection import ClientConnection
from engine.transport.data_address import DataAddress
from engine.transport.data_server import prepare_socket
from engine.transport.greeting_channel import GreetingChannel, completed
from engine.transport.handshake import HANDSHAKE_S, Greeting, greet_as_reader

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

CONNECT_S: Final = 5.0
#: seconds between two checks whether a waiting channel was cancelled
_LOOK_S: Final = 0.05


class Peer:
    """An open connection with its two threads."""

    def __init__(self, address: str, greeting: Greeting, tls: ssl.SSLContext | None) -> None:
        self.address = address
        self.user_count = 0
        parsed = DataAddress.parse(address)
        self._socket, name = _connect(parsed, address)
        try:
            channel = GreetingChannel(self._socket, HANDSHAKE_S)
            if tls is not None and self._socket.family != socket.AF_UNIX:
                completed(channel.secure_as_reader(tls, parsed.host))
            greet_as_reader(channel, greeting)
            prepare_socket(self._socket)
        except (OSError, PartitionConnectionError) as error:
            self._socket.close()
            raise PartitionConnectionError(f"no data connection to the TaskManager at {name}: {error}") from error
        self.connection = ClientConnection(self._socket.fileno(), name, channel.session())
        self._threads = [
            threading.Thread(target=loop, name=f"data-{verb}-{name}", daemon=True)
            for verb, loop in (("read", self.connection.read_loop), ("write", self.connection.write_loop))
        ]
        try:
            for thread in self._threads:
                thread.start()
        except RuntimeError as error:
            self.close()
            raise PartitionConnectionError(f"no data connection to the TaskManager at {name}: {error}") from error

    def close(self, reason: str = "this side closed the connection") -> None:
        """End both threads and close the socket."""
        joins = [thread.join for thread in self._threads if thread.ident is not None]
        end = functools.partial(self.connection.shut_down, reason)
        close_all([end, *joins, self.connection.forget_descriptor, self._socket.close])


class _Opening:
    """A connection that is being opened, and how many wait for it."""

    def __init__(self) -> None:
        self.done = threading.Event()
        # guarded by: the manager's lock; the outcome is final when ``done`` is set
        self.waiter_count = 0
        self.peer: Peer | None = None
        self.error: Exception | None = None


class ConnectionManager:
    """Connections by address. Thread: any."""

    def __init__(self, greeting: Greeting, tls: ssl.SSLContext | None = None) -> None:
        self._greeting = greeting
        self._tls = tls
        self._lock = threading.Lock()
        # guarded by: self._lock
        self._peers: dict[str, Peer] = {}
        self._opening: dict[str, _Opening] = {}
        self._is_closed = False

    def acquire(self, address: str, is_cancelled: Callable[[], bool] = lambda: False) -> Peer:
        """Return the connection to a data server, opened if need be; blocks while it is opened, or until cancelled.

        Raises:
            PartitionConnectionError: no process listens there, or it is not one of this cluster.
            TaskCancelledError: the caller does not want it any more.
        """
        with self._lock:
            peer = self._usable(address)
            if peer is not None:
                return peer
            opening = self._opening.get(address)
            if opening is None:
                opening = _Opening()
                # A thread of its own: a silent machine holds up no task that is being cancelled.
                threading.Thread(
                    target=self._open, args=(address, opening), name=f"data-open-{address}", daemon=True
                ).start()
                self._opening[address] = opening  # the thread waits for the lock before it looks
            opening.waiter_count += 1
        while not opening.done.wait(_LOOK_S) and not is_cancelled():
            pass
        with self._lock:
            if not opening.done.is_set():
                opening.waiter_count -= 1
                raise TaskCancelledError("the input gate was closed")
        if opening.peer is None:
            raise PartitionConnectionError(str(opening.error)) from opening.error
        return opening.peer

    def _open(self, address: str, opening: _Opening) -> None:
        """Open a connection for all channels that wait for it by then; all of them fail when that fails."""
        peer: Peer | None = None
        try:
            peer = Peer(address, self._greeting, self._tls)
        except Exception as error:  # any error is passed to the waiting channels
            opening.error = error
        with self._lock:
            del self._opening[address]
            if self._is_closed:
                opening.error = PartitionConnectionError(f"no data connection to {address}: this TaskManager closes")
            elif peer is not None and opening.waiter_count:
                peer.user_count = opening.waiter_count
                opening.peer = self._peers[address] = peer
            opening.done.set()
        if peer is not None and opening.peer is None:
            peer.close()

    def release(self, peer: Peer) -> None:
        """Give a connection back; the last user closes it."""
        with self._lock:
            peer.user_count -= 1
            if peer.user_count > 0:
                return
            if self._peers.get(peer.address) is peer:
                del self._peers[peer.address]
        peer.close()

    @property
    def connection_count(self) -> int:
        """Connections that are open now."""
        with self._lock:
            return len(self._peers)

    def close(self) -> None:
        """End all connections: their channels have an error. Their users still release them."""
        with self._lock:
            self._is_closed = True
            peers = list(self._peers.values())
        close_all(functools.partial(peer.connection.shut_down, "this TaskManager closes") for peer in peers)

    def _usable(self, address: str) -> Peer | None:
        peer = self._peers.get(address)
        if peer is not None and peer.connection.broken is None:
            peer.user_count += 1
            return peer
        return None


def _connect(address: DataAddress, text: str) -> tuple[socket.socket, str]:
    """Return a connected socket and the name of the peer: by UNIX socket when it is here, else by TCP."""
    if address.unix_path and os.path.exists(address.unix_path):  # noqa: PTH110
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.settimeout(CONNECT_S)
            connection.connect(address.unix_path)
        except OSError as error:
            connection.close()
            if not address.host:
                raise PartitionConnectionError(f"no data connection to {text}: {error}") from error
        else:
            return connection, text
    if not address.host:
        raise PartitionConnectionError(f"no data connection to {text}: the socket is not there")
    with contextlib.suppress(TimeoutError):
        try:
            connection = socket.create_connection((address.host, address.port), CONNECT_S)
            return connection, address_text(address.host, address.port)
        except TimeoutError:
            raise
        except OSError as error:
            raise PartitionConnectionError(f"no data connection to {text}: {error}") from error
    raise PartitionConnectionError(f"no data connection to {text}: no answer within {CONNECT_S:g} s")
