"""The client's side of a Parquet source: row groups as splits, statistics from the footers.

    parquet_source(path, reader="read_parquet") -> (ParquetSource, SourceStatistics, pa.Schema)

All files must have the same columns, in any order. Where their types differ in width only, the wider holds for all:
integers, floats, string and large_string, binary and large_binary, nulls and anything (``widened``). In a union of
columns numbers of any kinds are the type that holds both (``united``), and one that it does not hold is an error.

Row counts, minima, maxima and nulls come from the footers and are exact. Widths, distinct values and heavy keys come
from a sample of rows, when it is known which columns a plan reads (``sample``). Encoded types (dictionaries,
views) are read as plain ones.

What is damaged is found when it is read, except for what would be allocated first: footers, and headers of the pages
that are sampled.

Held by: tests/integration/test_text_and_records.py
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from engine.errors import DataError, PlanError, SchemaError
from engine.expressions.common_type import common_type, is_number
from engine.expressions.schema_bridge import to_plan_schema
from engine.files.paths import PathLike, expand_paths
from engine.files.stored_files import stored_file
from engine.graph.source_spec import ColumnStatistics, ParquetSource, SourceSplit, SourceStatistics, StoredFile
from engine.parquet.footers import arrow_schema, open_file, opened_ranges
from engine.parquet.pages import flat_leaves, pages_of
from engine.parquet.sample import sampled_groups
from engine.records.plain_types import plain_schema
from engine.statistics.column_statistics import footer_bounds, plain_bound
from engine.storage.file_systems import file_system_of
from engine.storage.known_objects import in_parallel

_BUFFER_BYTES = 64 << 10
#: files of a store that are looked at at the same time
FILES_AT_ONCE = 16
#: errors of Arrow for types that it does not write; OSError where Parquet refuses their size
_REFUSALS = (pa.ArrowNotImplementedError, pa.ArrowInvalid, OSError)


def plain_file_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema that rows of a file have in the engine: plain types, nullable, no metadata."""
    return plain_schema(pa.schema([pa.field(field.name, field.type) for field in schema.remove_metadata()]))


def stored_schema(schema: pa.Schema, writer: str) -> pa.Schema:
    """Return the schema that rows have when they come back from Parquet; SchemaError names a column that it has not.

    It is another one for date64, which comes back as date32, and for seconds: time32[s] and timestamp[s] come back in
    milliseconds, which have no room for moments beyond some 292 million years.
    """
    for field in schema:
        _check_lists(field, field.type, writer)
    try:
        stored = _written(schema)
    except _REFUSALS:
        for field in schema:
            _check_stored(field, writer)
        raise
    return plain_file_schema(pq.read_schema(pa.BufferReader(stored)))


def _written(schema: pa.Schema) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    pq.ParquetWriter(sink, schema).close()
    return sink.getvalue()


def _check_lists(field: pa.Field, data_type: pa.DataType, writer: str) -> None:
    """Raise SchemaError for a fixed-size list of no values: Arrow writes some wrong, and ends the process at others."""
    if pa.types.is_fixed_size_list(data_type) and data_type.list_size == 0:
        raise SchemaError(
            f"{writer}: column {field.name!r} is {field.type}, and Parquet has no lists of a fixed size of 0; drop it,"
            f" or make it {pa.list_(data_type.value_type)}"
        )
    if pa.types.is_nested(data_type):
        for index in range(data_type.num_fields):
            _check_lists(field, data_type.field(index).type, writer)


def _check_stored(field: pa.Field, writer: str) -> None:
    try:
        _written(pa.schema([field]))
    except _REFUSALS as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise SchemaError(
            f"{writer}: column {field.name!r} is {field.type}, which Parquet cannot store ({reason}); drop or cast it"
        ) from None


def open_parquet(path: str, reader: str, metadata: pq.FileMetaData | None = None) -> pq.ParquetFile:
    """Open a Parquet file, without reading a footer that is known.

    Raises: PlanError when it is none or its footer is damaged.
    """
    with _refused(path, reader):
        return open_file(path, _BUFFER_BYTES, metadata)


def _looked_at(path: str, reader: str) -> tuple[pq.ParquetFile, StoredFile | None]:
    """Open a file as ``open_parquet`` does; return what it is in a store, too."""
    if file_system_of(path).objects is None:
        return open_parquet(path, reader), None
    with _refused(path, reader), opened_ranges(path) as opened:
        return open_file(path, _BUFFER_BYTES, opened=opened), stored_file(opened)


