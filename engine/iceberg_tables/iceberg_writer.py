"""IcebergWriter: a data file of a table; and IcebergRuns: rows in the order of their partitions.

    IcebergRuns(schema, hidden columns).of(batch) ──► ('["19723", "3", null]', rows without hidden columns), …

The text of a partition is a JSON list of its values, each as text or null, so that it tells the empty text from null;
days and times are numbers. One Python step for each partition of a batch, none for a row.

Held by: tests/iceberg_tables/test_write_iceberg.py
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa

from engine.connectors.partition_runs import PartitionRuns
from engine.errors import DataError
from engine.formats.merged_rows import MergedRows
from engine.graph.source_spec import SinkSpec
from engine.iceberg_tables.arrow_types import field_id
from engine.iceberg_tables.file_statistics import Collector, FileStatistics, encoded_statistics
from engine.iceberg_tables.write_options import options_of
from engine.parquet.writer import ParquetWriter
from engine.records.arrow_functions import pc


class IcebergRuns(PartitionRuns):
    """Divides batches by hidden columns, which have the values of partitions."""

    def of(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the partition and the rows of each run of equal values, in order."""
        columns = [batch.column(name) for name in self._keys]
        starts = self._starts([_comparable(column) for column in columns], batch.num_rows)
        places = pa.array(starts, pa.int64())
        texts = [_texts(column.take(places)) for column in columns]
        rest = batch.select(self._rest)
        for index, start in enumerate(starts):
            end = starts[index + 1] if index + 1 < len(starts) else batch.num_rows
            yield json.dumps([values[index] for values in texts]), rest.slice(start, end - start)


def _comparable(column: pa.Array) -> pa.Array:
    """Return values of which equal ones are equal: NaN is not, its bits are."""
    if pa.types.is_floating(column.type):
        return column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())
    return column


def _texts(column: pa.Array) -> list[str | None]:
    data_type = column.type
    if pa.types.is_binary(data_type) or pa.types.is_fixed_size_binary(data_type):
        return [None if value is None else value.hex() for value in column.to_pylist()]
    if pa.types.is_temporal(data_type):
        column = column.view(pa.int32() if data_type.bit_width == 32 else pa.int64())
    if pa.types.is_floating(data_type):
        return [None if value is None else repr(value) for value in column.to_pylist()]
    texts: list[str | None] = pc.cast(column, pa.string()).to_pylist()
    return texts


class IcebergWriter:
    """Writes one data file; its statistics are what a manifest says of it."""

    def __init__(self, spec: SinkSpec, schema: pa.Schema, path: Any, former: IcebergWriter | None = None) -> None:
        options = options_of(spec)
        is_merge = options.rewrite is not None and options.rewrite.merges
        self._merged = MergedRows(schema) if is_merge else None
        self._required = options.required
        self._uuids = options.uuids
        if former is None:
            self._schema: pa.Schema = pa.ipc.read_schema(pa.py_buffer(options.schema_ipc))
            self._collector: Collector = Collector(options)
            floats = [field for field in self._schema if pa.types.is_floating(field.type)]
            self._nans = {field.name: (field_id(field), 0) for field in floats}
        else:  # of ten thousand files each would take as long as writing its rows
            self._schema, self._collector = former._schema, former._collector
            self._nans = {name: (number, 0) for name, (number, _) in former._nans.items()}
        codec, wanted = spec.compression or "zstd", spec.target_file_bytes
        known = None if former is None else former._file
        self._file: ParquetWriter = ParquetWriter(
            self._schema, path, codec, spec.compression_level, wanted_bytes=wanted, former=known
        )

    @property
    def is_full(self) -> bool:
        """Whether what follows belongs into another file."""
        return self._file.is_full

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        if self._merged is not None:
            batch = self._merged.left(batch)
            if not batch.num_rows:
                return
        for name in self._required:
            if batch.column(name).null_count:
                raise DataError(
                    f"write_iceberg: column {name!r} is required, and a row has null there; fill it, or filter"
                )
        for name, (number, count) in self._nans.items():
            found = pc.sum(pc.is_nan(batch.column(name))).as_py() or 0
            self._nans[name] = (number, count + found)
        self._file.write(self._with_types(batch))

    def _with_types(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows with the ids of fields, and UUIDs as such."""
        columns: list[Any] = list(batch.columns)
        for name in self._uuids:
            place = batch.schema.get_field_index(name)
            columns[place] = pa.ExtensionArray.from_storage(pa.uuid(), columns[place])
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def finish(self) -> tuple[int, int, str]:
        """Complete the file; return (rows, bytes, statistics)."""
        row_count, size_bytes, _ = self._file.finish()
        footer, found = self._file.footer, FileStatistics()
        if row_count and footer is not None:
            nans = {number: count for number, count in self._nans.values() if number is not None}
            found = self._collector.statistics(footer, nans)
        if self._merged is not None:
            deleted = {path: places.serialize() for path, places in self._merged.deleted.items()}
            found = msgspec.structs.replace(found, counts=self._merged.counts, deleted=deleted)
        return row_count, size_bytes, encoded_statistics(found)

    def abort(self) -> None:
        """Close and remove the file; does nothing after ``finish``."""
        self._file.abort()
