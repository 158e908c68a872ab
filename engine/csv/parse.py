"""One block of whole CSV records becomes a table; where it cannot, the malformed records are found exactly.

    parser.parse(data) -> pa.Table            raises pa.ArrowInvalid when any record is malformed
    parser.parse_around(data) -> tables and BadRecord(begin, end) in order: halves what fails until one record is left
    parser.explain(record) -> "column 3 (LotSize): 'abc' is not int32"
    unclosed_quote(record, dialect) -> field and position of a quote that none closes, or None

A quote that none closes goes on to the end of the file: Arrow takes what is there for the value, here the last record
is malformed then. ``parse`` alone does not look for it: what a sample cuts out may end anywhere.

Since halves go through the same parser, what is good in a block stays exactly as it would have been read without its
bad neighbours. Cost of a bad record: about log2(records of the block) small parses.

Rules: an unquoted field among ``null_values`` is null, for strings too; a quoted one never is. A record has exactly
the columns of the file's schema, of which the last may be REST (``header.py``), a field that is empty in every record.

Held by: tests/csv/test_reader.py
Held by: tests/integration/test_csv_errors.py
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.csv as pacsv

from engine.csv.dialect import BYTE_ORDER_MARK, CsvDialect
from engine.csv.encoding import guessed_encoding, to_utf8
from engine.csv.header import REST
from engine.csv.options import FALSE, TRUE
from engine.csv.ragged import fitted_records
from engine.csv.scan import count_line_ends, ends_quoted, last_record_end, record_offsets
from engine.csv.written_dates import WrittenDates
from engine.csv.written_numbers import WrittenNumbers, check_no_hexadecimal, has_hexadecimal
from engine.errors import DataError
from engine.graph.source_spec import CsvSource
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of

_TEXT_MAX = 120
#: delimiters of other files, for advice
_DELIMITERS = (";", "\t", "|", ",")
#: message about the fault, and what to do
UNCLOSED = "a quote that opens here is never closed; close it, or pass quote=None where quotes mean nothing"


@dataclass(frozen=True)
class BadRecord:
    """A malformed record: its bytes are [begin, end) of the block."""

    begin: int
    end: int


class BlockParser:
    """Parses blocks of one CSV source; ``columns`` are the names to be read, in order."""

    def __init__(self, spec: CsvSource, file_schema: pa.Schema, columns: list[str]) -> None:
        self._dialect = CsvDialect.of(spec.delimiter, spec.quote)
        self._file_schema = file_schema
        self._columns = columns
        self._encoding = spec.encoding
        self._null_values = list(spec.null_values)
        self._column_nulls = {name: list(nulls) for name, nulls in spec.column_nulls.items() if name in columns}
        self._numbers = WrittenNumbers(spec.decimal, spec.thousands or None)
        self._dates = WrittenDates(spec.date_formats, spec.date_format)
        self._has_rest = REST in file_schema.names
        self._ragged = RaggedRows(spec, file_schema.names, self._dialect)
        # Without texts of its own a column takes Arrow's, which are more than those that are inferred.
        self._truths = spec.true_values or spec.false_values
        self._true, self._false = [*TRUE, "1", *spec.true_values], [*FALSE, "0", *spec.false_values]
        self._parse_options = self._dialect.parse_options(len(file_schema))
        self._empty = pa.Table.from_batches([], pa.schema([file_schema.field(name) for name in columns]))

    def read_type(self, field: pa.Field) -> pa.DataType:
        """Return the type as which a column is read, before ``converted``."""
        return pa.string() if self._are_texts(field) else field.type

    def _are_texts(self, field: pa.Field) -> bool:
        """Return whether a column is read as text, and becomes what it is here."""
        return self._numbers.are_texts(field.type) or self._dates.are_texts(field.name, field.type)

    def _convert(self, columns: list[str], texts: Collection[str] = ()) -> pacsv.ConvertOptions:
        """Return Arrow's options for some columns, of which some are read as text; they have the same null values."""
        return pacsv.ConvertOptions(
            column_types={
                field.name: pa.string() if field.name in texts else self.read_type(field) for field in self._file_schema
            },
            null_values=self._column_nulls.get(columns[0], self._null_values) if columns else self._null_values,
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            include_columns=columns,
            decimal_point=self._numbers.decimal_point,
            true_values=self._true if self._truths else None,
            false_values=self._false if self._truths else None,
        )

    def _read(self, data: memoryview | bytes, columns: list[str]) -> pa.Table:
        """Return columns of whole records."""
        table = self._read_all(data, [*columns, REST] if self._has_rest else columns)
        if self._has_rest:
            check_rest(table.column(REST))
        fields = [self._file_schema.field(name) for name in columns]
        whole = [field.name for field in fields if pa.types.is_integer(field.type)]
        if whole and has_hexadecimal(data):
            check_no_hexadecimal(self._read_all(data, whole, whole).columns)
        arrays = [self.converted(table.column(field.name), field) for field in fields]
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields)) if fields else table

    def _read_all(self, data: memoryview | bytes, columns: list[str], texts: Collection[str] = ()) -> pa.Table:
        """Return columns as Arrow reads them: together those that have the same null values."""
        own = [name for name in columns if name in self._column_nulls]
        if not own:
            return self._read_by(data, self._convert(columns, texts))
        alike: dict[tuple[str, ...] | None, list[str]] = {}
        for name in columns:
            alike.setdefault(tuple(self._column_nulls[name]) if name in own else None, []).append(name)
        tables = [self._read_by(data, self._convert(some, texts)) for some in alike.values()]
        arrays = {name: table.column(name) for table in tables for name in table.column_names}
        return pa.table([arrays[name] for name in columns], names=columns)

    def converted(self, column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
        """Return a column as its field has it, which may have been read as text; pa.ArrowInvalid: a value is none."""
        if self._dates.are_texts(field.name, field.type):
            return self._dates.of_texts(field.name, column, field.type)
        if self._numbers.are_texts(field.type):
            return self._numbers.of_texts(column, field.type)
        if pa.types.is_decimal(field.type):  # Arrow's reader counts digits before it adds zeros up to the scale
            column.validate(full=True)
        return column

    def _read_by(self, data: memoryview | bytes, convert: pacsv.ConvertOptions) -> pa.Table:
        ended = self._ended(data)
        if self._encoding:
            try:
                ended = to_utf8(ended, self._encoding)
            except UnicodeDecodeError as error:
                raise pa.ArrowInvalid(str(error)) from error
        ended = as_arrow_takes(self._ragged.fitted(ended))
        names = self._file_schema.names
        options = pacsv.ReadOptions(use_threads=False, block_size=len(ended) + 1, column_names=names)
        source = pa.BufferReader(pa.py_buffer(ended))
        return pacsv.read_csv(source, options, self._parse_options, convert)

    def _ended(self, data: memoryview | bytes) -> memoryview | bytes:
        """Return data whose last field, if it is nothing behind a delimiter, has a line end.

        Without one Arrow takes it to be quoted, and no null, where the field before it is.
        """
        if self._dialect.quote < 0 or not len(data) or data[-1] != self._dialect.delimiter:
            return data
        ended = bytes(data) + b"\n"
        is_whole = last_record_end(ended, self._dialect.delimiter, self._dialect.quote) == len(ended)
        return ended if is_whole else data

    def parse(self, data: memoryview | bytes) -> pa.Table:
        """Return the rows of whole records; pa.ArrowInvalid when one is malformed."""
        try:
            return self._read(data, self._columns)
        except pa.ArrowInvalid:
            if not bytes(data).strip(b"\r\n"):
                return self._empty
            raise

    def parse_around(self, data: memoryview) -> Iterator[pa.Table | BadRecord]:
        """Yield the rows and the malformed records of a block, in order."""
        offsets = record_offsets(data, self._dialect.delimiter, self._dialect.quote)
        record_count = len(offsets) - 1
        is_unclosed = ends_quoted(data[offsets[-2] :], self._dialect.delimiter, self._dialect.quote)
        pending = [(0, record_count - is_unclosed)]
        while pending:
            first, last = pending.pop()
            begin, end = offsets[first], offsets[last]
            try:
                yield self.parse(data[begin:end])
            except pa.ArrowInvalid:
                if last - first == 1:
                    yield BadRecord(begin, end)
                    continue
                middle = (first + last) // 2
                pending += [(middle, last), (first, middle)]
        if is_unclosed:
            yield BadRecord(offsets[-2], offsets[-1])

    def explain(self, record: bytes) -> str:
        """Return the fault of a single malformed record."""
        record = bytes(self._ragged.fitted(record))
        fields = split_fields(record, self._dialect)
        expected = len(self._file_schema) - self._has_rest
        if self._has_rest and len(fields) == expected + 1 and not fields[-1]:
            fields.pop()
        if len(fields) != expected:
            text = record.decode(self._encoding or "utf-8", errors="replace").rstrip("\r\n")
            other = other_delimiter([text], expected) if len(fields) == 1 else ""
            advice = f"; with delimiter={other!r} there are {expected}" if other else ""
            return f"{len(fields)} fields, expected {expected}{advice}: {_shorten(text)}"
        for position, part in enumerate(fields):
            if self._encoding and not _decodes(part, self._encoding):
                name = self._file_schema.names[position]
                return f"column {position + 1} ({name}): {self._value_error(part, pa.string())}"
        for name in self._columns:
            try:
                self._read(record, [name])
            except pa.ArrowInvalid:
                position = self._file_schema.get_field_index(name)
                field = self._file_schema.field(name)
                return f"column {position + 1} ({name}): {self._value_error(fields[position], field.type, name)}"
        return "malformed record"

    def _value_error(self, field: bytes, data_type: pa.DataType, name: str = "") -> str:
        try:
            text = field.decode(self._encoding or "utf-8")
        except UnicodeDecodeError:
            if self._encoding:
                return f"{_shorten(repr(field))} is not {self._encoding}; pass another encoding="
            return f"{_shorten(repr(field))} is not valid UTF-8; pass encoding={guessed_encoding(field)!r} or another"
        if name and self._dates.are_texts(name, data_type):
            return f"{_shorten(repr(text))} is not of the format {self._dates.format_of(name)!r}"
        return f"{_shorten(repr(text))} is not {data_type}{offset_advice(text, data_type)}"


class RaggedRows:
    """Records with too few or too many fields, where a source takes them (``ragged``)."""

    def __init__(self, spec: CsvSource, names: Sequence[str], dialect: CsvDialect) -> None:
        self._dialect = dialect
        self._is_needed = spec.ragged_rows != "fail"
        self._cuts = spec.ragged_rows in ("cut", "fit")
        fills = [b"" if spec.ragged_rows == "cut" else self._null(spec, name) for name in names[1:]]
        self._tails = [b"".join(fills[index:]) for index in range(len(fills))] if self._is_needed else []

    def _null(self, spec: CsvSource, name: str) -> bytes:
        """Return a delimiter and the text of a null in a column."""
        nulls = ("",) if name == REST else spec.column_nulls.get(name, spec.null_values)
        return bytes([self._dialect.delimiter]) + "".join(nulls[:1]).encode()

    def fitted(self, data: memoryview | bytes) -> memoryview | bytes:
        """Return whole records, each with as many fields as there are columns."""
        if not self._is_needed:
            return data
        return fitted_records(data, self._dialect.delimiter, self._dialect.quote, self._tails, self._cuts)


def as_arrow_takes(data: memoryview | bytes) -> memoryview | bytes:
    """Return records for Arrow's parser, which passes over a byte order mark before them wherever they are."""
    return BYTE_ORDER_MARK + bytes(data) if data[: len(BYTE_ORDER_MARK)] == BYTE_ORDER_MARK else data


def check_rest(column: pa.ChunkedArray | pa.Array) -> None:
    """Raise pa.ArrowInvalid where there is something behind the last column."""
    if pc.any(pc.not_equal(pc.binary_length(column), 0)).as_py():
        raise pa.ArrowInvalid("a field behind the last column")


def offset_advice(text: str, data_type: pa.DataType) -> str:
    """Return the advice about a timestamp that is malformed because of its offset from UTC; "" otherwise."""
    if not pa.types.is_timestamp(data_type):
        return ""
    other = pa.timestamp(data_type.unit, None if data_type.tz else "UTC")
    try:
        pc.cast(scalar_of(text), other)
    except pa.ArrowInvalid:
        return ""
    if data_type.tz:
        return f": it has no offset from UTC; {other} reads it, and .dt.with_timezone(zone) says where it was"
    return f": it has an offset from UTC; {other} reads it"


def _shorten(text: str) -> str:
    return text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}..."


