"""The client's side of a Delta table: pieces of files as splits, and what the log says of them.

    delta_source(place, version=..., timestamp=...) -> (FormatSource, SourceStatistics, pa.Schema)
    file_bounds(spec, schema, names)                -> a row for each split; no file is opened for it

A split is the bytes [start, end) of a file: the row groups that have their middle in them.

Of moments the log has whole milliseconds, rounded down, so that a greatest one may be nearly one millisecond later.

Held by: tests/delta_tables/test_read_delta.py
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from itertools import repeat
from typing import Any, Final

import msgspec
import pyarrow as pa

from engine.delta_tables.table_log import Snapshot, facts_of, kept_snapshot, read_snapshot
from engine.expressions.schema_bridge import to_plan_schema
from engine.files.paths import local_path
from engine.formats.split_pruning import may_be_between, with_splits
from engine.graph.merge_action import POSITION
from engine.graph.plan import Source
from engine.graph.source_spec import ColumnStatistics, FormatSource, SourceSplit, SourceStatistics
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of
from engine.statistics.bounds_predicate import ROW_COUNT, highest, lowest, null_count
from engine.statistics.column_statistics import plain_bound

#: bytes of a file that one split has at most
SPLIT_BYTES: Final = 64 << 20
#: names of columns that are known of each file beside its partition
PATH, DELETED = "path of the file", "rows deleted of it"
#: bytes of a text in a row, of which nothing is known
_TEXT_BYTES: Final = 24.0
#: bytes of rows for each byte of a file
_EXPANSION: Final = 3.0
#: digits of a decimal that a float keeps
_FLOAT_DIGITS: Final = 15
#: microseconds that a greatest moment of the log may be too early
_CUT_US: Final = 999


def delta_source(
    path: str | os.PathLike[str], version: int | None = None, timestamp: datetime | str | None = None
) -> tuple[FormatSource, SourceStatistics, pa.Schema]:
    """Return a source of a table's version, its statistics and its schema.

    Raises: PlanError (no table, no such version), NotYetSupportedError (features), ResourceError (the log).
    """
    place = local_path(path, "read_delta").rstrip("/")
    snapshot = read_snapshot(place, version, timestamp, "read_delta")
    splits = _splits(snapshot)
    spec = FormatSource(
        "delta",
        (place,),
        splits,
        snapshot.schema.serialize().to_pybytes(),
        tuple(snapshot.schema.names),
        options={
            "version": snapshot.version,
            "table": snapshot.id,
            "files": len(snapshot.paths),
            "partition_by": ", ".join(snapshot.partition_columns),
        },
        files_ipc=_files(snapshot),
    )
    return spec, _statistics(snapshot), plain_schema_of(spec)


def plain_schema_of(spec: FormatSource) -> pa.Schema:
    """Return the columns of a table without what files call them."""
    return _plain(table_schema(spec))


def _plain(schema: pa.Schema) -> pa.Schema:
    return pa.schema([_plain_field(field) for field in schema])


def _plain_field(field: pa.Field) -> pa.Field:
    data_type = field.type
    if pa.types.is_struct(data_type):
        data_type = pa.struct([_plain_field(data_type.field(index)) for index in range(data_type.num_fields)])
    elif pa.types.is_map(data_type):
        data_type = pa.map_(_plain_field(data_type.key_field).type, _plain_field(data_type.item_field).type)
    elif pa.types.is_list(data_type):
        data_type = pa.list_(_plain_field(data_type.value_field).type)
    return pa.field(field.name, data_type)


def table_schema(spec: FormatSource) -> pa.Schema:
    """Return the columns of a table with the names that files have for them."""
    return pa.ipc.read_schema(pa.py_buffer(spec.file_schema_ipc))


def _splits(snapshot: Snapshot) -> tuple[SourceSplit, ...]:
    sizes: list[int] = snapshot.facts.column("size_bytes").to_pylist()
    counts = pc.fill_null(snapshot.facts.column("num_records"), scalar_of(-1, pa.int64())).to_pylist()
    if deleted := snapshot.deleted:
        counts = [
            count if count < 0 else count - deleted.get(path, 0)
            for path, count in zip(snapshot.paths, counts, strict=True)
        ]
    weights = sizes if all(sizes) else [size or 1 for size in sizes]
    # There may be a hundred thousand, so that no line of Python is run for each.
    whole = map(SourceSplit, snapshot.paths, repeat(0), sizes, weights, counts)
    if max(sizes, default=0) <= SPLIT_BYTES:
        return tuple(whole)
    return tuple(piece for split in whole for piece in _pieces(split))


def _pieces(split: SourceSplit) -> list[SourceSplit]:
    """Return the pieces of a file, the file itself where it is small enough for one."""
    size = split.end
    if size <= SPLIT_BYTES:
        return [split]
    pieces = -(-size // SPLIT_BYTES)
    ends = [size * (piece + 1) // pieces for piece in range(pieces)]
    return [SourceSplit(split.path, start, end, end - start) for start, end in zip([0, *ends], ends, strict=False)]


def _files(snapshot: Snapshot) -> bytes:
    """Return facts about files that readers need beside their columns; b"" for none."""
    if not snapshot.partition_columns and not snapshot.deleted:
        return b""
    columns: dict[str, Any] = {
        PATH: pa.array(snapshot.paths, pa.string()),
        DELETED: pa.array([snapshot.deleted.get(path, 0) for path in snapshot.paths], pa.int64()),
    }
    for name in snapshot.partition_columns:
        columns[name] = _partition_values(snapshot, snapshot.schema.field(name))
    return packed_files(pa.table(columns))


def packed_files(table: pa.Table) -> bytes:
    """Return the bytes of what is known of files."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def files_table(spec: FormatSource) -> pa.Table | None:
    """Return the facts about files, a row each; None where there are none."""
    return pa.ipc.open_stream(spec.files_ipc).read_all().combine_chunks() if spec.files_ipc else None


