"""The client's side of a Parquet source: row groups as splits, statistics from the footers.

    parquet_source(path, reader="read_parquet") -> (ParquetSource, SourceStatistics, pa.Schema)

All files must have the same columns with the same types, in any order. Row counts, minima, maxima and nulls come from
the footers and are exact; widths, distinct values and heavy keys come from a sample of rows. Encoded types
(dictionaries, views) are read as plain ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from engine.connectors.column_statistics import WIDE_COLUMN_BYTES, footer_bounds, sample_statistics
from engine.connectors.page_check import check_pages
from engine.connectors.parquet_residence import chunks_of, parts
from engine.connectors.paths import PathLike, expand_paths
from engine.errors import DataError, PlanError, SchemaError
from engine.graph.source_spec import ColumnStatistics, ParquetSource, SourceSplit, SourceStatistics
from engine.records.plain_types import plain_schema

#: rows of all sampled row groups together
_SAMPLE_ROWS = 8192
_SAMPLE_GROUPS = 8
#: bytes of sampled rows at which sampling ends
_SAMPLE_BYTES = 8 << 20
#: what columns take that are sampled at a time
_SAMPLED_AT_ONCE_BYTES = 16 << 20
_BUFFER_BYTES = 64 << 10


def plain_file_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema that rows of a file have in the engine: plain types, nullable, no metadata."""
    return plain_schema(pa.schema([pa.field(field.name, field.type) for field in schema.remove_metadata()]))


def stored_schema(schema: pa.Schema, writer: str) -> pa.Schema:
    """Return the schema that rows have when they come back from Parquet; SchemaError for a type that it has not.

    It is another one only for date64, which comes back as date32, and time32[s], which comes back as time32[ms].
    """
    sink = pa.BufferOutputStream()
    try:
        pq.write_table(schema.empty_table(), sink)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
        reason = str(error).partition("\n")[0]
        raise SchemaError(f"{writer}: {reason}") from error
    return plain_file_schema(pq.read_schema(pa.BufferReader(sink.getvalue())))


