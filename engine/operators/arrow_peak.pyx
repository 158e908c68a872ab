"""ArrowPeak: most memory of Arrow that the process held while a task ran.

    peak = ArrowPeak() ─► peak.look()* ─► peak.bytes ─► peak.close()

Blocks of batches (``memory.blocks``) count as Arrow's. Each allocator knows the most it ever held; where that has risen
since the task began, it is the answer. A peak below an earlier one is seen only by ``look``, which is called for each
batch of a source or sink and whenever counters are read, so it may be a little less than the truth. What was there when
no task ran (a script's own tables) is left out, as much of it as stays. A process has one allocator of each kind, so
tasks that run at the same time see each other's memory.

It is asked for each batch, so it is no Python frame. Thread: look, bytes: any; the rest by the task's.

Held by: tests/operators/test_arrow_peak.py
"""

cimport cython
from libc.stdint cimport int64_t

import threading
import weakref

import pyarrow as pa

from engine.memory.blocks import block_bytes, block_bytes_peak

# Guards what follows: the tasks of this process, and the bytes of Arrow's buffers and of batches' blocks that were held
# when none ran.
cdef object _lock = threading.Lock()
#: weak: an attempt that never began is not closed
cdef object _at_work = weakref.WeakSet()
cdef int64_t _idle_buffers = 0, _idle_blocks = 0


@cython.final
cdef class ArrowPeak:
    """The peak of Arrow's memory as one task sees it."""

    cdef object _pool, __weakref__
    cdef int64_t _peak_bytes
    # Of Arrow's buffers, and of batches' blocks: held when no task ran, and the highest value before this one.
    cdef int64_t _idle_buffers, _idle_blocks, _record_buffers, _record_blocks
    cdef bint _is_closed

    def __init__(self):
        global _idle_buffers, _idle_blocks
        cdef int64_t buffers, blocks
        self._pool = pa.default_memory_pool()
        buffers, blocks = self._pool.bytes_allocated(), block_bytes()
        self._record_buffers, self._record_blocks = self._pool.max_memory() or 0, block_bytes_peak()
        with _lock:
            if not _at_work:
                _idle_buffers, _idle_blocks = buffers, blocks
            _at_work.add(self)
            self._idle_buffers, self._idle_blocks = min(_idle_buffers, buffers), min(_idle_blocks, blocks)

    cpdef look(self):
        """See what Arrow holds now."""
        cdef int64_t buffers, blocks
        if not self._is_closed:
            buffers, blocks = self._pool.bytes_allocated(), block_bytes()
            self._idle_buffers = min(buffers, self._idle_buffers)
            self._idle_blocks = min(blocks, self._idle_blocks)
            self._peak_bytes = max(self._peak_bytes, buffers + blocks - self._idle_buffers - self._idle_blocks)

    @property
    def bytes(self):
        """Most that was held so far."""
        cdef int64_t buffers, blocks
        if not self._is_closed:
            self.look()
            buffers, blocks = self._pool.max_memory() or 0, block_bytes_peak()
            if buffers > self._record_buffers:
                self._peak_bytes = max(self._peak_bytes, buffers - self._idle_buffers)
            if blocks > self._record_blocks:
                self._peak_bytes = max(self._peak_bytes, blocks - self._idle_blocks)
        return self._peak_bytes

    def close(self):
        """Let the value be; idempotent."""
        if not self._is_closed:
            _ = self.bytes
            self._is_closed = True
            with _lock:
                _at_work.discard(self)
