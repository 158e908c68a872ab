"""LocalInputChannel: one producer of an input gate that lives in the same process.

    request() ──► (not found: again after ``back_off``) ──► reading ──► consumed
                                     └── after the last back-off: PartitionNotFoundError

The view comes from the partition manager. A producer that is not registered yet is asked for again after 100 ms, 200 ms
and so on up to 10 s, and as soon as the manager says that it is there. Fragments of a row larger than a buffer, and
pieces of a stored batch, are put together: each is copied and recycled at once, so that any size passes through any
pool (``row_pieces``).

Source: Flink's LocalInputChannel.
Held by: tests/exchange/test_input_gate.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.errors import PartitionNotFoundError
from engine.exchange.batch_stream import batch_of
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
_LAST_FRAGMENT: Final = int(BufferKind.LAST_FRAGMENT)
_LAST: Final = (_LAST_FRAGMENT, int(BufferKind.LAST_BATCH))


class LocalInputChannel:
    """Reads one subpartition. Used by the gate's thread."""

    # All producers times all consumers have one each.
    __slots__ = (
        "_arrivals",
        "_back_off",
        "_has_asked_to_hear",
        "_manager",
        "_pieces",
        "_ready",
        "_view",
        "descriptor",
        "index",
        "is_consumed",
    )

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
        self._back_off: BackOff | None = None
        self._manager = manager
        self._ready = ready
        self._view: SubpartitionView | None = None
        self._has_asked_to_hear = False
        self._arrivals = arrivals
        #: pieces of large rows, from the first one on
        self._pieces: RowPieces | None = None

    @property
    def back_off(self) -> BackOff:
        """Retries of a partition that was not found."""
        if self._back_off is None:
            self._back_off = BackOff()
        return self._back_off

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
            self._back_off = None
        except PartitionNotFoundError as error:
            if not self.back_off.is_over(now_ms):  # the registration of another partition woke the gate
                return
            if self.back_off.retry_at_ms is None:
                self._has_asked_to_hear = True
                self._manager.notify_registered(partition, self._ready.wake)
            self.back_off.begin(now_ms, str(error))

    def poll(self) -> pa.RecordBatch | Buffer | OversizedRow | None:
        """Return the next element, or None: nothing now, or the end (``is_consumed``).

        Raises:
            ProducerFailedError, PartitionReleasedError: there will be no more.
        """
        view = self._view
        if view is None:
            return None
        while self._pieces is None or self._pieces.may_go_on():
            element, has_more = view.poll()
            if isinstance(element, Buffer):
                if element.kind == _ROWS:
                    if has_more:
                        self._ready.push_channel(self.index)
                    return element
                kind = element.kind
                if self._pieces is None:
                    self._pieces = RowPieces(self.index, self._arrivals)
                self._pieces.add(element, is_row=kind <= _LAST_FRAGMENT)
                if kind not in _LAST:
                    if has_more:
                        continue
                    return None
                element = self._pieces.take_row() if kind == _LAST_FRAGMENT else batch_of(self._pieces.take())
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
        if self._has_asked_to_hear:
            self._manager.forget(self.descriptor.partition, self._ready.wake)
        view, self._view = self._view, None
        if view is not None:
            view.release()
