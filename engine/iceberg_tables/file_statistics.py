"""Statistics of a data file for its manifest, from the task that wrote it: in ``StagedFile.statistics_json``.

    collector = Collector(options)                   of a sink, once
    collector.statistics(footer, nans)               FileStatistics
    encoded_statistics(found) -> JSON                decoded_statistics(file): again
    NewFiles(folder, files, ...)                     as manifests have them, each with the values of its partition
    patched_data_file(path, file, former)            in the place of another one

Sizes, counts and bounds come from the footer; NaN, of which a footer says nothing, is counted while rows are written.
The table's properties (write.metadata.metrics.*) say which columns have bounds, and where these are cut short.

Held by: tests/iceberg_tables/test_write_iceberg.py
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec
import pyarrow.parquet as pq

from engine.commit.decision import DecidedFile
from engine.iceberg_tables.table_properties import METRICS, measured_columns
from engine.iceberg_tables.write_options import WriteOptions
from engine.statistics.column_statistics import footer_bounds

#: types of Iceberg whose values are the same numbers in Parquet files and in manifests
_NUMBERS: Final = {
    "int": ("INT32", struct.Struct("<i")),
    "date": ("INT32", struct.Struct("<i")),
    "long": ("INT64", struct.Struct("<q")),
    "timestamp": ("INT64", struct.Struct("<q")),
    "timestamptz": ("INT64", struct.Struct("<q")),
    "float": ("FLOAT", struct.Struct("<f")),
    "double": ("DOUBLE", struct.Struct("<d")),
}

#: statistics that are told to the commit alone
_TOLD_ALONE: Final = frozenset({"counts", "deleted", "replaces", "is_ambiguous", "nan_changes"})


class FileStatistics(msgspec.Struct, frozen=True, omit_defaults=True):
    """Statistics by the ids of fields; bounds are bytes as Iceberg has them."""

    split_offsets: list[int] = []
    column_sizes: dict[int, int] = {}
    value_counts: dict[int, int] = {}
    null_value_counts: dict[int, int] = {}
    nan_value_counts: dict[int, int] = {}
    lower_bounds: dict[int, bytes] = {}
    upper_bounds: dict[int, bytes] = {}
    #: numbers of a merge's rows, and the places of rows that go, by their files, as Roaring bitmaps
    counts: dict[str, int] = {}
    deleted: dict[str, bytes] = {}
    #: file in whose place it is, as manifests name it, "": none
    replaces: str = ""
    #: flag of a row of that file for which there were two changes
    is_ambiguous: bool = False
    #: NaN that there are more than in that file, or less
    nan_changes: dict[int, int] = {}


class _Column(NamedTuple):
    """A leaf column of files, and what is told of it."""

    number: int
    #: pyiceberg's mode of its statistics: counts alone, or bounds that may be cut short
    mode: Any
    iceberg_type: Any
    #: physical type and form of values that are numbers in files and in manifests; None: others
    number_form: tuple[str, struct.Struct] | None


def _told(plan: dict[int, Any], properties: Mapping[str, str]) -> dict[int, Any]:
    """Return the columns of which statistics are told: the first ones, and those that the properties name.

    A file's statistics would be longer than its rows where a table has thousands of columns.
    """
    if f"{METRICS}default" in properties:
        return plan
    count = measured_columns(properties, "write_iceberg")
    named = {name for name, one in plan.items() if f"{METRICS}column.{one.column_name}" in properties}
    return {number: one for place, (number, one) in enumerate(plan.items()) if place < count or number in named}


class Collector:
    """Makes statistics of files of one schema."""

    def __init__(self, options: WriteOptions) -> None:
        from pyiceberg.io.pyarrow import compute_statistics_plan, parquet_path_to_id_mapping
        from pyiceberg.schema import Schema

        schema = Schema.model_validate_json(options.schema_json)
        plan = _told(compute_statistics_plan(schema, options.properties), options.properties)
        self._columns = {
            path: _Column(
                number, plan[number].mode, plan[number].iceberg_type, _NUMBERS.get(str(plan[number].iceberg_type))
            )
            for path, number in parquet_path_to_id_mapping(schema).items()
            if number in plan
        }

    def statistics(self, footer: pq.FileMetaData, nans: Mapping[int, int]) -> FileStatistics:
        """Return a file's statistics."""
        from pyiceberg.io.pyarrow import MetricModeTypes

        groups = [footer.row_group(index) for index in range(footer.num_row_groups)]
        found = FileStatistics(split_offsets=[_begin(group) for group in groups])
        for place in range(footer.num_columns):
            chunks = [group.column(place) for group in groups]
            column = self._columns.get(chunks[0].path_in_schema) if chunks else None
            if column is None:
                continue
            number = column.number
            found.column_sizes[number] = sum(chunk.total_compressed_size for chunk in chunks)
            if column.mode.type == MetricModeTypes.NONE:
                continue
            found.value_counts[number] = sum(chunk.num_values for chunk in chunks)
            if number in nans:
                found.nan_value_counts[number] = nans[number]
            known = [chunk.statistics for chunk in chunks]
            if any(each is None or not each.has_null_count for each in known):
                continue
            found.null_value_counts[number] = sum(each.null_count for each in known)
            bounded = [each for each in known if each.num_values]
            if column.mode.type != MetricModeTypes.COUNTS and bounded and all(each.has_min_max for each in bounded):
                _add_bounds(found, column, chunks[0].physical_type, bounded)
        return found


