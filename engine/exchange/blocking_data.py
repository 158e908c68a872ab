"""The data of a BLOCKING result partition: in memory first, then all of it in one file; never in two places.

    add(buffer, subpartition)* ─► finish() ─► open_view(...)* each read to its end, any number of times ─► release()
                 └── spill() at any time, from any thread that needs the memory

    MEMORY ──spill──► SPILLING ──written──► FILE        every later buffer goes straight to the file
       ▲                 └──write failed──► MEMORY      (the error goes to the caller)
    any ──release──► RELEASED                           buffers go back, files are removed

What a view does depends on the state. In MEMORY it returns shares of the held buffers. While SPILLING it returns
nothing and is notified afterwards. From FILE it reads one block at a time (memory of its own, dropped when the reader
recycles), and the operating system reads the next two ahead; for another process, a disk reader does the reads that
would wait (read_ahead). A view that began in memory goes on in the file at the same buffer. Nothing is readable before
``finish``.

A view may read a part [begin, end) of PARTS: the buffers from ``count * begin // PARTS`` on, up to those of the part
behind it. A row larger than a buffer is in the part in which it begins, as is a batch.

Locks: one condition per partition. Files are written outside of it, in state SPILLING, when nothing else changes.

Source: Flink's SpillableSubpartition and its views; the file is that of the sort-shuffle.
"""

from __future__ import annotations

import logging
import threading
from array import array
from bisect import bisect_left
from collections.abc import Callable
from enum import Enum, auto
from typing import Final

from engine.closing import close_all
from engine.errors import IllegalTransitionError, PartitionReleasedError, ProducerFailedError
from engine.exchange.block_index import BlockEntry
from engine.exchange.buffer_pool import Buffer, BufferKind
from engine.exchange.elements import END_OF_PARTITION, EndOfPartitionEvent
from engine.exchange.partition_file import PartitionFile
from engine.exchange.read_ahead import DiskReaders, ReadAhead
from engine.exchange.ready_queue import ReadyQueue
from engine.exchange.subpartition_view import SubpartitionView
from engine.graph.subpartition_share import PARTS, WHOLE

LOGGER = logging.getLogger(__name__)
READ_AHEAD_BLOCKS: Final = 2
#: position in place of the end of a view that does not know its part yet
NOT_PLACED: Final = -1
_UNENDED: Final = (int(BufferKind.FRAGMENT), int(BufferKind.BATCH))
_NONE_INSIDE: Final = array("q")


class DataState(Enum):
    """The place of the buffers."""

    MEMORY = auto()
    SPILLING = auto()
    FILE = auto()
    RELEASED = auto()


