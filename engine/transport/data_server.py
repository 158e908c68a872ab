"""DataServer: lets other TaskManagers read the result partitions of this one.

    server = DataServer(manager, settings) ─► start() ─► address ─► close()

    UNIX socket ─┐                       ┌─► ServerConnection: reader thread
    TCP socket ──┴─► Greeter ─► proved ──┘                     writer thread
One thread accepts on both sockets and greets (greeter.py): only a peer that proved that it is of this cluster gets
threads, and in bounded time. Files are read by threads of their own (read_ahead), so that a slow one costs its own
channel only. A partition that is not registered yet is refused, and the reader told when it is there.

Off loopback nothing listens without credentials or mutual TLS. The UNIX socket lies in a folder of its own that only
this user may enter, and that the next one sweeps when this process is killed. It is never within TLS: what it carries
does not leave the kernel of this machine, and a process that could listen there could read the others' memory as well.

Held by: tests/transport/test_stalled_peers.py
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from engine.closing import close_all
from engine.errors import ConfigurationError, EngineError, PartitionNotFoundError
from engine.exchange.batch_stream import stream_of
from engine.exchange.partition_file import partition_identity
from engine.exchange.partition_manager import ResultPartitionManager
from engine.exchange.read_ahead import DiskReaders
from engine.exchange.ready_queue import ReadyQueue
from engine.exchange.sorted_partition import SortedPartition
from engine.exchange.subpartition_view import SubpartitionView
from engine.network_address import address_text, bind_socket, is_loopback
from engine.private_folder import scratch_folder
from engine.process_folder import FolderPrefix, ProcessFolder, sweep
from engine.rpc.refusals import REFUSALS
from engine.transport.data_address import DataAddress
from engine.transport.greeter import Greeter, RareWarning
from engine.transport.greeting_channel import LoopGreetingChannel
from engine.transport.handshake import HANDSHAKE_S, REASONS, Greeting, greeting_as_writer
from engine.transport.read_request import ReadRequest, error_response
from engine.transport.server_connection import ServerConnection

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.rpc.credentials import Credentials
    from engine.rpc.program import Program
    from engine.rpc.tls import Tls

_log = logging.getLogger(__name__)
#: connections at a time of peers that proved themselves
CONNECTIONS_MAX: Final = 1024
#: connections that wait to be accepted
BACKLOG: Final = 1024
#: seconds of silence within a frame or TLS record; more than a TaskManager may be silent (heartbeat.timeout)
MESSAGE_S: Final = 60.0
#: limit of a UNIX socket's path in bytes, by the operating system
_UNIX_PATH_MAX: Final = 107
#: largest buffer of a reader, and so the largest frame
BUFFER_BYTES_MAX: Final = 1 << 24
_FOLDER_PREFIX: Final = FolderPrefix.DATA


def channel_identity(request: ReadRequest) -> int:
    """Return the number that marks the data of a partition and attempt."""
    return int.from_bytes(partition_identity(request.partition)[:8], "little")


@dataclass(frozen=True)
class DataPlaneSettings:
    """The addresses of a data server and the credentials of its readers."""

    #: name of the cluster, equal on both sides
    cluster: str = "drey"
    #: secret of the cluster; None only on loopback
    credentials: Credentials | None = None
    #: address of the TCP socket, port 0: any free one; bind_host None: no TCP
    bind_host: str | None = "127.0.0.1"
    port: int = 0
    #: host under which others reach this machine; "": bind_host
    host: str = ""
    #: True if readers on this host find a UNIX socket
    with_unix: bool = True
    #: contexts of mutual TLS for TCP; the UNIX socket stays plain
    tls: Tls | None = None
    #: program of this process, which the other side must match; None: any program
    program: Program | None = None

    @property
    def greeting(self) -> Greeting:
        """The greeting at the begin of a connection: what is sent, and what the other side must send."""
        return Greeting(self.cluster, self.credentials, self.program)


class PartitionSource:
    """Opens views of this process's partitions for a connection."""

    def __init__(self, manager: ResultPartitionManager) -> None:
        self._manager = manager
        self.disk = DiskReaders()
        self.error_response = error_response
        self._lock = threading.Lock()
        # guarded by: self._lock
        self._watches: dict[int, list[tuple[Any, Callable[[], None]]]] = {}

    def open_view(
        self, payload: bytes, connection: ServerConnection, ready: ReadyQueue, number: int
    ) -> tuple[Any, int, int]:
        """Return (view, identity, size of the reader's buffers)."""
        request = msgspec.msgpack.decode(payload, type=ReadRequest)
        if not 0 < request.buffer_size <= BUFFER_BYTES_MAX:
            raise ValueError(f"buffers of {request.buffer_size} bytes: 1 to {BUFFER_BYTES_MAX} are possible")
        try:
            view = self._view_of(request, ready, number)
        except PartitionNotFoundError:
            callback = functools.partial(connection.announce_available, number)
            with self._lock:
                self._watches.setdefault(id(connection), []).append((request.partition, callback))
            self._manager.notify_registered(request.partition, callback)
            raise
        return view, channel_identity(request), request.buffer_size

    def _view_of(self, request: ReadRequest, ready: ReadyQueue, number: int) -> SubpartitionView:
        partition = self._manager.find(request.partition)
        if isinstance(partition, SortedPartition) and request.key_range is not None:
            return partition.create_range_view(request.key_range, request.buffer_size, ready, number, self.disk)
        return self._manager.create_view(
            request.partition, request.subpartition_index, ready, number, self.disk, request.part
        )

    def batch_bytes(self, batch: pa.RecordBatch) -> memoryview:
        """Return a batch as an Arrow IPC stream."""
        return stream_of(batch)

    def forget(self, connection: ServerConnection) -> None:
        """Drop what a connection waits for."""
        with self._lock:
            watches = self._watches.pop(id(connection), [])
        for partition, callback in watches:
            self._manager.forget(partition, callback)


