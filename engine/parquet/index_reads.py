"""IndexReads: small pieces of a file that are asked for one by one, read with few requests where it is in a store.

    reads = IndexReads(file)
    reads.expect(places)             (position, bytes) in the order in which they are asked for
    reads.read_together(places)      now
    reads.read_at(position, size)    the first of what is expected brings what follows with it

Held by: tests/storage/test_needed_pages.py
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Final

from engine.storage.file_system import ByteRanges

#: bytes that are read at once, about, and bytes between two pieces that are read as well
_AT_ONCE_BYTES: Final = 1 << 20
_BETWEEN_BYTES: Final = 64 << 10
#: bytes that are kept, about
_KEPT_BYTES: Final = 4 << 20

Place = tuple[int, int]


class IndexReads:
    """See the module's text. Thread: any."""

    def __init__(self, file: ByteRanges) -> None:
        self._file = file
        self._lock = threading.Lock()
        #: guarded by: self._lock
        self._expected: dict[Place, None] = {}
        #: (position, bytes); guarded by: self._lock
        self._parts: list[tuple[int, bytes]] = []

    def expect(self, places: Iterable[Place]) -> None:
        """Expect pieces to be asked for."""
        with self._lock:
            self._expected.update(dict.fromkeys(places))

    def read_together(self, places: Sequence[Place]) -> None:
        """Read pieces now."""
        with self._lock:
            self._read(places)

    def read_at(self, position: int, size: int) -> bytes:
        """Return bytes of a range; fewer of them at the end of the file."""
        with self._lock:
            found = self._found(position, size)
            if found is None and (position, size) in self._expected:
                self._read(self._next((position, size)))
                found = self._found(position, size)
        return self._file.read_at(position, size) if found is None else found

    def _found(self, position: int, size: int) -> bytes | None:
        for begin, content in self._parts:
            if begin <= position and position + size <= begin + len(content):
                return content[position - begin : position - begin + size]
        return None

    def _next(self, first: Place) -> list[Place]:
        """Take a piece, and some of those that are expected behind it, out of what is expected."""
        listed = list(self._expected)
        taken, total = [], 0
        for place in listed[listed.index(first) :]:
            if total >= _AT_ONCE_BYTES:
                break
            taken.append(place)
            total += place[1]
            del self._expected[place]
        return taken

    def _read(self, places: Sequence[Place]) -> None:
        ranges: list[tuple[int, int]] = []
        for begin, size in sorted(places):
            if ranges and begin <= ranges[-1][1] + _BETWEEN_BYTES:
                ranges[-1] = ranges[-1][0], max(ranges[-1][1], begin + size)
            else:
                ranges.append((begin, begin + size))
        self._parts += [(position, bytes(content)) for position, content in self._file.read_ranges(ranges)]
        while len(self._parts) > 1 and sum(len(content) for _, content in self._parts) > _KEPT_BYTES:
            del self._parts[0]
