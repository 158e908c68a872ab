"""The file of a BLOCKING result partition: one data file with checksummed blocks, and an index.

    PartitionFile(path, identity, subpartition_count) ─► append(subpartition, buffers)* ─► finish() ─► read(block)*
    ─► delete()                                         PartitionFile.open(path, identity) reads a finished one

    <stem>.shuffle.data    header (64 bytes), then blocks
        header   magic "DREYPART" | version u16 | 0 u16 | subpartitions u32 | identity 16 bytes | 0 ... | crc32c u32
        block    magic u32 | payload u32 | subpartition u32 | first ordinal u32 | identity 8 bytes | count u32 | crc32c
        payload  (data type i16 | compressed i16 | length i32 | bytes)*          one for each buffer
    <stem>.shuffle.index   magic "DREYPIDX" | version u16 | 0 u16 | subpartitions u32 | identity 16 bytes, then
        per subpartition a count u32, then entries (offset u64, size u64, first ordinal u32, buffers u32); last a crc32c

All numbers little-endian. ``identity`` is a digest of the ResultPartitionId: a block of another partition is refused.
A block's checksum covers its header (without the checksum) and payload; what does not fit raises CorruptBlockError with
path and offset. Writing uses write(), never mapped stores. One writer at a time; ``read`` from any thread (pread). The
file is opened when it is used (``open_files``): a TaskManager holds thousands.
When a block does not fit the disk, or the limit of the folder, its bytes are cut off again and the file moves to
another folder. When no folder has room, DiskFullError is raised and the file stays readable as it was.

Memory: the index (``block_index``), 4 bytes a subpartition and 24 a block.

Source: Flink's sort-shuffle layout (data file, index file, 8-byte buffer headers); blocks and checksums are ours.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import struct
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

from engine.errors import CorruptBlockError, DiskFullError, PartitionReleasedError, SpillError
from engine.exchange.block_index import COUNT, VERSION, BlockEntry, BlockIndex
from engine.exchange.buffer_pool import Buffer, unpooled_buffer
from engine.ids import ResultPartitionId
from engine.iomanager.crc32c import crc32c
from engine.iomanager.disk_limit import DiskLimit, DiskShare
from engine.iomanager.disk_use import room_advice
from engine.iomanager.open_files import OpenFile

DATA_MAGIC: Final = b"DREYPART"
BLOCK_MAGIC: Final = 0x4B4C4250
FILE_HEADER: Final = struct.Struct("<8sHHI16s28xI")
BLOCK_HEADER: Final = struct.Struct("<IIII8sII")
BUFFER_HEADER: Final = struct.Struct("<hhi")
#: bytes of buffers that one block holds when many are written at once
BLOCK_PAYLOAD_BYTES: Final = 256 << 10
_COPY_BYTES: Final = 4 << 20
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
#: errors of reads that would wait, and of file systems that cannot tell
_WOULD_WAIT: Final = (errno.EAGAIN, errno.EOPNOTSUPP, errno.EINVAL)


def partition_identity(partition: ResultPartitionId) -> bytes:
    """Return the 16 bytes that mark the blocks of a partition."""
    return hashlib.blake2b(str(partition).encode(), digest_size=16).digest()


def _endless_share(path: Path) -> DiskShare:
    """Return a share of no limit, for a file that is no task's."""
    return DiskLimit(path.parent).share("")


