"""Statistics of the columns of a Parquet source that a plan reads, from rows of a few of its row groups.

    parquet_source(...) ─► footers: rows, nulls, minima, maxima, of every column
    with_sample(spec, statistics, schema, columns, predicates, carried) ─► widths, distinct values and heavy keys of
                                                   these columns, and shares of rows that predicates keep

To have rows of a column its first page is opened whole, so columns that the plan does not read are left alone. Those
that it carries along, without a look at their values, are sampled in half as many row groups and a quarter of the rows:
what counts is how wide they are. What was found is remembered for as long as the files stay as they are: a plan is
explained and then run.

Limits: of a file that is sorted the sample shows the begin of row groups; keys of joins are sampled better
(``key_sample``). Columns of very wide values are not sampled.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from functools import partial
from typing import Final, NamedTuple

import msgspec
import pyarrow as pa

from engine.errors import DataError
from engine.expressions.common_type import common_type
from engine.graph.expression import Expression, columns_of
from engine.graph.plan_schema import ColumnInfo, PlanSchema
from engine.graph.source_spec import ColumnStatistics, ParquetSource, SourceSplit, SourceStatistics
from engine.memory.kept_results import KeptResults
from engine.parquet.footers import known_places, read_footer
from engine.parquet.kept_samples import BYTES_MAX, KeptSamples, encoded_bytes, stamps_of
from engine.parquet.open_file import OpenFile, OpenFiles
from engine.parquet.pages import flat_leaves, leaf_places, parts
from engine.records.arrow_functions import pc
from engine.records.plain_types import plain_schema
from engine.records.side_by_side import SideBySide
from engine.statistics.column_statistics import WIDE_COLUMN_BYTES, SampledPlaces, column_statistics
from engine.statistics.predicate_shares import Counted, counted, measured, parts_of

#: rows of all sampled row groups together
_SAMPLE_ROWS: Final = 8192
_SAMPLE_GROUPS: Final = 4
#: limit of rows of columns that are carried along
_CARRIED_ROWS: Final = 2048
#: bytes of sampled rows at which sampling ends
_SAMPLE_BYTES: Final = 8 << 20
#: limit of bytes of columns sampled at a time
_SAMPLED_AT_ONCE_BYTES: Final = 16 << 20
#: columns of a row group in a store that are fetched whole for a sample
_SHORT_BYTES: Final = 128 << 10
#: decoder of predicates, the keys of cached samples, since predicates have no hash
_PREDICATES: Final = msgspec.msgpack.Decoder(tuple[Expression, ...])
_NO_PREDICATES: Final = msgspec.msgpack.encode(())


class _Sample(msgspec.Struct, frozen=True):
    """A sample of rows: the bytes of a row in memory for each column, and the shares that predicates keep."""

    columns: dict[str, ColumnStatistics]
    row_bytes: float
    row_count: int
    counted: Counted


def with_sample(
    spec: ParquetSource,
    statistics: SourceStatistics,
    schema: PlanSchema,
    names: Collection[str],
    predicates: Sequence[Expression] = (),
    carried: Collection[str] = (),
) -> SourceStatistics:
    """Return statistics with what a sample says of some columns; what is known of them already stays.

    ``carried``: those that no operator looks at.
    A file that is gone, or that cannot be opened any more, is left to the job. Raises: DataError (a damaged page).
    """
    narrow = [
        column.name
        for column in schema.columns
        if column.name in names and _width(column, statistics) <= WIDE_COLUMN_BYTES
    ]
    groups = sampled_groups(spec.splits)
    if spec.stored:  # each row group is requests to a store
        groups = groups[::2]
        try:
            narrow = _with_short_samples(groups, narrow)
        except OSError:
            return statistics
    if not groups or not narrow:
        return statistics
    parts = tuple(part for part in parts_of(predicates) if set(columns_of(part)).issubset(narrow))
    looked_at = tuple(name for name in narrow if name not in carried)
    only_carried = tuple(name for name in narrow if name in carried)
    rows, samples = statistics.row_count or 0.0, []
    try:
        if looked_at:
            asked = _Asked(looked_at, _SAMPLE_ROWS, rows, msgspec.msgpack.encode(parts))
            samples.append(_sampled(groups, stamps_of(groups), asked, is_all=len(groups) == len(spec.splits)))
        if only_carried:
            some, asked = groups[::2], _Asked(only_carried, _CARRIED_ROWS, rows, _NO_PREDICATES)
            samples.append(_sampled(some, stamps_of(some), asked, is_all=False))
    except OSError:
        return statistics
    columns = dict(statistics.columns)
    for name in narrow:
        sampled = next((sample.columns[name] for sample in samples if name in sample.columns), ColumnStatistics())
        columns[name] = _filled(columns.get(name, ColumnStatistics()), sampled)
    others = sum(_width(column, statistics) for column in schema.columns if column.name not in narrow)
    return msgspec.structs.replace(
        statistics,
        # What rows take in memory, which is what operators hold: encodings of a file make them up to ten times smaller.
        size_bytes=rows * (sum(sample.row_bytes for sample in samples) + others),
        origin=f"{statistics.origin}, sample of {max(sample.row_count for sample in samples)} rows",
        columns=columns,
        computed=(*statistics.computed, *measured(samples[0].counted, parts, statistics.columns)),
    )


def _with_short_samples(groups: Sequence[SourceSplit], names: Sequence[str]) -> list[str]:
    """Return the columns of files in stores of which a part is enough for a sample: of others all would be fetched."""
    for group in groups:
        footer = read_footer(group.path)
        places, leaves = known_places(footer).get(group.start, []), flat_leaves(footer.schema)
        chunks = footer.row_group(group.start)
        names = [
            name
            for name in names
            if name in leaves
            and (
                (leaves[name] < len(places) and places[leaves[name]].offset_index_bytes)
                or chunks.column(leaves[name]).total_compressed_size <= _SHORT_BYTES
            )
        ]
    return list(names)


def sampled_groups(splits: Sequence[SourceSplit]) -> tuple[SourceSplit, ...]:
    """Return a few row groups, spread over all."""
    return tuple(splits[:: max(1, len(splits) // _SAMPLE_GROUPS)][:_SAMPLE_GROUPS])


def _width(column: ColumnInfo, statistics: SourceStatistics) -> float:
    known = statistics.columns.get(column.name)
    measured = None if known is None else known.average_width_bytes
    return float(column.width_bytes) if measured is None else measured


def _filled(known: ColumnStatistics, sampled: ColumnStatistics) -> ColumnStatistics:
    """Fill gaps of a column's known statistics from a sample."""
    changes: dict[str, object] = {"average_width_bytes": sampled.average_width_bytes}
    if known.distinct_count is None:
        changes["distinct_count"] = sampled.distinct_count
    if known.null_fraction is None:
        changes["null_fraction"] = sampled.null_fraction
    if known.heavy_origin != "manifest":
        changes["heavy_keys"] = sampled.heavy_keys
    return msgspec.structs.replace(known, **changes)