class BlockingData:
    """Buffers of all subpartitions of one BLOCKING result partition.

    Args:
        subpartition_count: stored subpartitions.
        new_file: makes the file when memory is short.
    """

    def __init__(self, subpartition_count: int, new_file: Callable[[], PartitionFile]) -> None:
        self._changed = threading.Condition()
        self._new_file = new_file
        # guarded by: self._changed
        self.state = DataState.MEMORY
        self.is_finished = False
        self.error: BaseException | None = None
        # No object for a subpartition: a process holds thousands of results with thousands of them each.
        self._buffers: dict[int, list[Buffer]] = {}
        self._counts = array("I", bytes(4 * subpartition_count))
        # ordinals of buffers that begin inside a row or batch, and the subpartitions whose next buffer does
        self._inside: dict[int, array[int]] = {}
        self._is_inside: set[int] = set()
        self._file: PartitionFile | None = None
        self._views: set[BlockingView] = set()

    # ---------------------------------------------------------------------------------------------- producer's side

    def add(self, buffer: Buffer, subpartition: int) -> None:
        """Take a buffer (also when this raises). Thread: the producer's."""
        try:
            with self._changed:
                self._wait_while_spilling()
                self._check_writable()
                if self.state is DataState.MEMORY:
                    self._buffers.setdefault(subpartition, []).append(buffer)
                    self._count(subpartition, buffer)
                    return
                file = self._file
            assert file is not None
            file.append(subpartition, (buffer,))
            self._count(subpartition, buffer)
        except BaseException:
            buffer.recycle()
            raise
        buffer.recycle()

    def finish(self) -> None:
        """Make the data readable; a file gets its index."""
        with self._changed:
            self._wait_while_spilling()
            self._check_writable()
            if self._file is not None:
                self._file.finish()
            self.is_finished = True
            self._notify_views()

    def fail(self, error: BaseException) -> None:
        """Drop the data; every read raises ProducerFailedError with this cause."""
        with self._changed:
            self._wait_while_spilling()
            self.error = error
            close_all([self._drop_buffers, self._delete_file, self._notify_views])

    def spill(self) -> int:
        """Write everything held to the file and give the buffers back; returns how many. Thread: any."""
        with self._changed:
            self._wait_while_spilling()
            if self.state is not DataState.MEMORY:
                return 0
            self.state = DataState.SPILLING
        file: PartitionFile | None = None
        try:
            file = self._new_file()
            for subpartition, buffers in sorted(self._buffers.items()):
                file.append(subpartition, buffers)
            if self.is_finished:
                file.finish()
        except BaseException:
            if file is not None:
                file.delete()
            self._end_spilling(DataState.MEMORY, None)
            raise
        return self._end_spilling(DataState.FILE, file)

    def release(self) -> None:
        """Give all buffers back and remove the files. Idempotent. Thread: any."""
        with self._changed:
            self._wait_while_spilling()
            if self.state is DataState.RELEASED:
                return
            self.state = DataState.RELEASED
            close_all([self._drop_buffers, self._delete_file, self._changed.notify_all, self._notify_views])

    @property
    def held_count(self) -> int:
        """Buffers in memory."""
        return sum(map(len, self._buffers.values()))

    @property
    def file_bytes(self) -> int:
        """Bytes of the data file."""
        return 0 if self._file is None else self._file.size_bytes

    # ---------------------------------------------------------------------------------------------- consumer's side

    def open_view(
        self,
        subpartition: int,
        listener: ReadyQueue,
        channel: int,
        disk: DiskReaders | None = None,
        part: tuple[int, int] = WHOLE,
    ) -> BlockingView:
        """Return an independent view that begins at the first buffer; the channel is pushed when there is data.

        Args: part: of the subpartition, if not all of it.
        """
        view = BlockingView(self, subpartition, listener, channel, disk, part)
        with self._changed:
            if self.state is DataState.RELEASED:
                raise PartitionReleasedError("the result partition was released and cannot be read")
            self._views.add(view)
            listener.push_channel(channel)
        return view

    def close_view(self, view: BlockingView) -> None:
        """Forget a view."""
        with self._changed:
            self._views.discard(view)

    def source(self, subpartition: int, ordinal: int, end: int) -> Buffer | PartitionFile | EndOfPartitionEvent | None:
        """Return the source of a view's next buffer: a share of it, the file, the end, or nothing for now.

        Args: end: of ``bounds``; NOT_PLACED before: then there is nothing, or an error.
        """
        with self._changed:
            if self.error is not None:
                text = f"the producer failed: {type(self.error).__name__}: {self.error}"
                raise ProducerFailedError(text) from self.error
            if self.state is DataState.RELEASED:
                raise PartitionReleasedError("the result partition was released and cannot be read")
            if end == NOT_PLACED or self.state is DataState.SPILLING:
                return None
            if ordinal >= end:
                return END_OF_PARTITION
            if self.state is DataState.MEMORY:
                return self._buffers[subpartition][ordinal].share()
            return self._file

    def bounds(self, subpartition: int, part: tuple[int, int]) -> tuple[int, int] | None:
        """Return the ordinals [begin, end) of the buffers of a part, or None before they are known."""
        if not self.is_finished:
            return None
        return self._cut(subpartition, part[0]), self._cut(subpartition, part[1])

    # ------------------------------------------------------------------------------------------------------ private

    def _count(self, subpartition: int, buffer: Buffer) -> None:
        if subpartition in self._is_inside:
            self._inside.setdefault(subpartition, array("q")).append(self._counts[subpartition])
            self._is_inside.discard(subpartition)
        if buffer.kind in _UNENDED:
            self._is_inside.add(subpartition)
        self._counts[subpartition] += 1

    def _cut(self, subpartition: int, position: int) -> int:
        """Return the first buffer behind a position that begins a row, a page or a batch."""
        ordinal = self._counts[subpartition] * position // PARTS
        inside = self._inside.get(subpartition, _NONE_INSIDE)
        index = bisect_left(inside, ordinal)
        while index < len(inside) and inside[index] == ordinal:
            index += 1
            ordinal += 1
        return ordinal

    def _wait_while_spilling(self) -> None:
        while self.state is DataState.SPILLING:
            self._changed.wait()

    def _check_writable(self) -> None:
        if self.state is DataState.RELEASED:
            raise PartitionReleasedError("the result partition was released and cannot be written")
        if self.is_finished or self.error is not None:
            raise IllegalTransitionError("the result partition is finished or failed and cannot be written")

    def _end_spilling(self, state: DataState, file: PartitionFile | None) -> int:
        count = 0
        with self._changed:
            self.state = state
            if state is DataState.FILE:
                self._file = file
                count = self._drop_buffers()
            self._changed.notify_all()
            self._notify_views()
        return count

    def _drop_buffers(self) -> int:
        count = self.held_count
        held, self._buffers = self._buffers, {}
        for buffers in held.values():
            for buffer in buffers:
                buffer.recycle()
        return count

    def _delete_file(self) -> None:
        if self._file is not None:
            self._file.delete()

    def _notify_views(self) -> None:
        for view in self._views:
            view.notify()


