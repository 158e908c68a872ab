"""SpillSpace: the files of one operator.

    space = io_manager.space(SpillIdentity(job_id, vertex_index, subtask_index, attempt_number))
    writer = space.writer("run 0")  ...  file = writer.finish()  ...  file.reader()
    space.spilled_bytes  space.raw_bytes
    space.cancel()                    from any thread: threads that spill or read get TaskCancelledError
    space.close()                     ends writers and readers that are still open, deletes every file; idempotent

The space decides in which directory a file, or the continuation of one, is opened: the one with most free space for
each file that is there already, so that equal disks take turns; if it cannot be opened there, the next one. Files are
named after their owner, so that people who look into a spill folder see whose they are; contents are checked by the
identity in every block.

Thread: the operator's; ``open_extent`` is also called by I/O threads (under the GIL), ``cancel`` and counters by any.

Held by: tests/iomanager/test_value_store.py
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Final

from engine.closing import close_all
from engine.errors import DiskFullError, SpillError, TaskCancelledError
from engine.iomanager.disk_use import room_advice
from engine.iomanager.io_buffers import IoBuffers
from engine.iomanager.open_files import OpenFile
from engine.iomanager.spill_directory import SpillDirectory
from engine.iomanager.spill_file import SpillFile
from engine.iomanager.spill_identity import SpillIdentity
from engine.iomanager.spill_reader import SpillReader
from engine.iomanager.spill_writer import SpillWriter
from engine.iomanager.value_store import ValueStore
from engine.memory.value_stores import Place

BLOCK_SIZE_DEFAULT = 256 * 1024
_FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT)
_RAW_BYTES: Final[Callable[[Any], int]] = attrgetter("raw_bytes")
_STORED_BYTES: Final[Callable[[Any], int]] = attrgetter("stored_bytes")


class SpillSpace:
    """The spill files of one operator."""

    def __init__(
        self,
        identity: SpillIdentity,
        directories: Sequence[SpillDirectory],
        buffers: IoBuffers,
        compress: bool,
        next_file_number: Callable[[], int],
        on_close: Callable[[SpillSpace], None],
        job_space: Callable[[], SpillSpace | None] = lambda: None,
    ) -> None:
        """Args: job_space: the space of the job, if there is one: what lies there outlives this one."""
        self.identity = identity
        self._directories = directories
        self._buffers = buffers
        self._compress = compress
        self._next_file_number = next_file_number
        self._on_close = on_close
        self._job_space = job_space
        self._writers: set[SpillWriter] = set()
        self._readers: set[SpillReader] = set()
        self._files: set[SpillFile] = set()
        self._values: ValueStore | None = None
        self._values_lock = threading.Lock()
        self._stored_bytes = 0
        self._raw_bytes = 0
        self._closed = False
        self._cancelled = False
        #: ResultPartitionId that the wide values are a part of, which errors of reading them name
        self.partition: object = None

    # ------------------------------------------------------------------------------------------------- for operators

    def writer(self, label: str, block_size: int = BLOCK_SIZE_DEFAULT) -> SpillWriter:
        """Return a writer of a new file; nothing is created before the first block.

        Args: label: for error texts; block_size: bytes, from 1024: what is collected before it is written.
        """
        self._require_open()
        writer = SpillWriter(
            self,
            label,
            self._buffers,
            self.identity,
            self._next_file_number(),
            block_size,
            self._compress,
        )
        self._writers.add(writer)
        if self._cancelled:  # meanwhile: cancel did not see this one
            writer.cancel()
        return writer

    def find_value(self, value: memoryview, value_hash: int) -> Place | None:
        """Return the place of an equal wide value, in this space or with the job, None: nowhere. Thread: any."""
        job_space = self._job_space()
        for values in (job_space._values if job_space is not None else None, self._values):
            place = values.find_value(value, value_hash) if values is not None else None
            if place is not None:
                return place
        return None

    def write_value(self, value: memoryview, value_hash: int | None = None) -> Place:
        """Write a wide value of a row, which lives as long as the space; as ValueStore.write_value. Thread: any."""
        with self._values_lock:
            self._require_open()
            if self._values is None:
                self._values = ValueStore(self, self._next_file_number(), f"the spill space of {self.identity}")
        return self._values.write_value(value, value_hash)

    @property
    def spilled_bytes(self) -> int:
        """Bytes that went to disk, headers included, deleted files too. Thread: any."""
        values = self._values.stored_bytes if self._values is not None else 0
        return self._stored_bytes + values + sum(map(_STORED_BYTES, self._writers.copy()))

    @property
    def raw_bytes(self) -> int:
        """Bytes of rows passed to writers. Thread: any."""
        return self._raw_bytes + sum(map(_RAW_BYTES, self._writers.copy()))

    @property
    def closed(self) -> bool:
        """Whether close() has been called."""
        return self._closed

    @property
    def is_cancelled(self) -> bool:
        """Whether cancel() has been called. Thread: any."""
        return self._cancelled

    def cancel(self) -> None:
        """Have every call on writers and readers raise TaskCancelledError, so that merges and recursion end soon."""
        self._cancelled = True
        for writer in tuple(self._writers):
            writer.cancel()
        for reader in tuple(self._readers):
            reader.cancel()

    def close(self) -> None:
        """End everything that is open and delete every file; idempotent.

        Raises: SpillError for the first file that could not be removed, after all others were.
        """
        if self._closed:
            return
        self._closed = True
        close_all(self._endings())

    def _endings(self) -> Iterator[Callable[[], None]]:
        yield from [reader.close for reader in self._readers]
        yield from [writer.discard for writer in self._writers]
        yield self._close_values
        yield from [file.delete for file in self._files]
        yield partial(self._on_close, self)

    def _close_values(self) -> None:
        with self._values_lock:
            if self._values is not None:
                self._values.close()

    def __enter__(self) -> SpillSpace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------------------------- for writers, readers and files

    def open_extent(
        self, file_number: int, extent_number: int, need_bytes: int, full: Collection[SpillDirectory]
    ) -> tuple[OpenFile, SpillDirectory]:
        """Create a file in the most attractive directory; return it with the directory.

        Args: need_bytes: of the block that comes next; full: directories that had no room for this file.
        Raises: DiskFullError when every directory is full; SpillError when the others cannot be written.
        """
        name = f"{self.identity}.{file_number}.{extent_number}.spill"
        without_room = {*full, *(each for each in self._directories if each.limit.left_bytes < need_bytes)}
        reasons = [f"{directory} is full ({directory.free_bytes()} bytes free)" for directory in without_room]
        disk_full = bool(reasons)
        cause: OSError | None = None
        candidates = [directory for directory in self._directories if directory not in without_room]
        for directory in sorted(candidates, key=lambda entry: entry.attraction(), reverse=True):
            try:
                return directory.open_file(name, self.identity.job_id), directory
            except OSError as error:
                cause = error
                disk_full = disk_full or error.errno in _FULL_ERRORS
                reasons.append(f"{directory}: {error.strerror} ({directory.free_bytes()} bytes free)")
        text = f"a block of {need_bytes} bytes cannot be spilled: {'; '.join(reasons)}"
        if disk_full:
            raise DiskFullError(f"{text}; {room_advice((each.limit for each in self._directories), need_bytes)}")
        raise SpillError(f"{text}; check the directories of io.tmp.dirs") from cause

    def writer_finished(self, writer: SpillWriter, file: SpillFile) -> None:
        """Take over the file of a writer."""
        self._count(writer)
        self._files.add(file)

    def writer_discarded(self, writer: SpillWriter) -> None:
        """Remove what a writer left."""
        self._count(writer)
        _remove(writer.extents)

    def _count(self, writer: SpillWriter) -> None:
        self._writers.discard(writer)
        self._stored_bytes += writer.stored_bytes
        self._raw_bytes += writer.raw_bytes

    def open_reader(self, file: SpillFile, prefetch: int, place: tuple[int, int, int], end_block: int) -> SpillReader:
        """Return a reader from a place on, up to block end_block - 1."""
        self._require_open()
        queue = file.extents[0][1].read_queue if prefetch > 0 and end_block > place[0] else None
        reader = SpillReader(self, file, queue, self._buffers, prefetch, place, end_block)
        self._readers.add(reader)
        if self._cancelled:
            reader.cancel()
        return reader

    def reader_closed(self, reader: SpillReader) -> None:
        """Forget a reader."""
        self._readers.discard(reader)

    def remove_file(self, file: SpillFile) -> None:
        """Delete the extents of a file."""
        self._files.discard(file)
        _remove(file.extents)

    def _require_open(self) -> None:
        if self._closed:
            raise SpillError(f"the spill space of {self.identity} is closed")
        if self._cancelled:
            raise TaskCancelledError(f"the spill space of {self.identity} was cancelled")


def _remove(extents: Sequence[tuple[OpenFile, SpillDirectory]]) -> None:
    """Unlink every extent; what is gone already is fine. Raises: SpillError for the first that stays."""
    failure: OSError | None = None
    for file, directory in extents:
        try:
            directory.remove_file(file)
        except OSError as error:
            failure = failure or error
    if failure is not None:
        raise SpillError(f"a spill file cannot be removed: {failure}") from failure
