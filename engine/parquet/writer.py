"""ParquetWriter: batches gathered into row groups, compressed by snappy or the codec that is chosen.

A row group is written when ROW_GROUP_ROWS rows or ROW_GROUP_BYTES bytes of Arrow data are gathered; about twice that
much memory a sink holds. Where many are open, or Arrow's budget is small, it is written earlier (``memory.budget``).

Arrow keeps 860 bytes of each column of a row group until the file ends, and a reader of the file has as much of it.
So a file of many is full after CHUNKS_MAX, however large the data, and another one goes on.

What the first batch decides holds for all row groups of a writer. Where very wide values come later, that writer ends
and one that suits them goes on in the same file. The last footer, of all their row groups, is the file's:

    PAR1  row groups  footer  PAR1 │ PAR1  row groups of wide values  footer  PAR1 │ PAR1  footer of both  PAR1

Held by: tests/chaos/test_lost_task_managers.py
"""

from __future__ import annotations

import fcntl
import os
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from engine.errors import ConfigurationError, DataError, SchemaError
from engine.files.native_files import native_output
from engine.memory.budget import Kind, Role, process_budget
from engine.parquet.column_forms import ColumnForms, KnownColumns, huge_leaves
from engine.records.arrow_batch import batch_bytes
from engine.records.arrow_functions import pc
from engine.records.bounded_batches import SmallBatches
from engine.records.wide_rows import WIDE_BYTES, give_back, width_of
from engine.storage.file_systems import file_system_of, size_of

ROW_GROUP_ROWS = 1 << 20
ROW_GROUP_BYTES = 16 << 20
#: bytes of a row group when there is very little memory
ROW_GROUP_BYTES_MIN = 1 << 20
#: columns of row groups in a file: 3.5 MB of a footer in memory, and 64 MB of a file or more when it has 64 columns
CHUNKS_MAX = 4096
#: row groups that a file has before it is full, however many columns they have
GROUPS_MIN = 4
#: a dictionary of a column ends at so many bytes, or at this part of what a writer may gather: while it is built, a
#: table of up to 24 times its size finds the values
_DICTIONARY_BYTES = 1 << 20
_DICTIONARY_BYTES_MIN = 64 << 10
_DICTIONARY_PART = 32
#: batches of fewer bytes are put together: for the encoder the others are large enough
_SMALL_BYTES = 16 << 10
#: Arrow's unused memory goes back to the system after so many bytes
RELEASED_BYTES = 128 << 20
#: Parquet's timestamps begin with milliseconds
_SECONDS_MAX = (2**63 - 1) // 1000

#: codecs, and the levels of those that have some
_CODECS: Final[dict[str, range | None]] = {
    "snappy": None,
    "zstd": range(1, 23),
    "gzip": range(1, 10),
    "brotli": range(12),
    "lz4": range(1, 13),
    "none": None,
}


def check_compression(compression: str, level: int | None, call: str = "write_parquet") -> None:
    """Raise ConfigurationError for a codec that Parquet files do not have here, or a level that it does not."""
    if compression not in _CODECS:
        raise ConfigurationError(f"{call}: compression={compression!r}: choose one of {', '.join(_CODECS)}")
    levels = _CODECS[compression]
    if level is None or (not isinstance(level, bool) and levels is not None and level in levels):
        return
    known = f"{levels[0]} to {levels[-1]}" if levels else "no levels; leave it out"
    raise ConfigurationError(f"{call}: compression_level={level!r}: {compression} has {known}")


