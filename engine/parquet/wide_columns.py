"""Columns with pages of many very wide values, read value by value: a page is never in memory whole.

    plan_wide(path, file, group, columns, new_space) ──► WideColumn for each such column
    read_wide(wide, rows of the other columns)       ──► batches: a row that is wide is one by itself

    plain page        length │ 64 MB │ length │ 64 MB ...        a value is read when its row is made
    dictionary page   the same; where it is not compressed, places in the file are all that is kept,
                      else its values go to a spill space, once
    page of places    a number for each row

pyarrow holds a page as the file has it, decompressed, and its values: for ten values of 64 MB in one page, as it
writes them itself where it tries a dictionary, 1.3 GB. Here it is the value that is asked for, once.

What writes lengths first, or what values share, is in ``delta_values``.

Limits: what is nested and the older form of LZ4 are read by pyarrow, page by page.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from engine.memory.value_stores import read_back
from engine.parquet.delta_values import lengths_first, shared_fronts
from engine.parquet.pages import (
    DATA,
    DATA_SECOND,
    DICTIONARY,
    STREAMED_CODECS,
    PageHeader,
    PageStream,
    Section,
    bits_and_runs,
    pages,
)
from engine.records.batch_limits import BATCH_BYTES_MAX, BATCH_ROWS_MAX
from engine.records.plain_types import plain_schema
from engine.records.wide_rows import WIDE_BYTES, give_back, turn

if TYPE_CHECKING:
    from engine.iomanager.spill_space import SpillSpace

    #: bytes of a value, and what reads it; None: a null
    Value = tuple[int, Callable[[memoryview], None]] | None

#: pages from this size on, of values that are as wide on average, are read value by value
PAGE_BYTES: Final = WIDE_BYTES
VALUE_BYTES: Final = 64 << 10
_READ_ENCODINGS: Final = frozenset(
    {
        "PLAIN",
        "PLAIN_DICTIONARY",
        "RLE_DICTIONARY",
        "RLE",
        "BIT_PACKED",
        "DELTA_LENGTH_BYTE_ARRAY",
        "DELTA_BYTE_ARRAY",
    }
)
#: numbers of encodings in page headers
_PLAIN: Final = 0
_PLACES: Final = (2, 8)
_DELTAS: Final = {6: lengths_first, 7: shared_fronts}
_TYPES: Final = {pa.string(): 4, pa.binary(): 4, pa.large_string(): 8, pa.large_binary(): 8}
_LENGTH_BYTES: Final = 4


class WideColumn:
    """One column of a row group."""

    def __init__(
        self,
        path: str,
        chunk: pq.ColumnChunkMetaData,
        field: pa.Field,
        has_nulls: bool,
        new_space: Callable[[], SpillSpace] | None,
    ) -> None:
        self.field = field
        self._chunk = chunk
        self._codec = STREAMED_CODECS[chunk.compression]
        self._has_nulls = has_nulls
        self._new_space = new_space
        self._space: SpillSpace | None = None
        self._entries: list[Value] = []
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._values: Iterator[Value] = self._read()
        self._next: list[Value] = []

    def is_worth_it(self) -> bool:
        """Whether a page is large because its values are, and all of it can be read here."""
        is_large = False
        for page in pages(self._descriptor, self._chunk):
            if page.kind not in (DATA, DATA_SECOND, DICTIONARY) or (self._has_nulls and not page.has_runs):
                return False
            if page.kind == DICTIONARY and self._codec and self._new_space is None:
                return False
            is_large |= page.size_bytes >= max(PAGE_BYTES, page.value_count * VALUE_BYTES)
        return is_large

    def next_bytes(self) -> int:
        """Return how large the value of the next row is."""
        if not self._next:
            self._next.append(next(self._values))
        value = self._next[0]
        return 0 if value is None else value[0]

    def take(self) -> pa.Buffer | None:
        """Return the value of the next row, None for a null."""
        self.next_bytes()
        value = self._next.pop()
        if value is None:
            return None
        buffer = pa.allocate_buffer(value[0])
        value[1](memoryview(buffer).cast("B"))
        return buffer

    def finish(self) -> None:
        """After the last row: compare the last checksum; pa.ArrowInvalid where there are more values than rows."""
        for _ in self._values:
            raise pa.ArrowInvalid(f"column {self.field.name} has more values than its row group has rows")

    def array(self, values: Sequence[pa.Buffer | None]) -> pa.Array:
        """Return values as an array; a single one is not copied."""
        ends, total = [0], 0
        for value in values:
            total += 0 if value is None else value.size
            ends.append(total)
        data = values[0] if len(values) == 1 else pa.py_buffer(b"".join(v for v in values if v is not None))
        data = data or pa.py_buffer(b"")
        width = _TYPES[self.field.type]
        offsets = pa.py_buffer(b"".join(end.to_bytes(width, "little") for end in ends))
        nulls = sum(value is None for value in values)
        bits = sum((value is not None) << index for index, value in enumerate(values))
        validity = pa.py_buffer(bits.to_bytes((len(values) + 7) // 8, "little")) if nulls else None
        return pa.Array.from_buffers(self.field.type, len(values), [validity, offsets, data], nulls)

    def close(self) -> None:
        """Close the file and delete what was put aside; idempotent."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        if self._space is not None:
            self._space.close()
            self._space = None

    def _read(self) -> Iterator[Value]:
        for page in pages(self._descriptor, self._chunk):
            stream = PageStream(self._descriptor, page, self._codec)
            if page.kind == DICTIONARY:
                self._read_dictionary(page, stream)
                continue
            is_present = self._presence(page, stream)
            if page.encoding in _PLACES:
                yield from self._by_places(stream, is_present)
            elif page.encoding == _PLAIN:
                for present in is_present:
                    yield (self._length(stream), stream.readinto) if present else None
            elif page.encoding in _DELTAS:
                values = _DELTAS[page.encoding](stream, sum(is_present))
                for present in is_present:
                    yield next(values) if present else None
            else:
                raise pa.ArrowInvalid(f"the page at byte {page.position} has the unexpected encoding {page.encoding}")
            stream.finish()

    def _presence(self, page: PageHeader, stream: PageStream) -> Sequence[int]:
        """Return 1 for each value, 0 for each null."""
        levels = stream.levels
        if self._has_nulls and page.kind == DATA:
            levels = stream.read(self._length(stream))
        if not self._has_nulls:
            return [1] * page.value_count
        return bits_and_runs(levels, 1, page.value_count)

    def _by_places(self, stream: PageStream, is_present: Sequence[int]) -> Iterator[Value]:
        count = sum(is_present)
        places: Iterator[int] = iter(())
        if count:
            width = stream.read(1)[0]
            places = iter(bits_and_runs(stream.read(stream.left_bytes), width, count))
        for present in is_present:
            place = next(places) if present else -1
            if place >= len(self._entries):
                raise pa.ArrowInvalid(f"a row has the value {place} of a dictionary of {len(self._entries)}")
            yield self._entries[place] if present else None

    @staticmethod
    def _length(stream: PageStream) -> int:
        size = int.from_bytes(stream.read(_LENGTH_BYTES), "little")
        if size > stream.left_bytes:
            raise pa.ArrowInvalid(f"a value of {size} bytes in a page that has {stream.left_bytes} left")
        return size

    def _read_dictionary(self, page: PageHeader, stream: PageStream) -> None:
        for _ in range(page.value_count):
            size = self._length(stream)
            if self._codec:
                self._entries.append(self._put_aside(size, stream))
            else:
                self._entries.append(self._in_file(page.position + page.size_bytes - stream.left_bytes, size))
                stream.skip(size)
        stream.finish()

    def _in_file(self, position: int, size: int) -> Value:
        return size, lambda view: Section(self._descriptor, position, size).readinto(view)

    def _put_aside(self, size: int, stream: PageStream) -> Value:
        if self._space is None:
            assert self._new_space is not None, "looked at before"
            self._space = self._new_space()
        with turn(size):
            value = memoryview(pa.allocate_buffer(size)).cast("B")
            stream.readinto(value)
            place = self._space.write_value(value)
        return size, lambda view: read_back(place, view)


