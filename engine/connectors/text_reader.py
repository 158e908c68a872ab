"""TextReader: a task's splits of text files as record batches of lines.

    file     first LF second LF third line is long LF fourth
    splits   |-----------------|---------------|-----------|        cut anywhere
    lines    |  first, second  |  third        |  fourth   |        each read by the split in which it begins

A file's byte order mark is passed over. A line end is LF or CR LF; empty lines are rows, and so is a last line
without a line end. A line longer than a block is read by itself, once its end is found. A compressed file is one split,
read as a stream. What is not UTF-8 is a DataError that names file, line and column.

Held by: tests/connectors/test_text.py
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import pyarrow as pa

from engine.connectors.text_lines import LINE, lines_of
from engine.errors import DataError
from engine.files.compression import codec_of, open_text
from engine.files.line_blocks import count_line_ends_before, line_blocks, line_start
from engine.graph.source_spec import SourceSplit, TextSource
from engine.memory.budget import Kind, Role, process_budget
from engine.records.bounded_batches import bounded_batches
from engine.records.wide_rows import room_for

BLOCK_BYTES = 1 << 20
#: bytes of a block when there is very little memory for each reader
BLOCK_BYTES_MIN = 128 << 10
#: offsets of a string column are 32 bits wide
_LINE_BYTES_MAX = (1 << 31) - 1


class TextReader:
    """Reads splits of text."""

    bad_rows = 0
    pruned_groups = 0

    def __init__(self, spec: TextSource, splits: Sequence[SourceSplit], block_bytes: int = BLOCK_BYTES) -> None:
        self._schema = pa.schema([pa.field(LINE, pa.string())])
        self._columns = list(spec.columns)
        self._splits = splits
        self._compression = spec.compression
        self._skip_rows = spec.skip_rows
        self._block_bytes = block_bytes
        self._file: BinaryIO | None = None
        self._member = process_budget.reserve(Kind.ARROW, role=Role.READER)
        self.bytes_read = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the lines of all splits; DataError for one that is not UTF-8 or longer than 2 GiB."""
        for split in self._splits:
            codec = codec_of(split.path, self._compression)
            with open_text(split.path, codec) as self._file:
                blocks = self._streamed if codec else self._cut_out
                for block in blocks(self._file, split):
                    batch = pa.record_batch([block], schema=self._schema)
                    yield from bounded_batches(batch.select(self._columns))
            self.bytes_read += split.size_bytes

    def _streamed(self, file: BinaryIO, split: SourceSplit) -> Iterator[pa.Array]:
        """Yield the lines of a compressed file."""
        for position, block in line_blocks(file, self._first(file), None, self._wanted_bytes):
            if len(block) > _LINE_BYTES_MAX:
                raise DataError(f"file {split.path}: the line at byte {position} of its text is longer than 2 GiB")
            yield self._lines(split.path, position, block)

    def _cut_out(self, file: BinaryIO, split: SourceSplit) -> Iterator[pa.Array]:
        """Yield the lines of a split."""
        size = file.seek(0, os.SEEK_END)
        first = self._first(file) if self._skip_rows else 0
        begin = max(first, line_start(file, split.start, size, self._block_bytes))
        end = max(first, line_start(file, split.end, size, self._block_bytes))
        yield from self._blocks(file, split.path, begin, end)

    def _first(self, file: BinaryIO) -> int:
        """Return the position of the first line that is read of a file."""
        begin = line_start(file, 0, 0)
        file.seek(begin)
        for _ in range(self._skip_rows):
            begin += len(file.readline())
        return begin

    def _wanted_bytes(self) -> int:
        return min(self._block_bytes, max(BLOCK_BYTES_MIN, self._member.part_bytes))

    def _blocks(self, file: BinaryIO, path: str, begin: int, end: int) -> Iterator[pa.Array]:
        """Yield the lines of [begin, end), which begins with one and ends behind one."""
        file.seek(begin)
        position, held = begin, b""
        while position + len(held) < end:
            data = file.read(min(self._wanted_bytes(), end - position - len(held)))
            if not data:
                raise _changed(path, end - position - len(held))
            block = held + data
            is_last = position + len(block) == end
            cut = len(block) if is_last else block.rfind(b"\n") + 1
            if cut:
                yield self._lines(path, position, block[:cut])
                position, held = position + cut, block[cut:]
                continue
            line_end = min(end, line_start(file, position + len(block), end, self._block_bytes))
            held = block = data = b""
            process_budget.check_record(line_end - position, f"file {path}: the line at byte {position},")
            with room_for(line_end - position):
                line = self._long_line(file, path, position, line_end)
            yield line
            position = line_end

    def _long_line(self, file: BinaryIO, path: str, begin: int, end: int) -> pa.Array:
        """Return the line of [begin, end), longer than a block: it is in memory once. The file is behind it then."""
        if end - begin > _LINE_BYTES_MAX:
            raise DataError(f"file {path}: the line at byte {begin} is longer than 2 GiB")
        data = pa.allocate_buffer(end - begin)
        view = memoryview(data).cast("B")
        file.seek(begin)
        used = 0
        while used < len(view):
            count = file.readinto(view[used:])  # type: ignore[attr-defined]
            if not count:
                raise _changed(path, len(view) - used)
            used += count
        size = len(view)
        if bytes(view[-1:]) == b"\n":
            size -= 2 if bytes(view[-2:]) == b"\r\n" else 1
        line = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(struct.pack("=ii", 0, size)), data])
        try:
            line.validate(full=True)
        except pa.ArrowInvalid as error:
            raise self._not_utf8(path, begin, bytes(view)) from error
        return line

    def _lines(self, path: str, position: int, block: bytes) -> pa.Array:
        try:
            return lines_of(block)
        except pa.ArrowInvalid as error:
            raise self._not_utf8(path, position, block) from error

    def _not_utf8(self, path: str, position: int, block: bytes) -> DataError:
        """Return the error for the first bytes of a block that are not UTF-8."""
        try:
            block.decode()
        except UnicodeDecodeError as error:
            before = count_line_ends_before(path, codec_of(path, self._compression), position)
            line = before + block.count(b"\n", 0, error.start) + 1
            column = error.start - (block.rfind(b"\n", 0, error.start) + 1) + 1
            found = block[error.start : error.start + 1].hex()
            return DataError(f"file {path}, line {line}: byte {column} of the line (0x{found}) is not UTF-8")
        return DataError(f"file {path}: not UTF-8 behind byte {position}")

    def close(self) -> None:
        """Close the file that is being read."""
        self._member.close()
        if self._file is not None:
            self._file.close()
            self._file = None


def _changed(path: str, missing_bytes: int) -> DataError:
    return DataError(f"file {path}: ends {missing_bytes} bytes early; it changed meanwhile")
