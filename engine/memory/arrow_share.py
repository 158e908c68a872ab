"""ArrowShare: who makes many Arrow buffers at a time asks first, and is told how much it may hold.

    share.set_limit(bytes)                      once, when the process is divided (process_memory.py)
    with share.reserved(wanted) as granted:     a reader, for a row group: what it wants, or nothing
    with share.alone(ended) as granted:         who got nothing, while it puts the row group aside: one at a time
    member = share.join(role) ... member.close()     a reader or a writer, while it is open
        member.part_bytes                       how large a batch or a row group may be: less, the more there are

      limit ├── readers: half, reserved ───────┼── writers: the other half, divided ──┤

Who reserves does not wait, for it may hold what it got until other readers have gone on: who is granted nothing takes
another way that needs less (a reader goes through a file, a writer writes smaller row groups). Who is alone hands
nothing to anybody meanwhile, so waiting for it ends. The first to reserve gets LEAST in any case.

What is reserved is what a reader is known to hold, not what the allocator says: in a script's own process the script
has Arrow memory too. Batches on their way are bounded where they wait (queues of the exchange) and by their own size.

Invariant: what is granted beyond the readers' half is never more than twice LEAST_BYTES.
Source: the memory grants of SQL Server and the write buffer manager of RocksDB.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Final

#: granted to the first in any case
LEAST_BYTES: Final = 8 << 20
#: between two looks at whether who waits has been cancelled
_LOOK_S: Final = 0.1
_UNLIMITED: Final = 1 << 62


class Role(Enum):
    """What a member does; the value is how often it holds a part, about."""

    #: batches that are decoded, at work and on their way
    READER = 8
    #: rows, and what they become in the file
    WRITER = 2


class ArrowShare:
    """What readers and writers of one process hold of Arrow's memory. Thread: any."""

    def __init__(self, limit_bytes: int = _UNLIMITED) -> None:
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._limit_bytes = limit_bytes
        self._reserved_bytes = 0  # guarded by: self._lock
        self._counts = dict.fromkeys(Role, 0)  # guarded by: self._lock

    def set_limit(self, limit_bytes: int) -> None:
        """Change the limit for all grants to come."""
        self._limit_bytes = limit_bytes

    @property
    def limit_bytes(self) -> int:
        """What readers and writers may hold together."""
        return self._limit_bytes

    @property
    def record_limit_bytes(self) -> int:
        """How large a record, or the pages that it lies in, may be: as much again is for workers of functions."""
        return 2 * self._limit_bytes

    @property
    def reserved_bytes(self) -> int:
        """What readers have been granted and still hold."""
        return self._reserved_bytes

    @contextlib.contextmanager
    def reserved(self, wanted_bytes: int) -> Iterator[int]:
        """Reserve memory; yield how much it is: all that is wanted, or 0."""
        with self._lock:
            least = 0 if self._reserved_bytes else LEAST_BYTES
            granted = wanted_bytes if wanted_bytes <= max(self._free_bytes, least) else 0
            self._reserved_bytes += granted
        try:
            yield granted
        finally:
            with self._lock:
                self._reserved_bytes -= granted

    @contextlib.contextmanager
    def alone(self, is_ended: Callable[[], bool]) -> Iterator[int]:
        """Wait until nobody else is alone; yield how much may be held: half of what is free, or LEAST_BYTES.

        Whoever is alone waits for nobody. ``is_ended`` ends the waiting for the turn, with nothing granted.
        """
        while not self._turn.acquire(timeout=_LOOK_S):
            if is_ended():
                yield 0
                return
        try:
            with self._lock:
                granted = max(self._free_bytes // 2, LEAST_BYTES)
                self._reserved_bytes += granted
            try:
                yield granted
            finally:
                with self._lock:
                    self._reserved_bytes -= granted
        finally:
            self._turn.release()

    @property
    def _free_bytes(self) -> int:
        return self._limit_bytes // 2 - self._reserved_bytes

    def join(self, role: Role) -> ShareMember:
        """Return a member among those that divide the half of their role; to be closed."""
        with self._lock:
            self._counts[role] += 1
        return ShareMember(self, role)

    def leave(self, role: Role) -> None:
        """Count one member less; called by ShareMember.close."""
        with self._lock:
            self._counts[role] -= 1

    def part_bytes(self, role: Role) -> int:
        """Return how large a batch or a row group of each member may be now."""
        return self._limit_bytes // 2 // role.value // max(1, self._counts[role])


class ShareMember:
    """A reader or a writer, one of those that divide a half."""

    def __init__(self, share: ArrowShare, role: Role) -> None:
        self._share: ArrowShare | None = share
        self._role = role

    @property
    def part_bytes(self) -> int:
        """How large its batch or row group may be now; 0 when it has left."""
        return 0 if self._share is None else self._share.part_bytes(self._role)

    def close(self) -> None:
        """Leave what is divided to the others; idempotent."""
        share, self._share = self._share, None
        if share is not None:
            share.leave(self._role)


#: of this process
process_share: Final = ArrowShare()
