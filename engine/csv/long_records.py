"""A CSV record that is longer than some megabytes, read without holding it: each long field goes straight to its array.

    find_long_record(file, position, end, dialect) ──► LongRecord or None     one pass over the file's bytes
                                                       UnclosedRecord         to the end of the file
    record.batch(file, schema, parse)              ──► one row                a second one, over the fields wanted

    record   7 , "two ""long"" lines ..." , x        what is left is parsed as always:     7 , x , x
                 └── 64 MB, read into a buffer of the size that the first pass found

None, and the reader goes on as with other records: a record that is not ordinary (``csv_fields``), has other columns
than the file, or a long field that is no text. So what is malformed is reported in one way.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import BinaryIO, Final, NamedTuple

import pyarrow as pa

from engine.csv.dialect import CsvDialect
from engine.csv.fields import FieldScanner, QuotedCopier
from engine.errors import DataError

#: fields from this size on are read by themselves
FIELD_BYTES: Final = 1 << 20
_CHUNK_BYTES: Final = 1 << 20
_OFFSETS: Final = {
    pa.string(): "=ii",
    pa.binary(): "=ii",
    pa.large_string(): "=qq",
    pa.large_binary(): "=qq",
}
_SHORT_OFFSETS_MAX: Final = (1 << 31) - 1
_STAND_IN: Final = b"x"

Field = tuple[int, int, int, bool]


class LongRecord:
    """Where a record and its fields are in the file."""

    def __init__(self, position: int, size_bytes: int, fields: Sequence[Field], dialect: CsvDialect) -> None:
        self.position = position
        self.size_bytes = size_bytes
        self._fields = fields
        self._dialect = dialect

    def batch(
        self, file: BinaryIO, names: Sequence[str], long_bytes: int, parse: Callable[[bytes], pa.Table]
    ) -> pa.RecordBatch | None:
        """Return the row, or None where the record is to be read as others are.

        ``names``: the file's columns. ``parse``: of a record in memory, returns the columns wanted; what it raises for
        the rest of the record comes out of here.
        """
        if len(self._fields) != len(names):
            return None
        long = {name: field for name, field in zip(names, self._fields, strict=True) if field[2] >= long_bytes}
        row = parse(self._without(file, set(long.values())))
        if row.num_rows != 1:
            return None
        arrays = []
        for name, column in zip(row.column_names, row.columns, strict=True):
            if name not in long:
                arrays.append(column.combine_chunks() if column.num_chunks != 1 else column.chunk(0))
                continue
            array = self._array(file, long[name], column.type)
            if array is None:
                return None
            arrays.append(array)
        return pa.RecordBatch.from_arrays(arrays, schema=row.schema)

    def _without(self, file: BinaryIO, long: set[Field]) -> bytes:
        """Return the record with something short in place of its long fields."""
        parts = []
        for field in self._fields:
            if field in long:
                parts.append(_STAND_IN)
                continue
            part = bytearray(field[1] - field[0])
            _read(file, self.position + field[0], memoryview(part))
            parts.append(bytes(part))
        return bytes([self._dialect.delimiter]).join(parts) + b"\n"

    def _array(self, file: BinaryIO, field: Field, data_type: pa.DataType) -> pa.Array | None:
        """Return one field as an array; None where it is no text, or no UTF-8."""
        begin, end, size, is_quoted = field
        form = _OFFSETS.get(data_type)
        if form is None or (form == "=ii" and size > _SHORT_OFFSETS_MAX):
            return None
        data = pa.allocate_buffer(size)
        target = memoryview(data).cast("B")
        begin, end = (begin + 1, end - 1) if is_quoted else (begin, end)
        if end - begin == size:
            _read(file, self.position + begin, target)
        else:
            self._copy_quoted(file, begin, end, target)
        array = pa.Array.from_buffers(data_type, 1, [None, pa.py_buffer(struct.pack(form, 0, size)), data], 0)
        try:
            array.validate(full=True)
        except pa.ArrowInvalid:
            return None
        return array

    def _copy_quoted(self, file: BinaryIO, begin: int, end: int, target: memoryview) -> None:
        copier = QuotedCopier(self._dialect.quote)
        chunk, clean = memoryview(bytearray(_CHUNK_BYTES)), memoryview(bytearray(_CHUNK_BYTES))
        used = 0
        while begin < end:
            size = min(_CHUNK_BYTES, end - begin)
            _read(file, self.position + begin, chunk[:size])
            count = copier.copy(chunk[:size], clean)
            target[used : used + count] = clean[:count]
            begin, used = begin + size, used + count


class UnclosedRecord(NamedTuple):
    """A record with a quote that none closes: its field's index, and where the quote is in the file."""

    field_index: int
    quote_position: int


def find_long_record(
    file: BinaryIO, position: int, end: int, dialect: CsvDialect
) -> LongRecord | UnclosedRecord | None:
    """Return the record that begins at a position, None when it is not ordinary."""
    scanner = FieldScanner(dialect.delimiter, dialect.quote)
    chunk = memoryview(bytearray(_CHUNK_BYTES))
    found = position
    while scanner.is_ordinary:
        size = min(_CHUNK_BYTES, end - found)
        if size == 0:
            scanner.finish()
            break
        _read(file, found, chunk[:size])
        taken = scanner.advance(chunk[:size])
        found += taken
        if taken < size:
            break
    if scanner.unclosed >= 0:
        return UnclosedRecord(len(scanner.fields), position + scanner.unclosed)
    if not scanner.is_ordinary:
        return None
    return LongRecord(position, found - position, scanner.fields, dialect)


def _read(file: BinaryIO, position: int, target: memoryview) -> None:
    """Read just these bytes."""
    file.seek(position)
    used = 0
    while used < len(target):
        count = file.readinto(target[used:])  # type: ignore[attr-defined]
        if not count:
            raise DataError(f"file {file.name}: ends {len(target) - used} bytes early; it changed while it was read")
        used += count
