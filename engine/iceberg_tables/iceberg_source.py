"""The client's side of an Iceberg table: data files as splits, statistics from manifests; no footer is opened.

    scan = iceberg_scan(table, snapshot, schema, "read_iceberg")
    scan.plain       FoundSource of files to which no equality deletes apply, None where there is none
    scan.marked      FoundSource of the others, with hidden columns: SEQUENCE, PARTITION, and dropped columns of deletes
    scan.deletes     EqualityDeletes: columns, and a FoundSource of deleted keys with the hidden columns

A large file is several splits, one for each row group or some of them, by the offsets that its manifest has.
Row counts are exact where no rows are deleted.

Held by: tests/iceberg_tables/test_read_iceberg.py
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from engine.formats.source_format import FoundSource
from engine.graph.merge_action import CHANGED_AT, FILE, POSITION, ROW_ID
from engine.graph.source_spec import ColumnStatistics, FormatSource, SourceSplit, SourceStatistics
from engine.iceberg_tables.arrow_types import FIELD_ID, to_arrow
from engine.iceberg_tables.bounds import constant_text, file_bounds, plain_map
from engine.iceberg_tables.planned_files import PlannedFile, data_path, planned
from engine.memory.heap import RESTING_COLLECTOR
from engine.records.arrow_functions import pc
from engine.records.plain_types import nullable_schema
from engine.statistics.bounds_predicate import highest, lowest, null_count
from engine.statistics.column_statistics import plain_bound

#: hidden columns of files that have equality deletes, with ids that no table has
SEQUENCE: Final = "__iceberg_sequence_number"
PARTITION: Final = "__iceberg_partition"
_SEQUENCE_ID: Final = -1
_PARTITION_ID: Final = -2
_FILE_ID: Final = -3
#: id of the column of rows' places in their files, which no file has
POSITION_ID: Final = -4
#: id of the first row of a file, and its sequence number; ids of rows and of their last changes, which files may have
FIRST_ROW: Final = "__iceberg_first_row_id"
ADDED_AT: Final = "__iceberg_added_at"
_FIRST_NUMBER: Final = -5
_ADDED_AT_ID: Final = -6
ROW_ID_ID: Final = 2147483540
CHANGED_AT_ID: Final = 2147483539
#: bytes of a file from which its row groups are splits of their own, and of such a split at least
_SPLIT_BYTES_MIN: Final = 32 << 20
_CALL: Final = "read_iceberg"


class EqualityDeletes(NamedTuple):
    """Keys that are deleted from older rows; ``is_global``: of all partitions."""

    columns: tuple[str, ...]
    is_global: bool
    found: FoundSource


class IcebergScan(NamedTuple):
    """The sources of a snapshot."""

    schema: pa.Schema
    plain: FoundSource | None
    marked: FoundSource | None
    deletes: tuple[EqualityDeletes, ...]


class _Identity(NamedTuple):
    """A column of which a partition has the value: its place among the values, its name and type."""

    place: int
    name: str
    data_type: pa.DataType


class _Place(NamedTuple):
    """A table, and what plans of it say."""

    table: Any
    snapshot: Any
    key: str
    #: numbers of files that rows have in the column of their file; None: they have its path there
    numbers: Mapping[str, int] | None


def iceberg_scan(
    table: Any,
    snapshot: Any,
    schema: Any,
    paths: Collection[str] | None = None,
    *,
    has_file: bool = False,
    has_place: bool = False,
    has_ids: bool = False,
    numbers: Mapping[str, int] | None = None,
) -> IcebergScan:
    """Return the sources of a table's snapshot, by a schema of it. Raises: NotYetSupportedError.

    paths: of the files that are read, as manifests have them; None: of all.
    has_file, has_place: whether rows have their file, and their place in it, in columns (``merge_action``).
    has_ids: whether they have all from which their ids come.
    numbers: of files, by which rows have them in that column; None: by their paths.
    """
    hidden = [
        *([_hidden(FILE, pa.string() if numbers is None else pa.int32(), _FILE_ID)] if has_file else []),
        *([_hidden(POSITION, pa.int64(), POSITION_ID)] if has_place or has_ids else []),
        *(_ids() if has_ids else []),
    ]
    with RESTING_COLLECTOR:
        return _scan(table, snapshot, schema, paths, hidden, numbers)


def _ids() -> list[pa.Field]:
    return [
        *id_fields(),
        _hidden(FIRST_ROW, pa.int64(), _FIRST_NUMBER),
        _hidden(ADDED_AT, pa.int64(), _ADDED_AT_ID),
    ]


def id_fields() -> list[pa.Field]:
    """Return the columns of files in which rows from other files have their ids."""
    return [_hidden(ROW_ID, pa.int64(), ROW_ID_ID), _hidden(CHANGED_AT, pa.int64(), CHANGED_AT_ID)]


def _scan(
    table: Any,
    snapshot: Any,
    schema: Any,
    paths: Collection[str] | None,
    asked: Sequence[pa.Field],
    numbers: Mapping[str, int] | None,
) -> IcebergScan:
    plan = planned(table, snapshot, _CALL)
    place = _Place(table, snapshot, plan.key, numbers)
    arrow_schema = pa.schema([*to_arrow(schema, _CALL), *asked])
    files = [each for each in plan.files if paths is None or each.file.file_path in paths]
    marked = [each for each in files if each.equality]
    plain = [each for each in files if not each.equality]
    deletes: list[EqualityDeletes] = []
    hidden = [_hidden(SEQUENCE, pa.int64(), _SEQUENCE_ID), _hidden(PARTITION, pa.string(), _PARTITION_ID)]
    wide = arrow_schema
    for ids in sorted({each for file in marked for each in file.equality}):
        wide, names = _with_ids(wide, table, ids)
        for is_global in (True, False):
            files = [
                each
                for each in plan.equality_deletes
                if tuple(sorted(each.file.equality_ids)) == ids and (not each.partition[1]) is is_global
            ]
            if files:
                keys = pa.schema([wide.field(name) for name in names] + hidden)
                deletes.append(EqualityDeletes(names, is_global, _found(place, files, keys, "equality deletes")))
    return IcebergScan(
        nullable_schema(_without_ids(arrow_schema)),
        _found(place, plain, arrow_schema) if plain or not marked else None,
        _found(place, marked, pa.schema([*wide, *hidden])) if marked else None,
        tuple(deletes),
    )


def _hidden(name: str, data_type: pa.DataType, number: int) -> pa.Field:
    return pa.field(name, data_type, metadata={FIELD_ID: str(number).encode()})


def _with_ids(schema: pa.Schema, table: Any, ids: Sequence[int]) -> tuple[pa.Schema, tuple[str, ...]]:
    """Return a schema with the fields of some ids, and their names; a dropped one is found in a former schema."""
    names = []
    for number in ids:
        known = next((field for field in schema if (field.metadata or {}).get(FIELD_ID) == str(number).encode()), None)
        if known is None:
            former = next(each for each in reversed(table.metadata.schemas) if _has(each, number))
            (field,) = (each for each in to_arrow(former, _CALL) if each.metadata[FIELD_ID] == str(number).encode())
            known = field.with_name(f"__iceberg_dropped_{number}")
            schema = schema.append(known)
        names.append(known.name)
    return schema, tuple(names)


def _has(schema: Any, number: int) -> bool:
    return any(field.field_id == number for field in schema.fields)


def _found(place: _Place, files: Sequence[PlannedFile], schema: pa.Schema, what: str = "rows") -> FoundSource:
    """Return the source of some files, its statistics, and its schema without ids."""
    paths = [data_path(each.file.file_path) for each in files]
    splits = tuple(split for each, path in zip(files, paths, strict=True) for split in _splits(each, path))
    identities = _identities(place.table.metadata.specs(), schema)
    facts = (_known(each, identities, schema, place.numbers) for each in files)
    known = {path: found for path, found in zip(paths, facts, strict=True) if found}
    name = ".".join(place.table.name()).removeprefix("static-table.")
    options: dict[str, Any] = {
        "table": name,
        "snapshot": -1 if place.snapshot is None else place.snapshot.snapshot_id,
        "what": what,
        "file_count": len(files),
        "delete_count": sum(each.has_deletes for each in files),
        "mapping": place.table.metadata.properties.get("schema.name-mapping.default", ""),
        "files": json.dumps(known),
        "plan": place.key,
    }
    spec = FormatSource(
        "iceberg", (name,), splits, schema.serialize().to_pybytes(), tuple(schema.names), options=options
    )
    return spec, _statistics(files, schema, place), nullable_schema(_without_ids(schema))


def _splits(planned_file: PlannedFile, path: str) -> Iterator[SourceSplit]:
    """Yield the splits of a file, as ranges of bytes in which row groups begin."""
    file = planned_file.file
    size, offsets = file.file_size_in_bytes, sorted(file.split_offsets or ())
    if size < 2 * _SPLIT_BYTES_MIN or len(offsets) < 2:
        yield SourceSplit(path, 0, size, max(1, size), -1 if planned_file.has_deletes else file.record_count)
        return
    begin = 0
    for offset in [*offsets[1:], size]:
        if offset - begin >= _SPLIT_BYTES_MIN or offset == size:
            yield SourceSplit(path, begin, offset, max(1, offset - begin))
            begin = offset


def _known(
    planned_file: PlannedFile,
    identities: Mapping[int, Sequence[_Identity]],
    schema: pa.Schema,
    numbers: Mapping[str, int] | None,
) -> dict[str, Any]:
    """Return the facts about a file that a task needs beside its columns."""
    file = planned_file.file
    found: dict[str, Any] = {}
    deletes = planned_file.known_deletes()
    if deletes:
        found = {"uri": file.file_path, "deletes": deletes}
    constants = _constants(planned_file, identities)
    if FILE in schema.names:
        constants[FILE] = file.file_path if numbers is None else str(numbers[file.file_path])
    if FIRST_ROW in schema.names:
        from engine.iceberg_tables.manifests import FIRST_ROW_ID

        first = file[FIRST_ROW_ID]
        constants |= {FIRST_ROW: None if first is None else str(first), ADDED_AT: str(planned_file.sequence_number)}
    if SEQUENCE in schema.names:
        constants |= {SEQUENCE: str(planned_file.sequence_number), PARTITION: repr(planned_file.partition)}
    return {**found, "constants": constants} if constants else found


def _constants(planned_file: PlannedFile, identities: Mapping[int, Sequence[_Identity]]) -> dict[str, str | None]:
    """Return the texts of columns that are values of a file's partition, by their names."""
    spec_id, values = planned_file.partition
    return {name: constant_text(values[place], data_type) for place, name, data_type in identities[spec_id]}


