"""ChunkFile: an open Parquet file with a descriptor, by which kernels read; of a store, what was fetched of it.

    file = ChunkFile(open_ranges(path))
    file.is_fetched                      False: a file of this machine, all of which its descriptor has
    file.fetch(group, ranges)            chunks of a row group are there; those of another row group no longer
    file.descriptor  file.library_path   to read from, at the places that the chunks have in the file
    file.let_go()                        nothing is there

What is fetched lies in memory without a name (memfd), at its places in a file that is empty elsewhere. Its bytes are
counted by the reader: before a row group is fetched they are reserved (``file_scan``).

Held by: tests/storage/test_object_store.py
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from engine.storage.file_system import NO_DESCRIPTOR, RangeFile

_NAME: Final = "drey-fetched-chunks"


class ChunkFile:
    """See the module's text. Thread: one at a time."""

    def __init__(self, file: RangeFile) -> None:
        self._file = file
        self.is_fetched = file.descriptor == NO_DESCRIPTOR
        self.descriptor = file.descriptor
        self._group = -1
        #: Ranges that are there.
        self._there: set[tuple[int, int]] = set()
        if self.is_fetched:
            self.descriptor = os.memfd_create(_NAME, os.MFD_CLOEXEC)
            os.ftruncate(self.descriptor, file.size_bytes)

        self.path = file.path

    @property
    def library_path(self) -> str:
        """A path by which a library can open what is there."""
        return f"/proc/self/fd/{self.descriptor}" if self.is_fetched else self.path

    @property
    def size_bytes(self) -> int:
        """The bytes of the file."""
        return self._file.size_bytes

    def read_at(self, offset: int, size: int) -> bytes:
        """Return bytes of a range of the file, wherever they are."""
        return self._file.read_at(offset, size)

    def has(self, group: int) -> bool:
        """Return whether chunks of a row group are there."""
        return not self.is_fetched or (group == self._group and bool(self._there))

    def fetch(self, group: int, ranges: Sequence[tuple[int, int]]) -> None:
        """Have ranges (begin, end) of a row group at their places."""
        if not self.is_fetched:
            return
        if group != self._group:
            self.let_go()
            self._group = group
        missing = [each for each in ranges if each not in self._there]
        for position, content in self._file.read_ranges(missing):
            done = 0
            while done < len(content):
                done += os.pwrite(self.descriptor, memoryview(content)[done:], position + done)
        self._there.update(missing)

    def let_go(self) -> None:
        """Give back the memory of what was fetched."""
        if self.is_fetched and self._there:
            self._there.clear()
            os.ftruncate(self.descriptor, 0)
            os.ftruncate(self.descriptor, self._file.size_bytes)

    def close(self) -> None:
        """Close the file; idempotent."""
        descriptor, self.descriptor = self.descriptor, NO_DESCRIPTOR
        if self.is_fetched and descriptor != NO_DESCRIPTOR:
            os.close(descriptor)
        self._file.close()
