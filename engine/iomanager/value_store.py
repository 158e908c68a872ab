"""ValueStore: wide values of rows in files of their own, written once and read where they are needed.

    owner.write_value(value) ─► (store, file, offset, checksum)      any thread; goes into a reference in the row
    store.read_value(file, offset, checksum, into)                   any thread; straight into the reader's buffer
    store.close()                                                    idempotent; deletes the files

    file 0  │ value │ value │ value │ ...     append-only; a new file where a disk is full, on another disk

The checksum covers value, store, file and offset, so that no value passes for another. A place is reserved under the
lock, the bytes are written outside of it: several tasks write at a time. Values are as large as a thousand pages, so
nothing is buffered and there is no thread.

Source: PostgreSQL's TOAST tables; here append-only files that live as long as their space.
"""

from __future__ import annotations

import errno
import os
import threading
from typing import TYPE_CHECKING

from engine.errors import CorruptBlockError, SpillError
from engine.iomanager.crc32c import crc32c
from engine.memory import value_stores

if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Protocol

    from engine.iomanager.spill_directory import SpillDirectory

    class Extents(Protocol):
        """Opens files where there is room."""

        def open_extent(
            self, file_number: int, extent_number: int, need_bytes: int, full: Collection[SpillDirectory]
        ) -> tuple[int, str, SpillDirectory]:
            """Return descriptor, path and directory of a new file."""
            ...


_FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT)
#: bytes of one call: the kernel takes no more than 2 GiB
_CALL_BYTES = 1 << 30


class _File:
    """One file: appended to while it is the last one."""

    def __init__(self, descriptor: int, path: str, directory: SpillDirectory) -> None:
        self.write_descriptor = descriptor
        self.read_descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.path = path
        self.directory = directory
        self.end = 0

    def close(self) -> None:
        """Close the descriptors and delete the file."""
        os.close(self.write_descriptor)
        os.close(self.read_descriptor)
        self.directory.remove_file(self.path)


class ValueStore:
    """The wide values of one space."""

    def __init__(self, extents: Extents, file_number: int, label: str) -> None:
        self._extents = extents
        self._file_number = file_number
        self._label = label
        self._lock = threading.Lock()
        self._files: list[_File] = []
        self._full: set[SpillDirectory] = set()
        self._users = 0
        self._closed = False
        #: bytes written
        self.stored_bytes = 0
        self.number = value_stores.register(self)

    def write_value(self, value: memoryview) -> tuple[int, int, int, int]:
        """Append a value; return (number of the store, number of the file, offset, checksum).

        Raises: DiskFullError, SpillError.
        """
        while True:
            with self._lock:
                self._require_open()
                number = self._file_with_room(len(value))
                file = self._files[number]
                offset = file.end
                file.end += len(value)
                self._users += 1
            try:
                _write(file.write_descriptor, value, offset)
            except OSError as error:
                if error.errno not in _FULL_ERRORS:
                    raise SpillError(f"{file.path}: no value of {len(value)} bytes can be written: {error}") from error
                with self._lock:
                    self._full.add(file.directory)
                continue
            finally:
                self._leave()
            with self._lock:
                self.stored_bytes += len(value)
            return self.number, number, offset, crc32c(value, self._seed(number, offset))

    def read_value(self, file: int, offset: int, checksum: int, into: memoryview) -> None:
        """Read a value into a buffer of its size.

        Raises: CorruptBlockError when it is not what was written there; SpillError.
        """
        with self._lock:
            self._require_open()
            if file >= len(self._files):
                raise CorruptBlockError(f"{self._label}: a reference names file {file} of {len(self._files)}")
            found = self._files[file]
            self._users += 1
        try:
            got = _read(found.read_descriptor, into, offset)
        except OSError as error:
            raise SpillError(f"{found.path}: {len(into)} bytes at {offset} cannot be read: {error}") from error
        finally:
            self._leave()
        if got != len(into):
            raise CorruptBlockError(f"{found.path}: a value of {len(into)} bytes at offset {offset} ends after {got}")
        if crc32c(into, self._seed(file, offset)) != checksum:
            raise CorruptBlockError(
                f"{found.path}: the value of {len(into)} bytes at offset {offset} is damaged: its checksum differs"
            )

    def close(self) -> None:
        """Forget all values and delete the files, once nobody reads or writes; idempotent.

        Raises: SpillError when a file cannot be removed.
        """
        with self._lock:
            self._closed = True
            files = self._take_files() if self._users == 0 else []
        value_stores.forget(self.number)
        _close(files)

    def _leave(self) -> None:
        with self._lock:
            self._users -= 1
            files = self._take_files() if self._closed and self._users == 0 else []
        _close(files)

    def _take_files(self) -> list[_File]:
        files, self._files = self._files, []
        return files

    def _file_with_room(self, size: int) -> int:
        """Return the number of the last file, or of a new one when its disk is full."""
        if not self._files or self._files[-1].directory in self._full:
            opened = self._extents.open_extent(self._file_number, len(self._files), size, self._full)
            self._files.append(_File(*opened))
        return len(self._files) - 1

    def _seed(self, file: int, offset: int) -> int:
        return crc32c(f"{self.number}.{file}.{offset}".encode())

    def _require_open(self) -> None:
        if self._closed:
            raise SpillError(f"the wide values of {self._label} have been released")


def _write(descriptor: int, value: memoryview, offset: int) -> None:
    done = 0
    while done < len(value):
        done += os.pwrite(descriptor, value[done : done + _CALL_BYTES], offset + done)


def _read(descriptor: int, into: memoryview, offset: int) -> int:
    done = 0
    while done < len(into):
        count = os.preadv(descriptor, [into[done : done + _CALL_BYTES]], offset + done)
        if count == 0:
            break
        done += count
    return done


def _close(files: list[_File]) -> None:
    failure: OSError | None = None
    for file in files:
        try:
            file.close()
        except OSError as error:
            failure = failure or error
    if failure is not None:
        raise SpillError(f"a file of wide values cannot be removed: {failure}") from failure


class CountedValues:
    """The part of one task in a space of many."""

    def __init__(self, owner: value_stores.ValueOwner) -> None:
        self._owner = owner
        #: bytes written by this task  # written by: its threads, one at a time
        self.stored_bytes = 0

    def write_value(self, value: memoryview) -> tuple[int, int, int, int]:
        """As ValueStore.write_value."""
        place = self._owner.write_value(value)
        self.stored_bytes += len(value)
        return place
