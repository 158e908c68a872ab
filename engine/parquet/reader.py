"""ParquetReader: a task's row groups as record batches, only the columns that are wanted.

Batches are larger than elsewhere: every operator pays for a batch, and decoding costs the same for any size. A batch is
made whole before it can be cut, so row groups are read one at a time, and how many rows pyarrow is asked for follows
from their width: what the file says of the group (which is less than the truth where values repeat), or what was seen
in the rows before.

Arrow believes what the headers of pages say and reads pages whole, so they are looked at before (pages.py). What
reading a row group holds is reserved. Where that is more than there is, because of its columns or because of other
readers, it goes through a file, some columns after the others (column_passes.py); a column that does not fit alone is
an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from engine.errors import DataError, SpillError
from engine.graph.source_spec import ParquetSource, SourceSplit
from engine.memory.budget import LEAST_BYTES, Kind, Role, process_budget
from engine.parquet.column_passes import read_in_passes
from engine.parquet.footers import open_shared
from engine.parquet.pages import Pages, buffer_bytes, check_fits, pages_of
from engine.records.arrow_functions import pc
from engine.records.batch_limits import BATCH_BYTES_MAX, BATCH_ROWS_MAX
from engine.records.bounded_batches import bounded_batches
from engine.records.plain_types import plain_batch
from engine.records.wide_rows import one_by_one

if TYPE_CHECKING:
    import pyarrow.parquet as pq

    from engine.iomanager.spill_space import SpillSpace

#: rows of a batch, when they are narrow
PARQUET_BATCH_ROWS_MAX = 65536
#: bytes of a batch when there is very little memory for each reader
BATCH_BYTES_MIN = 128 << 10
_NARROW_COLUMNS = 16
#: a row group of so many bytes of Arrow data leaves blocks that are given back
_RELEASED_BYTES = 8 << 20
#: values of a dictionary that count, since some rows may be a gigabyte of them
_WIDE_VALUE_BYTES = 64 << 10


class ParquetReader:
    """Reads row groups; the order inside a split is that of the file."""

    bad_rows = 0

    def __init__(
        self,
        spec: ParquetSource,
        splits: Sequence[SourceSplit],
        new_space: Callable[[], SpillSpace] | None = None,
    ) -> None:
        self._spec = spec
        self._splits = splits
        self._new_space = new_space
        #: for the row group at hand
        self._reserved = process_budget.reserve(Kind.ARROW, role=Role.READER)
        self._file: pq.ParquetFile | None = None
        #: held for other readers of the file
        self._footer: pq.FileMetaData | None = None
        self._path = ""
        #: of the source's columns, where files have others
        self._types = pa.ipc.read_schema(pa.py_buffer(spec.types_ipc)) if spec.types_ipc else None
        #: of the batches that come out
        self._schema: pa.Schema | None = None
        self._row_bytes = 0.0
        self.bytes_read = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of all splits; DataError when a file cannot be read."""
        for split in self._splits:
            try:
                yield from self._read_split(split)
            except SpillError:
                # An OSError too, but not about the file: columns were put aside.
                raise
            except (pa.ArrowInvalid, OSError) as error:
                if isinstance(error, OSError) and error.errno is not None:
                    # The system's error, not Arrow's about what is in the file.
                    raise
                reason = str(error).partition("\n")[0]
                raise DataError(f"file {split.path}, row groups {split.start} to {split.end}: {reason}") from error

    def _read_split(self, split: SourceSplit) -> Iterator[pa.RecordBatch]:
        if split.path != self._path:
            self._close_file()
            self._file, self._footer = open_shared(
                split.path, buffer_bytes(len(self._spec.columns)), self._spec.columns
            )
            self._path = split.path
        assert self._file is not None
        columns = list(self._spec.columns)
        decoded_bytes = 0
        for group in range(split.start, split.end):
            pages = pages_of(split.path, self._file.metadata, group, columns)
            held = {name: found.held_bytes for name, found in pages.items()}
            is_one_row = self._file.metadata.row_group(group).num_rows == 1
            check_fits(split.path, group, held, process_budget.record_limit, is_at_once=is_one_row)
            row_bytes = max(self._row_bytes, self._encoded_row_bytes(group, columns), _wide_bytes(pages))
            rows = self._rows_at_once(row_bytes, columns)
            batches = self._batches(group, rows, held)
            rows_left = self._file.metadata.row_group(group).num_rows
            for each in one_by_one(batches, row_bytes):
                batch = self._arranged(each, columns)
                rows_left -= batch.num_rows
                size_bytes = batch.nbytes
                if batch.num_rows:
                    self._row_bytes = size_bytes / batch.num_rows
                    decoded_bytes += size_bytes
                yield from bounded_batches(batch, PARQUET_BATCH_ROWS_MAX, size_bytes)
            self._reserved.resize(0)
            if rows_left:
                # Arrow passes over pages whose headers are damaged, and says nothing of the rows.
                raise pa.ArrowInvalid(f"row group {group} has {-rows_left:+} rows against what the file says of it")
        self.bytes_read += split.size_bytes
        # Decoding leaves blocks as large as column chunks behind. Small ones are worth keeping for the next row group.
        if decoded_bytes >= _RELEASED_BYTES:
            pa.default_memory_pool().release_unused()

    def _batches(self, group: int, rows: int, held: dict[str, int]) -> Iterator[pa.RecordBatch]:
        """Return a row group in plain batches; a single row is read at once, which keeps no page of it for later."""
        assert self._file is not None
        columns = list(held)
        if self._file.metadata.row_group(group).num_rows == 1:
            batches = self._file.read_row_group(group, columns=columns, use_threads=False).to_batches()
            while batches:
                yield plain_batch(batches.pop())
            return
        sizes = self._reserved_sizes(group, held)
        # A page that is opened is there twice for a moment.
        wanted = sum(sizes.values()) + max(sizes.values(), default=0)
        if self._reserved.resize(wanted) or self._new_space is None or not columns:
            yield from self._batches_of(group, columns, rows)
        else:
            read = partial(self._batches_of, group)
            yield from read_in_passes(read, sizes, rows, self._new_space, process_budget)

    def _batches_of(self, group: int, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        assert self._file is not None
        batches = self._file.iter_batches(rows, row_groups=[group], columns=list(columns), use_threads=False)
        yield from map(plain_batch, batches)

    def _reserved_sizes(self, group: int, held: dict[str, int]) -> dict[str, int]:
        """Return what is reserved for each column: no more than the row group has, where it is no more than a batch."""
        assert self._file is not None
        whole = self._file.metadata.row_group(group).total_byte_size
        if whole > min(LEAST_BYTES // 2, self._reserved.part_bytes):
            return held
        return dict.fromkeys(held, whole // max(1, len(held)))

    def _rows_at_once(self, row_bytes: float, columns: list[str]) -> int:
        """Return how many rows of a row group to ask for: about a batch of bytes."""
        assert self._file is not None
        rows_max = PARQUET_BATCH_ROWS_MAX
        if self._row_bytes == 0.0:
            schema = self._file.schema_arrow
            if len(columns) > _NARROW_COLUMNS or not all(_is_fixed(schema.field(name).type) for name in columns):
                rows_max = BATCH_ROWS_MAX
        # Where many read at a time, batches are smaller: several of each reader are on their way.
        batch_bytes = max(BATCH_BYTES_MIN, min(BATCH_BYTES_MAX, self._reserved.part_bytes))
        return max(1, min(rows_max, int(batch_bytes / row_bytes) if row_bytes else rows_max))

    def _encoded_row_bytes(self, group: int, columns: list[str]) -> float:
        """Return the average width of a row of a group as the file has it, before compression."""
        assert self._file is not None
        metadata = self._file.metadata.row_group(group)
        chunks = [metadata.column(index) for index in range(metadata.num_columns)]
        wanted = [chunk for chunk in chunks if chunk.path_in_schema.partition(".")[0] in columns]
        total = sum(chunk.total_uncompressed_size for chunk in wanted or chunks)
        return float(total / max(1, metadata.num_rows))

    def _arranged(self, batch: pa.RecordBatch, columns: list[str]) -> pa.RecordBatch:
        """Return the columns in the order asked for, of the source's types, without the file's metadata."""
        if not columns:
            return batch.select([])
        arrays = [batch.column(name) for name in columns]
        if self._types is not None:
            arrays = [
                array if array.type == wanted else pc.cast(array, wanted)
                for array, wanted in zip(arrays, (self._types.field(name).type for name in columns), strict=True)
            ]
        types = [array.type for array in arrays]
        if self._schema is None or self._schema.types != types:
            self._schema = pa.schema(list(zip(columns, types, strict=True)))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def close(self) -> None:
        """Close the open file."""
        self._close_file()
        self._reserved.close()

    def _close_file(self) -> None:
        self._reserved.resize(0)
        if self._file is not None:
            self._file.close()
            self._file = self._footer = None
            self._path = ""


def _wide_bytes(pages: Mapping[str, Pages]) -> float:
    """Return how wide a row is at least whose values lie in dictionaries of wide ones: rows have their numbers only."""
    return sum(found.value_bytes for found in pages.values() if found.value_bytes >= _WIDE_VALUE_BYTES)


def _is_fixed(data_type: pa.DataType) -> bool:
    """Whether values have a width of their own, of at most 16 bytes."""
    return bool(pa.types.is_primitive(data_type) or pa.types.is_decimal128(data_type))
