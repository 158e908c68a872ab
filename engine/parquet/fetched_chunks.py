"""ChunkFile: an open Parquet file with descriptors, by which kernels read; of a store, what was fetched of it.

    file = ChunkFile(open_ranges(path))
    file.is_fetched                      False: a file of this machine, all of which its descriptor has
    file.fetch(group, ranges, headers)   ranges of a row group are there, and headers in place of others (page_ranges)
    file.fetch_ahead(group, ...)         the same, for a row group that is read later; from another thread
    file.descriptor(group)  file.library_path(group)   to read from, at the places that the chunks have in the file
    file.let_go()                        nothing is there but what was fetched ahead

What is fetched of a row group lies in memory without a name (memfd), at its places in a file that is empty elsewhere.
Its bytes are counted by the reader: before a row group is fetched they are reserved (``file_scan``).

Held by: tests/storage/test_object_store.py
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Iterable, Sequence
from typing import Final

from engine.storage.file_system import NO_DESCRIPTOR, Buffer, RangeFile

_NAME: Final = "drey-fetched-chunks"

_numbers: Final = itertools.count(1)

Range = tuple[int, int]
#: bytes at a place of the file
Placed = tuple[int, bytes]


class ChunkFile:
    """See the module's text. Thread: one at a time, but for ``fetch_ahead`` and ``read_at``."""

    def __init__(self, file: RangeFile) -> None:
        self._file = file
        self.is_fetched = file.descriptor == NO_DESCRIPTOR
        self.path = file.path
        self._lock = threading.Lock()
        #: row groups of which something is there; guarded by: self._lock
        self._groups: dict[int, _FetchedGroup] = {}
        #: the row group that is read
        self.current = -1
        self._is_closed = False

    def descriptor(self, group: int) -> int:
        """Return a descriptor of what is there of a row group."""
        return self._of(group).descriptor if self.is_fetched else self._file.descriptor

    def library_path(self, group: int) -> str:
        """Return a path by which a library can open what is there of a row group."""
        return f"/proc/self/fd/{self.descriptor(group)}" if self.is_fetched else self.path

    def number(self, group: int) -> int:
        """Return a number that is another one for each file in which chunks of a row group have lain."""
        return self._of(group).number if self.is_fetched else 0

    @property
    def size_bytes(self) -> int:
        """The bytes of the file."""
        return self._file.size_bytes

    def read_at(self, offset: int, size: int) -> bytes:
        """Return bytes of a range of the file, wherever they are."""
        return self._file.read_at(offset, size)

    def read_ranges(self, ranges: Sequence[Range]) -> Iterable[tuple[int, Buffer]]:
        """Yield bytes of ranges of the file, those that lie near each other as one."""
        return self._file.read_ranges(ranges)

    def has(self, group: int) -> bool:
        """Return whether something of a row group is there."""
        return not self.is_fetched or group in self._groups

    def fetch(self, group: int, ranges: Sequence[Range], headers: Sequence[Placed] = ()) -> None:
        """Have ranges (begin, end) of a row group at their places; those of the one that was read before go."""
        if not self.is_fetched:
            return
        if group != self.current:
            self.let_go()
            self.current = group
        self._of(group).fetch(self._file, ranges, headers)

    def fetch_ahead(self, group: int, ranges: Sequence[Range], headers: Sequence[Placed] = ()) -> None:
        """Have ranges of a row group that is read later."""
        self._of(group).fetch(self._file, ranges, headers)

    def _of(self, group: int) -> _FetchedGroup:
        with self._lock:
            if self._is_closed:
                raise ValueError(f"{self.path} is closed")
            found = self._groups.get(group)
            if found is None:
                found = self._groups[group] = _FetchedGroup(self._file.size_bytes)
            return found

    def let_go(self) -> None:
        """Give back the memory of the row group that is read."""
        self.drop(self.current)

    def drop(self, group: int) -> None:
        """Give back the memory of a row group."""
        with self._lock:
            found = self._groups.pop(group, None)
        if found is not None:
            found.close()

    def close(self) -> None:
        """Close the file; idempotent. No thread fetches ahead any more."""
        with self._lock:
            self._is_closed = True
            groups, self._groups = list(self._groups.values()), {}
        for each in groups:
            each.close()
        self._file.close()


class _FetchedGroup:
    """The chunks of a row group that were fetched."""

    def __init__(self, size_bytes: int) -> None:
        self.number = next(_numbers)
        self.descriptor = os.memfd_create(_NAME, os.MFD_CLOEXEC)
        os.ftruncate(self.descriptor, size_bytes)
        self._there: set[Range] = set()

    def fetch(self, file: RangeFile, ranges: Sequence[Range], headers: Sequence[Placed]) -> None:
        """Have ranges, and headers where their ranges are not."""
        missing = [each for each in ranges if each not in self._there]
        if not missing:
            return
        for part in headers:
            self._write(*part)
        for part in file.read_ranges(missing):
            self._write(*part)
        self._there.update(missing)

    def _write(self, position: int, content: Buffer) -> None:
        done = 0
        while done < len(content):
            done += os.pwrite(self.descriptor, memoryview(content)[done:], position + done)

    def close(self) -> None:
        """Give the memory back."""
        os.close(self.descriptor)