def open_parquet(path: str, reader: str, metadata: pq.FileMetaData | None = None) -> pq.ParquetFile:
    """Open a Parquet file, without reading a footer that is known.

    Raises: PlanError when it is none or its footer is damaged.
    """
    try:
        # Left to itself pyarrow reads the columns of a row group whole, for a few rows of a sample.
        return pq.ParquetFile(
            path,
            metadata=metadata,
            memory_map=False,
            pre_buffer=False,
            buffer_size=_BUFFER_BYTES,
            page_checksum_verification=True,
        )
    except (pa.ArrowInvalid, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            # The system's error, not Arrow's about what is in the file.
            raise PlanError(f"{reader}: {path} cannot be read: {error.strerror or error}") from error
        reason = str(error).partition("\n")[0]
        raise PlanError(f"{reader}: {path} is not a Parquet file ({reason})") from error


def parquet_source(
    path: PathLike | Iterable[PathLike], reader: str = "read_parquet"
) -> tuple[ParquetSource, SourceStatistics, pa.Schema]:
    """Return a Parquet source, its statistics and its schema.

    Raises: PlanError (no such file, no Parquet), SchemaError (files that differ), DataError (damaged).
    """
    paths = expand_paths(path, reader)
    schema: pa.Schema | None = None
    splits: list[SourceSplit] = []
    metadata: list[pq.FileMetaData] = []
    for file_path in paths:
        with open_parquet(file_path, reader) as file:
            file_schema = plain_file_schema(file.schema_arrow)
            schema = file_schema if schema is None else _same_schema(schema, file_schema, paths[0], file_path)
            metadata.append(file.metadata)
            splits += _splits_of(file_path, file.metadata)
    assert schema is not None
    spec = ParquetSource(paths=paths, splits=tuple(splits), columns=tuple(schema.names))
    return spec, _statistics(paths, metadata, schema, reader), schema


def _splits_of(path: str, metadata: pq.FileMetaData) -> list[SourceSplit]:
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    return [
        SourceSplit(path, index, index + 1, max(1, group.total_byte_size), group.num_rows)
        for index, group in enumerate(groups)
        if group.num_rows
    ]


def _same_schema(expected: pa.Schema, found: pa.Schema, first_path: str, path: str) -> pa.Schema:
    """Return the expected schema, or raise SchemaError naming the first column that differs."""
    names = set(expected.names) ^ set(found.names)
    if names:
        raise SchemaError(f"{path}: columns differ from those of {first_path}: {', '.join(sorted(names))}")
    for field in expected:
        other = found.field(field.name).type
        if other != field.type:
            raise SchemaError(f"{path}: column {field.name!r} is {other}, in {first_path} it is {field.type}")
    return expected


def _statistics(
    paths: Sequence[str], metadata: Sequence[pq.FileMetaData], schema: pa.Schema, reader: str
) -> SourceStatistics:
    row_count = sum(one.num_rows for one in metadata)
    widths = {name: width for name, width in _widths(metadata).items() if name in schema.names}
    wide = {name: width for name, width in widths.items() if width > WIDE_COLUMN_BYTES}
    tables = _sample(paths, metadata, [name for name in schema.names if name not in wide], reader)
    sampled = sample_statistics(tables, row_count)
    sampled |= {name: ColumnStatistics(average_width_bytes=width) for name, width in wide.items()}
    leaves = [_leaf_columns(one) for one in metadata]
    columns = {
        field.name: _with_footer(sampled.get(field.name, ColumnStatistics()), metadata, leaves, field.name, row_count)
        for field in schema
    }
    rows = sum(table.num_rows for table in tables)
    # What rows take in memory, which is what operators hold: encodings of a file make them up to ten times smaller.
    narrow_bytes = sum(table.nbytes for table in tables) / rows if rows else 0.0
    size_bytes = row_count * (narrow_bytes + sum(wide.values()))
    origin = f"parquet metadata, sample of {rows} rows"
    return SourceStatistics(float(row_count), float(size_bytes), origin, is_exact=True, columns=columns)


def _widths(metadata: Sequence[pq.FileMetaData]) -> dict[str, float]:
    """Return the average width of each top-level column as the files have it, before compression."""
    sizes: dict[str, int] = {}
    for one in metadata:
        for group in map(one.row_group, range(one.num_row_groups)):
            for chunk in map(group.column, range(group.num_columns)):
                name = chunk.path_in_schema.partition(".")[0]
                sizes[name] = sizes.get(name, 0) + chunk.total_uncompressed_size
    rows = max(1, sum(one.num_rows for one in metadata))
    return {name: size / rows for name, size in sizes.items()}


def _sample(
    paths: Sequence[str], metadata: Sequence[pq.FileMetaData], columns: list[str], reader: str
) -> list[pa.Table]:
    """Return some rows from the begin of a few row groups, spread over all."""
    groups = [
        (path, one, index) for path, one in zip(paths, metadata, strict=True) for index in range(one.num_row_groups)
    ]
    step = max(1, len(groups) // _SAMPLE_GROUPS)
    sampled = groups[::step][:_SAMPLE_GROUPS]
    tables: list[pa.Table] = []
    for path, one, index in sampled:
        with open_parquet(path, reader, one) as file:
            schema = plain_file_schema(file.schema_arrow)
            rows = _SAMPLE_ROWS // len(sampled)
            try:
                check_pages(path, one, index, columns)
                batch = _first_rows(file, index, rows, columns)
            except (pa.ArrowInvalid, OSError) as error:
                reason = str(error).partition("\n")[0]
                raise DataError(f"{reader}: file {path}, row group {index}: {reason}") from error
            if batch.num_rows:
                plain = pa.schema([schema.field(name) for name in columns])
                selected = batch.select(columns)
                tables.append(selected if selected.schema.equals(plain) else selected.cast(plain))
        if sum(table.nbytes for table in tables) >= _SAMPLE_BYTES:
            break
    return tables


def _first_rows(file: pq.ParquetFile, group: int, rows: int, columns: list[str]) -> pa.Table:
    """Return the first rows of a row group, read some columns at a time: each holds a page and its dictionary."""
    sizes = dict.fromkeys(columns, 0)
    for name, chunk in chunks_of(file.metadata, group, columns):
        sizes[name] += chunk.total_uncompressed_size
    divided = parts(columns, sizes, _SAMPLED_AT_ONCE_BYTES) or [[]]
    tables = []
    for part in divided:
        batches = file.iter_batches(rows, row_groups=[group], columns=part, use_threads=False)
        first = next(iter(batches), None)
        if first is None:
            return pa.table({})
        tables.append(pa.Table.from_batches([first]))
    if len(tables) == 1:
        return tables[0]
    arrays = [column for table in tables for column in table.columns]
    return pa.table(arrays, pa.schema([field for table in tables for field in table.schema]))


def _with_footer(
    sampled: ColumnStatistics,
    metadata: Sequence[pq.FileMetaData],
    leaves: Sequence[dict[str, int]],
    name: str,
    row_count: int,
) -> ColumnStatistics:
    """Return sampled statistics with what the footers know exactly of a top-level column."""
    minima: list[Any] = []
    maxima: list[Any] = []
    nulls = 0
    for one, columns in zip(metadata, leaves, strict=True):
        for group_index in range(one.num_row_groups):
            chunk = one.row_group(group_index).column(columns[name]) if name in columns else None
            known = chunk.statistics if chunk is not None and chunk.is_stats_set else None
            if known is None or not known.has_null_count:
                return sampled
            nulls += known.null_count
            bounds = footer_bounds(known) if known.has_min_max else None
            if bounds is not None:
                minima.append(bounds[0])
                maxima.append(bounds[1])
            elif known.num_values:
                return sampled
    result = msgspec.structs.replace(sampled, null_fraction=nulls / row_count if row_count else 0.0)
    if minima and all(isinstance(value, bool | int | float | str) for value in (*minima, *maxima)):
        result = msgspec.structs.replace(result, minimum=min(minima), maximum=max(maxima))
    return result


def _leaf_columns(metadata: pq.FileMetaData) -> dict[str, int]:
    """Return the index of each leaf column, in every row group of a file, by its path."""
    if metadata.num_row_groups == 0:
        return {}
    group = metadata.row_group(0)
    return {group.column(index).path_in_schema: index for index in range(group.num_columns)}
