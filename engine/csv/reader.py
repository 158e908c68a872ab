"""CsvReader: a task's splits of a CSV source as record batches.

    split [start, end) ──► blocks of up to 1 MiB, cut after a record ──► ColumnParser, or else Arrow's ──► batches

A block is as long as the largest batch has rows, once the parser has seen how long rows are. What ColumnParser does not
take (other types, malformed records, files where quotes stand anywhere) goes to Arrow's parser block by block; where
that is the rule, the first is not asked any more.

A split begins and ends between two records (splits.py saw to that). A file's first split holds its byte order
mark and header, which are passed over here; a header is compared with the names that the source expects.

A record of some megabytes is not taken into memory: it is found in the file, and its long fields are read by themselves
(``csv_long_records``).

A malformed record is an error that names file, line, column and value, or is counted and skipped
(``on_bad_row="skip"``). Skipping reads every column of the file, wanted or not, so that which rows are there does not
depend on the query. Lines are counted only when an error needs one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from engine.csv.columns import ColumnParser, parses_natively
from engine.csv.dialect import BYTE_ORDER_MARK, CsvDialect
from engine.csv.encoding import to_utf8
from engine.csv.long_records import FIELD_BYTES, LongRecord, UnclosedRecord, find_long_record
from engine.csv.parse import UNCLOSED, BadRecord, BlockParser, header_fields, unclosed_quote
from engine.csv.scan import count_line_ends, ends_quoted, first_record_end, last_record_end
from engine.errors import DataError
from engine.graph.source_spec import CsvSource, SourceSplit
from engine.memory.arrow_share import Role, process_share
from engine.records.batch_limits import BATCH_ROWS_MAX
from engine.records.bounded_batches import bounded_batches
from engine.records.wide_rows import WIDE_BYTES, turn

BLOCK_BYTES = 1 << 20
#: bytes of a block when there is very little memory for each reader
BLOCK_BYTES_MIN = 128 << 10
#: a record from this size on is not taken into memory
_LONG_RECORD_BYTES = 4 << 20
#: blocks in a row that ColumnParser may refuse before it is not asked any more
_REFUSALS_MAX = 16
#: a block is a little shorter than a full batch, since rows differ in length
_FILL = 0.97


class CsvReader:
    """Reads splits of delimited text."""

    def __init__(
        self,
        spec: CsvSource,
        splits: Sequence[SourceSplit],
        block_bytes: int = BLOCK_BYTES,
        long_record_bytes: int = _LONG_RECORD_BYTES,
    ) -> None:
        self._spec = spec
        self._splits = splits
        self._block_bytes = block_bytes
        self._long_record_bytes = long_record_bytes
        self._dialect = CsvDialect.of(spec.delimiter, spec.quote)
        self._file_schema = pa.ipc.read_schema(pa.py_buffer(spec.file_schema_ipc))
        self._skips = spec.on_bad_row == "skip"
        wanted = list(spec.columns)
        # Without columns there are no rows for the parser: counting them takes one.
        read_columns = self._file_schema.names if self._skips else wanted or self._file_schema.names[:1]
        self._selected = None if read_columns == wanted else wanted
        self._parser = BlockParser(spec, self._file_schema, read_columns)
        self._column_parser = self._native_parser(read_columns)
        self._refusals = 0
        self._take_bytes = block_bytes
        self._file: BinaryIO | None = None
        self._member = process_share.join(Role.READER)
        self.bad_rows = 0
        self.bytes_read = 0

    def _native_parser(self, columns: list[str]) -> ColumnParser | None:
        if len(self._file_schema) < 2 or not set(self._spec.null_values) <= {""}:
            return None
        if not all(parses_natively(self._file_schema.field(name).type) for name in columns):
            return None
        quote, empty_is_null = self._dialect.quote, bool(self._spec.null_values)
        return ColumnParser(self._file_schema, columns, self._dialect.delimiter, quote, empty_is_null)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of all splits; DataError for a malformed record, unless those are skipped."""
        for split in self._splits:
            yield from self._read_split(split)

    def _read_split(self, split: SourceSplit) -> Iterator[pa.RecordBatch]:
        with Path(split.path).open("rb", buffering=0) as self._file:
            self._file.seek(split.start)
            for offset, block in self._blocks(self._file, split):
                if isinstance(block, list):
                    while block:
                        yield block.pop()
                    continue
                data, begin = block, offset
                if begin == 0:
                    prelude = self._prelude_size(split.path, data)
                    data, begin = data[prelude:], prelude
                if len(data):
                    yield from self._parse(split.path, begin, data, is_last=offset + len(block) == split.end)
                self.bytes_read += len(block)
                del data, block  # of a very long record, not kept while the next is read

    def _long_row(self, file: BinaryIO, begin: int, record: LongRecord) -> pa.RecordBatch | None:
        """Return a long record's row; None: it is to be read as others are, who say what is wrong with it."""
        if self._spec.encoding:
            return None
        long_bytes = min(FIELD_BYTES, self._long_record_bytes)
        try:
            row = record.batch(file, self._file_schema.names, long_bytes, self._parser.parse)
        except pa.ArrowInvalid:
            return None
        if row is None:
            return None
        self.bytes_read += record.position + record.size_bytes - begin
        return row if self._selected is None else row.select(self._selected)

    def _long_rows(self, file: BinaryIO, begin: int, end: int) -> Iterator[tuple[int, list[pa.RecordBatch]]]:
        """Yield (where it ends, [row]) of one long record at a position; nothing where it is read as others are.

        There is no row where a quote of it opens that none closes.
        """
        position, is_header = begin, begin == 0 and self._spec.header
        if begin == 0:
            file.seek(0)
            position = len(BYTE_ORDER_MARK) if file.read(len(BYTE_ORDER_MARK)) == BYTE_ORDER_MARK else 0
        record = find_long_record(file, position, end, self._dialect)
        if isinstance(record, UnclosedRecord):
            if is_header or not self._skips:
                raise self._unclosed_error(file.name, record.field_index, record.quote_position)
            self._skip(file.name, record.quote_position, b"")
            self.bytes_read += end - begin
            yield end, []
            return
        if record is None or is_header:
            return
        with turn(record.size_bytes):
            row = self._long_row(file, begin, record)
            if row is not None:
                box = [row]  # it is not kept while the next one is read
                del row
                yield position + record.size_bytes, box

    def _blocks(self, file: BinaryIO, split: SourceSplit) -> Iterator[tuple[int, memoryview | list[pa.RecordBatch]]]:
        """Yield (position in the file, whole records); the memory is reused after each. A long record is [its row]."""
        buffer = memoryview(bytearray(self._block_bytes))
        offset, used, left = split.start, 0, split.end - split.start
        refused = -1
        with contextlib.ExitStack() as turns:
            while left or used:
                limit = min(self._take_bytes, len(buffer))
                # Where many read at a time, blocks are smaller. A record that is longer goes on with larger steps.
                part = max(BLOCK_BYTES_MIN, self._member.part_bytes)
                if used < part:
                    limit = min(limit, part)
                while left and used < limit:
                    count = file.readinto(buffer[used : min(limit, used + left)])  # type: ignore[attr-defined]
                    if not count:
                        raise DataError(f"file {split.path}: ends {left} bytes early; it changed while it was read")
                    used, left = used + count, left - count
                whole = used
                if left:
                    whole = last_record_end(buffer[:used], self._dialect.delimiter, self._dialect.quote)
                if whole == 0:
                    if used >= self._long_record_bytes and refused < offset:
                        refused = offset
                        for end, row in self._long_rows(file, offset, split.end):
                            yield offset, row
                            offset, used, left = end, 0, split.end - end
                        file.seek(offset + used)
                        if refused < offset:
                            self._take_bytes = self._block_bytes
                            continue
                    # A record is longer than a block; small steps to a very long one, for the next one is read too.
                    self._take_bytes = 2 * used if used < WIDE_BYTES else used + used // 4
                    turns.enter_context(turn(self._take_bytes))
                    if len(buffer) < self._take_bytes:
                        buffer = _copied(buffer[:used], self._take_bytes)
                    continue
                yield offset, buffer[:whole]
                if whole >= WIDE_BYTES:
                    buffer = _copied(buffer[whole:used], max(used - whole, self._block_bytes))
                    turns.close()
                else:
                    buffer[: used - whole] = buffer[whole:used]
                offset, used = offset + whole, used - whole

    def _prelude_size(self, path: str, data: memoryview) -> int:
        """Return the bytes of byte order mark and header at the begin of a file, having checked the header."""
        size = len(BYTE_ORDER_MARK) if data[:3] == BYTE_ORDER_MARK else 0
        if not self._spec.header:
            return size
        end = first_record_end(data[size:], self._dialect.delimiter, self._dialect.quote)
        names = header_fields(bytes(data[size : size + end]), self._dialect, path, self._spec.encoding)
        if end and names != self._file_schema.names:
            raise DataError(
                f"file {path}, line 1: the header has {', '.join(names)}; expected {', '.join(self._file_schema.names)}"
            )
        return size + end

    def _parse(self, path: str, begin: int, data: memoryview, *, is_last: bool) -> Iterator[pa.RecordBatch]:
        batches = self._parse_natively(data)
        if batches is not None:
            yield from batches
            return
        # Only a file's last block can, all others were cut behind a record.
        if not (is_last and ends_quoted(data, self._dialect.delimiter, self._dialect.quote)):
            try:
                yield from self._batches(self._parser.parse(data))
                return
            except pa.ArrowInvalid:
                pass
        for part in self._parser.parse_around(data):
            if not isinstance(part, BadRecord):
                yield from self._batches(part)
            elif self._skips:
                self._skip(path, begin + part.begin, bytes(data[part.begin : part.end]))
            else:
                raise self._data_error(path, begin + part.begin, bytes(data[part.begin : part.end]))

    def _skip(self, path: str, position: int, record: bytes) -> None:
        """Count a malformed record; b"" is one of a quote that none closes, too long to be taken into memory."""
        self.bad_rows += 1

    def _parse_natively(self, data: memoryview) -> list[pa.RecordBatch] | None:
        if self._column_parser is None:
            return None
        if self._spec.encoding:
            try:
                data = memoryview(to_utf8(data, self._spec.encoding))
            except UnicodeDecodeError:
                return None
        batches = self._column_parser.parse(data, BATCH_ROWS_MAX)
        if batches is None:
            self._refusals += 1
            if self._refusals == _REFUSALS_MAX:
                self._column_parser = None
            return None
        self._refusals = 0
        row_bytes = len(data) / sum(batch.num_rows for batch in batches)
        self._take_bytes = min(self._block_bytes, max(1, int(BATCH_ROWS_MAX * _FILL * row_bytes)))
        return batches if self._selected is None else [batch.select(self._selected) for batch in batches]

    def _batches(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        for batch in table.to_batches():
            yield from bounded_batches(batch if self._selected is None else batch.select(self._selected))

    def _data_error(self, path: str, position: int, record: bytes) -> DataError:
        unclosed = unclosed_quote(record, self._dialect)
        if unclosed is not None:
            field_index, quote_position = unclosed
            return self._unclosed_error(path, field_index, position + quote_position)
        line = count_lines_before(path, position) + 1
        return DataError(
            f"file {path}, line {line}, {self._parser.explain(record)} (on_bad_row='skip' counts such rows and goes on)"
        )

    def _unclosed_error(self, path: str, field_index: int, position: int) -> DataError:
        names = self._file_schema.names
        name = f" ({names[field_index]})" if field_index < len(names) else ""
        return DataError(
            f"file {path}, line {count_lines_before(path, position) + 1}, column {field_index + 1}{name}: {UNCLOSED} "
            "(on_bad_row='skip' leaves out what follows, as one row)"
        )

    def close(self) -> None:
        """Close the file that is being read."""
        self._member.close()
        if self._file is not None:
            self._file.close()
            self._file = None


def _copied(data: memoryview, size_bytes: int) -> memoryview:
    """Return a new buffer that begins with some bytes."""
    buffer = memoryview(bytearray(size_bytes))
    buffer[: len(data)] = data
    return buffer


def count_lines_before(path: str, position: int) -> int:
    """Return the number of physical lines that end before a position, which is not within a line end."""
    return count_lines(path, 0, position)


def count_lines(path: str, begin: int, end: int) -> int:
    """Return the number of physical lines that end between two positions, neither of which is within a line end."""
    count, left = 0, end - begin
    with Path(path).open("rb") as file:
        file.seek(begin)
        while left > 0:
            chunk = file.read(min(left, 4 * BLOCK_BYTES))
            if not chunk:
                break
            if chunk.endswith(b"\r") and len(chunk) < left:
                chunk += file.read(1)
            count += count_line_ends(chunk)
            left -= len(chunk)
    return count
