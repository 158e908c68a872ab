"""JsonReader: a task's splits of JSON lines as record batches.

    split [start, end) ──► blocks of whole lines, up to 1 MiB (``files.line_blocks``) ──► JsonParser ──► batches

A line that is no object, or has a value of another type, is a DataError that names file, line and what is wrong, or is
left out and counted (``on_bad_row="skip"``). Then all members of the schema are read, wanted or not, so that which rows
are there does not depend on what is asked for.

Held by: tests/connectors/test_json.py
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import pyarrow as pa

from engine.connectors.json_blocks import JsonParser
from engine.errors import DataError
from engine.files.compression import codec_of, open_text
from engine.files.line_blocks import count_line_ends_before, line_blocks, line_start
from engine.graph.source_spec import JsonSource, SourceSplit
from engine.memory.budget import Kind, Role, process_budget
from engine.records.bounded_batches import bounded_batches

BLOCK_BYTES = 1 << 20
#: bytes of a block when there is very little memory for each reader
BLOCK_BYTES_MIN = 128 << 10


class JsonReader:
    """Reads splits of JSON lines."""

    pruned_groups = 0

    def __init__(self, spec: JsonSource, splits: Sequence[SourceSplit], block_bytes: int = BLOCK_BYTES) -> None:
        schema = pa.ipc.read_schema(pa.py_buffer(spec.file_schema_ipc))
        self._columns = list(spec.columns)
        self._skips = spec.on_bad_row == "skip"
        self._parser = JsonParser(schema if self._skips else pa.schema([schema.field(name) for name in self._columns]))
        #: lines left out so far
        self.bad_rows = 0
        self._splits = splits
        self._compression = spec.compression
        self._block_bytes = block_bytes
        self._file: BinaryIO | None = None
        self._member = process_budget.reserve(Kind.ARROW, role=Role.READER)
        self.bytes_read = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of all splits; DataError for a malformed line."""
        for split in self._splits:
            codec = codec_of(split.path, self._compression)
            with open_text(split.path, codec) as self._file:
                begin, end = self._bounds(self._file, split, codec)
                for position, block in line_blocks(self._file, begin, end, self._wanted_bytes):
                    for batch in self._table(split.path, position, block).to_batches():
                        yield from bounded_batches(batch)
            self.bytes_read += split.size_bytes

    def _bounds(self, file: BinaryIO, split: SourceSplit, codec: str) -> tuple[int, int | None]:
        """Return where the lines of a split begin and end; of a stream only the begin is known."""
        if codec:
            return line_start(file, 0, 0), None
        size = os.fstat(file.fileno()).st_size
        begin = line_start(file, split.start, size, self._block_bytes)
        return begin, line_start(file, split.end, size, self._block_bytes)

    def _wanted_bytes(self) -> int:
        return min(self._block_bytes, max(BLOCK_BYTES_MIN, self._member.part_bytes))

    def _table(self, path: str, position: int, block: bytes) -> pa.Table:
        if self._skips:
            tables, bad_rows = self._parser.parse_good(block)
            self.bad_rows += bad_rows
            return pa.concat_tables(tables or [self._parser.parse(b"")]).select(self._columns)
        try:
            return self._parser.parse(block)
        except pa.ArrowInvalid:
            index, reason = self._parser.first_bad(block)
            line = count_line_ends_before(path, codec_of(path, self._compression), position) + index + 1
            raise DataError(f"file {path}, line {line}: {reason}") from None

    def close(self) -> None:
        """Close the file that is being read."""
        self._member.close()
        if self._file is not None:
            self._file.close()
            self._file = None
