"""DeltaWriter: a Parquet file of a table, and what its log says of it.

Held by: tests/delta_tables/test_write_delta.py
"""

from __future__ import annotations

import msgspec
import pyarrow as pa

from engine.delta_tables.change_writer import ChangeWriter
from engine.delta_tables.file_statistics import ValueNotes, file_statistics
from engine.delta_tables.table_types import stored_schema
from engine.delta_tables.table_write import PLACES, TableWrite, WrittenFile, change_file
from engine.errors import DataError
from engine.formats.merged_rows import MergedRows
from engine.graph.merge_action import ACTION
from engine.parquet.writer import ParquetWriter
from engine.records.arrow_functions import pc
from engine.storage.file_systems import file_system_of


class DeltaWriter:
    """Writes one file."""

    def __init__(
        self, schema: pa.Schema, path: str, wanted_bytes: int, write: TableWrite, former: DeltaWriter | None = None
    ) -> None:
        self._merged = MergedRows(schema) if write.merges else None
        self._call = "write_delta" if self._merged is None else "merge_into"
        self._schema = stored_schema(schema if self._merged is None else self._merged.schema, self._call)
        self._notes = ValueNotes(self._schema, write, self._call)
        self._path = path
        folder = path.rsplit("/", 1 + len(write.partition_by))[0]
        changes = ChangeWriter(self._schema, f"{folder}/{change_file(path)}") if write.keeps_changes else None
        self._changes = changes
        known = None if former is None else former._writer
        self._writer: ParquetWriter = ParquetWriter(self._schema, path, wanted_bytes=wanted_bytes, former=known)

    @property
    def is_full(self) -> bool:
        """Whether the footer is as long as it should be."""
        return self._writer.is_full

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows; those that a merge deletes are counted alone."""
        if self._changes is not None:
            self._changes.write(self._stored(batch.select(self._schema.names)), batch.column(ACTION))
        if self._merged is not None:
            batch = self._merged.left(batch)
        batch = self._stored(batch)
        self._notes.add(batch)
        self._writer.write(batch)

    def _stored(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if batch.schema.equals(self._schema):
            return batch
        arrays = [as_stored(batch.column(field.name), field, self._call) for field in self._schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def finish(self) -> tuple[int, int, str]:
        """Complete the file; return (rows, bytes, what is known of it)."""
        rows, size_bytes, _ = self._writer.finish()
        assert self._writer.footer is not None, "not finished"
        statistics = file_statistics(self._writer.footer, self._notes)
        counts = {} if self._merged is None else self._merged.counts
        deleted = {} if self._merged is None else self._merged.deleted
        if deleted:
            # There may be many, and what a task reports is kept in memory.
            content = msgspec.msgpack.encode({file: bytes(found.serialize()) for file, found in deleted.items()})
            file_system_of(self._path).replace(self._path + PLACES, content, is_durable=False)
        change_bytes = 0 if self._changes is None else self._changes.finish()
        written = WrittenFile(statistics, counts, has_places=bool(deleted), change_bytes=change_bytes)
        return rows, size_bytes, msgspec.json.encode(written).decode()

    def abort(self) -> None:
        """Close and remove the file; does nothing after ``finish``."""
        self._writer.abort()
        if self._changes is not None:
            self._changes.abort()


def as_stored(array: pa.Array, field: pa.Field, call: str) -> pa.Array:
    """Return values as a table has them. Raises: DataError."""
    if array.type == field.type:
        return array
    try:
        return pc.cast(array, field.type)
    except pa.ArrowInvalid as error:
        raise DataError(
            f"{call}: column {field.name!r} is {array.type}, and {field.type} in the table, which has no room for some"
            f" of its values ({str(error).partition(chr(10))[0]})"
        ) from None
