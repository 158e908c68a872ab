"""InputGate: one logical input of a task, fed by one channel per producer.

    gate = InputGate(channels, manager) ─►  next()* until None ─► close()          in the task's thread
    gate.cancel() or close() from another thread wakes next() with TaskCancelledError

    channel 0 ─┐
    channel 1 ─┼─► ready queue (native, fair) ─► next(): RecordBatch │ RowPage (recycle it) │ OversizedRow │ None: end
    channel 2 ─┘

With ``in_order`` a channel is read to its end before the next one; the others wait with what they have.

Views are requested with the first call. Producers that are not registered yet are asked for again with back-off, and as
soon as they are registered. ``poll`` waits for a given time and then returns NOTHING_YET. A producer's failure is
raised to the consumer as ProducerFailedError. Whatever is lost, the error's ``partition`` says what was being read: its
producer may have to run again.

Source: Flink's SingleInputGate. Local channels return the producer's buffers; the remote ones of a gate have a pool.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from engine.clock import Clock, SystemClock
from engine.closing import close_all
from engine.errors import NotYetSupportedError, PartitionReleasedError, ResourceError, TaskCancelledError
from engine.exchange.buffer_pool import Buffer
from engine.exchange.elements import LARGE_BYTES, OversizedRow
from engine.exchange.input_channel import InputChannel, RemoteChannels
from engine.exchange.local_input_channel import LocalInputChannel
from engine.exchange.partition_manager import ResultPartitionManager
from engine.exchange.passing import before_wait
from engine.exchange.ready_queue import CLOSED, TIMED_OUT, ReadyQueue
from engine.exchange.row_pieces import Arrivals
from engine.graph.deployment import InputChannelDescriptor, PartitionLocation
from engine.records.arrow_batch import batch_bytes

if TYPE_CHECKING:
    import pyarrow as pa


class NothingYet:
    """The absence of an element in time. There is one instance: NOTHING_YET."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "NOTHING_YET"


NOTHING_YET: Final = NothingYet()


