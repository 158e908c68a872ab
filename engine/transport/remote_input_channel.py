"""RemoteInputChannel: one producer of an input gate that lives in another process.

    request() ─► (not found: again after ``back_off``, or when the producer's side says that it is there)
              ─► reading ──► consumed                     poll(), release() as with LocalInputChannel

    RemoteReads       what the remote channels of one gate share: connections, and a pool of buffers
        exclusive     2 for each channel; fewer when the pool has no more, but always one
        floating      32 for the gate: go to the channels whose producers have more than there is room for

Row pages are received into buffers of the pool and returned as they are. Pieces of a large row, and of a RecordBatch
that was passed by reference or stored, are put together: each is copied and recycled at once (``row_pieces``).

Thread: the gate's; ``release`` any.

Source: Flink's RemoteInputChannel.
Held by: tests/transport/test_remote_channels.py
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

import msgspec

from engine.closing import close_all
from engine.errors import TaskCancelledError
from engine.exchange.batch_stream import batch_of
from engine.exchange.buffer_pool import BufferKind
from engine.exchange.input_channel import BackOff
from engine.exchange.row_pieces import RowPieces
from engine.transport.data_server import channel_identity
from engine.transport.read_request import ErrorCode, ReadRequest, error_of

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.exchange.buffer_pool import Buffer, LocalBufferPool, NetworkBufferPool
    from engine.exchange.elements import OversizedRow
    from engine.exchange.ready_queue import ReadyQueue
    from engine.exchange.row_pieces import Arrivals
    from engine.graph.deployment import InputChannelDescriptor, KeyRange
    from engine.transport.client_connection import ReceiverChannel
    from engine.transport.connection_manager import ConnectionManager, Peer

EXCLUSIVE_BUFFERS: Final = 2
FLOATING_BUFFERS: Final = 32
_LAST_FRAGMENT: Final = int(BufferKind.LAST_FRAGMENT)
_LAST_BATCH: Final = int(BufferKind.LAST_BATCH)
_END: Final = 5


class RemoteReads:
    """The resources that a gate needs to read from other processes.

    Args:
        connections: of this process.
        network_pool: of this process.
        channel_count: channels that may be remote.
        key_range: of a sorted result.
        owner: name of the pool in logs.
    """

    def __init__(
        self,
        connections: ConnectionManager,
        network_pool: NetworkBufferPool,
        channel_count: int,
        key_range: KeyRange | None = None,
        owner: str = "input gate",
    ) -> None:
        self.connections = connections
        self.key_range = key_range
        self._network_pool = network_pool
        self._bounds = channel_count, EXCLUSIVE_BUFFERS * channel_count + FLOATING_BUFFERS
        self._owner = owner
        self._lock = threading.Lock()
        # guarded by: self._lock
        self._pool: LocalBufferPool | None = None
        self._is_closed = False
        #: True after cancel(); read by any thread
        self._is_cancelled = False

    def pool(self) -> LocalBufferPool:
        """Return the pool of the gate; it begins with the first remote channel."""
        with self._lock:
            if self._is_closed:
                raise TaskCancelledError("the input gate was closed")
            if self._pool is None:
                self._pool = self._network_pool.local_pool(*self._bounds, self._owner)
            return self._pool

    def open(
        self, index: int, descriptor: InputChannelDescriptor, ready: ReadyQueue, arrivals: Arrivals
    ) -> RemoteInputChannel:
        """Return a channel; nothing is asked for before ``request``."""
        return RemoteInputChannel(index, descriptor, self, ready, arrivals)

    @property
    def is_cancelled(self) -> bool:
        """Whether the channel was released."""
        return self._is_cancelled

    def cancel(self) -> None:
        """End all waits for a connection. Thread: any."""
        self._is_cancelled = True

    def close(self) -> None:
        """Close the pool; buffers may still come back."""
        self.cancel()
        with self._lock:
            self._is_closed = True
            if self._pool is not None:
                self._pool.close()


class RemoteInputChannel:
    """Reads one subpartition from another process."""

    def __init__(
        self, index: int, descriptor: InputChannelDescriptor, reads: RemoteReads, ready: ReadyQueue, arrivals: Arrivals
    ) -> None:
        self.index = index
        self.descriptor = descriptor
        self.is_consumed = False
        #: True if the producer's side has been asked and has not refused
        self.is_reading = False
        self.back_off = BackOff()
        self._reads = reads
        self._ready = ready
        self._pieces = RowPieces(index, arrivals)
        self._lock = threading.Lock()
        # guarded by: self._lock
        self._peer: Peer | None = None
        self._channel: ReceiverChannel | None = None
        self._is_released = False

    def request(self, now_ms: float) -> None:
        """Ask for the data unless that has been done, or it is not time yet to ask again.

        Raises:
            PartitionNotFoundError: asked for the last time.
            PartitionConnectionError: the other process cannot be reached.
        """
        if self.is_reading or self.is_consumed:
            return
        if self._channel is None:
            self._open()
        elif not self._is_time(now_ms):
            return
        with self._lock:
            if self._is_released or self._channel is None:
                return
            self.is_reading = True
            self.back_off.end()
            self._channel.request(self._request_bytes())

    def poll(self) -> pa.RecordBatch | Buffer | OversizedRow | None:
        """Return the next element, or None: nothing now, or the end (``is_consumed``).

        Raises:
            ProducerFailedError, PartitionReleasedError, PartitionConnectionError: there will be no more.
        """
        channel = self._channel
        if channel is None:
            return None
        while self._pieces.may_go_on():
            buffer, kind, has_more = channel.poll()
            if buffer is None:
                if kind == _END:
                    self.is_consumed = True
                    self.release()
                elif channel.error is not None:
                    self._meet(channel)
                return None
            if kind == 0:
                if has_more:
                    self._ready.push_channel(self.index)
                return buffer
            self._pieces.add(buffer, is_row=kind <= _LAST_FRAGMENT)
            if kind in (_LAST_FRAGMENT, _LAST_BATCH):
                if has_more:
                    self._ready.push_channel(self.index)
                return self._pieces.take_row() if kind == _LAST_FRAGMENT else batch_of(self._pieces.take())
            if not has_more:
                return None
        return None

    def poll_pages(self, _pages: list[Buffer], _count_max: int, _bytes_max: int) -> int:
        """Add none: pages come one by one."""
        return 0

    def release(self) -> None:
        """Stop reading and give buffers and connection back. Idempotent. Thread: any."""
        close_all([self._release_channel, self._release_peer])

    def _release_channel(self) -> None:
        with self._lock:
            self._is_released = True
            channel, self._channel = self._channel, None
            if channel is not None:
                channel.release()

    def _release_peer(self) -> None:
        with self._lock:
            peer, self._peer = self._peer, None
        if peer is not None:
            self._reads.connections.release(peer)

    def _open(self) -> None:
        pool = self._reads.pool()
        identity = channel_identity(self._read_request())
        peer = self._reads.connections.acquire(self.descriptor.address, lambda: self._reads.is_cancelled)
        with self._lock:
            if not self._is_released:
                self._peer = peer
                self._channel = peer.connection.open_channel(self._ready, self.index, pool, EXCLUSIVE_BUFFERS, identity)
                return
        self._reads.connections.release(peer)

    def _is_time(self, now_ms: float) -> bool:
        assert self._channel is not None
        if self._channel.is_available:
            return True
        if self.back_off.retry_at_ms is None:
            place = f"{self.descriptor.partition} is not registered at {self.descriptor.address}"
            self.back_off.begin(now_ms, f"result partition {place}")
        return self.back_off.is_over(now_ms)

    def _meet(self, channel: ReceiverChannel) -> None:
        """Raise what ended the channel, or have it asked for again."""
        assert channel.error is not None
        code, text = channel.error
        if code == ErrorCode.NOT_FOUND:
            self.is_reading = False
            return
        raise error_of(code, text, self.descriptor.partition, self.descriptor.address)

    def _read_request(self) -> ReadRequest:
        return ReadRequest(
            self.descriptor.partition,
            self.descriptor.subpartition_index,
            self._reads.pool().segment_size,
            self._reads.key_range,
            self.descriptor.part,
        )

    def _request_bytes(self) -> bytes:
        return msgspec.msgpack.encode(self._read_request())
