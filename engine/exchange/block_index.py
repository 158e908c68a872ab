"""BlockIndex: where the blocks of a result partition's file lie, subpartition by subpartition.

    index = BlockIndex(subpartition_count) ─► append(subpartition, offset, size, buffer_count)* ─► complete()
    index[subpartition] ─► Blocks: the entries of one, in order                    encode(identity)   decode(...)

    entries   offset u64 │ size u64 │ first ordinal u32 │ buffers u32      as they are in the index file
              ◄── subpartition 0 ──►◄── 1 ──►◄────── 2 ──────►
    starts    number of each one's first entry, and of the end

A process holds thousands of results with thousands of subpartitions each, most of them of one block or none. So there
is no object for a subpartition and none for a block: 4 bytes for a subpartition, and 24 for a block.

Held by: tests/exchange/test_partition_file.py
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, overload

from engine.errors import CorruptBlockError
from engine.iomanager.crc32c import crc32c
from engine.versions import RESULTS

VERSION: Final = RESULTS.newest
INDEX_MAGIC: Final = b"DREYPIDX"
INDEX_HEADER: Final = struct.Struct("<8sHHI16s")
INDEX_ENTRY: Final = struct.Struct("<QQII")
COUNT: Final = struct.Struct("<I")


class BlockEntry(NamedTuple):
    """The place of a block, and the buffers of its subpartition that are in it."""

    offset: int
    #: bytes, header included
    size: int
    #: 0-based position of its first buffer in the subpartition
    first_ordinal: int
    buffer_count: int


class Blocks(Sequence[BlockEntry]):
    """The blocks of one subpartition, in order; valid until another one is appended."""

    def __init__(self, entries: bytearray, begin: int, end: int) -> None:
        self._entries = entries
        self._numbers = range(begin, end)

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, position: int) -> BlockEntry: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[BlockEntry]: ...
    def __getitem__(self, position: int | slice) -> BlockEntry | Sequence[BlockEntry]:
        if isinstance(position, slice):
            return [self._entry(number) for number in self._numbers[position]]
        return self._entry(self._numbers[position])

    def __iter__(self) -> Iterator[BlockEntry]:
        return map(self._entry, self._numbers)

    def _entry(self, number: int) -> BlockEntry:
        return BlockEntry(*INDEX_ENTRY.unpack_from(self._entries, number * INDEX_ENTRY.size))


class BlockIndex:
    """The blocks of all subpartitions of a file. Written by one thread, complete before it is read by others."""

    def __init__(self, subpartition_count: int) -> None:
        self._count = subpartition_count
        self._entries = bytearray()
        #: subpartition of each entry, and buffers of each subpartition so far; nothing once it is complete
        self._owners = array("I")
        self._ordinals = array("I", bytes(4 * subpartition_count))
        #: none while entries are not in order of subpartitions
        self._starts: array[int] | None = None

    def append(self, subpartition: int, offset: int, size: int, buffer_count: int) -> None:
        """Take the next block of a subpartition."""
        self._entries += INDEX_ENTRY.pack(offset, size, self._ordinals[subpartition], buffer_count)
        self._ordinals[subpartition] += buffer_count
        self._owners.append(subpartition)
        self._starts = None

    def next_ordinal(self, subpartition: int) -> int:
        """Return the position of the next buffer of a subpartition."""
        return self._ordinals[subpartition]

    def complete(self) -> None:
        """Have all blocks: no more are appended."""
        self._ordered()
        self._owners = self._ordinals = array("I")

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Blocks]:
        return map(self.__getitem__, range(self._count))

    def __getitem__(self, subpartition: int) -> Blocks:
        starts = self._ordered()
        return Blocks(self._entries, starts[subpartition], starts[subpartition + 1])

    def _ordered(self) -> array[int]:
        """Bring the entries into the order of subpartitions, each one's as they were written."""
        if self._starts is not None:
            return self._starts
        starts = array("I", bytes(4 * (self._count + 1)))
        for owner in self._owners:
            starts[owner + 1] += 1
        for subpartition in range(self._count):
            starts[subpartition + 1] += starts[subpartition]
        places = starts[:]
        entries, size = bytearray(len(self._entries)), INDEX_ENTRY.size
        for number, owner in enumerate(self._owners):
            place = places[owner]
            entries[place * size : (place + 1) * size] = self._entries[number * size : (number + 1) * size]
            places[owner] += 1
        for subpartition in range(self._count):
            for number in range(starts[subpartition], starts[subpartition + 1]):
                self._owners[number] = subpartition
        self._entries, self._starts = entries, starts
        return starts

    def encode(self, identity: bytes) -> list[bytes | memoryview]:
        """Return the bytes of an index file, in parts."""
        starts, size = self._ordered(), INDEX_ENTRY.size
        parts: list[bytes | memoryview] = [INDEX_HEADER.pack(INDEX_MAGIC, VERSION, 0, self._count, identity)]
        entries = memoryview(self._entries)
        for subpartition in range(self._count):
            begin, end = starts[subpartition], starts[subpartition + 1]
            parts += [COUNT.pack(end - begin), entries[begin * size : end * size]]
        checksum = 0
        for part in parts:
            checksum = crc32c(part, checksum)
        return [*parts, COUNT.pack(checksum)]

    @classmethod
    def decode(cls, content: bytes, identity: bytes, path: object) -> BlockIndex:
        """Return the index of a file's content; path: for errors. Raises: CorruptBlockError."""
        if len(content) < INDEX_HEADER.size + 4 or COUNT.unpack(content[-4:])[0] != crc32c(content[:-4]):
            raise CorruptBlockError(f"{path}: the index is damaged")
        magic, version, _, subpartition_count, found = INDEX_HEADER.unpack_from(content)
        if magic != INDEX_MAGIC or version != VERSION or found != identity:
            raise CorruptBlockError(f"{path}: not version {VERSION} of this partition's index")
        self = cls(subpartition_count)
        position = INDEX_HEADER.size
        for subpartition in range(subpartition_count):
            (count,) = COUNT.unpack_from(content, position)
            begin = position + COUNT.size
            position = begin + count * INDEX_ENTRY.size
            self._entries += content[begin:position]
            self._owners.extend([subpartition] * count)
        self.complete()
        return self