class InputGate:
    """Elements of all channels, in the order in which they come; fair among channels.

    Args:
        channels: at least one.
        manager: of this process.
        clock: for the back-off.
        reads: opens the channels to other processes; None: there are none.
        in_order: channels are read one after the other.
    """

    def __init__(
        self,
        channels: Sequence[InputChannelDescriptor],
        manager: ResultPartitionManager,
        clock: Clock | None = None,
        reads: RemoteChannels | None = None,
        *,
        in_order: bool = False,
    ) -> None:
        self._in_order = in_order
        self.elements = 0
        self.bytes = 0
        #: channel of the last element
        self.channel_index = 0
        self._clock = clock or SystemClock()
        self._manager = manager
        self._reads = reads
        self._ready = ReadyQueue(len(channels))
        self._arrivals = Arrivals(self._ready.push_channel)
        self._channels = [self._new_channel(index, channel) for index, channel in enumerate(channels)]
        self._open_count = len(self._channels)
        #: the last element, if it is a large batch that came by reference
        self._given: pa.RecordBatch | None = None
        self._are_all_reading = False
        self._is_closed = False
        #: True if the task looks for something to read here; read by any thread
        self.is_waiting = False
        #: time that it did so
        self.idle_ns = 0
        #: channels read in order: the current one, and those that have something but must wait
        self._turn = 0
        self._early: set[int] = set()

    @property
    def channels(self) -> tuple[InputChannel, ...]:
        """The channels, in order of the descriptor."""
        return tuple(self._channels)

    @property
    def is_finished(self) -> bool:
        """Whether every channel was read to its end."""
        return self._open_count == 0

    def next(self) -> pa.RecordBatch | Buffer | OversizedRow | None:
        """Return the next element, or None when all channels have ended; waits without the GIL.

        Raises:
            TaskCancelledError: the gate was closed.
            ProducerFailedError, PartitionReleasedError, PartitionNotFoundError: an input is lost.
        """
        while True:
            element = self.poll(-1)
            if not isinstance(element, NothingYet):
                return element

    def poll(self, timeout_ms: int) -> pa.RecordBatch | Buffer | OversizedRow | NothingYet | None:
        """Return the next element, None at the end, or NOTHING_YET after that time (0: at once, -1: never)."""
        deadline_ms = None
        self._given = None
        while True:
            if self._open_count == 0 and not self._is_closed:
                return None
            # Most elements are there already: for these there is no wait.
            channel_index = self._ready.pop_channel(0) if self._are_all_reading else TIMED_OUT
            if channel_index == TIMED_OUT:
                if timeout_ms == 0 and self._are_all_reading:
                    return NOTHING_YET
                if deadline_ms is None and timeout_ms >= 0:
                    deadline_ms = self._now_ms() + timeout_ms
                channel_index = self._wait(deadline_ms)
            if channel_index == CLOSED:
                raise TaskCancelledError("the input gate was closed")
            if channel_index < 0:
                if channel_index == TIMED_OUT and deadline_ms is not None and self._now_ms() >= deadline_ms:
                    return NOTHING_YET
                continue
            if self._in_order and channel_index != self._turn:
                self._early.add(channel_index)
                continue
            channel = self._channels[channel_index]
            if channel.is_consumed:
                continue
            try:
                element = channel.poll()
            except ResourceError as error:
                if self._is_closed and isinstance(error, PartitionReleasedError):
                    raise TaskCancelledError("the input gate was closed") from error
                error.partition = channel.descriptor.partition
                raise
            if element is not None:
                self.elements += 1
                self.channel_index = channel_index
                return self._counted(element)
            if channel.is_consumed:
                self._open_count -= 1
                self._next_turn()
            elif not channel.is_reading:
                self._are_all_reading = False

    def _counted(self, element: pa.RecordBatch | Buffer | OversizedRow) -> pa.RecordBatch | Buffer | OversizedRow:
        """Count the bytes of an element, and return it."""
        if isinstance(element, (Buffer, OversizedRow)):
            self.bytes += element.size
            return element
        size_bytes = batch_bytes(element)
        self.bytes += size_bytes
        if size_bytes >= LARGE_BYTES:
            # Its writer waits until the gate is asked for more, whatever still holds the rows.
            self._given, element = element, element.slice(0)
        return element

    def poll_pages(self, pages: list[Buffer], count_max: int, bytes_max: int) -> int:
        """Add pages behind the last element, which was one, in its channel to a list; see SubpartitionView."""
        count = len(pages)
        size_bytes = self._channels[self.channel_index].poll_pages(pages, count_max, bytes_max)
        self.elements += len(pages) - count
        self.bytes += size_bytes
        return size_bytes

    def _wait(self, deadline_ms: float | None) -> int:
        """Return the next ready channel, or the result at the deadline."""
        wait_ms = -1
        if deadline_ms is not None or not self._are_all_reading:
            wait_ms = self._wait_ms(deadline_ms)
            channel_index: int = self._ready.pop_channel(0)
            if channel_index != TIMED_OUT:
                return channel_index
        before_wait()
        self.is_waiting = True
        begin_ns = time.perf_counter_ns()
        channel_index = self._ready.pop_channel(wait_ms)
        self.idle_ns += time.perf_counter_ns() - begin_ns
        self.is_waiting = False
        return channel_index

    def cancel(self) -> None:
        """Wake a waiting ``next`` with TaskCancelledError, which every later call raises too. Thread: any."""
        self._is_closed = True
        if self._reads is not None:
            self._reads.cancel()
        self._ready.close()

    def close(self) -> None:
        """Cancel, and let go of all views: what was not read is dropped. Idempotent. Thread: any."""
        self.cancel()
        self._given = None
        reads = [] if self._reads is None else [self._reads.close]
        close_all([*(channel.release for channel in self._channels), *reads])

    def _new_channel(self, index: int, descriptor: InputChannelDescriptor) -> InputChannel:
        if descriptor.location is not PartitionLocation.REMOTE:
            return LocalInputChannel(index, descriptor, self._manager, self._ready, self._arrivals)
        if self._reads is None:
            raise NotYetSupportedError(f"reading {descriptor.partition} from another process ({descriptor.address})")
        return self._reads.open(index, descriptor, self._ready, self._arrivals)

    def _next_turn(self) -> None:
        """Let the next channel be read where they are read in order."""
        self._turn += 1
        if self._turn in self._early:
            self._early.remove(self._turn)
            self._ready.push_channel(self._turn)

    def _wait_ms(self, deadline_ms: float | None) -> int:
        """Ask for missing views; return how long to wait for the next event at most, -1 for ever."""
        times = [] if deadline_ms is None else [deadline_ms]
        if not self._are_all_reading:
            now_ms = self._now_ms()
            self._are_all_reading = True
            for channel in self._channels:
                self._request(channel, now_ms)
                if not channel.is_reading and not channel.is_consumed:
                    self._are_all_reading = False
                    if channel.back_off.retry_at_ms is not None:
                        times.append(channel.back_off.retry_at_ms)
        if not times:
            return -1
        return max(0, int(min(times) - self._now_ms()) + 1) if min(times) > self._now_ms() else 0

    @staticmethod
    def _request(channel: InputChannel, now_ms: float) -> None:
        try:
            channel.request(now_ms)
        except ResourceError as error:
            error.partition = channel.descriptor.partition
            raise

    def _now_ms(self) -> float:
        return self._clock.monotonic_s() * 1000