def _partition_values(snapshot: Snapshot, field: pa.Field) -> pa.ChunkedArray:
    found = facts_of(snapshot, "partition", field)
    if found is None:
        return pa.chunked_array([pa.nulls(len(snapshot.paths), field.type)])
    return found if found.type == field.type else pc.cast(found, field.type)


def _statistics(snapshot: Snapshot) -> SourceStatistics:
    facts = snapshot.facts
    sizes, counts = facts.column("size_bytes"), facts.column("num_records")
    file_bytes = pc.sum(sizes).as_py() or 0
    deleted = sum(snapshot.deleted.values())
    rows = None if counts.null_count else float((pc.sum(counts).as_py() or 0) - deleted)
    schema = _plain(snapshot.schema)
    plan = to_plan_schema(schema)
    widths = {each.name: float(each.width_bytes) if each.width_is_exact else _TEXT_BYTES for each in plan.columns}
    size = _EXPANSION * file_bytes if rows is None else rows * sum(widths.values())
    columns = {}
    for each in plan.columns:
        known = ColumnStatistics(average_width_bytes=None if each.width_is_exact else widths[each.name])
        columns[each.name] = _with_facts(known, snapshot, each.name, rows, schema)
    origin = f"log of version {snapshot.version}, {len(snapshot.paths)} files"
    return SourceStatistics(rows, size, origin, is_exact=rows is not None and not deleted, columns=columns)


def _with_facts(
    known: ColumnStatistics, snapshot: Snapshot, name: str, rows: float | None, schema: pa.Schema
) -> ColumnStatistics:
    bounds = _bounds_of(snapshot, name, schema)
    if not rows or bounds is None:
        return known
    low, high, nulls = bounds
    if name in snapshot.partition_columns:
        known = msgspec.structs.replace(known, distinct_count=float(pc.count_distinct(low).as_py()))
    if not nulls.null_count:
        known = msgspec.structs.replace(known, null_fraction=min(1.0, (pc.sum(nulls).as_py() or 0) / rows))
        if low.null_count or high.null_count:
            # A file whose rows are all null has no bounds, and needs none.
            with_values = pc.less(nulls, snapshot.facts.column("num_records"))
            low, high = pc.filter(low, with_values), pc.filter(high, with_values)
    if len(low) and not low.null_count and not high.null_count and not pa.types.is_nested(low.type):
        least, greatest = _simple(pc.min(low)), _simple(pc.max(high))
        if least is not None and greatest is not None:
            known = msgspec.structs.replace(known, minimum=least, maximum=greatest)
    return known


def _simple(value: pa.Scalar) -> bool | int | float | str | None:
    try:
        return plain_bound(value.as_py())
    except (ValueError, OverflowError):
        return None  # a moment that Python has not


def _bounds_of(
    snapshot: Snapshot, name: str, schema: pa.Schema
) -> tuple[pa.ChunkedArray, pa.ChunkedArray, pa.ChunkedArray] | None:
    """Return the least and the greatest value, and the nulls of a column in each file; None: nothing is known."""
    field, wanted = snapshot.schema.field(name), schema.field(name).type
    if name in snapshot.partition_columns:
        values, counts = _partition_values(snapshot, field), snapshot.facts.column("num_records")
        zero = pa.chunked_array([pa.repeat(scalar_of(0, pa.int64()), len(values))])
        return values, values, pc.if_else(pc.is_null(values), counts, zero)
    low, high, nulls = (facts_of(snapshot, kind, field) for kind in ("min", "max", "null_count"))
    if low is None or high is None or _is_inexact(wanted):
        low = high = pa.chunked_array([pa.nulls(len(snapshot.paths), wanted)])
    if nulls is None or not pa.types.is_integer(nulls.type):
        nulls = pa.chunked_array([pa.nulls(len(snapshot.paths), pa.int64())])
    if pa.types.is_timestamp(wanted):
        high = pc.cast(high, wanted)
        high = pc.cast(pc.add(pc.cast(high, pa.int64()), scalar_of(_CUT_US)), wanted)
    return (*(each if each.type == wanted else pc.cast(each, wanted) for each in (low, high)), nulls)


def _is_inexact(data_type: pa.DataType) -> bool:
    """Return whether a log may have other bounds than values of a type: writers make floats of long decimals."""
    is_long = pa.types.is_decimal(data_type) and data_type.precision > _FLOAT_DIGITS
    return bool(is_long or pa.types.is_nested(data_type))


