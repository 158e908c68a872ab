"""One Arrow batch at a time, or one table, in memory that two processes share: a memfd that grows.

    ┌────────────────────────────┬────────────┐
    │ Arrow IPC stream, one batch │ free       │   capacity is a multiple of 64 KiB, doubled as needed
    └────────────────────────────┴────────────┘

The writer writes at 0 and tells the size through the socket; the reader maps what it needs. Writing is one pass over
the batch's buffers. ``read`` copies out when the memory will be reused (``copy=True``), or gives a view of it.

What is very large goes in and out by the file: a process that does not touch the mapping does not have its pages, so
they are counted once, in no process's own memory. And they go back to the system while they are copied out.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable

import pyarrow as pa

_STEP_BYTES = 64 << 10
#: size from which memory is freed at once
_LARGE_BYTES = 8 << 20
_PIECE_BYTES = 4 << 20


class SharedBatches:
    """Shared memory for one batch, at one end of it. Owns the descriptor."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._mapping: mmap.mmap | None = None

    @classmethod
    def create(cls, name: str) -> SharedBatches:
        """Return new, empty shared memory."""
        return cls(os.memfd_create(name, os.MFD_CLOEXEC))

    def write(self, batch: pa.RecordBatch) -> int:
        """Write a batch and return its size in bytes."""
        sizer = pa.MockOutputStream()
        with pa.ipc.new_stream(sizer, batch.schema) as stream:
            stream.write_batch(batch)
        size_bytes: int = sizer.size()
        if size_bytes >= _LARGE_BYTES:
            self.write_table((batch,), batch.schema)
            return size_bytes
        target = pa.FixedSizeBufferWriter(pa.py_buffer(memoryview(self._map(size_bytes, grow=True))))
        with target, pa.ipc.new_stream(target, batch.schema) as stream:
            stream.write_batch(batch)
        return size_bytes

    def write_table(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> int:
        """Write batches one behind the other, once, and return their size in bytes."""
        os.lseek(self.descriptor, 0, os.SEEK_SET)
        with open(self.descriptor, "wb", closefd=False) as target, pa.ipc.new_stream(target, schema) as stream:
            for batch in batches:
                stream.write_batch(batch)
        return os.fstat(self.descriptor).st_size

    def read_table(self, size_bytes: int) -> pa.Table:
        """Read the table that ``write_table`` wrote, without a copy."""
        with pa.ipc.open_stream(pa.py_buffer(memoryview(self._map(size_bytes, grow=False))[:size_bytes])) as stream:
            return stream.read_all()

    def read(self, size_bytes: int, *, copy: bool) -> pa.RecordBatch:
        """Return the batch of that size; without ``copy`` it is valid until the writer writes again."""
        mapping = self._map(size_bytes, grow=False)
        view = memoryview(mapping)[:size_bytes]
        if not copy:
            source = pa.py_buffer(view)
        elif size_bytes < _LARGE_BYTES:
            source = pa.py_buffer(bytes(view))
        else:
            source = pa.allocate_buffer(size_bytes)
            target = memoryview(source).cast("B")
            for start in range(0, size_bytes, _PIECE_BYTES):
                self._read_piece(target[start : start + _PIECE_BYTES], start)
                mapping.madvise(mmap.MADV_REMOVE, start, min(_PIECE_BYTES, size_bytes - start))
        with pa.ipc.open_stream(source) as stream:
            return stream.read_next_batch()

    def _read_piece(self, target: memoryview, start: int) -> None:
        done = 0
        while done < len(target):
            done += os.preadv(self.descriptor, [target[done:]], start + done)

    def close(self) -> None:
        """Drop the mapping and the descriptor; views that are left keep the memory alive."""
        self._mapping = None
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def _map(self, size_bytes: int, *, grow: bool) -> mmap.mmap:
        if self._mapping is None or len(self._mapping) < size_bytes:
            capacity = os.fstat(self.descriptor).st_size
            if grow and capacity < size_bytes:
                capacity = max(_STEP_BYTES, 2 * capacity, -(-size_bytes // _STEP_BYTES) * _STEP_BYTES)
                os.ftruncate(self.descriptor, capacity)
            self._mapping = mmap.mmap(self.descriptor, capacity)
        return self._mapping
