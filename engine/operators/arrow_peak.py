"""ArrowPeak: most memory of Arrow that the process held while a task ran.

    peak = ArrowPeak() ─► peak.look()* ─► peak.bytes ─► peak.close()

Blocks of batches (``memory.blocks``) count as Arrow's. Each allocator knows the most it ever held; where that has risen
since the task began, it is the answer. A peak below an earlier one is seen only by ``look``, which is called for each
batch of a source or sink and whenever counters are read, so it may be a little less than the truth. What was there when
no task ran (a script's own tables) is left out, as much of it as stays. A process has one allocator of each kind, so
tasks that run at the same time see each other's memory.

Thread: look, bytes: any; the rest by the task's.
"""

from __future__ import annotations

import threading
import weakref
from typing import Final

import pyarrow as pa

from engine.memory.blocks import block_bytes, block_bytes_peak

_lock: Final = threading.Lock()


class _Tasks:
    """The tasks of this process, and the memory that was held when none ran."""

    #: weak: an attempt that never began is not closed
    at_work: Final[weakref.WeakSet[ArrowPeak]] = weakref.WeakSet()  # guarded by: _lock
    idle_bytes = (0, 0)  # guarded by: _lock


class ArrowPeak:
    """The peak of Arrow's memory as one task sees it."""

    def __init__(self) -> None:
        self._pool = pa.default_memory_pool()
        held = self._held_bytes()
        self._peak_bytes = 0
        self._records = self._record_bytes()
        self._is_closed = False
        with _lock:
            if not _Tasks.at_work:
                _Tasks.idle_bytes = held
            _Tasks.at_work.add(self)
            self._idle_bytes = _least(_Tasks.idle_bytes, held)

    def _held_bytes(self) -> tuple[int, int]:
        """Return the bytes of Arrow's buffers, and of batches' blocks."""
        return int(self._pool.bytes_allocated()), block_bytes()

    def _record_bytes(self) -> tuple[int, int]:
        """Return the highest value of each of the two since the process began."""
        return self._pool.max_memory() or 0, block_bytes_peak()

    def look(self) -> None:
        """See what Arrow holds now."""
        if not self._is_closed:
            buffers, blocks = self._pool.bytes_allocated(), block_bytes()
            idle_buffers, idle_blocks = self._idle_bytes
            if buffers < idle_buffers or blocks < idle_blocks:
                idle_buffers, idle_blocks = min(buffers, idle_buffers), min(blocks, idle_blocks)
                self._idle_bytes = idle_buffers, idle_blocks
            held = buffers + blocks - idle_buffers - idle_blocks
            self._peak_bytes = max(self._peak_bytes, held)

    @property
    def bytes(self) -> int:
        """Most that was held so far."""
        if not self._is_closed:
            self.look()
            for record, before, idle in zip(self._record_bytes(), self._records, self._idle_bytes, strict=True):
                if record > before:
                    self._peak_bytes = max(self._peak_bytes, record - idle)
        return int(self._peak_bytes)

    def close(self) -> None:
        """Let the value be; idempotent."""
        if not self._is_closed:
            _ = self.bytes
            self._is_closed = True
            with _lock:
                _Tasks.at_work.discard(self)


def _least(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return min(one[0], other[0]), min(one[1], other[1])