def constants_of(metadata: Any, files: Sequence[PlannedFile], call: str) -> tuple[dict[str, str | None], ...]:
    """Return the texts of columns that are values of partitions, for each file; () where there are none."""
    identities = _identities(metadata.specs(), to_arrow(metadata.schema(), call))
    return tuple(_constants(each, identities) for each in files) if any(identities.values()) else ()


def _identities(specs: Mapping[int, Any], schema: pa.Schema) -> dict[int, list[_Identity]]:
    """Return the columns that are values of partitions, which files may lack, for each specification."""
    names = {int(field.metadata[FIELD_ID]): field for field in schema}
    return {
        number: [
            _Identity(place, names[field.source_id].name, names[field.source_id].type)
            for place, field in enumerate(spec.fields)
            if field.source_id in names and str(field.transform) == "identity"
        ]
        for number, spec in specs.items()
    }


def _without_ids(schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(field.name, _plain(field.type)) for field in schema])


def _plain(data_type: pa.DataType) -> pa.DataType:
    """Return a type without the metadata of fields within it."""
    if pa.types.is_struct(data_type):
        return pa.struct([pa.field(field.name, _plain(field.type)) for field in data_type])
    if pa.types.is_list(data_type):
        return pa.list_(pa.field("element", _plain(data_type.value_type)))
    if pa.types.is_map(data_type):
        return pa.map_(_plain(data_type.key_type), _plain(data_type.item_type))
    return data_type