def header_fields(record: bytes, dialect: CsvDialect, path: str, encoding: str = "") -> list[str]:
    """Return the names in the record that a file begins with; DataError where a quote in it is never closed."""
    unclosed = unclosed_quote(record, dialect)
    if unclosed is not None:
        field_index, position = unclosed
        line = count_line_ends(record[:position]) + 1
        raise DataError(f"file {path}, line {line}, column {field_index + 1}: {UNCLOSED}")
    return [name.decode(encoding or "utf-8", errors="replace") for name in split_fields(record, dialect)]


def _decodes(field: bytes, encoding: str) -> bool:
    try:
        field.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def other_delimiter(lines: Sequence[str], field_count: int = 0) -> str:
    """Return a character that parts every line into as many fields (``field_count``, or any from 2 on); "" for none."""
    for mark in _DELIMITERS:
        counts = {line.count(mark) + 1 for line in lines}
        if len(counts) == 1 and (counts == {field_count} if field_count else min(counts) > 1):
            return mark
    return ""


def split_fields(record: bytes, dialect: CsvDialect) -> list[bytes]:
    """Return the fields of one record without their quotes, by the same rules as the scanner."""
    text = record.removesuffix(b"\n").removesuffix(b"\r")
    delimiter = bytes([dialect.delimiter])
    fields: list[bytes] = []
    position = 0
    while True:
        # A quote means something at the begin of a field only.
        quoted, position = _take_quoted(text, position, dialect.quote)
        end = text.find(delimiter, position)
        fields.append(quoted + text[position : end if end >= 0 else len(text)])
        if end < 0:
            return fields
        position = end + 1


