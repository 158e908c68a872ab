"""ValueStore: out-of-line values of rows in files of their own, written once and read where they are needed.

    owner.find_value(value, value_hash) ─► place of an equal one, or None    any thread; asked first
    owner.write_value(value, value_hash) ─► (store, file, offset, checksum)  any thread; goes into a reference
    store.read_value(file, offset, checksum, into)                   any thread; straight into the reader's buffer
    store.open_value(file, offset, size, checksum).read_block(...)   any thread; a part, for comparisons
    store.close()                                                    idempotent; deletes the files

    file 0  │ value │ sums │ value │ sums │ ...     append-only; a new file where a disk is full, on another disk

Behind a value lie the checksums of its blocks (CRC32C, 4 bytes for each 256 KiB), and the checksum of the value is
theirs, with store, file and offset, so that no value passes for another and a part can be proved without the rest. A
place is reserved under the lock, the bytes are written outside of it: several tasks write at a time. Values are as
large as a thousand pages, so nothing is buffered and there is no thread.

A value that is there already is not written again: it is found by hash and size, and compared with what lies in the
file, byte by byte, which costs less than to write it. So rows that go through several operators, or repeat their keys,
leave one copy of a value with the job (``SpillSpace.find_value``). One that cannot be read counts as not there.

Limits: FOUND_MAX values can be found, the latest ones (some 6 MB).
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
from engine.memory.value_stores import BLOCK_BYTES

if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Protocol, TypeVar

    from engine.errors import ResourceError
    from engine.iomanager.open_files import OpenFile
    from engine.iomanager.spill_directory import SpillDirectory

    _Failure = TypeVar("_Failure", bound=ResourceError)

    class Extents(Protocol):
        """Opens files where there is room."""

        #: the result partition that the values are a part of: its producer runs again when they cannot be read
        partition: object

        def open_extent(
            self, file_number: int, extent_number: int, need_bytes: int, full: Collection[SpillDirectory]
        ) -> tuple[OpenFile, SpillDirectory]:
            """Return a new file and its directory."""
            ...


_FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT)
#: bytes of one call: the kernel takes no more than 2 GiB
_CALL_BYTES = 1 << 30
#: bytes of a block's checksum
_SUM_BYTES = 4
#: values that can be found by what is in them
FOUND_MAX = 1 << 14


class _File:
    """One file: appended to while it is the last one."""

    def __init__(self, opened: OpenFile, directory: SpillDirectory) -> None:
        self.opened = opened
        self.path = opened.path
        self.directory = directory
        self.end = 0

    def close(self) -> None:
        """Delete the file."""
        self.directory.remove_file(self.opened)


class ValueStore:
    """The wide values of one space."""

    def __init__(self, extents: Extents, file_number: int, label: str) -> None:
        self._extents = extents
        self._file_number = file_number
        self._label = label
        self._lock = threading.Lock()
        self._files: list[_File] = []
        #: file, offset, checksum by hash and size
        self._places: dict[tuple[int, int], tuple[int, int, int]] = {}
        self._full: set[SpillDirectory] = set()
        self._users = 0
        self._closed = False
        #: bytes written
        self.stored_bytes = 0
        self.number = value_stores.register(self)

    def find_value(self, value: memoryview, value_hash: int) -> value_stores.Place | None:
        """Return the place of an equal value with this hash, None where none is known or can be read."""
        with self._lock:
            place = self._places.get((value_hash, len(value)))
        return (self.number, *place) if place is not None and self._holds(place[0], place[1], value) else None

    def _holds(self, file: int, offset: int, value: memoryview) -> bool:
        """Whether these bytes lie there."""
        try:
            for start in range(0, len(value), BLOCK_BYTES):
                block = value[start : start + BLOCK_BYTES]
                stored = bytearray(len(block))
                self.read(file, offset + start, memoryview(stored))
                if stored != block:
                    return False
        except (CorruptBlockError, SpillError):
            return False
        return True

    def write_value(self, value: memoryview, value_hash: int | None = None) -> value_stores.Place:
        """Append a value; return (number of the store, number of the file, offset, checksum).

        Args: value_hash: by which it is found again, None: it is not.
        Raises: DiskFullError, SpillError.
        """
        sums = _sums_of(value)
        size = len(value) + len(sums)
        while True:
            with self._lock:
                self._require_open()
                number = self._file_with_room(size)
                file = self._files[number]
                offset = file.end
                file.end += size
                self._users += 1
            try:
                with file.opened as descriptor:
                    _write(descriptor, value, offset)
                    _write(descriptor, memoryview(sums), offset + len(value))
            except OSError as error:
                if error.errno not in _FULL_ERRORS:
                    raise SpillError(f"{file.path}: no value of {len(value)} bytes can be written: {error}") from error
                with self._lock:
                    self._full.add(file.directory)
                continue
            finally:
                self._leave()
            checksum = crc32c(sums, self._seed(number, offset))
            with self._lock:
                self.stored_bytes += len(value)
                if value_hash is not None:
                    self._places[value_hash, len(value)] = number, offset, checksum
                    if len(self._places) > FOUND_MAX:
                        del self._places[next(iter(self._places))]
            return self.number, number, offset, checksum

    def read_value(self, file: int, offset: int, checksum: int, into: memoryview) -> None:
        """Read a value into a buffer of its size.

        Raises: CorruptBlockError when it is not what was written there; SpillError.
        """
        value = self.open_value(file, offset, len(into), checksum)
        path = self.read(file, offset, into)
        value.check(_sums_of(into), path)

    def open_value(self, file: int, offset: int, size: int, checksum: int) -> StoredValue:
        """Return a value of so many bytes, to be read block by block.

        Raises: CorruptBlockError when none of this size was written there; SpillError.
        """
        sums = bytearray(_SUM_BYTES * -(-size // BLOCK_BYTES))
        path = self.read(file, offset + size, memoryview(sums))
        value = StoredValue(self, file, offset, size, sums)
        if crc32c(sums, self._seed(file, offset)) != checksum:
            raise value.damaged(path)
        return value

    def read(self, file: int, offset: int, into: memoryview) -> str:
        """Fill a buffer with what lies in a file, unchecked; returns the path of the file. For StoredValue."""
        with self._lock:
            self._require_open()
            if file >= len(self._files):
                raise CorruptBlockError(f"{self._label}: a reference names file {file} of {len(self._files)}")
            found = self._files[file]
            self._users += 1
        try:
            with found.opened as descriptor:
                got = _read(descriptor, into, offset)
        except OSError as error:
            raise self.blamed(
                SpillError(f"{found.path}: {len(into)} bytes at {offset} cannot be read: {error}")
            ) from error
        finally:
            self._leave()
        if got != len(into):
            raise self.blamed(
                CorruptBlockError(f"{found.path}: {len(into)} bytes of a value at offset {offset} end after {got}")
            )
        return found.path

    def blamed(self, error: _Failure) -> _Failure:
        """Return the error with the result partition that the values are a part of. For StoredValue."""
        error.partition = self._extents.partition
        return error

    def close(self) -> None:
        """Forget all values and delete the files, as soon as no thread reads or writes; idempotent.

        Raises: SpillError when a file cannot be removed.
        """
        with self._lock:
            self._closed = True
            self._places = {}
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
        """Return the number of the last file, or of a new one when its disk is full, with so many bytes taken there."""
        while True:
            if not self._files or self._files[-1].directory in self._full:
                opened = self._extents.open_extent(self._file_number, len(self._files), size, self._full)
                self._files.append(_File(*opened))
            last = self._files[-1]
            if last.directory.reserve(last.opened, size):
                return len(self._files) - 1
            self._full.add(last.directory)

    def _seed(self, file: int, offset: int) -> int:
        return crc32c(f"{self.number}.{file}.{offset}".encode())

    def _require_open(self) -> None:
        if self._closed:
            raise SpillError(f"the wide values of {self._label} have been released")


class StoredValue:
    """One value of a store, its checksums proved."""

    def __init__(self, store: ValueStore, file: int, offset: int, size: int, sums: bytearray) -> None:
        self._store = store
        self._place = file, offset
        self._size = size
        self._sums = sums

    def read_block(self, index: int, into: memoryview) -> None:
        """Read block ``index`` of BLOCK_BYTES, the last one shorter, into a buffer of its size.

        Raises: CorruptBlockError when it is not what was written there; SpillError.
        """
        file, offset = self._place
        path = self._store.read(file, offset + index * BLOCK_BYTES, into)
        self.check(_sums_of(into), path, index)

    def check(self, sums: bytes, path: str, first_block: int = 0) -> None:
        """Raise CorruptBlockError unless these are the checksums of the blocks from first_block on."""
        begin = first_block * _SUM_BYTES
        if self._sums[begin : begin + len(sums)] != sums:
            raise self.damaged(path)

    def damaged(self, path: str) -> CorruptBlockError:
        """Return the error of a value that is not what was written."""
        return self._store.blamed(
            CorruptBlockError(
                f"{path}: the value of {self._size} bytes at offset {self._place[1]} is damaged: its checksum differs"
            )
        )


def _sums_of(value: memoryview) -> bytes:
    """Return the checksum of each block, one behind the other."""
    starts = range(0, len(value), BLOCK_BYTES)
    return b"".join(crc32c(value[start : start + BLOCK_BYTES]).to_bytes(_SUM_BYTES, "little") for start in starts)


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
    """The part of one task, or of one operator, in a space of many."""

    def __init__(self, owner: value_stores.ValueOwner) -> None:
        self._owner = owner
        #: bytes written by this task  # written by: its threads, one at a time
        self.spilled_bytes = 0

    @property
    def raw_bytes(self) -> int:
        """Bytes before they were compressed, which values are not."""
        return self.spilled_bytes

    def find_value(self, value: memoryview, value_hash: int) -> value_stores.Place | None:
        """Find a value as ValueStore.find_value does."""
        return self._owner.find_value(value, value_hash)

    def write_value(self, value: memoryview, value_hash: int | None = None) -> value_stores.Place:
        """Write a value as ValueStore.write_value does."""
        place = self._owner.write_value(value, value_hash)
        self.spilled_bytes += len(value)
        return place
