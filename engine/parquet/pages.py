"""Pages of a Parquet column as they lie in the file: headers, and streams of their bytes, decompressed on the way.

    pages(descriptor, chunk)            ──► PageHeader, one for each page, dictionary included; only headers are read
    page_stream(descriptor, page, codec) ──► .read(size) .readinto(view) .finish()       the page's bytes in order
    bits_and_runs(data, width, count)   ──► list of numbers: levels, places in a dictionary

pyarrow takes a page into memory whole, with all that is in it; who needs one value after the other reads it from here.
What has a checksum is compared with it when the page ends.

Source: parquet-format: PageHeader (``compact_protocol``); Encodings.md, RLE and bit-packing hybrid.
Held by: tests/parquet/test_reader.py
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from engine.parquet.compact_protocol import CompactReader
from engine.parquet.snappy_stream import BlockStream

#: bytes in which a header ends, but for statistics that some writer made of very wide values
HEADER_BYTES: Final = 16 << 10
#: a damaged one may say that it is as long as the column; more than pyarrow takes
HEADER_BYTES_MAX: Final = 64 << 20
#: LZ4 is what the format calls LZ4_RAW: blocks; the older LZ4 has no name
STREAMED_CODECS: Final = {
    "UNCOMPRESSED": "",
    "SNAPPY": "snappy",
    "GZIP": "gzip",
    "ZSTD": "zstd",
    "BROTLI": "brotli",
    "LZ4": "lz4",
}
#: what ``BlockStream`` reads
_BLOCK_CODECS: Final = ("snappy", "lz4")
DATA, DICTIONARY, DATA_SECOND = 0, 2, 3
#: the number of the encoding in page headers
_RUNS: Final = 3
_CHUNK_BYTES: Final = 256 << 10
#: numbers in page headers have 32 bits
_NUMBER_END: Final = 1 << 31


class PageHeader(NamedTuple):
    """What a page says of itself."""

    #: where its bytes begin
    position: int
    kind: int
    size_bytes: int
    compressed_bytes: int
    checksum: int | None
    value_count: int
    encoding: int
    #: of a page of the second kind: levels, which lie before the rest and are not compressed
    level_bytes: tuple[int, int]
    is_compressed: bool
    #: whether nulls are told by runs and packed bits; very old files have bits alone
    has_runs: bool


def first_page(chunk: pq.ColumnChunkMetaData) -> int:
    """Return where the pages of a column begin."""
    offset: int = chunk.data_page_offset
    dictionary: int | None = chunk.dictionary_page_offset if chunk.has_dictionary_page else None
    return min(offset, dictionary) if dictionary else offset


def pages(descriptor: int, chunk: pq.ColumnChunkMetaData) -> Iterator[PageHeader]:
    """Yield the headers of a column's pages; pa.ArrowInvalid where there is none."""
    position = first_page(chunk)
    left = chunk.num_values
    end = position + chunk.total_compressed_size
    while left > 0:
        if position >= end:
            raise pa.ArrowInvalid(f"the pages of column {chunk.path_in_schema} end {left} values early")
        page = _header(descriptor, position, end)
        if page.kind != DICTIONARY:
            left -= page.value_count
        if left < 0:
            raise pa.ArrowInvalid(f"the pages of column {chunk.path_in_schema} have {-left} values too many")
        yield page
        position = page.position + page.compressed_bytes


def _header(descriptor: int, position: int, end: int) -> PageHeader:
    size = HEADER_BYTES
    while True:
        data = os.pread(descriptor, min(size, end - position), position)
        reader = CompactReader(data)
        try:
            fields = reader.struct()
            break
        except IndexError:
            if len(data) < size or size >= HEADER_BYTES_MAX:
                raise pa.ArrowInvalid(f"the page header at byte {position} does not end") from None
            size *= 8
    try:
        return _page_of(fields, position + reader.position)
    except (TypeError, ValueError):
        raise pa.ArrowInvalid(f"the page header at byte {position} is damaged") from None


def _page_of(fields: dict[int, Any], position: int) -> PageHeader:
    kind = _number(fields, 1)
    is_second = kind == DATA_SECOND
    about = dict(fields.get({DATA: 5, DICTIONARY: 7, DATA_SECOND: 8}.get(kind, 0), ()))
    return PageHeader(
        position,
        kind,
        _number(fields, 2),
        _number(fields, 3),
        int(fields[4]) & 0xFFFF_FFFF if 4 in fields else None,
        _number(about, 1, 0),
        _number(about, 4 if is_second else 2, 0) if about else -1,
        (_number(about, 6, 0), _number(about, 5, 0)) if is_second else (0, 0),
        about.get(7, True) if is_second else True,
        kind != DATA or about.get(3, _RUNS) == _RUNS,
    )


def _number(fields: dict[int, Any], field: int, default: int = -1) -> int:
    """Return a field; ValueError, TypeError where it is no number of 31 bits."""
    value = int(fields.get(field, default))
    if not 0 <= value < _NUMBER_END:
        raise ValueError(value)
    return value


class ByteStream(Protocol):
    """Bytes in order."""

    def read(self, size: int) -> bytes:
        """Return just so many bytes."""
        ...

    def readinto(self, view: memoryview) -> object:
        """Fill the view."""
        ...


