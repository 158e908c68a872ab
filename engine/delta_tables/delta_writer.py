"""DeltaWriter: a Parquet file of a table, and what its log says of it.

Held by: tests/delta_tables/test_write_delta.py
"""

from __future__ import annotations

import msgspec
import pyarrow as pa

from engine.delta_tables.file_statistics import ValueNotes, file_statistics
from engine.delta_tables.table_types import stored_schema
from engine.errors import DataError
from engine.formats.merged_rows import MergedRows
from engine.parquet.writer import ParquetWriter
from engine.records.arrow_functions import pc


class WrittenFile(msgspec.Struct, frozen=True):
    """The report of a writer about its file, as JSON."""

    #: statistics of the log
    statistics: str
    #: rows of each action of a merge
    counts: dict[str, int] = {}


class DeltaWriter:
    """Writes one file."""

    def __init__(
        self, schema: pa.Schema, path: str, wanted_bytes: int, merges: bool, former: DeltaWriter | None = None
    ) -> None:
        self._merged = MergedRows(schema) if merges else None
        self._call = "write_delta" if self._merged is None else "merge_into"
        self._schema = stored_schema(schema if self._merged is None else self._merged.schema, self._call)
        self._notes = ValueNotes(self._schema)
        known = None if former is None else former._writer
        self._writer: ParquetWriter = ParquetWriter(self._schema, path, wanted_bytes=wanted_bytes, former=known)

    @property
    def is_full(self) -> bool:
        """Whether the footer is as long as it should be."""
        return self._writer.is_full

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows; those that a merge deletes are counted alone."""
        if self._merged is not None:
            batch = self._merged.left(batch)
        if not batch.schema.equals(self._schema):
            arrays = [_cast(batch.column(field.name), field, self._call) for field in self._schema]
            batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        self._notes.add(batch)
        self._writer.write(batch)

    def finish(self) -> tuple[int, int, str]:
        """Complete the file; return (rows, bytes, what is known of it)."""
        rows, size_bytes, _ = self._writer.finish()
        assert self._writer.footer is not None, "not finished"
        statistics = file_statistics(self._writer.footer, self._notes)
        counts = {} if self._merged is None else self._merged.counts
        return rows, size_bytes, msgspec.json.encode(WrittenFile(statistics, counts)).decode()

    def abort(self) -> None:
        """Close and remove the file; does nothing after ``finish``."""
        self._writer.abort()


def _cast(array: pa.Array, field: pa.Field, call: str) -> pa.Array:
    if array.type == field.type:
        return array
    try:
        return pc.cast(array, field.type)
    except pa.ArrowInvalid as error:
        raise DataError(
            f"{call}: column {field.name!r} is {array.type}, and {field.type} in the table, which has no room for some"
            f" of its values ({str(error).partition(chr(10))[0]})"
        ) from None
