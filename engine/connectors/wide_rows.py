"""WideRows: readers of very wide rows take turns, so that a process holds the copies of one and not of every slot.

    with wide_rows.turn(row_bytes): read, yield      narrow rows take no turn and wait for nobody

A row of 64 MB is there several times while it is read, filtered and written: the page of the file, the array, the
bytes for the next file. Two slots that do this at once need twice as much, for no gain.

A turn ends when the reader comes back for more. Since what happens in between may wait for another reader (the build
side of a join, say), nobody waits for a turn longer than WAIT_S: the turn bounds memory, it never stands in the way of
the job.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

#: rows from this width on take turns
WIDE_BYTES = 8 << 20
WAIT_S = 2.0

_turn = threading.Lock()


@contextlib.contextmanager
def turn(row_bytes: float) -> Iterator[None]:
    """Hold the turn of the process while rows of this average width are read and handed on. Thread: any."""
    is_held = row_bytes >= WIDE_BYTES and _turn.acquire(timeout=WAIT_S)
    try:
        yield
    finally:
        if is_held:
            _turn.release()
