"""InputChannel: what an input gate needs of one producer, wherever the producer is.

    LocalInputChannel     in this process: ``local_input_channel``
    RemoteInputChannel    in another one: the room ``transport``, which is above this one; a gate is given
                          ``RemoteChannels`` to open them with, or None where there are no other processes

    request() ──► (not found: again after ``back_off``) ──► reading ──► consumed
                                     └── after the last back-off: PartitionNotFoundError

Source: Flink's InputChannel and ConnectionManager, interfaces that its Netty classes implement.
Held by: tests/exchange/test_input_gate.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from engine.errors import PartitionNotFoundError

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.exchange.buffer_pool import Buffer
    from engine.exchange.elements import OversizedRow
    from engine.exchange.ready_queue import ReadyQueue
    from engine.exchange.row_pieces import Arrivals
    from engine.graph.deployment import InputChannelDescriptor

#: milliseconds until an unregistered partition is asked for again; doubled each time
FIRST_BACKOFF_MS: Final = 100
LAST_BACKOFF_MS: Final = 10_000


class BackOff:
    """The times at which an unregistered partition is asked for again: later and later, and then no more."""

    __slots__ = ("_wait_ms", "retry_at_ms")

    def __init__(self) -> None:
        self._wait_ms = 0
        #: None: not waiting
        self.retry_at_ms: float | None = None

    def is_over(self, now_ms: float) -> bool:
        """Whether it may be asked for."""
        return self.retry_at_ms is None or now_ms >= self.retry_at_ms

    def begin(self, now_ms: float, refusal: str) -> None:
        """Wait: it was refused. Raises: PartitionNotFoundError: it was asked for the last time."""
        if self._wait_ms >= LAST_BACKOFF_MS:
            raise PartitionNotFoundError(f"{refusal}; asked again until the back-off was {LAST_BACKOFF_MS} ms")
        self._wait_ms = min(max(2 * self._wait_ms, FIRST_BACKOFF_MS), LAST_BACKOFF_MS)
        self.retry_at_ms = now_ms + self._wait_ms

    def end(self) -> None:
        """Say that it was found, or is asked for once more."""
        self.retry_at_ms = None


class InputChannel(Protocol):
    """Reads one subpartition. Thread: the gate's; ``release`` any."""

    index: int
    descriptor: InputChannelDescriptor
    #: True if it was read to its end
    is_consumed: bool

    @property
    def back_off(self) -> BackOff:
        """Return the retries of a partition that was not found."""

    @property
    def is_reading(self) -> bool:
        """Whether the producer has been asked and has not refused."""

    def request(self, now_ms: float) -> None:
        """Ask for the data unless that has been done, or it is not time yet to ask again.

        Raises:
            PartitionNotFoundError: asked for the last time.
            PartitionConnectionError: the other process cannot be reached.
        """

    def poll(self) -> pa.RecordBatch | Buffer | OversizedRow | None:
        """Return the next element, or None: nothing now, or the end (``is_consumed``).

        Raises:
            ProducerFailedError, PartitionReleasedError, PartitionConnectionError: there will be no more.
        """

    def poll_pages(self, pages: list[Buffer], count_max: int, bytes_max: int, /) -> int:
        """Add pages behind the last element, which was one, to a list; see SubpartitionView."""

    def release(self) -> None:
        """Stop reading and give back what is held. Idempotent."""


class RemoteChannels(Protocol):
    """Opens the channels of one gate that lead to other processes, and ends what they share."""

    def open(
        self, index: int, descriptor: InputChannelDescriptor, ready: ReadyQueue, arrivals: Arrivals, /
    ) -> InputChannel:
        """Return a channel; nothing is asked for before ``request``."""

    def cancel(self) -> None:
        """Wake all threads that wait for a connection. Thread: any."""

    def close(self) -> None:
        """Give back what the channels share. Idempotent."""
