"""JsonReader: a task's splits of JSON lines as record batches.

    split [start, end) ──► blocks of whole lines, up to 1 MiB (``files.line_blocks``) ──► JsonParser ──► batches

A member that an inferred schema lacks is noted with its file and line, for the author of the program.

A line that is no object, or has a value of another type, is a DataError that names file, line and what is wrong, or is
left out and counted (``on_bad_row="skip"``). Then all members of the schema are read, wanted or not, so that which rows
are there does not depend on what is asked for; and each block is looked at with the lines around it, so that it does
not depend on where blocks and splits end, either.

Held by: tests/connectors/test_json.py
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO

import pyarrow as pa

from engine.connectors.json_blocks import JsonParser, member_paths
from engine.connectors.json_lines import SPAN_BYTES, line_with
from engine.errors import DataError
from engine.files.compression import codec_of, open_text
from engine.files.line_blocks import BYTE_ORDER_MARK, count_line_ends_before, line_blocks, line_start
from engine.graph.source_spec import JsonSource, SourceSplit
from engine.memory.budget import Kind, Role, process_budget
from engine.records.bounded_batches import bounded_batches
from engine.storage.file_systems import file_system_of

BLOCK_BYTES = 1 << 20
#: bytes of a block when there is very little memory for each reader
BLOCK_BYTES_MIN = 128 << 10
#: members that are told of, of one task
_NOTES_MAX = 20


class JsonReader:
    """Reads splits of JSON lines."""

    pruned_groups = 0

    def __init__(self, spec: JsonSource, splits: Sequence[SourceSplit], block_bytes: int = BLOCK_BYTES) -> None:
        schema = pa.ipc.read_schema(pa.py_buffer(spec.file_schema_ipc))
        self._columns = list(spec.columns)
        self._skips = spec.on_bad_row == "skip"
        read = schema if self._skips else pa.schema([schema.field(name) for name in self._columns])
        self._parser = JsonParser(read, tells=spec.is_inferred)
        #: members that the schema names; None: what it does not name is not wanted
        self._known = set(member_paths(schema)) if spec.is_inferred else None
        #: places of unknown members
        self._notes: dict[str, str] = {}
        #: lines left out so far
        self.bad_rows = 0
        self._splits = splits
        self._compression = spec.compression
        self._block_bytes = block_bytes
        self._file: BinaryIO | None = None
        self._member = process_budget.reserve(Kind.ARROW, role=Role.READER)
        self.bytes_read = 0

    @property
    def notes(self) -> Mapping[str, str]:
        """Members that an inferred schema lacks, and where they are."""
        return self._notes

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of all splits; DataError for a malformed line."""
        for split in self._splits:
            codec = codec_of(split.path, self._compression)
            with open_text(split.path, codec) as self._file:
                begin, end = self._bounds(self._file, split, codec)
                blocks = line_blocks(self._file, begin, end, self._wanted_bytes)
                tables = self._good(split.path, codec, blocks) if self._skips else self._all(split.path, codec, blocks)
                for table in tables:
                    for batch in table.to_batches():
                        yield from bounded_batches(batch)
            self.bytes_read += split.size_bytes

    def _bounds(self, file: BinaryIO, split: SourceSplit, codec: str) -> tuple[int, int | None]:
        """Return the begin and the end of a split's lines; of a stream only the begin is known."""
        if codec:
            return line_start(file, 0, 0), None
        size = file.seek(0, os.SEEK_END)
        begin = line_start(file, split.start, size, self._block_bytes)
        return begin, line_start(file, split.end, size, self._block_bytes)

    def _wanted_bytes(self) -> int:
        return min(self._block_bytes, max(BLOCK_BYTES_MIN, self._member.part_bytes))

    def _all(self, path: str, codec: str, blocks: Iterator[tuple[int, bytes]]) -> Iterator[pa.Table]:
        for position, block in blocks:
            try:
                table = self._parser.parse(block)
            except pa.ArrowInvalid:
                raise self._error(path, codec, position, block) from None
            self._note_members(path, codec, position, block)
            yield table

    def _note_members(self, path: str, codec: str, position: int, block: bytes) -> None:
        """Take note of members of a block that an inferred schema lacks: they are in no line of its sample."""
        if self._known is None:
            return
        for member in self._parser.new_members():
            is_within = len(member) > 1 and member[:-1] not in self._known  # a member that is not read
            if member in self._known or is_within or len(self._notes) == _NOTES_MAX:
                continue
            index = line_with(member, block)
            line = 0 if index is None else count_line_ends_before(path, codec, position) + index + 1
            name = ".".join(member)
            self._notes[f"read_json {name}"] = (
                f"read_json: the member {name!r} is not read: no line of the sample that the schema comes from has it;"
                f" it is in {path}{f', line {line}' if line else ''}; pass schema= with it"
            )

    def _error(self, path: str, codec: str, position: int, block: bytes) -> DataError:
        """Return the error of a block, or of the begin of the file, if that is malformed as well.

        So a file that is no JSON lines at all has one error, wherever its splits begin.
        """
        with open_text(path, codec) as file:
            begin = line_start(file, 0, 0)
            head_position, head = next(line_blocks(file, begin, None, lambda: self._block_bytes))
        if position > head_position and not self._parser.parses(head):
            position, block = head_position, head
        index, reason = self._parser.first_bad(block)
        line = count_line_ends_before(path, codec, position) + index + 1
        return DataError(f"file {path}, line {line}: {reason}")

    def _good(self, path: str, codec: str, blocks: Iterator[tuple[int, bytes]]) -> Iterator[pa.Table]:
        """Yield the rows of good lines, each block seen with the lines around it."""
        before: bytes | None = None
        waiting: deque[tuple[int, bytes]] = deque()
        while _has_more(waiting, blocks):
            position, block = waiting.popleft()
            if before is None:
                before = _lines_before(path, codec, position)
            behind = b"".join(each for _, each in waiting)
            if len(behind) < SPAN_BYTES:
                behind += _lines_behind(path, codec, position + len(block) + len(behind))
            tables, bad_rows = self._parser.parse_good(block, before, behind[:SPAN_BYTES])
            self.bad_rows += bad_rows
            self._note_members(path, codec, position, block)
            yield pa.concat_tables(tables or [self._parser.parse(b"")]).select(self._columns)
            before = _last_lines(before + block)

    def close(self) -> None:
        """Close the file that is being read."""
        self._member.close()
        if self._file is not None:
            self._file.close()
            self._file = None


