"""ChunkFile: an open Parquet file with descriptors, by which kernels read; of a store, what was fetched of it.

    file = ChunkFile(open_ranges(path))
    file.is_fetched                      False: a file of this machine, all of which its descriptor has
    file.fetch(group, ranges, headers)   ranges of a row group are there, and headers in place of others (page_ranges)
    file.fetch_ahead(group, ...)         the same, for a row group that is read later; from another thread
    file.source(group)  file.library_path(group)       to read from, at the places that the chunks have in the file
    file.let_go()                        nothing is there but what was fetched ahead

What is fetched of a row group stays where the client has put it, and kernels read it there (``fetched_bytes``). For a
library that opens paths it is moved into memory without a name (memfd), at its places in a file that is empty
elsewhere: the system clears each of its pages first. Its bytes are counted by the reader: before a row group is fetched
they are reserved (``file_scan``).

Held by: tests/storage/test_object_store.py
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final

from engine.parquet.fetched_bytes import FetchedBytes
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

    def source(self, group: int) -> int | FetchedBytes:
        """Return the descriptor or the bytes in which kernels read a row group."""
        return self._of(group).source if self.is_fetched else self._file.descriptor

    def library_path(self, group: int) -> str:
        """Return a path by which a library can open what is there of a row group."""
        return f"/proc/self/fd/{self._of(group).as_file()}" if self.is_fetched else self.path

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
        self._size_bytes = size_bytes
        self._bytes = FetchedBytes()
        #: the same, as readers have it that began before it was moved
        self._moved = self._bytes
        self._descriptor = NO_DESCRIPTOR
        self._there: set[Range] = set()

    @property
    def source(self) -> int | FetchedBytes:
        """The bytes, or the descriptor of the file that they were moved into."""
        return self._bytes if self._descriptor == NO_DESCRIPTOR else self._descriptor

    def fetch(self, file: RangeFile, ranges: Sequence[Range], headers: Sequence[Placed]) -> None:
        """Have ranges, and headers where their ranges are not."""
        missing = [each for each in ranges if each not in self._there]
        if not missing:
            return
        for part in chain(headers, file.read_ranges(missing)):
            if self._descriptor == NO_DESCRIPTOR:
                self._bytes.add(*part)
            else:
                self._write(*part)
        self._bytes.seal()
        self._there.update(missing)

    def as_file(self) -> int:
        """Move what was fetched into a file without a name; return its descriptor."""
        if self._descriptor == NO_DESCRIPTOR:
            self._descriptor = os.memfd_create(_NAME, os.MFD_CLOEXEC)
            os.ftruncate(self._descriptor, self._size_bytes)
            for part in self._bytes.parts_of():
                self._write(*part)
            self._bytes = FetchedBytes()
        return self._descriptor

    def _write(self, position: int, content: Buffer) -> None:
        done = 0
        while done < len(content):
            done += os.pwrite(self._descriptor, memoryview(content)[done:], position + done)

    def close(self) -> None:
        """Give the memory back."""
        if self._descriptor != NO_DESCRIPTOR:
            os.close(self._descriptor)
        self._moved.clear()