class BlockingView(SubpartitionView):
    """One reader of one subpartition of a BLOCKING result partition. Used by one thread.

    Args:
        disk: reads the file in place of the thread that polls.
        part: of the subpartition that is read.
    """

    def __init__(
        self,
        data: BlockingData,
        subpartition: int,
        listener: ReadyQueue,
        channel: int,
        disk: DiskReaders | None,
        part: tuple[int, int] = WHOLE,
    ) -> None:
        self._data = data
        self._subpartition = subpartition
        self._listener = listener
        self._channel = channel
        self._part = part
        #: ordinals: of the buffer to return next, of the one to read next, and of the one after the last
        self._ordinal = self._read_ordinal = 0
        self._end = NOT_PLACED
        self._block_index = 0
        self._file: PartitionFile | None = None
        self._ahead = ReadAhead(self._load, disk, self.notify, lambda: None, self._load_at_once)

    def notify(self) -> None:
        """Have the reader look: data, an error or the end may be there."""
        self._listener.push_channel(self._channel)

    def poll(self) -> tuple[Buffer | EndOfPartitionEvent | None, bool]:
        """Return (element, more): the next element, or None while nothing is readable."""
        if self._file is None:
            self._place()
            source = self._data.source(self._subpartition, self._ordinal, self._end)
            if source is None or isinstance(source, EndOfPartitionEvent):
                return source, False
            if isinstance(source, Buffer):
                self._ordinal += 1
                return source, True
            self._file, self._read_ordinal = source, self._ordinal
        element, is_coming = self._ahead.take()
        if element is not None:
            self._ordinal += 1
            return element, True
        return (None if is_coming else END_OF_PARTITION), False

    def backlog(self) -> int:
        """Return the number of unread buffers, once there are any to read."""
        self._place()
        return max(0, self._end - self._ordinal)

    def release(self) -> None:
        """Stop reading and drop what was read ahead. Idempotent."""
        self._data.close_view(self)
        self._ahead.release()

    def consumed(self) -> None:
        """Say that the end was read: nothing changes, the data stays readable."""

    def _place(self) -> None:
        """Go to where the part begins, once that is known."""
        if self._end == NOT_PLACED and (bounds := self._data.bounds(self._subpartition, self._part)) is not None:
            self._ordinal, self._end = bounds

    def _load(self) -> list[Buffer]:
        """Read the block that holds the next buffer, if there is one; ask for the following ones."""
        assert self._file is not None
        entry = self._next_entry(self._file)
        return [] if entry is None else self._behind(entry, self._file.read(self._subpartition, entry))

    def _load_at_once(self) -> list[Buffer] | None:
        """Do the same, or return None: that would wait for the disk."""
        assert self._file is not None
        entry = self._next_entry(self._file)
        if entry is None:
            return []
        buffers = self._file.read_at_once(self._subpartition, entry)
        return None if buffers is None else self._behind(entry, buffers)

    def _next_entry(self, file: PartitionFile) -> BlockEntry | None:
        entries = file.entries[self._subpartition]
        while self._block_index < len(entries):
            entry = entries[self._block_index]
            if self._read_ordinal >= self._end:
                return None
            if entry.first_ordinal + entry.buffer_count > self._read_ordinal:
                behind = self._block_index + 1
                for ahead in range(behind, min(behind + READ_AHEAD_BLOCKS, len(entries))):
                    file.advise(entries[ahead])
                return entry
            self._block_index += 1
        return None

    def _behind(self, entry: BlockEntry, buffers: list[Buffer]) -> list[Buffer]:
        """Return the buffers of a block that belong to the part and were not returned from memory."""
        begin, end = self._read_ordinal - entry.first_ordinal, self._end - entry.first_ordinal
        for buffer in (*buffers[:begin], *buffers[end:]):
            buffer.recycle()
        self._read_ordinal = entry.first_ordinal + entry.buffer_count
        return buffers[begin:end]