def plan_wide(
    path: str,
    file: pq.ParquetFile,
    group: int,
    columns: Sequence[str],
    new_space: Callable[[], SpillSpace] | None,
) -> list[WideColumn]:
    """Return the columns of a row group that are read value by value; they are to be closed."""
    metadata = file.metadata.row_group(group)
    found: list[WideColumn] = []
    if metadata.total_byte_size < PAGE_BYTES:
        return found
    schema = plain_schema(file.schema_arrow)
    for index in range(metadata.num_columns):
        chunk = metadata.column(index)
        leaf = file.schema.column(index)
        name = chunk.path_in_schema
        if (
            name not in columns
            or chunk.total_uncompressed_size < PAGE_BYTES
            or leaf.max_repetition_level
            or leaf.max_definition_level > 1
            or chunk.physical_type != "BYTE_ARRAY"
            or schema.field(name).type not in _TYPES
            or chunk.compression not in STREAMED_CODECS
            or not _READ_ENCODINGS.issuperset(chunk.encodings)
        ):
            continue
        column = WideColumn(path, chunk, schema.field(name), leaf.max_definition_level == 1, new_space)
        try:
            is_worth_it = column.is_worth_it()
        except BaseException:
            column.close()
            raise
        if is_worth_it:
            found.append(column)
        else:
            column.close()
    return found


