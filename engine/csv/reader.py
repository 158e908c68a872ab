"""CsvReader: a task's splits of a CSV source as record batches.

    split [start, end) ──► blocks of up to 1 MiB, cut after a record ──► ColumnParser, or else Arrow's ──► batches

A block is as long as the largest batch has rows, once the parser has seen how long rows are. What ColumnParser does not
take (other types, malformed records, files where quotes stand anywhere) goes to Arrow's parser block by block; where
that is the rule, the first is not asked any more.

A split begins and ends between two records (splits.py saw to that). A file's first split holds its byte order
mark, lines to be skipped and header, which are passed over here. A header says which column is which: each file of a
source may have an order of its own, and a parser for it (_Columns).

A record that is longer than a block is a block of its own, of just its size (long_records.py). One that is larger than
what the process has for a record is an error that names file, line and size.

A compressed file is one split, read as a stream, and so is one with comments: a long record makes its block longer.

A malformed record is an error that names file, line, column and value, or is counted and skipped
(``on_bad_row="skip"``). Skipping reads every column of the file, wanted or not, so that which rows are there does not
depend on the query. Lines are counted only when an error needs one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO, NamedTuple

import pyarrow as pa

from engine.csv.columns import ColumnParser, parses_natively
from engine.csv.dialect import CsvDialect
from engine.csv.encoding import to_utf8
from engine.csv.header import REST, column_names, layout_of
from engine.csv.long_records import LongRecord, find_long_record, read_exactly
from engine.csv.parse import UNCLOSED, BadRecord, BlockParser, check_rest, header_fields, unclosed_quote
from engine.csv.sample import names_in
from engine.csv.scan import count_line_ends, ends_quoted, first_record_end, last_record_end
from engine.csv.text import begin_of, is_stream, lines_left_out, open_csv
from engine.errors import DataError
from engine.graph.source_spec import CsvSource, SourceSplit
from engine.memory.budget import Kind, Role, process_budget
from engine.records.batch_limits import BATCH_ROWS_MAX
from engine.records.bounded_batches import bounded_batches
from engine.records.wide_rows import room_for
from engine.storage.file_systems import file_system_of

BLOCK_BYTES = 1 << 20
#: bytes of a block when there is very little memory for each reader
BLOCK_BYTES_MIN = 128 << 10
#: blocks in a row that ColumnParser may refuse before it is not asked any more
_REFUSALS_MAX = 16
#: a block is a little shorter than a full batch, since rows differ in length
_FILL = 0.97


#: size of a stream whose end is unknown
_ENDLESS = 1 << 62
_SKIPS_REST = "(on_bad_row='skip' leaves out what follows, as one row)"


class _Passed(NamedTuple):
    """The block of a stream that is being read, and the lines that end before it."""

    offset: int
    lines: int
    block: memoryview


class _Columns(NamedTuple):
    """The parsers of files whose columns are in one order."""

    schema: pa.Schema
    parser: BlockParser
    #: None: Arrow's parser reads all
    native: ColumnParser | None
    #: columns that are read, and those of them that are wanted; None: all
    read: list[str]
    selected: list[str] | None


class CsvReader:
    """Reads splits of delimited text."""

    pruned_groups = 0

    def __init__(self, spec: CsvSource, splits: Sequence[SourceSplit], block_bytes: int = BLOCK_BYTES) -> None:
        self._spec = spec
        self._splits = splits
        self._block_bytes = block_bytes
        self._dialect = CsvDialect.of(spec.delimiter, spec.quote)
        self._first_schema = pa.ipc.read_schema(pa.py_buffer(spec.file_schema_ipc))
        self._skips = spec.on_bad_row == "skip"
        self._known: dict[tuple[str, ...], _Columns] = {}
        self._columns = self._columns_of(self._first_schema)
        self._is_native = True
        self._refusals = 0
        self._take_bytes = block_bytes
        self._file: BinaryIO | None = None
        #: end of the split; -1: that of a stream, which is not known yet
        self._end = -1
        self._passed: _Passed | None = None
        self._member = process_budget.reserve(Kind.ARROW, role=Role.READER)
        self.bad_rows = 0
        self.bytes_read = 0

    def _columns_of(self, schema: pa.Schema) -> _Columns:
        """Return the parsers of files with these columns."""
        key = tuple(schema.names)
        if key not in self._known:
            wanted = list(self._spec.columns)
            names = [name for name in schema.names if name != REST]
            # Without columns there are no rows for the parser: counting them takes one.
            read = names if self._skips else wanted or names[:1]
            parser = BlockParser(self._spec, schema, read)
            native = self._native_parser(schema, read, parser)
            self._known[key] = _Columns(schema, parser, native, read, None if read == wanted else wanted)
        return self._known[key]

    def _native_parser(self, schema: pa.Schema, columns: list[str], parser: BlockParser) -> ColumnParser | None:
        spec = self._spec
        if len(schema) < 2 or not set(spec.null_values) <= {""} or not spec.column_nulls.keys().isdisjoint(columns):
            return None
        if spec.decimal != "." or spec.thousands:
            return None
        read_as = pa.schema([field.with_type(parser.read_type(field)) for field in schema])
        if not all(parses_natively(read_as.field(name).type) for name in columns):
            return None
        quote, empty_is_null = self._dialect.quote, bool(spec.null_values)
        read = [*columns, REST] if REST in schema.names else columns
        return ColumnParser(read_as, read, self._dialect.delimiter, quote, empty_is_null)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of all splits; DataError for a malformed record, unless those are skipped."""
        for split in self._splits:
            yield from self._read_split(split)

    def _read_split(self, split: SourceSplit) -> Iterator[pa.RecordBatch]:
        is_streamed = is_stream(self._spec, split.path)
        # Where a stream ends is known when it is there; its lines are counted on the way.
        self._end, self._passed = -1 if is_streamed else split.end, None
        with open_csv(self._spec, split.path) as self._file:
            begin = split.start if split.start else begin_of(self._spec, self._file)
            if split.start and self._spec.header and len(self._spec.paths) > 1:
                self._take_names(split.path, names_in(self._spec, split.path))
            self.bytes_read += begin - split.start
            if is_streamed:
                skipped = 0 if self._spec.comment else self._spec.skip_rows
                self._passed = _Passed(begin, skipped, memoryview(b""))
            for offset, block in self._blocks(self._file, split, begin):
                is_first = split.start == 0 and offset == begin
                if isinstance(block, LongRecord):
                    yield from self._long_rows(self._file, split, offset, block, is_first)
                    self.bytes_read += block.size_bytes
                else:
                    if self._passed is not None:
                        self._passed = self._passed._replace(block=block)
                    yield from self._rows_of(split, offset, block, is_first)
                    self.bytes_read += len(block)
                    if self._passed is not None:
                        lines = self._passed.lines + count_line_ends(block)
                        self._passed = _Passed(offset + len(block), lines, memoryview(b""))

    def _rows_of(self, split: SourceSplit, offset: int, data: memoryview, is_first: bool) -> Iterator[pa.RecordBatch]:
        """Yield the rows of whole records; the first ones of a file may begin with a header."""
        is_last = offset + len(data) == self._end
        size = self._header_size(split.path, data) if is_first and self._spec.header else 0
        if size < len(data):
            yield from self._parse(split.path, offset + size, data[size:], is_last=is_last)

    def _long_rows(
        self, file: BinaryIO, split: SourceSplit, offset: int, record: LongRecord, is_first: bool
    ) -> list[pa.RecordBatch]:
        """Return the rows of a record that is longer than a block, mostly one; nothing of the record is kept."""
        if record.size_bytes <= process_budget.record_limit:
            with room_for(record.size_bytes):
                data = memoryview(bytearray(record.size_bytes))
                read_exactly(file, offset, data)
                return list(self._rows_of(split, offset, data, is_first))
        line = self._line_ends_before(split.path, offset) + 1
        if record.is_closed:
            process_budget.check_record(record.size_bytes, f"file {split.path}, line {line}: a record")
        if not self._skips or (is_first and self._spec.header):
            raise DataError(f"file {split.path}, the record in line {line}: {UNCLOSED} {_SKIPS_REST}")
        self._skip(split.path, offset, b"")
        return []

    def _blocks(self, file: BinaryIO, split: SourceSplit, begin: int) -> Iterator[tuple[int, memoryview | LongRecord]]:
        """Yield (position in the file, whole records); their memory is reused. A record may be longer than a block."""
        buffer = memoryview(bytearray(self._block_bytes))
        offset, used, left = begin, 0, (_ENDLESS if self._end < 0 else self._end) - begin
        file.seek(begin)
        while left or used:
            limit = min(self._take_bytes, len(buffer))
            # Where many read at a time, blocks are smaller.
            part = max(BLOCK_BYTES_MIN, self._member.part_bytes)
            if used < part:
                limit = min(limit, part)
            while left and used < limit:
                count = file.readinto(buffer[used : min(limit, used + left)])  # type: ignore[attr-defined]
                if not count and self._end < 0:
                    self._end, left = offset + used, 0
                    break
                if not count:
                    raise DataError(f"file {split.path}: ends {left} bytes early; it changed while it was read")
                used, left = used + count, left - count
            whole = used
            if left:
                whole = last_record_end(buffer[:used], self._dialect.delimiter, self._dialect.quote)
            if whole:
                yield offset, buffer[:whole]
                buffer[: used - whole] = buffer[whole:used]
                offset, used = offset + whole, used - whole
            elif used < len(buffer):
                self._take_bytes = len(buffer)
            elif self._end < 0:
                # What a stream has given cannot be read again: the record comes into memory as it is found.
                more = memoryview(bytearray(2 * len(buffer)))
                more[:used] = buffer
                buffer, self._take_bytes = more, len(more)
                process_budget.check_record(used, f"file {split.path}: the record at byte {offset} of its text")
            else:
                record = find_long_record(file, offset, split.end, self._dialect)
                yield offset, record
                offset, used = offset + record.size_bytes, 0
                left = split.end - offset
                file.seek(offset)

    def _header_size(self, path: str, data: memoryview) -> int:
        """Return the size of the header at the beginning of a file, after a check of its names."""
        end = first_record_end(data, self._dialect.delimiter, self._dialect.quote)
        fields = header_fields(bytes(data[:end]), self._dialect, path, self._spec.encoding)
        if end:
            self._take_names(path, column_names(fields))
        return end

    def _take_names(self, path: str, names: list[str]) -> None:
        """Go on with the columns that the header of a file names."""
        self._columns = self._columns_of(layout_of(names, self._first_schema, self._spec.named, path))

    def _parse(self, path: str, begin: int, data: memoryview, *, is_last: bool) -> Iterator[pa.RecordBatch]:
        batches = self._parse_natively(data)
        if batches is not None:
            yield from batches
            return
        # Only a file's last block can, all others were cut behind a record.
        if not (is_last and ends_quoted(data, self._dialect.delimiter, self._dialect.quote)):
            try:
                yield from self._batches(self._columns.parser.parse(data))
                return
            except pa.ArrowInvalid:
                pass
        for part in self._columns.parser.parse_around(data):
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
        native, selected = self._columns.native, self._columns.selected
        if native is None or not self._is_native:
            return None
        if self._spec.encoding:
            try:
                data = memoryview(to_utf8(data, self._spec.encoding))
            except UnicodeDecodeError:
                return None
        batches = native.parse(data, BATCH_ROWS_MAX)
        batches = None if batches is None else self._converted(batches)
        if batches is None:
            self._refusals += 1
            self._is_native = self._refusals < _REFUSALS_MAX
            return None
        self._refusals = 0
        row_bytes = len(data) / sum(batch.num_rows for batch in batches)
        self._take_bytes = min(self._block_bytes, max(1, int(BATCH_ROWS_MAX * _FILL * row_bytes)))
        return batches if selected is None else [batch.select(selected) for batch in batches]

    def _converted(self, batches: list[pa.RecordBatch]) -> list[pa.RecordBatch] | None:
        """Return batches as the source has them, whose dates may be texts; None where a value is none of its type."""
        columns = self._columns
        if batches[0].schema.types == [columns.schema.field(name).type for name in columns.read]:
            return batches
        try:
            return [self._converted_one(batch, columns) for batch in batches]
        except pa.ArrowInvalid:
            return None

    @staticmethod
    def _converted_one(batch: pa.RecordBatch, columns: _Columns) -> pa.RecordBatch:
        if REST in columns.schema.names:
            check_rest(batch.column(REST))
        fields = [columns.schema.field(name) for name in columns.read]
        arrays = [columns.parser.converted(pa.chunked_array([batch.column(field.name)]), field) for field in fields]
        return pa.RecordBatch.from_arrays([array.combine_chunks() for array in arrays], schema=pa.schema(fields))

    def _batches(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        for batch in table.to_batches():
            selected = self._columns.selected
            yield from bounded_batches(batch if selected is None else batch.select(selected))

    def _data_error(self, path: str, position: int, record: bytes) -> DataError:
        unclosed = unclosed_quote(record, self._dialect)
        if unclosed is not None:
            field_index, quote_position = unclosed
            return self._unclosed_error(path, field_index, position + quote_position)
        line = self._line_ends_before(path, position) + 1
        return DataError(
            f"file {path}, line {line}, {self._columns.parser.explain(record)}"
            " (on_bad_row='skip' counts such rows and goes on)"
        )

    def _unclosed_error(self, path: str, field_index: int, position: int) -> DataError:
        names = self._columns.schema.names
        name = f" ({names[field_index]})" if field_index < len(names) else ""
        line = self._line_ends_before(path, position) + 1
        return DataError(f"file {path}, line {line}, column {field_index + 1}{name}: {UNCLOSED} {_SKIPS_REST}")

    def _line_ends_before(self, path: str, position: int) -> int:
        """Return the number of lines that end before a position: of a stream, in the last block or at its end."""
        if self._passed is None:
            return count_lines_before(path, position)
        offset, lines, block = self._passed
        return lines + count_line_ends(block[: position - offset]) + lines_left_out(self._file, position)

    def close(self) -> None:
        """Close the file that is being read."""
        self._member.close()
        if self._file is not None:
            self._file.close()
            self._file = None


def count_lines_before(path: str, position: int) -> int:
    """Return the number of physical lines that end before a position, which is not within a line end."""
    return count_lines(path, 0, position)


def count_lines(path: str, begin: int, end: int) -> int:
    """Return the number of physical lines that end between two positions, neither of which is within a line end."""
    count, left = 0, end - begin
    with file_system_of(path).open_stream(path, is_buffered=True) as file:
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