class _Asked(NamedTuple):
    """The purpose of a sample."""

    columns: tuple[str, ...]
    #: rows of all row groups together
    rows: int
    #: number of rows of the source
    row_count: float
    predicates: bytes


def _sampled(groups: tuple[SourceSplit, ...], stamps: tuple[int, ...], asked: _Asked, *, is_all: bool) -> _Sample:
    """Return the sample of row groups, as it is known or as it is found; ``is_all``: the source has no others."""
    key = (groups, stamps, asked, is_all)
    return _known_samples.of(key, partial(_found_sample, groups, stamps, asked, is_all=is_all))


def _found_sample(groups: tuple[SourceSplit, ...], stamps: tuple[int, ...], asked: _Asked, *, is_all: bool) -> _Sample:
    columns, row_count = asked.columns, asked.row_count
    tables: list[pa.Table] = []
    wanted = asked.rows // len(groups)
    with OpenFiles(columns) as files:
        for group, stamp_ns in zip(groups, stamps, strict=True):
            tables.append(_kept.rows(group, stamp_ns, wanted, list(columns), partial(_group_sample, files)))
            if sum(table.nbytes for table in tables) >= _SAMPLE_BYTES:
                break
    rows = sum(table.num_rows for table in tables)
    row_count = max(row_count, rows)  # not every source knows its rows
    whole = _put_together(tables)
    places = SampledPlaces(len(tables), rows)
    read = groups[: len(tables)], stamps[: len(tables)]
    columns_known = {
        name: _known.of(
            (read, name, row_count, rows), partial(column_statistics, whole.column(name), row_count, places)
        )
        for name in (columns if rows else ())
    }
    is_whole = is_all and len(tables) == len(groups) and all(table.num_rows < wanted for table in tables)
    found = counted(whole, _PREDICATES.decode(asked.predicates), is_whole)
    row_bytes = sum(table.nbytes for table in tables) / max(1, rows)
    return _Sample(columns_known, row_bytes, rows, found)


def _put_together(tables: Sequence[pa.Table]) -> pa.Table:
    """Return rows of files whose types may differ in width or kind; a number may be the nearest one: it is a sample."""
    if all(table.schema.equals(tables[0].schema) for table in tables):
        return pa.concat_tables(tables)
    types: dict[str, pa.DataType] = {}
    for field in (field for table in tables for field in table.schema):
        types[field.name] = common_type(types.get(field.name, field.type), field.type) or field.type
    typed = [
        table.cast(pa.schema([(name, types[name]) for name in table.column_names]), safe=False) for table in tables
    ]
    return pa.concat_tables(typed, promote_options="permissive")


def _group_sample(files: OpenFiles, group: SourceSplit, rows: int, columns: list[str]) -> pa.Table:
    """Return the first rows of a row group, as plain types."""
    try:
        table = _first_rows(files.of(group.path), group.start, rows, columns)
    except (pa.ArrowInvalid, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            # The system's error, not Arrow's about what is in the file.
            raise
        reason = str(error).partition("\n")[0]
        raise DataError(f"file {group.path}, row group {group.start}: {reason}") from None
    selected = table.select(columns).replace_schema_metadata()
    plain = plain_schema(selected.schema)
    if selected.schema.equals(plain):
        return selected
    # Not Table.cast, which imports all of pyarrow.compute.
    return pa.table(
        [pc.cast(column, target) for column, target in zip(selected.columns, plain.types, strict=True)], plain
    )


_kept: Final = KeptSamples()
_known: Final = KeptResults[Hashable, ColumnStatistics](BYTES_MAX, encoded_bytes)
_known_samples: Final = KeptResults[Hashable, _Sample](BYTES_MAX, encoded_bytes)


def _first_rows(file: OpenFile, group: int, rows: int, columns: list[str]) -> pa.Table:
    """Return the first rows of a row group, read some columns at a time: each holds a page and its dictionary."""
    sizes = dict.fromkeys(columns, 0)
    chunks = file.footer.row_group(group)
    for name, leaf in leaf_places(file.footer.schema, columns):
        sizes[name] += chunks.column(leaf).total_uncompressed_size
    if file.is_fetched:
        file.indexes.expect([group], None, columns)
        file.choose(group, columns, [(0, rows)])
    batches = [file.columns(group, part, rows).read() for part in parts(columns, sizes, _SAMPLED_AT_ONCE_BYTES)]
    return pa.Table.from_batches([SideBySide().of([batch for batch in batches if batch is not None])])