class ParquetWriter:
    """Writes one Parquet file; also one without rows has the schema.

    ``has_checksums``: one in each page. ``wanted_bytes``: of the file, which has row groups of half as many then, since
    its user checks its size after each; 0: any. ``former``: of the file before it, of the same sink.
    """

    def __init__(
        self,
        schema: pa.Schema,
        path: str,
        compression: str = "snappy",
        compression_level: int | None = None,
        *,
        has_checksums: bool = False,
        wanted_bytes: int = 0,
        former: ParquetWriter | None = None,
    ) -> None:
        self._group_bytes_wanted = min(ROW_GROUP_BYTES, wanted_bytes // 2 or ROW_GROUP_BYTES)
        self._schema = schema
        self._path = path
        self._compression = compression
        self._level = compression_level
        self._has_checksums = has_checksums
        #: batches of the row group, and behind them those that are still small
        self._held: list[pa.RecordBatch] = []
        self._small = SmallBatches(bytes_min=_SMALL_BYTES)
        self._held_rows = 0
        self._held_bytes = 0
        self._row_count = 0
        self._chunk_count = 0
        self._known: KnownColumns = KnownColumns(schema) if former is None else former._known
        self._unreleased_bytes = 0
        # Arrow's own file: a Python one would have every page copied to bytes.
        self._file = native_output(str(path))
        self._reserved = process_budget.reserve(Kind.ARROW, role=Role.WRITER)
        self._writer: pq.ParquetWriter | None = None
        #: leaves of columns with values that are written plainly
        self._huge: frozenset[str] = frozenset()
        self._holds_wide = False
        #: footers of writers that have ended
        self._footers: list[pq.FileMetaData] = []
        #: footer of the finished file
        self.footer: pq.FileMetaData | None = None

    def _open(self) -> pq.ParquetWriter:
        """Return the writer; the first batch, where there is one, says which columns get a dictionary."""
        if self._writer is None:
            forms = self._known.forms(_telling(self._held), self._huge) if self._held else ColumnForms()
            self._huge = forms.huge
            if self._footers:
                self._go_on_behind()
            try:
                self._writer = pq.ParquetWriter(
                    self._file,
                    self._schema,
                    **self._codecs(forms),
                    use_dictionary=forms.dictionaries,
                    write_statistics=forms.statistics,
                    write_page_index=False,
                    write_page_checksum=self._has_checksums,
                    # A page of the first version stays in memory until the next of its column.
                    data_page_version="2.0" if forms.huge else "1.0",
                    dictionary_pagesize_limit=self._dictionary_bytes_max,
                    write_batch_size=forms.values_at_once,
                )
            except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
                self.abort()
                raise SchemaError(f"write_parquet: {str(error).partition(chr(10))[0]}") from error
        return self._writer

    def _codecs(self, forms: ColumnForms) -> dict[str, Any]:
        """Return the codec and its level: of all columns, or of each where some are written as they are."""
        if not forms.huge:
            return {"compression": self._compression, "compression_level": self._level}
        codecs = {path: "none" if path in forms.huge else self._compression for path in forms.paths}
        levels = None if self._level is None else {path: self._level for path in forms.paths if path not in forms.huge}
        return {"compression": codecs, "compression_level": levels}

    @property
    def is_full(self) -> bool:
        """Whether the footer is as long as it should be."""
        return self._chunk_count >= max(CHUNKS_MAX, GROUPS_MIN * self._known.leaf_count)

    @property
    def _group_bytes_max(self) -> int:
        """Bytes of a row group: less where many are open, or there is little memory."""
        return max(ROW_GROUP_BYTES_MIN, min(self._group_bytes_wanted, self._reserved.part_bytes))

    @property
    def _dictionary_bytes_max(self) -> int:
        return max(_DICTIONARY_BYTES_MIN, min(_DICTIONARY_BYTES, self._reserved.part_bytes // _DICTIONARY_PART))

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        if batch.num_rows == 0:
            return
        self._held += self._small.add(batch)
        self._held_rows += batch.num_rows
        size_bytes = batch_bytes(batch)
        self._held_bytes += size_bytes
        self._holds_wide |= width_of(size_bytes, batch.num_rows) >= WIDE_BYTES
        if self._holds_wide or self._held_rows >= ROW_GROUP_ROWS or self._held_bytes >= self._group_bytes_max:
            self._write_group()

    def _write_group(self) -> None:
        self._held += self._small.rest()
        if not self._held:
            return
        self._unreleased_bytes += self._held_bytes
        if self._holds_wide and self._writer is not None and not huge_leaves(_telling(self._held)) <= self._huge:
            self._end_writer()
        table = pa.Table.from_batches(self._held, schema=self._schema)
        try:
            self._open().write_table(table, row_group_size=ROW_GROUP_ROWS)
        except pa.ArrowInvalid as error:
            raise _unfit(table, error) from None
        self._row_count += self._held_rows
        self._chunk_count += self._known.leaf_count * -(-self._held_rows // ROW_GROUP_ROWS)
        is_wide = width_of(self._held_bytes, self._held_rows) >= WIDE_BYTES
        self._held, self._held_rows, self._held_bytes, self._holds_wide = [], 0, 0, False
        del table
        if is_wide:
            give_back()
        # Encoding leaves large blocks behind, of use for the next row groups; in the end they only count as memory.
        if self._unreleased_bytes >= RELEASED_BYTES:
            pa.default_memory_pool().release_unused()
            self._unreleased_bytes = 0

    def _end_writer(self) -> None:
        """Write a footer behind the row groups; another writer may go on behind it."""
        assert self._writer is not None
        self._writer.close()
        self._footers.append(self._writer.writer.metadata)
        self._writer = None

    def _go_on_behind(self) -> None:
        """Have what comes written behind what is there."""
        # A writer only begins at position 0. What it writes goes to the end all the same, and it asks where that is.
        descriptor = self._file.fileno()
        fcntl.fcntl(descriptor, fcntl.F_SETFL, fcntl.fcntl(descriptor, fcntl.F_GETFL) | os.O_APPEND)
        os.lseek(descriptor, 0, os.SEEK_SET)

    def finish(self) -> tuple[int, int, str]:
        """Write what is gathered and the footer; return (rows, bytes, "")."""
        self._write_group()
        self._open()
        self._end_writer()
        self.footer, *others = self._footers
        if others:
            self._go_on_behind()
            for footer in others:
                self.footer.append_row_groups(footer)
            self.footer.write_metadata_file(self._file)
        self._file.close()
        size_bytes = size_of(str(self._path))
        self._reserved.close()
        return self._row_count, size_bytes, ""

    def abort(self) -> None:
        """Close and remove the file, unless it is finished."""
        self._reserved.close()
        self._held, self._small = [], SmallBatches(bytes_min=_SMALL_BYTES)
        if not self._file.closed:
            if self._writer is not None:
                self._writer.close()
            self._file.close()
            file_system_of(str(self._path)).delete(str(self._path))


def _unfit(table: pa.Table, error: Exception) -> Exception:
    """Return the error that names column and value, where it is seconds that are no milliseconds; else Arrow's own."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_timestamp(column.type) and column.type.unit == "s":
            seconds = pc.cast(column, pa.int64())
            is_far = pc.or_(pc.greater(seconds, _SECONDS_MAX), pc.less(seconds, -_SECONDS_MAX))
            far = pc.filter(seconds, is_far)
            if len(far):
                return DataError(
                    f"write_parquet: column {name!r} is {column.type}: Parquet has no such unit, and {far[0]} are too"
                    " many seconds for milliseconds; cast it to int64"
                )
    return error


def _telling(held: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the batch that says how the file is written: the first with a wide row, else the first."""
    return next((each for each in held if width_of(each.nbytes, each.num_rows) >= WIDE_BYTES), held[0])
