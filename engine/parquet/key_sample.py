"""Heavy keys of a Parquet column that a join compares, from rows of all parts of its row groups.

    key_statistics(spec, column, row_count) -> ColumnStatistics | None
    spread_rows(spec, columns)              -> pa.Table | None

The sample that a source takes when it is read is the begin of some row groups, of all columns: of a file that is sorted
it shows the first keys only. A join wants to know its keys better, and of one column whole chunks can be decoded: at
most CHUNK_BYTES and CHUNK_VALUES of them, from a quarter of the row groups at most, spread over all. What was found is
remembered for as long as the files stay as they are.

No row is read of a column that is numbered, as keys of tables often are: its row groups have as many rows each as there
are numbers between their bounds, and no number lies within two.

Only distinct count and heavy keys are for use. None: nothing better than the first sample is to be had.

Held by: tests/statistics/test_heavy_key_statistics.py
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq

from engine.graph.source_spec import ColumnStatistics, ParquetSource, SourceSplit
from engine.parquet.footers import arrow_schema, shared_footer
from engine.parquet.kept_samples import stamps_of
from engine.parquet.open_file import OpenFiles
from engine.parquet.pages import flat_leaves
from engine.records.arrow_functions import pc
from engine.records.key_types import is_key_type
from engine.records.plain_scalars import scalar_of
from engine.records.plain_types import plain_batch, plain_type
from engine.statistics.column_statistics import (
    SPREAD_ROWS_MAX,
    WIDE_COLUMN_BYTES,
    SampledPlaces,
    sample_statistics,
)

#: decoded for one column, whatever the size of the source
CHUNK_VALUES = 1 << 21
CHUNK_BYTES = 8 << 20
_GROUPS_MAX = 8
#: inverse share of the row groups decoded for a plan, though at least two: the job reads them again
_GROUPS_SHARE = 4
_GROUPS_MIN = 2
_BATCH_ROWS = 65_536
#: limit of row groups whose bounds are read
_NUMBERED_MAX = 64
_REMEMBERED = 256


def key_statistics(spec: ParquetSource, column: str, row_count: float) -> ColumnStatistics | None:
    """Return a key column's statistics from whole chunks, or None if they are too large or unreadable.

    Args:
        spec: the source; its splits are row groups.
        column: top-level column.
        row_count: rows of the source.
    """
    groups = spread_splits(spec.splits)
    try:
        if len(spec.splits) <= _NUMBERED_MAX and _is_numbered(spec.splits, stamps_of(spec.splits), column):
            return ColumnStatistics(distinct_count=row_count, null_fraction=0.0)
        stamps = stamps_of(groups)
        return _sampled(groups, stamps, column, row_count)
    except (OSError, pa.ArrowException):
        # the job will say what is wrong with the file
        return None


def spread_rows(spec: ParquetSource, columns: Sequence[str]) -> pa.Table | None:
    """Return rows of some columns from everywhere; None when their chunks are too large. Raises what pyarrow raises."""
    return _rows(spread_splits(spec.splits), columns)


def spread_splits(splits: Sequence[SourceSplit]) -> tuple[SourceSplit, ...]:
    """Return a few splits from everywhere, as many as have CHUNK_VALUES rows together."""
    count = min(_GROUPS_MAX, max(_GROUPS_MIN, len(splits) // _GROUPS_SHARE), len(splits))
    while count > 1:
        chosen = tuple(splits[index * len(splits) // count] for index in range(count))
        if sum(group.row_count for group in chosen) <= CHUNK_VALUES:
            return chosen
        count -= 1
    return tuple(splits[:count])


@lru_cache(maxsize=_REMEMBERED)
def _is_numbered(groups: tuple[SourceSplit, ...], _stamps: tuple[int, ...], column: str) -> bool:
    places: dict[str, tuple[pq.FileMetaData, int]] = {}
    bounds: list[tuple[int, int]] = []
    for group in groups:
        if group.path not in places:
            footer, _ = shared_footer(group.path)
            leaf = flat_leaves(footer.schema).get(column)
            if leaf is None or not pa.types.is_integer(arrow_schema(footer).field(column).type):
                return False
            places[group.path] = footer, leaf
        footer, leaf = places[group.path]
        known = footer.row_group(group.start).column(leaf).statistics
        if known is None or not known.has_min_max or known.null_count != 0:
            return False
        bounds.append((known.min_raw, known.max_raw))
        if known.max_raw - known.min_raw + 1 != group.row_count:
            return False
    bounds.sort()
    return bool(bounds) and all(one[1] < other[0] for one, other in pairwise(bounds))


@lru_cache(maxsize=_REMEMBERED)
def _sampled(
    groups: tuple[SourceSplit, ...], _stamps: tuple[int, ...], column: str, row_count: float
) -> ColumnStatistics | None:
    rows = _rows(groups, [column])
    if rows is None:
        return None
    places = SampledPlaces(len(groups), max(rows.num_rows, sum(group.row_count for group in groups)))
    return sample_statistics([rows], row_count, places).get(column)


def _rows(groups: Sequence[SourceSplit], columns: Sequence[str]) -> pa.Table | None:
    """Return rows of row groups, each with the same chance; None where their chunks are too large, or no keys."""
    chance = min(1.0, SPREAD_ROWS_MAX / max(1, sum(group.row_count for group in groups)))
    schema: pa.Schema | None = None
    left_bytes, left_values = CHUNK_BYTES, CHUNK_VALUES
    drawn: list[pa.RecordBatch] = []
    with OpenFiles(columns) as files:
        for group in groups:
            file = files.of(group.path)
            left_bytes -= sum(_chunk_bytes(file.footer, group.start, column) for column in columns)
            left_values -= group.row_count
            fields = [pa.field(column, plain_type(file.found.field(column).type)) for column in columns]
            if left_bytes < 0 or left_values < 0 or not all(is_key_type(field.type) for field in fields):
                break
            if schema is not None and schema.types != [field.type for field in fields]:
                break  # files of several widths: those of the first one are enough for a sample
            schema = pa.schema(fields)
            stream = file.columns(group.start, columns, _BATCH_ROWS)
            rows_left = file.row_count(group.start)
            while rows_left:
                rows = min(_BATCH_ROWS, rows_left)
                batch = stream.read(pc.less(_draws().slice(0, rows), scalar_of(chance)) if chance < 1.0 else None)
                rows_left -= rows
                if batch is not None:
                    plain = plain_batch(batch)
                    arrays = [pc.cast(column, field.type) for column, field in zip(plain.columns, schema, strict=True)]
                    drawn.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
    if schema is None or any(batch.nbytes > WIDE_COLUMN_BYTES * max(1, batch.num_rows) for batch in drawn):
        return None
    return pa.Table.from_batches(drawn, schema=schema)


@lru_cache(maxsize=1)
def _draws() -> pa.Array:
    """Return a number from 0 to 1 for each row of a batch: always the same, so that a file gives the same sample."""
    return pc.random(_BATCH_ROWS, initializer=0)


def _chunk_bytes(metadata: pq.FileMetaData, group: int, column: str) -> int:
    """Return the decoded bytes of a column chunk as far as the footer knows them."""
    place = flat_leaves(metadata.schema).get(column)
    return CHUNK_BYTES + 1 if place is None else int(metadata.row_group(group).column(place).total_uncompressed_size)