@contextmanager
def _refused(path: str, reader: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            # The system's error, not Arrow's about what is in the file.
            raise PlanError(f"{reader}: {path} cannot be read: {error.strerror or error}") from None
        reason = str(error).partition("\n")[0]
        raise PlanError(f"{reader}: {path} is not a Parquet file ({reason})") from None


def parquet_source(
    path: PathLike | Iterable[PathLike], reader: str = "read_parquet", found_schemas: list[pa.Schema] | None = None
) -> tuple[ParquetSource, SourceStatistics, pa.Schema]:
    """Return a Parquet source, its statistics and its schema.

    found_schemas: takes the schema of each file, and lets columns be missing in some.

    Raises: PlanError (no such file, no Parquet), SchemaError (files that differ), DataError (damaged).
    """
    return source_of_files(expand_paths(path, reader), reader, found_schemas)[0]


def source_of_files(
    paths: Sequence[str], reader: str, found_schemas: list[pa.Schema] | None = None
) -> tuple[tuple[ParquetSource, SourceStatistics, pa.Schema], list[pq.FileMetaData]]:
    """Return sources as ``parquet_source`` does, for files that each differ, with their footers."""
    schema: pa.Schema | None = None
    found: list[pa.Schema] = [] if found_schemas is None else found_schemas
    splits: list[SourceSplit] = []
    metadata: dict[str, pq.FileMetaData] = {}
    known: tuple[pq.ParquetSchema, dict[bytes, bytes] | None] | None = None
    stored: list[StoredFile] = []
    look = partial(_looked_at, reader=reader)
    is_asked = file_system_of(paths[0]).objects is not None
    for file_path, (opened, known_as) in zip(
        paths, in_parallel(look, paths, FILES_AT_ONCE) if is_asked else map(look, paths), strict=True
    ):
        stored += [] if known_as is None else [known_as]
        with opened as file:
            metadata[file_path] = footer = file.metadata
            splits += _splits_of(file_path, footer)
            # Most of very many files are as the one before.
            if known is not None and file.schema.equals(known[0]) and footer.metadata == known[1]:
                found.append(found[-1])
                continue
            known = (file.schema, footer.metadata)
            file_schema = plain_file_schema(file.schema_arrow)
        _check_names(file_schema.names, file_path, reader)
        found.append(file_schema)
        schema = (
            file_schema
            if schema is None
            else _widened_schema(schema, file_schema, paths[0], file_path, is_strict=found_schemas is None)
        )
    assert schema is not None
    is_mixed = any(field.type != schema.field(field.name).type for one in set(found) for field in one)
    types_ipc = schema.serialize().to_pybytes() if is_mixed else b""
    spec = ParquetSource(paths=tuple(paths), splits=tuple(splits), columns=tuple(schema.names), types_ipc=types_ipc)
    spec = msgspec.structs.replace(spec, stored=tuple(stored)) if stored else spec
    _check_sampled(spec.splits, metadata, reader)
    footers = list(metadata.values())
    return (spec, _statistics(footers, schema), schema), footers


def _check_names(names: list[str], path: str, reader: str) -> None:
    twice = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
    if twice is not None:
        raise SchemaError(
            f"{reader}: {path} has two columns {twice!r}, which no name tells apart; write it with others"
        )


def _splits_of(path: str, metadata: pq.FileMetaData) -> list[SourceSplit]:
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    return [
        SourceSplit(path, index, index + 1, max(1, group.total_byte_size), group.num_rows)
        for index, group in enumerate(groups)
        if group.num_rows
    ]


def _widened_schema(expected: pa.Schema, found: pa.Schema, first_path: str, path: str, *, is_strict: bool) -> pa.Schema:
    """Return the expected schema with types that hold both, or raise SchemaError naming the first that differs."""
    names = set(expected.names) ^ set(found.names)
    if names and is_strict:
        raise SchemaError(
            f"{path}: columns differ from those of {first_path}: {', '.join(sorted(names))}; schema_mode='union' reads"
            " null where a file has no such column"
        )
    fields = []
    for field in expected:
        if field.name in names:
            fields.append(field)
            continue
        other = found.field(field.name).type
        wider = widened(field.type, other) if is_strict else united(field.type, other)
        if wider is None:
            raise SchemaError(
                f"{path}: column {field.name!r} is {other}, in {first_path} it is {field.type};"
                f" {advice_of(field.type, other)}"
            )
        fields.append(field.with_type(wider))
    return pa.schema([*fields, *(field for field in found if field.name in names)])


def widened(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the type that values of both kinds of files keep their meaning in; None when there is none."""
    if one == other:
        return one
    kinds = (pa.types.is_integer, pa.types.is_floating, _is_text, _is_bytes, pa.types.is_null)
    alike = any(is_kind(one) and is_kind(other) for is_kind in kinds)
    if not alike and not pa.types.is_null(one) and not pa.types.is_null(other):
        return None
    wider = common_type(one, other)
    return wider if wider is not None and not (pa.types.is_integer(one) and pa.types.is_decimal(wider)) else None


def united(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the type of a column that files have as either in a union: numbers of any two kinds have one, too."""
    return common_type(one, other) if is_number(one) and is_number(other) else widened(one, other)


def advice_of(one: pa.DataType, other: pa.DataType) -> str:
    """Return the advice about files that have a column with two types."""
    if united(one, other) is not None:
        return f"schema_mode='union' reads both as {united(one, other)}"
    return "read the files as two data sets, cast one and unite them"


def _is_text(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_string(data_type) or pa.types.is_large_string(data_type))


def _is_bytes(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type))


def _statistics(metadata: Sequence[pq.FileMetaData], schema: pa.Schema) -> SourceStatistics:
    """Return the statistics in the footers."""
    row_count = sum(one.num_rows for one in metadata)
    widths = _widths(metadata)
    leaves = [flat_leaves(one.schema) for one in metadata]
    columns: dict[str, ColumnStatistics] = {}
    row_bytes = 0.0
    for column in to_plan_schema(schema).columns:
        width = float(column.width_bytes) if column.width_is_exact else widths.get(column.name, 0.0)
        row_bytes += width
        known = ColumnStatistics(average_width_bytes=None if column.width_is_exact else width)
        columns[column.name] = _with_footer(known, metadata, leaves, column.name, row_count)
    return SourceStatistics(float(row_count), row_count * row_bytes, "parquet metadata", is_exact=True, columns=columns)


def _check_sampled(splits: Sequence[SourceSplit], metadata: Mapping[str, pq.FileMetaData], reader: str) -> None:
    """Raise DataError where a page of the row groups that plans are made from cannot be what it says."""
    for group in sampled_groups(splits):
        if file_system_of(group.path).native_path(group.path) is None:
            continue  # it would be fetched; its reader looks at its pages
        footer = metadata[group.path]
        try:
            pages_of(group.path, footer, group.start, arrow_schema(footer).names)
        except (pa.ArrowInvalid, OSError) as error:
            reason = str(error).partition("\n")[0]
            raise DataError(f"{reader}: file {group.path}, row group {group.start}: {reason}") from None


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


def _with_footer(
    column: ColumnStatistics,
    metadata: Sequence[pq.FileMetaData],
    leaves: Sequence[dict[str, int]],
    name: str,
    row_count: int,
) -> ColumnStatistics:
    """Return statistics with what the footers know exactly of a top-level column."""
    minima: list[Any] = []
    maxima: list[Any] = []
    nulls = 0
    # Bounds of other types are of no use, and cost a Python object each.
    is_simple = True
    for one, columns in zip(metadata, leaves, strict=True):
        for group_index in range(one.num_row_groups):
            chunk = one.row_group(group_index).column(columns[name]) if name in columns else None
            known = chunk.statistics if chunk is not None and chunk.is_stats_set else None
            if known is None or not known.has_null_count:
                return column
            nulls += known.null_count
            bounds = footer_bounds(known) if is_simple and known.has_min_max else None
            if bounds is not None:
                low, high = map(plain_bound, bounds)
                is_simple = low is not None and high is not None
                minima.append(low)
                maxima.append(high)
            elif is_simple and known.num_values:
                return column
    result = msgspec.structs.replace(column, null_fraction=nulls / row_count if row_count else 0.0)
    if minima and is_simple:
        result = msgspec.structs.replace(result, minimum=min(minima), maximum=max(maxima))
    return result