class PartitionFile:
    """Data file and index of one BLOCKING result partition.

    Args:
        path: does not exist yet.
        identity: of ``partition_identity``.
        subpartition_count: stored subpartitions.
        other_path: (bytes needed, full folders) -> a path in another folder, or DiskFullError; None: there is none.
        share_of: returns what the bytes of a file in the folder of a path are taken from.
    """

    def __init__(
        self,
        path: Path,
        identity: bytes,
        subpartition_count: int,
        other_path: Callable[[int, Collection[Path]], Path] | None = None,
        share_of: Callable[[Path], DiskShare] = _endless_share,
    ) -> None:
        self.path = path
        self.index_path = _index_path(path)
        self.identity = identity
        self.entries = BlockIndex(subpartition_count)
        self.size_bytes = FILE_HEADER.size
        self._other_path = other_path
        self._full_folders: set[Path] = set()
        self._lock = threading.Lock()
        self._is_deleted = False  # guarded by: self._lock
        self._share_of = share_of
        self._share = share_of(path)
        self._taken_bytes = 0  # guarded by: self._lock
        header = FILE_HEADER.pack(DATA_MAGIC, VERSION, 0, subpartition_count, identity, 0)[:-4]
        try:
            self._opened = OpenFile(path, is_new=True)
        except OSError as error:
            raise _creation_error(path, error, self._share) from error
        try:
            self._take(FILE_HEADER.size)
            with self._opened as descriptor:
                _write_all(descriptor, 0, [header, COUNT.pack(crc32c(header))], FILE_HEADER.size)
        except OSError as error:
            self.delete()
            raise _creation_error(path, error, self._share) from error

    @classmethod
    def open(cls, path: Path, identity: bytes) -> PartitionFile:
        """Open a finished file by its index.

        Raises:
            CorruptBlockError: header or index are not those of this identity, or not of a file of this size.
        """
        self = cls.__new__(cls)
        self.path = path
        self.index_path = _index_path(path)
        self.identity = identity
        self._other_path = None
        self._full_folders = set()
        self._lock = threading.Lock()
        self._is_deleted = False
        self._share_of = _endless_share
        self._share, self._taken_bytes = _endless_share(path), 0
        self._opened = OpenFile(path)
        with self._opened as descriptor:
            self._check_header(os.pread(descriptor, FILE_HEADER.size, 0))
            found_bytes = os.fstat(descriptor).st_size
        self.entries = BlockIndex.decode(self.index_path.read_bytes(), identity, self.index_path)
        ends = (entry.offset + entry.size for blocks in self.entries for entry in blocks)
        self.size_bytes = max(ends, default=FILE_HEADER.size)
        if found_bytes != self.size_bytes:
            raise CorruptBlockError(f"{path}: {found_bytes} bytes, but its index says {self.size_bytes}")
        return self

    def append(self, subpartition: int, buffers: Sequence[Buffer]) -> None:
        """Append buffers (which stay the caller's) to the subpartition, in blocks of some 256 KiB.

        Raises:
            DiskFullError, SpillError: what was written of the failing block is cut off again.
        """
        pending: list[Buffer] = []
        pending_bytes = 0
        for buffer in buffers:
            if pending and pending_bytes + buffer.size > BLOCK_PAYLOAD_BYTES:
                self._append_block(subpartition, pending)
                pending, pending_bytes = [], 0
            pending.append(buffer)
            pending_bytes += buffer.size
        if pending:
            self._append_block(subpartition, pending)

    def finish(self) -> None:
        """Write the index file; the data file stays open for reading."""
        self.entries.complete()
        parts = self.entries.encode(self.identity)
        size = sum(map(len, parts))
        try:
            self._take(size)
            with self.index_path.open("xb") as file:
                file.writelines(parts)
        except OSError as error:
            raise _write_error(self.index_path, size, error, self._share) from error

    def read(self, subpartition: int, entry: BlockEntry) -> list[Buffer]:
        """Return the buffers of a block, each with memory of its own. Thread: any.

        Raises:
            CorruptBlockError: the block is not the one that was written here.
        """
        block = bytearray(entry.size)
        done, count = 0, -1
        try:
            with self._used() as descriptor:
                while done < len(block) and count != 0:
                    count = os.preadv(descriptor, [memoryview(block)[done:]], entry.offset + done)
                    done += count
        except OSError as error:
            raise self._read_error(entry, error) from error
        if done != entry.size:
            raise CorruptBlockError(f"{self.path}: {done} of {entry.size} bytes at offset {entry.offset}")
        return self._decode_block(block, subpartition, entry)

    def read_at_once(self, subpartition: int, entry: BlockEntry) -> list[Buffer] | None:
        """Read the block if the system has it in memory; None if that would wait for the disk."""
        block = bytearray(entry.size)
        try:
            with self._used() as descriptor:
                if os.preadv(descriptor, [block], entry.offset, os.RWF_NOWAIT) < entry.size:
                    return None
        except OSError as error:
            if error.errno in _WOULD_WAIT:
                return None
            raise self._read_error(entry, error) from error
        return self._decode_block(block, subpartition, entry)

    def _read_error(self, entry: BlockEntry, error: OSError) -> SpillError:
        return SpillError(f"cannot read {self.path} at offset {entry.offset}: {error}")

    def advise(self, entry: BlockEntry) -> None:
        """Ask the operating system to read a block ahead."""
        with contextlib.suppress(OSError), self._used() as descriptor:
            os.posix_fadvise(descriptor, entry.offset, entry.size, os.POSIX_FADV_WILLNEED)

    def delete(self) -> None:
        """Remove both files; reads and writes under way finish first. Idempotent. Thread: any."""
        with self._lock:
            self._is_deleted = True
            opened, paths = self._opened, (self.path, self.index_path)
            share, taken = self._share, self._taken_bytes
            self._taken_bytes = 0
        with contextlib.suppress(OSError):  # what a disk reports of dropped bytes
            opened.close()
        for path in paths:
            path.unlink(missing_ok=True)
        share.give_back(taken)

    def _take(self, size: int) -> None:
        """Take bytes of the limit. Raises: OSError with EDQUOT; PartitionReleasedError."""
        with self._lock:
            if self._is_deleted:
                raise PartitionReleasedError(f"{self.path.name} was released")
            self._share.reserve(size)
            self._taken_bytes += size

    def _give_back(self, size: int) -> None:
        """Give bytes back that were not written, unless the file was deleted, which gives back all."""
        with self._lock:
            if not self._is_deleted:
                self._taken_bytes -= size
                self._share.give_back(size)

    @contextlib.contextmanager
    def _used(self) -> Iterator[int]:
        """Have the file open; PartitionReleasedError once it was deleted."""
        with self._lock:
            opened = self._opened
            is_deleted = self._is_deleted
        try:
            if not is_deleted:
                with opened as descriptor:
                    yield descriptor
                return
        except OSError as error:
            if not (self._is_deleted and error.errno == errno.EBADF):
                raise
        raise PartitionReleasedError(f"{self.path.name} was released")

    def _append_block(self, subpartition: int, buffers: Sequence[Buffer]) -> None:
        first_ordinal = self.entries.next_ordinal(subpartition)
        payload_size = sum(BUFFER_HEADER.size + buffer.size for buffer in buffers)
        header = BLOCK_HEADER.pack(
            BLOCK_MAGIC, payload_size, subpartition, first_ordinal, self.identity[:8], len(buffers), 0
        )[:-4]
        checksum = crc32c(header)
        parts: list[bytes | memoryview] = []
        for buffer in buffers:
            parts.append(BUFFER_HEADER.pack(buffer.kind, 0, buffer.size))
            parts.append(memoryview(buffer.segment)[: buffer.size])
        for part in parts:
            checksum = crc32c(part, checksum)
        size = BLOCK_HEADER.size + payload_size
        try:
            while not self._write_block([header, COUNT.pack(checksum), *parts], size):
                self._move(size)
        finally:
            for part in parts:
                if isinstance(part, memoryview):
                    part.release()
        self.entries.append(subpartition, self.size_bytes, size, len(buffers))
        self.size_bytes += size

    def _write_block(self, parts: Sequence[bytes | memoryview], size: int) -> bool:
        """Write at the end; False when the disk is full and another folder may be tried."""
        try:
            self._take(size)
            with self._used() as descriptor:
                try:
                    _write_all(descriptor, self.size_bytes, parts, size)
                except OSError:
                    self._give_back(size)
                    os.ftruncate(descriptor, self.size_bytes)
                    raise
        except OSError as error:
            if error.errno in _FULL and self._other_path is not None:
                return False
            raise _write_error(self.path, size, error, self._share) from error
        return True

    def _move(self, size: int) -> None:
        """Copy the file to a folder with room for it and that many bytes more, and go on there."""
        assert self._other_path is not None
        self._full_folders.add(self.path.parent)
        target = self._other_path(self.size_bytes + size, self._full_folders)
        share, taken = self._share_of(target), self.size_bytes
        try:
            share.reserve(taken)
        except OSError as error:
            raise _write_error(target, taken, error, share) from error
        try:
            copy = OpenFile(target, is_new=True)
            try:
                with self._used() as source, copy as descriptor:
                    for offset in range(0, self.size_bytes, _COPY_BYTES):
                        content = os.pread(source, min(_COPY_BYTES, self.size_bytes - offset), offset)
                        _write_all(descriptor, offset, [content], len(content))
            except (OSError, PartitionReleasedError):
                copy.close()
                target.unlink()
                raise
        except OSError as error:
            share.give_back(taken)
            raise _write_error(target, self.size_bytes, error, share) from error
        except PartitionReleasedError:
            share.give_back(taken)
            raise
        with self._lock:
            is_deleted = self._is_deleted
            if not is_deleted:
                copy, self._opened = self._opened, copy
                target, self.path = self.path, target
                self.index_path = _index_path(self.path)
                share, self._share = self._share, share
                taken, self._taken_bytes = self._taken_bytes, taken
        copy.close()  # the one that is not needed: the old one, or the new one of a file deleted meanwhile
        target.unlink(missing_ok=True)
        share.give_back(taken)

    def _check_header(self, header: bytes) -> None:
        if len(header) != FILE_HEADER.size or COUNT.unpack(header[-4:])[0] != crc32c(header[:-4]):
            raise CorruptBlockError(f"{self.path}: the file header is damaged")
        magic, version, _, _, identity, _ = FILE_HEADER.unpack(header)
        if magic != DATA_MAGIC or version != VERSION or identity != self.identity:
            raise CorruptBlockError(f"{self.path}: not version {VERSION} of this partition's data")

    def _decode_block(self, block: bytes | bytearray, subpartition: int, entry: BlockEntry) -> list[Buffer]:
        magic, payload_size, owner, first_ordinal, identity, count, checksum = BLOCK_HEADER.unpack_from(block)
        view = memoryview(block)
        found = (magic, owner, first_ordinal, identity, count, payload_size + BLOCK_HEADER.size)
        wanted = (BLOCK_MAGIC, subpartition, entry.first_ordinal, self.identity[:8], entry.buffer_count, entry.size)
        if found != wanted:
            raise CorruptBlockError(f"{self.path}: the block at offset {entry.offset} is not the one written here")
        if crc32c(view[BLOCK_HEADER.size :], crc32c(view[: BLOCK_HEADER.size - 4])) != checksum:
            raise CorruptBlockError(f"{self.path}: wrong checksum of the block at offset {entry.offset}")
        buffers = []
        position = BLOCK_HEADER.size
        for _ in range(count):
            kind, _, length = BUFFER_HEADER.unpack_from(block, position)
            position += BUFFER_HEADER.size
            buffers.append(unpooled_buffer(view[position : position + length], kind))
            position += length
        return buffers