class Section:
    """Bytes of a file, counted for the checksum."""

    def __init__(self, descriptor: int, position: int, size_bytes: int) -> None:
        self._descriptor = descriptor
        self.position = position
        self._end = position + size_bytes
        self.checksum = 0
        self.is_checked = False

    def readinto(self, view: memoryview) -> None:
        """Fill the view; pa.ArrowInvalid where the section or the file ends."""
        if len(view) > self._end - self.position:
            raise pa.ArrowInvalid(f"a page ends at byte {self._end}, before its values do")
        done = 0
        while done < len(view):
            count = os.preadv(self._descriptor, [view[done:]], self.position)
            if count == 0:
                raise pa.ArrowInvalid(f"the file ends at byte {self.position}, within a page")
            if self.is_checked:
                self.checksum = zlib.crc32(view[done : done + count], self.checksum)
            done, self.position = done + count, self.position + count

    def read(self, size: int) -> bytes:
        """Return just so many bytes."""
        data = bytearray(size)
        self.readinto(memoryview(data))
        return bytes(data)

    def some(self, size: int) -> bytes:
        """Return the next bytes, less at the end."""
        return self.read(min(size, self._end - self.position))


class _ArrowStream:
    """Arrow's decompression of a section."""

    closed = False

    def __init__(self, section: Section, codec: str) -> None:
        self._section = section
        self._stream = pa.CompressedInputStream(pa.PythonFile(self, mode="r"), codec)

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        """Leave the file open."""

    def read(self, size: int) -> bytes:
        """Give Arrow what it is to decompress."""
        return self._section.some(min(size, _CHUNK_BYTES))

    def readinto(self, view: memoryview) -> None:
        done = 0
        while done < len(view):
            count = self._stream.readinto(view[done:])
            if not count:
                raise pa.ArrowInvalid("a compressed page ends before its values do")
            done += count


class PageStream:
    """The bytes of a page: levels of the second kind of page first, as they are, then the rest, decompressed."""

    def __init__(self, descriptor: int, page: PageHeader, codec: str) -> None:
        levels = sum(page.level_bytes)
        if levels > min(page.size_bytes, page.compressed_bytes):
            raise pa.ArrowInvalid(f"the page at byte {page.position} has more levels than bytes")
        self._page = page
        self._section = Section(descriptor, page.position, page.compressed_bytes)
        self._section.is_checked = page.checksum is not None
        self.levels = self._section.read(levels)[page.level_bytes[0] :]
        self._left = page.size_bytes - levels
        codec = codec if page.is_compressed and self._left else ""
        self._source: Any = self._section
        if codec in _BLOCK_CODECS:
            try:
                self._source = BlockStream(self._section.some, self._left, codec)
            except ValueError as error:
                raise pa.ArrowInvalid(str(error)) from error
        elif codec:
            self._source = _ArrowStream(self._section, codec)

    @property
    def left_bytes(self) -> int:
        """Bytes that are still to come."""
        return self._left

    def readinto(self, view: memoryview) -> None:
        """Fill the view with the next bytes; pa.ArrowInvalid where the page is damaged."""
        if len(view) > self._left:
            raise pa.ArrowInvalid(f"the page at byte {self._page.position} ends before its values do")
        self._left -= len(view)
        try:
            self._source.readinto(view)
        except ValueError as error:
            raise pa.ArrowInvalid(str(error)) from error

    def read(self, size: int) -> bytes:
        """Return the next bytes."""
        data = bytearray(min(size, self._left + 1))
        if size:
            self.readinto(memoryview(data))
        return bytes(data)

    def skip(self, size: int) -> None:
        """Pass over bytes of a page that is not compressed; they are read where it has a checksum."""
        self._left -= size
        if self._section.is_checked:
            while size:
                size -= len(self._section.some(min(size, _CHUNK_BYTES)))
        else:
            self._section.position += size

    def finish(self) -> None:
        """Compare the checksum, where the page has one."""
        if self._page.checksum is None:
            return
        while self._section.some(_CHUNK_BYTES):
            pass
        if self._section.checksum != self._page.checksum:
            raise pa.ArrowInvalid(f"the page at byte {self._page.position} is damaged: its checksum differs")


def bits_and_runs(data: bytes, width: int, count: int) -> list[int]:
    """Return numbers that are written as runs and packed bits."""
    numbers: list[int] = []
    reader = CompactReader(data)  # its varints are the same
    try:
        while len(numbers) < count:
            head = reader.varint()
            if head & 1:
                numbers.extend(packed_numbers(data, reader.position, width, min((head >> 1) * 8, count - len(numbers))))
                reader.position += (head >> 1) * width
            else:
                size = (width + 7) // 8
                value = int.from_bytes(data[reader.position : reader.position + size], "little")
                reader.position += size
                numbers.extend([value] * min(head >> 1, count - len(numbers)))
    except IndexError:
        raise pa.ArrowInvalid("levels or places in a dictionary end before their values do") from None
    return numbers


def packed_numbers(data: bytes, position: int, width: int, count: int) -> list[int]:
    """Return numbers of so many bits, eight in a group of bytes; IndexError where the bytes end first."""
    if width == 0:
        return [0] * count
    if position * 8 + count * width > len(data) * 8:
        raise IndexError("packed numbers end early")
    numbers: list[int] = []
    mask = (1 << width) - 1
    shifts = range(0, 8 * width, width)
    while len(numbers) < count:
        packed = int.from_bytes(data[position : position + width], "little")
        numbers.extend([packed >> shift & mask for shift in shifts])
        position += width
    return numbers[:count]
