"""The data of a BLOCKING result partition: in memory first, then all of it in one file; never in two places.

    add(buffer, subpartition)* ─► finish() ─► open_view(...)* each read to its end, any number of times ─► release()
                 └── spill() at any time, from any thread: whoever needs the memory

    MEMORY ──spill──► SPILLING ──written──► FILE        every later buffer goes straight to the file
       ▲                 └──write failed──► MEMORY      (the error goes to whoever called)
    any ──release──► RELEASED                           buffers go back, files are removed

A view has the same three faces: IN MEMORY it hands out shares of the held buffers; while SPILLING it returns nothing
and is notified afterwards; from FILE it reads one block at a time (memory of its own, dropped when the reader recycles)
and has the operating system read the next two ahead; for another process a disk reader does this where it
would wait (read_ahead). A view
that began in memory goes on in the file at the same buffer. Nothing is readable before ``finish``.

Locks: one condition per partition. Files are written outside of it, in state SPILLING, when nothing else changes.

Source: Flink's SpillableSubpartition and its views; the file is that of the sort-shuffle.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from enum import Enum, auto
from typing import Final

from engine.errors import IllegalTransitionError, PartitionReleasedError, ProducerFailedError
from engine.exchange.buffer_pool import Buffer
from engine.exchange.elements import END_OF_PARTITION, EndOfPartitionEvent
from engine.exchange.partition_file import BlockEntry, PartitionFile
from engine.exchange.read_ahead import DiskReaders, ReadAhead
from engine.exchange.ready_queue import ReadyQueue

LOGGER = logging.getLogger(__name__)
READ_AHEAD_BLOCKS: Final = 2


class DataState(Enum):
    """Where the buffers are."""

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
        self._buffers: list[list[Buffer]] = [[] for _ in range(subpartition_count)]
        self._counts = [0] * subpartition_count
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
                    self._buffers[subpartition].append(buffer)
                    self._counts[subpartition] += 1
                    return
                file = self._file
            assert file is not None
            file.append(subpartition, (buffer,))
            self._counts[subpartition] += 1
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
            self._drop_buffers()
            if self._file is not None:
                self._file.delete()
            self._notify_views()

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
            for subpartition, buffers in enumerate(self._buffers):
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
            self._drop_buffers()
            if self._file is not None:
                self._file.delete()
            self._changed.notify_all()
            self._notify_views()

    @property
    def held_count(self) -> int:
        """Buffers in memory."""
        return sum(len(buffers) for buffers in self._buffers)

    @property
    def spilled_bytes(self) -> int:
        """Bytes of the data file."""
        return 0 if self._file is None else self._file.size_bytes

    # ---------------------------------------------------------------------------------------------- consumer's side

    def open_view(
        self, subpartition: int, listener: ReadyQueue, channel: int, disk: DiskReaders | None = None
    ) -> BlockingView:
        """Return an independent view that begins at the first buffer; the channel is pushed when there is data."""
        view = BlockingView(self, subpartition, listener, channel, disk)
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

    def source(self, subpartition: int, ordinal: int) -> Buffer | PartitionFile | EndOfPartitionEvent | None:
        """Return where a view finds its next buffer: a share of it, the file, the end, or nothing for now."""
        with self._changed:
            if self.error is not None:
                text = f"the producer failed: {type(self.error).__name__}: {self.error}"
                raise ProducerFailedError(text) from self.error
            if self.state is DataState.RELEASED:
                raise PartitionReleasedError("the result partition was released and cannot be read")
            if not self.is_finished or self.state is DataState.SPILLING:
                return None
            if ordinal >= self._counts[subpartition]:
                return END_OF_PARTITION
            if self.state is DataState.MEMORY:
                return self._buffers[subpartition][ordinal].share()
            return self._file

    def stored_count(self, subpartition: int) -> int:
        """Return how many buffers a subpartition has, or 0 before they can be read."""
        return self._counts[subpartition] if self.is_finished else 0

    # ------------------------------------------------------------------------------------------------------ private

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
        for buffers in self._buffers:
            for buffer in buffers:
                buffer.recycle()
            buffers.clear()
        return count

    def _notify_views(self) -> None:
        for view in self._views:
            view.notify()


class BlockingView:
    """One reader of one subpartition of a BLOCKING result partition. Used by one thread.

    Args: disk: reads the file in place of the thread that polls.
    """

    def __init__(
        self, data: BlockingData, subpartition: int, listener: ReadyQueue, channel: int, disk: DiskReaders | None
    ) -> None:
        self._data = data
        self._subpartition = subpartition
        self._listener = listener
        self._channel = channel
        #: of the buffer that is handed out next, and of the one that is read next
        self._ordinal = self._read_ordinal = 0
        self._block_index = 0
        self._file: PartitionFile | None = None
        self._ahead = ReadAhead(self._load, disk, self.notify, lambda: None, self._load_at_once)

    def notify(self) -> None:
        """Have the reader look: data, an error or the end may be there."""
        self._listener.push_channel(self._channel)

    def poll(self) -> tuple[Buffer | EndOfPartitionEvent | None, bool]:
        """Return (element, more): the next element, or None while nothing is readable."""
        if self._file is None:
            source = self._data.source(self._subpartition, self._ordinal)
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
        """Return how many buffers are not read yet, once there are any to read."""
        return self._data.stored_count(self._subpartition) - self._ordinal

    def release(self) -> None:
        """Stop reading and drop what was read ahead. Idempotent."""
        self._data.close_view(self)
        self._ahead.release()

    def consumed(self) -> None:
        """Say that the end was read: nothing changes, the data stays readable."""

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
            if entry.first_ordinal + entry.buffer_count > self._read_ordinal:
                for ahead in entries[self._block_index + 1 : self._block_index + 1 + READ_AHEAD_BLOCKS]:
                    file.advise(ahead)
                return entry
            self._block_index += 1
        return None

    def _behind(self, entry: BlockEntry, buffers: list[Buffer]) -> list[Buffer]:
        """Return those buffers of a block that have not been handed out from memory."""
        known = self._read_ordinal - entry.first_ordinal
        for buffer in buffers[:known]:
            buffer.recycle()
        self._read_ordinal = entry.first_ordinal + entry.buffer_count
        return buffers[known:]