def _index_path(path: Path) -> Path:
    """Return the path of a data file's index."""
    return path.with_name(path.name.removesuffix(".data") + ".index")


def _write_all(descriptor: int, offset: int, parts: Sequence[bytes | memoryview], size: int) -> None:
    """Write parts of together ``size`` bytes at an offset, also when the system takes them in pieces."""
    written = os.pwritev(descriptor, parts, offset)
    if written < size:
        rest = memoryview(b"".join(parts))[written:]
        while rest:
            count = os.pwrite(descriptor, rest, offset + size - len(rest))
            rest = rest[count:]


def _creation_error(path: Path, error: OSError, share: DiskShare) -> SpillError:
    if error.errno in _FULL:
        return _write_error(path, FILE_HEADER.size, error, share)
    return SpillError(f"cannot create the partition file {path}: {error}")


def _write_error(path: Path, size: int, error: OSError, share: DiskShare) -> SpillError:
    """Return the error for a write of that many bytes that failed."""
    if error.errno in _FULL:
        free = shutil.disk_usage(path.parent).free
        return DiskFullError(
            f"no room for {size} bytes in {path.parent} ({free} free) for {path.name}: "
            f"{room_advice([share.limit], size)}"
        )
    return SpillError(f"cannot write {size} bytes to {path}: {error}")