def _has_more(waiting: deque[tuple[int, bytes]], blocks: Iterator[tuple[int, bytes]]) -> bool:
    """Return whether there is another block, with those behind it in which an object of its last lines would end."""
    missing = SPAN_BYTES - sum(len(block) for _, block in list(waiting)[1:])
    while missing > 0 and (block := next(blocks, None)) is not None:
        missing -= len(block[1]) if waiting else 0
        waiting.append(block)
    return bool(waiting)


def _lines_before(path: str, codec: str, position: int) -> bytes:
    """Return the end of the text before a split, in which an object of its first lines would begin."""
    if codec:
        return b""  # one split, from the begin on
    with file_system_of(path).open_stream(path, is_buffered=True) as file:
        begin = max(0, position - SPAN_BYTES - 1)
        file.seek(begin)
        return _last_lines(file.read(position - begin)).removeprefix(BYTE_ORDER_MARK)


def _last_lines(text: bytes) -> bytes:
    """Return the end of a text, as many whole lines as an object may have bytes."""
    return text if len(text) <= SPAN_BYTES else text[text.find(b"\n", len(text) - SPAN_BYTES - 1) + 1 :]


def _lines_behind(path: str, codec: str, position: int) -> bytes:
    """Return the begin of the text behind a split, in which an object of its last lines would end."""
    if codec:
        return b""
    with file_system_of(path).open_stream(path, is_buffered=True) as file:
        file.seek(position)
        return file.read(SPAN_BYTES)