def _take_quoted(text: bytes, position: int, quote: int) -> tuple[bytes, int]:
    """Return the quoted part that begins at ``position``, b"" without one, and the position after it."""
    if position == len(text) or text[position] != quote:
        return b"", position
    mark = bytes([quote])
    end = _closing(text, position + 1, mark)
    end = end if end >= 0 else len(text)
    return text[position + 1 : end].replace(2 * mark, mark), end + 1


def _closing(text: bytes, position: int, mark: bytes) -> int:
    """Return the position of the closing quote of a field that begins at ``position``, or -1."""
    while (end := text.find(mark, position)) >= 0:
        if text[end + 1 : end + 2] != mark:
            return end
        position = end + 2
    return -1


def unclosed_quote(record: bytes, dialect: CsvDialect) -> tuple[int, int] | None:
    """Return (index of the field, position) of a quote that opens and that none closes; None without one."""
    if dialect.quote < 0:
        return None
    mark, delimiter = bytes([dialect.quote]), bytes([dialect.delimiter])
    position = field_index = 0
    while True:
        if record[position : position + 1] == mark:
            end = _closing(record, position + 1, mark)
            if end < 0:
                return field_index, position
            position = end + 1
        position = record.find(delimiter, position) + 1
        if position == 0:
            return None
        field_index += 1
