"""ConnectionManager: this process's connections to the data servers of others, one for each.

    peer = manager.acquire("unix:/...|host:port") ─► peer.connection.open_channel(...) ─► manager.release(peer)
    manager.close()

A connection is opened by the first channel, shared by all, and closed with the last one. When it breaks, all of its
channels have an error, and the next channel opens a new one.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from typing import TYPE_CHECKING, Final

from engine.errors import PartitionConnectionError
from engine.exchange.client_connection import ClientConnection
from engine.exchange.data_address import DataAddress
from engine.exchange.data_server import prepare_socket
from engine.exchange.greeting_channel import GreetingChannel
from engine.exchange.handshake import HANDSHAKE_S, greet_as_reader

if TYPE_CHECKING:
    import ssl

    from engine.rpc.credentials import Credentials

CONNECT_S: Final = 5.0


class Peer:
    """An open connection with its two threads."""

    def __init__(self, address: str, cluster: str, credentials: Credentials | None, tls: ssl.SSLContext | None) -> None:
        self.address = address
        self.user_count = 0
        parsed = DataAddress.parse(address)
        self._socket, name = _connect(parsed, address)
        try:
            channel = GreetingChannel(self._socket, HANDSHAKE_S)
            if tls is not None and self._socket.family != socket.AF_UNIX:
                channel.secure_as_reader(tls, parsed.host)
            greet_as_reader(channel, cluster, credentials)
            prepare_socket(self._socket)
        except (OSError, PartitionConnectionError) as error:
            self._socket.close()
            raise PartitionConnectionError(f"no data connection to the TaskManager at {name}: {error}") from error
        self.connection = ClientConnection(self._socket.fileno(), name, channel.session())
        self._threads = [
            threading.Thread(target=loop, name=f"data-{verb}-{name}", daemon=True)
            for verb, loop in (("read", self.connection.read_loop), ("write", self.connection.write_loop))
        ]
        for thread in self._threads:
            thread.start()

    def close(self, reason: str = "this side closed the connection") -> None:
        """End both threads and close the socket."""
        self.connection.shut_down(reason)
        for thread in self._threads:
            thread.join()
        self.connection.forget_descriptor()
        self._socket.close()


class ConnectionManager:
    """Connections by address. Thread: any."""

    def __init__(self, cluster: str, credentials: Credentials | None = None, tls: ssl.SSLContext | None = None) -> None:
        self._cluster = cluster
        self._tls = tls
        self._credentials = credentials
        self._lock = threading.Lock()
        # guarded by: self._lock
        self._peers: dict[str, Peer] = {}
        self._opening: dict[str, threading.Lock] = {}
        self._is_closed = False

    def acquire(self, address: str) -> Peer:
        """Return the connection to a data server, opened if need be; blocks while it is opened.

        Raises:
            PartitionConnectionError: nobody is there, or it is not one of this cluster.
        """
        with self._lock:
            opening = self._opening.setdefault(address, threading.Lock())
        with opening:
            with self._lock:
                peer = self._usable(address)
            if peer is not None:
                return peer
            peer = Peer(address, self._cluster, self._credentials, self._tls)
            with self._lock:
                if not self._is_closed:
                    self._peers[address] = peer
                    peer.user_count = 1
                    return peer
        peer.close()
        raise PartitionConnectionError(f"no data connection to {address}: this TaskManager closes")

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
        """End all connections: their channels have an error. Those who use them still release them."""
        with self._lock:
            self._is_closed = True
            peers = list(self._peers.values())
        for peer in peers:
            peer.connection.shut_down("this TaskManager closes")

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
            return socket.create_connection((address.host, address.port), CONNECT_S), f"{address.host}:{address.port}"
        except TimeoutError:
            raise
        except OSError as error:
            raise PartitionConnectionError(f"no data connection to {text}: {error}") from error
    raise PartitionConnectionError(f"no data connection to {text}: no answer within {CONNECT_S:g} s")
