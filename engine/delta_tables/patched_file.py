"""Files of Delta tables that are written anew with the rows of them that change.

    patch_runs(schema, write)                      rows in the order of their files
    change_rows(schema, path, spec, write)         the writer of a run (``engine.parquet.patched_file``)

Held by: tests/delta_tables/test_patched_files.py
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from typing import Final

import msgspec
import pyarrow as pa

from engine.connectors.partition_runs import PartitionRuns
from engine.delta_tables.delta_writer import DeltaWriter, as_stored
from engine.delta_tables.file_columns import FileColumns
from engine.delta_tables.file_statistics import ValueNotes, file_statistics
from engine.delta_tables.table_log import file_place
from engine.delta_tables.table_types import stored_schema
from engine.delta_tables.table_write import TableWrite, WrittenFile
from engine.formats.merged_rows import MergedRows
from engine.graph.source_spec import SinkSpec, SourceSplit
from engine.parquet.footers import arrow_schema, read_footer
from engine.parquet.patched_file import ChangeRows, Patched, PatchedFile, PatchRuns
from engine.parquet.reader import ParquetReader
from engine.parquet.scan_request import file_source
from engine.parquet.spliced_file import SplicedFile
from engine.parquet.writer import ParquetWriter

_CALL: Final = "merge_into"


def patch_runs(schema: pa.Schema, write: TableWrite) -> PatchRuns:
    """Return the division of changes by their files, and of new rows by their partitions."""
    return PatchRuns(schema, partial(PartitionRuns, keys=write.partition_by) if write.partition_by else None)


def change_rows(schema: pa.Schema, path: str, spec: SinkSpec, write: TableWrite) -> ChangeRows:
    """Return the writer of a run."""

    def patched(number: int) -> PatchedFile:
        former = write.patched_files[number]
        return PatchedFile(file_place(spec.path, former), path, DeltaForm(schema, former, write))

    return ChangeRows(patched, lambda: DeltaWriter(schema, path, spec.target_file_bytes, write))


class DeltaForm:
    """The table's part of a file (``PatchForm``)."""

    def __init__(self, schema: pa.Schema, former: str, write: TableWrite) -> None:
        self.schema: pa.Schema = stored_schema(MergedRows(schema).schema, _CALL)
        self.columns: Collection[str] = frozenset(write.patched_columns)
        self.deletes = write.patch_deletes
        self._former = former
        self._bounded = frozenset(write.bounded)
        self._notes = ValueNotes(self.schema, write, _CALL)

    def stored(self, name: str, values: pa.Array) -> pa.Array:
        """Return values as the table stores them."""
        return as_stored(values, self.schema.field(name), _CALL)

    def can_copy(self, file: SplicedFile, read: Collection[str]) -> bool:
        """Return whether columns that may be encoded are as the table has them: others may be narrower."""
        return not file.differing & set(read)

    def rows(self, former: str) -> _StoredRows:
        """Return the rows of the former file."""
        return _StoredRows(former, self.schema)

    def writer(self, path: str) -> ParquetWriter:
        """Return the writer of all rows."""
        return ParquetWriter(self.schema, path)

    def note(self, name: str, values: pa.Array, before: pa.Array | None) -> None:
        """Look at values that are written."""
        self._notes.add_column(name, values)

    def note_copied(self, name: str) -> None:
        """Note that values are copied, among which may be NaN where the log has no bounds."""
        if name in self._notes.floats and name not in self._bounded:
            self._notes.with_nan.add(name)

    def report(self, found: Patched) -> str:
        """Return the report."""
        statistics = file_statistics(found.footer, self._notes)
        written = WrittenFile(statistics, found.counts, replaces=self._former, is_ambiguous=found.is_ambiguous)
        return msgspec.json.encode(written).decode()


class _StoredRows:
    """The rows of a file, as the table stores them."""

    def __init__(self, former: str, schema: pa.Schema) -> None:
        self._schema = schema
        footer = read_footer(former)
        self._columns = FileColumns(schema, arrow_schema(footer), schema.names)
        groups = [footer.row_group(group) for group in range(footer.num_row_groups)]
        splits = tuple(
            SourceSplit(former, index, index + 1, max(1, group.total_byte_size), group.num_rows)
            for index, group in enumerate(groups)
            if group.num_rows
        )
        names = tuple(self._columns.stored.values())
        self._reader = ParquetReader(file_source((former,), splits, names, self._columns.types), splits)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield batches."""
        for batch in self._reader:
            arrays = [self._array(field, batch) for field in self._schema]
            yield pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _array(self, field: pa.Field, batch: pa.RecordBatch) -> pa.Array:
        stored = self._columns.stored.get(field.name)
        if stored is None:
            return pa.nulls(batch.num_rows, field.type)
        array = self._columns.column(field.name, batch.column(stored))
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        return as_stored(array, field, _CALL)

    def close(self) -> None:
        """Close the file."""
        self._reader.close()