def read_wide(wide: Sequence[WideColumn], others: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Yield all rows of a row group: what the others have of them, and the wide columns beside it."""
    rest = _Rows(others)
    done = 0
    while done < rows:
        with turn(sum(column.next_bytes() for column in wide)):
            values, count = _take_rows(wide, rows - done)
            is_wide = any(one is not None and one.size >= WIDE_BYTES for one in values[0])
            arrays = [column.array(taken) for column, taken in zip(wide, zip(*values, strict=True), strict=True)]
            del values
            fields = [column.field for column in wide]
            for name, array in rest.take(count):
                fields.append(pa.field(name, array.type))
                arrays.append(array)
            box = [pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))]
            del arrays
            yield box.pop()
            if is_wide:
                give_back()
        done += count
    for column in wide:
        column.finish()


def _take_rows(wide: Sequence[WideColumn], rows: int) -> tuple[list[list[pa.Buffer | None]], int]:
    """Return the values of as many rows as make a batch."""
    values: list[list[pa.Buffer | None]] = []
    total = 0
    while len(values) < min(rows, BATCH_ROWS_MAX):
        size = sum(column.next_bytes() for column in wide)
        if values and total + size > BATCH_BYTES_MAX:
            break
        total += size
        values.append([column.take() for column in wide])
    return values, len(values)


class _Rows:
    """The columns that pyarrow reads, as many rows as are wanted."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._held: pa.RecordBatch | None = None

    def take(self, count: int) -> Iterator[tuple[str, pa.Array]]:
        """Yield the names and columns of the next rows."""
        taken: list[pa.RecordBatch] = []
        while count:
            if self._held is None or self._held.num_rows == 0:
                self._held = next(self._batches, None)
                if self._held is None:
                    break
            piece = self._held.slice(0, count)
            taken.append(piece)
            count -= piece.num_rows
            self._held = self._held.slice(piece.num_rows)
        batch = taken[0] if len(taken) == 1 else pa.concat_batches(taken) if taken else None
        if batch is not None:
            yield from zip(batch.schema.names, batch.columns, strict=True)
