"""LocalInputChannel: one producer of an input gate that lives in the same process.

    request() ──► (not found: again after ``back_off``) ──► reading ──► consumed
                                     └── after the last back-off: PartitionNotFoundError

The view comes from the partition manager. A producer that is not registered yet is asked for again after 100 ms, 200 ms
and so on up to 10 s, and as soon as the manager says that it is there. Fragments of a row larger than a buffer are put
together: each piece is copied and recycled at once, so a row of any size passes through any pool (``row_pieces``).

Source: Flink's LocalInputChannel.
Held by: tests/exchange/test_input_gate.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from engine.errors import PartitionNotFoundError
from engine.exchange.buffer_pool import Buffer, BufferKind
from engine.exchange.elements import EndOfPartitionEvent
from engine.exchange.input_channel import BackOff
from engine.exchange.partition_manager import ResultPartitionManager
from engine.exchange.ready_queue import ReadyQueue
from engine.exchange.row_pieces import Arrivals, RowPieces
from engine.exchange.subpartition_view import SubpartitionView
from engine.graph.deployment import InputChannelDescriptor

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.exchange.elements import OversizedRow

_ROWS: Final = int(BufferKind.ROWS)
_FRAGMENT: Final = int(BufferKind.FRAGMENT)


class LocalInputChannel:
    """Reads one subpartition. Used by the gate's thread."""

    def __init__(
        self,
        index: int,
        descriptor: InputChannelDescriptor,
        manager: ResultPartitionManager,
        ready: ReadyQueue,
        arrivals: Arrivals,
    ) -> None:
        self.index = index
        self.descriptor = descriptor
        self.is_consumed = False
        self.back_off = BackOff()
        self._manager = manager
        self._ready = ready
        self._view: SubpartitionView | None = None
        self._wake: Callable[[], None] = ready.wake
        self._pieces = RowPieces(index, arrivals)

    @property
    def is_reading(self) -> bool:
        """Whether the view is there."""
        return self._view is not None

    def request(self, now_ms: float) -> None:
        """Ask for the view unless it is there, or it is not time yet.

        Raises:
            PartitionNotFoundError: asked for the last time.
        """
        if self._view is not None or self.is_consumed:
            return
        partition = self.descriptor.partition
        try:
            self._view = self._manager.create_view(
                partition, self.descriptor.subpartition_index, self._ready, self.index, part=self.descriptor.part
            )
            self.back_off.end()
        except PartitionNotFoundError as error:
            if not self.back_off.is_over(now_ms):  # the registration of another partition woke the gate
                return
            if self.back_off.retry_at_ms is None:
                self._manager.notify_registered(partition, self._wake)
            self.back_off.begin(now_ms, str(error))

    def poll(self) -> pa.RecordBatch | Buffer | OversizedRow | None:
        """Return the next element, or None: nothing now, or the end (``is_consumed``).

        Raises:
            ProducerFailedError, PartitionReleasedError: there will be no more.
        """
        view = self._view
        if view is None:
            return None
        while self._pieces.may_go_on():
            element, has_more = view.poll()
            if isinstance(element, Buffer):
                if element.kind == _ROWS:
                    if has_more:
                        self._ready.push_channel(self.index)
                    return element
                is_last = element.kind != _FRAGMENT
                self._pieces.add(element)
                if not is_last:
                    if has_more:
                        continue
                    return None
                element = self._pieces.take_row()
            elif isinstance(element, EndOfPartitionEvent):
                self.is_consumed = True
                view.consumed()
                self.release()
                return None
            if has_more:
                self._ready.push_channel(self.index)
            return element
        return None

    def poll_pages(self, pages: list[Buffer], count_max: int, bytes_max: int) -> int:
        """Add pages behind the last element, which was one, to a list; see SubpartitionView."""
        return 0 if self._view is None else self._view.poll_pages(pages, count_max, bytes_max)

    def release(self) -> None:
        """Let go of the view. Idempotent. Thread: any; the reader may be in ``poll`` and keeps its fragments."""
        self._manager.forget(self.descriptor.partition, self._wake)
        view, self._view = self._view, None
        if view is not None:
            view.release()