def encoded_statistics(found: FileStatistics) -> str:
    """Return statistics as JSON."""
    return msgspec.json.encode(found).decode()


def decoded_statistics(file: DecidedFile) -> FileStatistics:
    """Return the statistics that the writer of a file has told."""
    return msgspec.json.decode(file.statistics, type=FileStatistics) if file.statistics else FileStatistics()


def _add_bounds(found: FileStatistics, column: _Column, physical_type: str, known: Sequence[pq.Statistics]) -> None:
    """Add the lowest and highest value of a column, where Python has them."""
    if column.number_form is not None and column.number_form[0] == physical_type:
        form = column.number_form[1]
        found.lower_bounds[column.number] = form.pack(min(each.min_raw for each in known))
        found.upper_bounds[column.number] = form.pack(max(each.max_raw for each in known))
        return
    from pyiceberg.io.pyarrow import StatsAggregator

    aggregate = StatsAggregator(column.iceberg_type, physical_type, column.mode.length)
    for each in known:
        bounds = footer_bounds(each)
        if bounds is None:
            return
        aggregate.update_min(bounds[0])
        aggregate.update_max(bounds[1])
    low, high = aggregate.min_as_bytes(), aggregate.max_as_bytes()
    if low is not None:
        found.lower_bounds[column.number] = low
    if high is not None:
        found.upper_bounds[column.number] = high


def _begin(group: pq.RowGroupMetaData) -> int:
    """Return the byte at which a row group begins."""
    chunk = group.column(0)
    return int(chunk.dictionary_page_offset or chunk.data_page_offset)


class NewFiles:
    """The data files of a job as manifests have them, made each time they are looked at."""

    def __init__(
        self, folder: str, files: Sequence[DecidedFile], sort_order_id: int | None, spec: Any, schema: Any
    ) -> None:
        self._folder, self._files = folder, files
        self._order, self._spec_id = sort_order_id, spec.spec_id
        self._types = [field.field_type for field in spec.partition_type(schema).fields]

    def __iter__(self) -> Iterator[Any]:
        """Yield the files."""
        from pyiceberg.typedef import Record

        for file in self._files:
            if file.row_count and not (told := decoded_statistics(file)).replaces:
                values = json.loads(file.folder) if file.folder else []
                kinds = zip(values, self._types, strict=True)
                partition = Record(*[_partition_value(value, kind) for value, kind in kinds])
                yield _data_file(f"{self._folder}/{file.name}", file, self._order, self._spec_id, partition, told)


def patched_data_file(path: str, file: DecidedFile, former: Any, *, keeps_order: bool) -> Any:
    """Return a file in the place of another one as manifests have it: of its partition, and of its sort order."""
    told = decoded_statistics(file)
    known = dict(former.nan_value_counts or {})
    nans = {number: known[number] + more for number, more in told.nan_changes.items() if number in known}
    told = msgspec.structs.replace(told, nan_value_counts={**told.nan_value_counts, **nans})
    order = former.sort_order_id if keeps_order else None
    return _data_file(path, file, order, former.spec_id, former.partition, told)


def _data_file(
    path: str, file: DecidedFile, sort_order_id: int | None, spec_id: int, partition: Any, found: FileStatistics
) -> Any:
    from pyiceberg.manifest import DataFileContent, FileFormat

    from engine.iceberg_tables.manifests import data_file_of

    told = msgspec.structs.asdict(found)
    return data_file_of(
        spec_id,
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=partition,
        record_count=file.row_count,
        file_size_in_bytes=file.size_bytes,
        sort_order_id=sort_order_id,
        **{name: value for name, value in told.items() if name not in _TOLD_ALONE},
    )


def _partition_value(text: str | None, kind: Any) -> Any:
    """Return the value of a text as manifests have it: days and times as numbers."""
    from pyiceberg import types

    if text is None:
        return None
    match kind:
        case types.DecimalType():
            return Decimal(text)
        case types.FixedType() | types.BinaryType():
            return bytes.fromhex(text)
        case types.UUIDType():
            return UUID(hex=text)
        case types.BooleanType():
            return text == "true"
        case types.FloatType() | types.DoubleType():
            return float(text)
        case types.StringType():
            return text
    return int(text)
