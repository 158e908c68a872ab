"""ArrowShare: who makes many Arrow buffers at a time asks first, and is told how much it may hold.

    share.set_limit(bytes)                      once, when the process is divided (process_memory.py)
    with share.reserved(wanted) as granted:     a reader, for a row group: what it wants, or what is free, or LEAST
    member = share.join() ... member.close()    a writer, while it is open
        member.part_bytes                       how much it may gather now: less, the more of them there are

      limit ├── readers: half, reserved ───────┼── writers: the other half, divided ──┤

Nobody waits here, so nobody can wait for ever: who is granted less than it wants takes another way that needs less (a
reader goes through a file, a writer writes smaller row groups). LEAST is granted in any case.

What is reserved is what a reader is known to hold, not what the allocator says: in a script's own process the script
has Arrow memory too. Batches on their way are bounded where they wait (queues of the exchange) and by their own size.

Invariant: grants beyond what is free are never more than LEAST_BYTES each.
Source: the memory grants of SQL Server and the write buffer manager of RocksDB.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Final

#: granted in any case
LEAST_BYTES: Final = 8 << 20
#: a writer gathers about twice what it is told: rows, and what they become in the file
_WRITER_COPIES: Final = 2
_UNLIMITED: Final = 1 << 62


class ArrowShare:
    """What readers and writers of one process hold of Arrow's memory. Thread: any."""

    def __init__(self, limit_bytes: int = _UNLIMITED) -> None:
        self._lock = threading.Lock()
        self._limit_bytes = limit_bytes
        self._reserved_bytes = 0  # guarded by: self._lock
        self._member_count = 0  # guarded by: self._lock

    def set_limit(self, limit_bytes: int) -> None:
        """Change the limit for all grants to come."""
        self._limit_bytes = limit_bytes

    @property
    def limit_bytes(self) -> int:
        """What readers and writers may hold together."""
        return self._limit_bytes

    @property
    def reserved_bytes(self) -> int:
        """What readers have been granted and still hold."""
        return self._reserved_bytes

    @contextlib.contextmanager
    def reserved(self, wanted_bytes: int) -> Iterator[int]:
        """Reserve memory; yield how much it is: all that is wanted, or half of what is free, or LEAST_BYTES."""
        with self._lock:
            free_bytes = self._limit_bytes // 2 - self._reserved_bytes
            granted = wanted_bytes
            if wanted_bytes > max(free_bytes, LEAST_BYTES):
                granted = max(free_bytes // 2, LEAST_BYTES)
            self._reserved_bytes += granted
        try:
            yield granted
        finally:
            with self._lock:
                self._reserved_bytes -= granted

    def join(self) -> ShareMember:
        """Return a member among those that divide the writers' half; to be closed."""
        with self._lock:
            self._member_count += 1
        return ShareMember(self)

    def leave(self) -> None:
        """One member less; called by ShareMember.close."""
        with self._lock:
            self._member_count -= 1

    @property
    def part_bytes(self) -> int:
        """What each writer may gather now."""
        return self._limit_bytes // 2 // _WRITER_COPIES // max(1, self._member_count)


class ShareMember:
    """One of the writers that divide their half."""

    def __init__(self, share: ArrowShare) -> None:
        self._share: ArrowShare | None = share

    @property
    def part_bytes(self) -> int:
        """What it may gather now."""
        return 0 if self._share is None else self._share.part_bytes

    def close(self) -> None:
        """Leave what is divided to the others; idempotent."""
        share, self._share = self._share, None
        if share is not None:
            share.leave()


#: of this process
process_share: Final = ArrowShare()
