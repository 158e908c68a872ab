"""RecordsWriter: a part of a record data set, with all that the manifest will say of it.

batch ─► ParquetWriter                                bytes; its footer: bounds and nulls
    ├──► DistinctSketches                             different values, native
    └──► SpreadSample                                 heavy keys, from at most 16 Ki rows

finish() ─► (rows, bytes, PartStatistics as JSON)     the manifest is made of all parts' (``records_parts``)

``written_parts`` says the same of parts that another program has written: it reads their footers, and each value of the
columns that can be keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from engine.connectors.records_manifest import file_crc32, footer_crc32, plain_value
from engine.connectors.records_parts import PART_SHARE_MIN, PartColumn, PartStatistics, WrittenPart, joined_columns
from engine.files.native_files import path_or_stream
from engine.parquet.footers import open_file
from engine.parquet.pages import flat_leaves
from engine.parquet.writer import ParquetWriter
from engine.records.key_types import is_key_type
from engine.records.plain_types import plain_batch
from engine.statistics.column_statistics import SpreadSample, footer_bounds, heavy_keys_of
from engine.statistics.distinct_sketch import DistinctSketches
from engine.storage.file_systems import size_of

#: rows that are read at once, and bytes that are read ahead of each column
_READ_ROWS = 64 << 10
_READ_BYTES = 1 << 20


class RecordsWriter:
    """Writes one part of a record data set."""

    def __init__(self, schema: pa.Schema, path: str) -> None:
        self._schema = schema
        self._path = path
        self._keys = _KeyStatistics(schema)
        self._writer = ParquetWriter(schema, path, has_checksums=True)

    @property
    def is_full(self) -> bool:
        """Whether the Parquet file is."""
        return self._writer.is_full

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        self._keys.add(batch)
        self._writer.write(batch)

    def finish(self) -> tuple[int, int, str]:
        """Complete the file; return (rows, bytes, statistics as JSON)."""
        row_count, size_bytes, _ = self._writer.finish()
        statistics = PartStatistics(file_crc32(self._path), footer_crc32(self._path), row_count, self._columns())
        return row_count, size_bytes, msgspec.json.encode(statistics).decode()

    def _columns(self) -> dict[str, PartColumn]:
        return self._keys.with_bounds(_footer_columns(pq.read_metadata(path_or_stream(self._path)), self._schema))

    def abort(self) -> None:
        """Close and remove the file, unless it is finished."""
        self._writer.abort()


class _KeyStatistics:
    """The statistics of a stream's columns that can be keys: distinct values, and heavy ones."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.names: list[str] = schema.names
        self._sample = SpreadSample()
        self._sketches = DistinctSketches(schema)

    def add(self, batch: pa.RecordBatch) -> None:
        """Take rows."""
        if batch.num_rows:
            self._sketches.add(batch)
            self._sample.add(batch)

    def with_bounds(self, bounds: dict[str, PartColumn]) -> dict[str, PartColumn]:
        """Return the columns' statistics with bounds and nulls that are known."""
        sample = self._sample.table(self.schema)
        columns = dict(bounds)
        for field in self.schema:
            is_key = is_key_type(field.type)
            heavy = heavy_keys_of(sample.column(field.name), PART_SHARE_MIN) if is_key and sample.num_rows else ()
            registers = self._sketches.registers(field.name) if field.name in self._sketches.names else b""
            columns[field.name] = msgspec.structs.replace(bounds[field.name], registers=registers, heavy_keys=heavy)
        return columns


def written_parts(paths: Sequence[Path], schema: pa.Schema) -> list[WrittenPart]:
    """Return the parts of complete Parquet files; ``schema``: that of their rows.

    The last one tells of the columns of all. Raises what Arrow does of a damaged file.
    """
    keys = _KeyStatistics(pa.schema([field for field in schema if is_key_type(field.type)]))
    parts: list[WrittenPart] = []
    bounds: list[tuple[int, dict[str, PartColumn]]] = []
    for path in paths:
        statistics = PartStatistics(file_crc32(path), footer_crc32(path))
        with open_file(str(path), _READ_BYTES) as file:
            footer = file.metadata
            if keys.names:
                for batch in file.iter_batches(_READ_ROWS, columns=keys.names):
                    plain = plain_batch(batch)
                    arrays = [plain.column(name) for name in keys.names]
                    keys.add(pa.RecordBatch.from_arrays(arrays, schema=keys.schema))
        bounds.append((footer.num_rows, _footer_columns(footer, schema)))
        if path is paths[-1]:
            rows = sum(row_count for row_count, _ in bounds)
            columns = keys.with_bounds(joined_columns(bounds, schema.names))
            statistics = msgspec.structs.replace(statistics, row_count=rows, columns=columns)
        text = msgspec.json.encode(statistics).decode()
        parts.append(WrittenPart(path.name, footer.num_rows, size_of(str(path)), text))
    return parts


def _footer_columns(metadata: pq.FileMetaData, schema: pa.Schema) -> dict[str, PartColumn]:
    """Return bounds and nulls of all columns as a footer has them."""
    places = flat_leaves(metadata.schema)
    return {field.name: _bounds(metadata, field, places.get(field.name)) for field in schema}


def _bounds(metadata: pq.FileMetaData, field: pa.Field, place: int | None) -> PartColumn:
    """Return bounds and nulls of a column as the footer has them; ``place`` of its values, None for a nested one."""
    minima, maxima = [], []
    nulls = 0
    for group_index in range(metadata.num_row_groups):
        chunk = None if place is None else metadata.row_group(group_index).column(place)
        known = chunk.statistics if chunk is not None and chunk.is_stats_set else None
        if known is None or not known.has_null_count:
            return PartColumn(has_bounds=False)
        nulls += known.null_count
        bounds = footer_bounds(known) if known.has_min_max else None
        if bounds is not None:
            minima.append(bounds[0])
            maxima.append(bounds[1])
        elif known.num_values:
            return PartColumn(has_bounds=False, null_count=None if pa.types.is_nested(field.type) else nulls)
    if not minima:
        return PartColumn(null_count=nulls)
    low, high = plain_value(min(minima)), plain_value(max(maxima))
    has_bounds = low is not None and high is not None
    is_decimal = pa.types.is_decimal(field.type)
    return PartColumn(low if has_bounds else None, high if has_bounds else None, has_bounds, is_decimal, nulls)