class DataServer:
    """Accepts connections of other TaskManagers."""

    def __init__(self, manager: ResultPartitionManager, settings: DataPlaneSettings) -> None:
        is_open = settings.credentials is None and settings.tls is None
        if settings.bind_host is not None and is_open and not is_loopback(settings.bind_host):
            raise ConfigurationError(
                f"the data server does not listen on {settings.bind_host} without the cluster's secret "
                "(security.secret-file) or TLS (security.ssl.enabled)"
            )
        self._source = PartitionSource(manager)
        self._settings = settings
        self._folder: ProcessFolder | None = None
        self._listeners: list[socket.socket] = []
        self._greeter: Greeter | None = None
        self._lock = threading.Lock()
        # guarded by: self._lock
        self._is_closed = False
        self._refused = RareWarning(_log)
        self._connections: dict[threading.Thread, socket.socket] = {}
        self._servers: set[ServerConnection] = set()
        self.address = DataAddress()

    def start(self) -> None:
        """Bind and accept from now on; ``address`` is known afterwards."""
        settings = self._settings
        unix_path, host, port = "", "", 0
        try:
            if settings.with_unix:
                unix_path = self._listen_unix()
            if settings.bind_host is not None:
                listener = bind_socket(settings.bind_host, settings.port)
                self._listeners.append(listener)
                listener.listen(BACKLOG)
                host, port = settings.host or settings.bind_host, listener.getsockname()[1]
        except OSError as error:
            self.close()
            where = address_text(settings.bind_host or "", settings.port)
            raise ConfigurationError(f"the data server cannot listen on {where}: {error}") from error
        self.address = DataAddress(unix_path, host, port)
        self._greeter = Greeter(self._listeners, self._greet, self._renewed)
        self._greeter.start()

    @property
    def connection_count(self) -> int:
        """Connections that are open now, those that have proved nothing yet included."""
        strangers = self._greeter.strangers if self._greeter is not None else ()
        with self._lock:
            return len({*strangers, *self._connections.values()})

    def close(self) -> None:
        """End all connections and threads. Idempotent."""
        with self._lock:
            self._is_closed = True
        greeter = [] if self._greeter is None else [self._greeter.close]
        listeners = [listener.close for listener in self._listeners]
        disk = self._source.disk
        close_all([*greeter, self._refused.close, *listeners, self._end_connections, disk.close, self._close_folder])

    def _end_connections(self) -> None:
        with self._lock:
            servers = list(self._servers)
            connections = dict(self._connections)
        tells = [functools.partial(server.shut_down, "this TaskManager closes") for server in servers]
        shuts = [functools.partial(_shut_down, connection) for connection in connections.values()]
        close_all([*tells, *shuts, *(thread.join for thread in connections)])

    def _close_folder(self) -> None:
        if self._folder is not None:
            self._folder.close()
            self._folder = None

    def _listen_unix(self) -> str:
        directory = scratch_folder()
        sweep(directory, _FOLDER_PREFIX)
        self._folder = ProcessFolder.create(directory, _FOLDER_PREFIX)
        path = str(self._folder.path / "socket")
        if len(os.fsencode(path)) > _UNIX_PATH_MAX:
            self._close_folder()
            return ""
        self._bind_unix(path)
        return path

    def _bind_unix(self, path: str) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX)
        self._listeners.append(listener)
        # A peer that finds the path is to find a socket that listens.
        unheard = Path(path).with_name("new")
        listener.bind(str(unheard))
        listener.listen(BACKLOG)
        unheard.rename(path)
        return listener

    def _renewed(self) -> socket.socket | None:
        """Return a new socket at the path of one that was removed, None: it exists."""
        path = self.address.unix_path
        if not path or self._folder is None:
            return None
        self._folder.ensure()
        return None if Path(path).exists() else self._bind_unix(path)

    async def _greet(self, connection: socket.socket, peer: str) -> bool:
        """Authenticate a peer and give it a thread; False: it is refused."""
        try:
            channel = LoopGreetingChannel(connection, HANDSHAKE_S)
            if self._settings.tls is not None and connection.family != socket.AF_UNIX:
                await channel.secure_as_writer(self._settings.tls.server)
            await greeting_as_writer(channel, self._settings.greeting)
            prepare_socket(connection)
        except (OSError, EngineError) as error:
            reason = REASONS.get(type(error.__cause__))
            if reason is not None:
                REFUSALS.note(reason, peer.rpartition(":")[0] or peer, "a data connection", str(error))
            else:
                self._refused.tell(f"a data connection from {peer} was refused: {error}")
            return False
        server = ServerConnection(connection.fileno(), peer, self._source, channel.session())
        thread = threading.Thread(target=self._serve, args=(connection, server), name=f"data-{peer}", daemon=True)
        with self._lock:
            if self._is_closed or len(self._connections) >= CONNECTIONS_MAX:
                self._refused.tell(f"a data connection from {peer} was refused: there are {len(self._connections)}")
                return False
            thread.start()
            self._connections[thread] = connection
        return True

    def _serve(self, connection: socket.socket, server: ServerConnection) -> None:
        try:
            self._run(server)
        except (OSError, EngineError, RuntimeError) as error:  # the last one where there is no thread
            _log.warning("a data connection from %s has ended: %s", server.peer, error)
        finally:
            with self._lock:  # entered by the thread that started it
                self._connections.pop(threading.current_thread(), None)
            connection.close()

    def _run(self, server: ServerConnection) -> None:
        with self._lock:
            if self._is_closed:
                return
            self._servers.add(server)
        writer = threading.Thread(target=server.write_loop, name=f"data-write-{server.peer}", daemon=True)
        try:
            writer.start()
            server.read_loop()
        finally:
            server.shut_down("its reader ended")
            if writer.ident is not None:
                writer.join()
            self._source.forget(server)
            server.forget_descriptor()
            with self._lock:
                self._servers.discard(server)


def prepare_socket(connection: socket.socket) -> None:
    """Set up a greeted socket: it blocks, sends at once, and notices a dead peer or one that stops within a message."""
    connection.settimeout(None)
    seconds, fraction = divmod(MESSAGE_S, 1)
    timeout = struct.pack("@ll", int(seconds), int(fraction * 1_000_000))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, timeout)
    if connection.family == socket.AF_UNIX:
        return
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 30_000)


def _shut_down(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