def _statistics(files: Sequence[PlannedFile], schema: pa.Schema, place: _Place) -> SourceStatistics:
    """Return the statistics of all files together, from manifests."""
    rows = sum(each.file.record_count for each in files)
    bounds = file_bounds(place.table.metadata, files, schema, schema.names)
    columns, row_bytes = {}, 0.0
    for field in schema:
        width = _width(field, files, rows)
        row_bytes += width
        low, high = (_whole(bounds, name(field.name), of) for name, of in ((lowest, pc.min), (highest, pc.max)))
        nulls = bounds.column(null_count(field.name))
        fraction = None if nulls.null_count or not rows else float((pc.sum(nulls).as_py() or 0) / rows)
        columns[field.name] = ColumnStatistics(
            null_fraction=fraction,
            average_width_bytes=width if _is_wide(field.type) else None,
            minimum=low,
            maximum=high,
        )
    is_exact = not any(each.has_deletes for each in files)
    return SourceStatistics(float(rows), rows * row_bytes, "iceberg manifests", is_exact=is_exact, columns=columns)


def _whole(bounds: pa.Table, name: str, of: Any) -> bool | int | float | str | None:
    """Return the lowest or highest bound of all files, None where a file has none or Python has no such value."""
    values = bounds.column(name)
    if values.null_count or not len(values) or pa.types.is_nested(values.type):
        return None
    try:
        return plain_bound(of(values).as_py())
    except (ValueError, OverflowError):
        return None


def _is_wide(data_type: pa.DataType) -> bool:
    """Whether values have widths of their own."""
    return not pa.types.is_primitive(data_type) and not pa.types.is_fixed_size_binary(data_type)


def _width(field: pa.Field, files: Sequence[PlannedFile], rows: int) -> float:
    """Return the bytes of a value; of texts and nested values as files have them, which are compressed."""
    if not _is_wide(field.type):
        return float(max(8, field.type.bit_width) / 8)
    number = int(field.metadata[FIELD_ID])
    sizes_of = (plain_map(each.file.column_sizes) for each in files)
    sizes = [known.get(number, 0) for known in sizes_of]
    return max(1.0, sum(sizes) / rows) if rows else 1.0
