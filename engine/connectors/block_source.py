"""The client's side of Arrow IPC, ORC and Avro: files, splits, schema, statistics.

    block_source("orc", path) -> (FormatSource, SourceStatistics, pa.Schema)

All files must have the same columns and types, in any order. Encoded types (dictionaries, views) are read as plain
ones. Splits are runs of blocks of a few megabytes; a file whose blocks cannot be found one by one is one split.

Held by: tests/connectors/test_block_files.py
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from engine.connectors.block_files import BlockFile, open_blocks
from engine.errors import DataError, SchemaError
from engine.files.paths import PathLike, expand_paths
from engine.graph.source_spec import FormatSource, SourceSplit, SourceStatistics
from engine.parquet.source import advice_of, united
from engine.records.plain_types import plain_batch, plain_schema
from engine.statistics.column_statistics import SampledPlaces, sample_statistics
from engine.storage.file_systems import size_of

_SPLIT_BYTES: Final = 4 << 20
#: a first block of more rows is not kept for statistics as a whole
_SAMPLE_ROWS: Final = 1 << 16


def block_source(
    file_format: str, path: PathLike | Iterable[PathLike], found_schemas: list[pa.Schema] | None = None
) -> tuple[FormatSource, SourceStatistics, pa.Schema]:
    """Return a source, what is known of its size, and its schema.

    found_schemas: takes the schema of each file, and lets columns be missing in some.

    Raises: PlanError (no such file, another format), SchemaError (files that differ), NotYetSupportedError (an extra
        that is not installed).
    """
    paths = expand_paths(path, f"read_{file_format}")
    schema: pa.Schema | None = None
    splits: list[SourceSplit] = []
    rows: int | None = 0
    sample: pa.RecordBatch | None = None
    for one in paths:
        file = open_blocks(file_format, one)
        try:
            found = _plain(file.schema)
            if schema is None:
                schema = found
            schema = _united_schema(schema, found, paths[0], one, is_strict=found_schemas is None)
            if found_schemas is not None:
                found_schemas.append(found)
            splits += _splits_of(one, file)
            rows = None if rows is None or file.row_count is None else rows + file.row_count
            if sample is None:
                sample = _first_rows(file, schema)
        finally:
            file.close()
    assert schema is not None
    spec = FormatSource(file_format, paths, tuple(splits), schema.serialize().to_pybytes(), tuple(schema.names))
    return spec, _statistics(file_format, paths, rows, sample), schema


def _plain(schema: pa.Schema) -> pa.Schema:
    return plain_schema(pa.schema([pa.field(field.name, field.type) for field in schema.remove_metadata()]))


def _united_schema(schema: pa.Schema, found: pa.Schema, first_path: str, path: str, *, is_strict: bool) -> pa.Schema:
    """Return the schema of both, or raise SchemaError naming the first column that differs."""
    if not schema.names or len(set(found.names)) < len(found.names):
        raise SchemaError(f"{path}: no columns, or one twice: {', '.join(found.names)}")
    names = set(schema.names) ^ set(found.names)
    if names and is_strict:
        raise SchemaError(
            f"{path}: columns differ from those of {first_path}: {', '.join(sorted(names))}; schema_mode='union' reads"
            " null where a file has no such column"
        )
    fields = []
    for field in schema:
        other = field.type if field.name in names else found.field(field.name).type
        both = united(field.type, other)
        if both is None or (is_strict and other != field.type):
            raise SchemaError(
                f"{path}: column {field.name!r} is {other}, in {first_path} it is {field.type};"
                f" {advice_of(field.type, other)}"
            )
        fields.append(field.with_type(both))
    return pa.schema([*fields, *(field for field in found if field.name not in schema.names)])


def _splits_of(path: str, file: BlockFile) -> list[SourceSplit]:
    size = size_of(path)
    if not file.block_count:
        return [SourceSplit(path, 0, 0, size)] if size else []
    count = min(file.block_count, max(1, -(-size // _SPLIT_BYTES)))
    bounds = [file.block_count * index // count for index in range(count + 1)]
    return [SourceSplit(path, bounds[index], bounds[index + 1], max(1, size // count)) for index in range(count)]


def _first_rows(file: BlockFile, schema: pa.Schema) -> pa.RecordBatch | None:
    try:
        first = next(iter(file.batches(0, min(1, file.block_count))), None)
    except (pa.ArrowException, OSError, ValueError, EOFError, DataError):
        return None  # the reader of the block says what is wrong with it
    if first is None or not first.num_rows:
        return None
    return plain_batch(first.slice(0, _SAMPLE_ROWS)).select(
        [name for name in schema.names if name in first.schema.names]
    )


def _statistics(
    file_format: str, paths: Iterable[str], rows: int | None, sample: pa.RecordBatch | None
) -> SourceStatistics:
    size = float(sum(map(size_of, paths)))
    if sample is None:
        known = None if rows is None else float(rows)
        return SourceStatistics(known, size, f"{file_format} files", is_exact=rows is not None)
    count = float(rows) if rows is not None else max(1.0, size * sample.num_rows / max(1, sample.nbytes))
    columns = sample_statistics([pa.Table.from_batches([sample])], count, SampledPlaces(1, sample.num_rows))
    size = count * sample.nbytes / sample.num_rows
    return SourceStatistics(count, size, f"{file_format} files, sample of {sample.num_rows} rows", columns=columns)
