"""WideRows: who handles a very wide row takes turns, so that a process holds the copies of one, not of every slot.

    with wide_rows.turn(row_bytes): read, hand on    narrow rows take no turn and wait for nobody
        with wide_rows.turn(row_bytes): write        inside a turn of the same thread: nothing more to wait for
        with wide_rows.paused(): wait for others     another thread may have the turn meanwhile
    wide_rows.give_back()                            what Arrow has freed of it goes back to the system

A row of 64 MB is there several times while it is read, filtered and written: the page of the file, the array, the
bytes for the next file. Two slots that do this at once need twice as much, for no gain.

A turn lasts from before the row is read until the reader comes back for more, so it covers what is chained to the
reader, also the sink. Who hands a row to another task pauses: that task takes turns too. A turn bounds memory, it
never stands in the way of the job: since its holder may still wait for somebody without saying so (the build side of
a join, say), nobody waits longer than WAIT_S for a turn that has not changed hands meanwhile.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Final

import pyarrow as pa

#: rows from this width on take turns
WIDE_BYTES: Final = 8 << 20
WAIT_S: Final = 5.0
#: Arrow's own choice, from which Parquet takes its buffers whatever pool is set later
_PARQUET_POOL: Final = pa.default_memory_pool()
#: so few rows may be as many bytes because of one of them
_FEW_ROWS: Final = 128


def width_of(size_bytes: int, row_count: int) -> float:
    """Return how wide the rows of a batch are: on average, or the whole where one row may be most of it."""
    return size_bytes if row_count <= _FEW_ROWS else size_bytes / row_count


def give_back() -> None:
    """Have Arrow give unused memory back to the system, after a wide row was read or written."""
    pa.default_memory_pool().release_unused()
    _PARQUET_POOL.release_unused()


def _share_one_pool() -> None:
    """Take all of Arrow's memory from one allocator from now on: what two have freed lies in memory twice.

    They differ where a script has loaded pyarrow before the engine could choose for Parquet as well.
    """
    if pa.default_memory_pool().backend_name != _PARQUET_POOL.backend_name:
        pa.set_memory_pool(_PARQUET_POOL)


class Turns:
    """The turns of a process. Thread: any."""

    def __init__(self, wait_s: float = WAIT_S) -> None:
        self._wait_s = wait_s
        self._lock = threading.Lock()
        #: thread that has the turn  # written by: who holds self._lock
        self._holder: int | None = None
        #: how often the turn has been taken  # written by: who holds self._lock
        self._count = 0

    @contextlib.contextmanager
    def turn(self, row_bytes: float) -> Iterator[None]:
        """Hold the turn while rows of this width are handled; does nothing for narrow ones and inside a turn."""
        thread = threading.get_ident()
        if row_bytes < WIDE_BYTES:
            yield
            return
        _share_one_pool()
        if self._holder == thread or not self._take(thread):
            yield
            return
        try:
            yield
        finally:
            # For the thread that took it: a generator may be closed by another one.
            self._give(thread)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Let others have the turn while this thread waits for them; does nothing outside a turn."""
        thread = threading.get_ident()
        if self._holder != thread:
            yield
            return
        self._give(thread)
        try:
            yield
        finally:
            # Who waits in vain goes on without: ``turn`` ends only what is held.
            self._take(thread)

    def _take(self, thread: int) -> bool:
        seen = self._count
        while not self._lock.acquire(timeout=self._wait_s):
            if self._count == seen:
                return False
            seen = self._count
        self._holder = thread
        self._count += 1
        return True

    def _give(self, thread: int) -> None:
        """End the turn, if the thread still has it."""
        if self._holder == thread:
            self._holder = None
            self._lock.release()


_turns = Turns()
turn = _turns.turn
paused = _turns.paused