def file_bounds(spec: FormatSource, schema: pa.Schema, names: Sequence[str]) -> pa.Table | None:
    """Return bounds of columns for each split, from the log."""
    place, version = spec.paths[0], spec.options["version"]
    assert isinstance(version, int)
    snapshot = kept_snapshot(place, version) or read_snapshot(place, version, None, "read_delta")
    if snapshot.id != spec.options["table"]:
        return None  # another table lies there now
    paths = [split.path for split in spec.splits]
    taken = None
    if paths != list(snapshot.paths):
        rows = {path: row for row, path in enumerate(snapshot.paths)}
        taken = pa.array([rows[path] for path in paths], pa.int64())
    columns: dict[str, Any] = {ROW_COUNT: snapshot.facts.column("num_records")}
    for name in names:
        bounds = _bounds_of(snapshot, name, schema) if name in snapshot.schema.names else None
        if bounds is not None:
            columns |= zip((lowest(name), highest(name), null_count(name)), bounds, strict=True)
    return pa.table(columns if taken is None else {name: values.take(taken) for name, values in columns.items()})


def has_deleted_rows(spec: FormatSource) -> bool:
    """Return whether a file has rows that are deleted by their places."""
    known = files_table(spec)
    return known is not None and bool(pc.sum(known.column(DELETED)).as_py())


def files_between(spec: FormatSource, schema: pa.Schema, bounds: Mapping[str, tuple[Any, Any]]) -> list[str]:
    """Return the files that may have rows with values of columns between the lowest and the highest."""
    paths = pa.array([split.path for split in spec.splits], pa.string())
    known = file_bounds(spec, schema, list(bounds))
    if known is None:
        return list(dict.fromkeys(paths.to_pylist()))
    return list(dict.fromkeys(paths.filter(may_be_between(known, bounds)).to_pylist()))


def bounded_columns(spec: FormatSource, names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of which the log has bounds in all files with values."""
    known = file_bounds(spec, plain_schema_of(spec), names)
    if known is None:
        return ()
    found = [name for name in names if lowest(name) in known.column_names]
    return tuple(name for name in found if not known.column(lowest(name)).null_count)


def file_rows(spec: FormatSource) -> int | None:
    """Return the rows of a source's files that are not deleted, None where the log does not say it."""
    place, version = spec.paths[0], spec.options["version"]
    assert isinstance(version, int)
    snapshot = kept_snapshot(place, version) or read_snapshot(place, version, None, "read_delta")
    paths = {split.path for split in spec.splits}
    counts = [
        None if count is None else count - snapshot.deleted.get(path, 0)
        for path, count in zip(snapshot.paths, snapshot.facts.column("num_records").to_pylist(), strict=True)
        if path in paths
    ]
    return None if None in counts else sum(count for count in counts if count is not None)


def kept_files(spec: FormatSource) -> FormatSource:
    """Return a source that knows nothing of files which are not read any more."""
    known = files_table(spec)
    if known is None:
        return spec
    paths = pa.array(list(dict.fromkeys(split.path for split in spec.splits)), pa.string())
    kept = known.filter(pc.is_in(known.column(PATH), value_set=paths))
    return msgspec.structs.replace(spec, files_ipc=packed_files(kept))


def with_place_column(spec: FormatSource) -> FormatSource:
    """Return a source whose rows have their place in their file in the column ``POSITION``."""
    schema = table_schema(spec).append(pa.field(POSITION, pa.int64()))
    return msgspec.structs.replace(
        spec, file_schema_ipc=schema.serialize().to_pybytes(), columns=(*spec.columns, POSITION)
    )


def with_file_column(spec: FormatSource, name: str, numbers: Mapping[str, int] | None = None) -> FormatSource:
    """Return a source whose rows have the path of their file in a column, or the number that it has."""
    paths = pa.array(list(dict.fromkeys(split.path for split in spec.splits)), pa.string())
    known = files_table(spec)
    if known is None:
        known = pa.table({PATH: paths, DELETED: pa.repeat(scalar_of(0, pa.int64()), len(paths))})
    values: Any = known.column(PATH)
    if numbers is not None:
        values = pa.array([numbers[path] for path in values.to_pylist()], pa.int32())
    schema = table_schema(spec).append(pa.field(name, values.type))
    return msgspec.structs.replace(
        spec,
        file_schema_ipc=schema.serialize().to_pybytes(),
        columns=(*spec.columns, name),
        files_ipc=packed_files(known.append_column(name, values)),
    )


def with_paths(
    spec: FormatSource, statistics: SourceStatistics, paths: Collection[str]
) -> tuple[FormatSource, SourceStatistics]:
    """Return a source of some of its files, and the statistics of these."""
    splits = tuple(split for split in spec.splits if split.path in paths)
    source = Source(spec, statistics)
    found = with_splits(source, msgspec.structs.replace(spec, splits=splits), None, "splits")
    assert isinstance(found.spec, FormatSource)
    return kept_files(found.spec) if splits else found.spec, found.statistics
