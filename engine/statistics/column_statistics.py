"""Statistics of columns from a sample of rows: widths, nulls, distinct values, heavy keys.

    sample_statistics(tables, row_count, places=None) -> {column: ColumnStatistics}
    key_text(value) -> the text of a key, or None
    footer_bounds(statistics of a Parquet chunk) -> (minimum, maximum), or None
    plain_bound(value) -> what statistics have as minimum or maximum, None for types that plans do not use
    SpreadSample: rows spread evenly over a stream of unknown length

Distinct values are scaled up by the Duj1 estimator: with f1 the values seen once, n sampled rows of N and d distinct
in the sample, d / (1 - (1 - n/N) * f1/n); all different gives N, all repeated gives d. That takes the rows for drawn
from everywhere, so equal values side by side count as one draw, a run: the lines of an order say its customer several
times, and are one order. Rows of a few places tell nothing about the others where a file is sorted: the sample has each
value in one run, the estimate is made for the places alone, and what changes there changes everywhere. A heavy key
makes at least HEAVY_SHARE of the sampled rows, and HEAVY_COUNT_MIN rows, so that chance makes none. A key is written as
the text that Arrow casts back to it, also to the wider type of a join. Minimum and maximum of a sample are not those of
the whole and are left out.

Source: Haas and Stokes, Estimating the Number of Classes in a Finite Population (1998).
Held by: tests/statistics/test_heavy_key_statistics.py
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa

from engine.graph.source_spec import ColumnStatistics
from engine.records.arrow_functions import pc
from engine.records.key_types import is_key_type
from engine.records.plain_scalars import scalar_of

HEAVY_SHARE = 0.02
HEAVY_COUNT_MIN = 8
HEAVY_KEYS_MAX = 32
#: limit of the length of keys in a plan
_KEY_TEXT_MAX = 200
#: rows of a sample taken from everywhere
SPREAD_ROWS_MAX = 16_384
_SPREAD_BYTES_MAX = 8 << 20
#: limit of batches in a sample: each takes some KB beside its rows, and most give one row or none
_PIECES_MAX = 64
_DAY_SECONDS = 86_400.0
_EPOCH_DAY = date(1970, 1, 1).toordinal()
#: average width above which a column is not sampled: one value could fill the memory
WIDE_COLUMN_BYTES = 16 << 10


class SampledPlaces(msgspec.Struct, frozen=True):
    """Stretches of the whole that sampled rows come from, in their order; ``row_count``: all rows of the stretches."""

    count: int
    row_count: float


def sample_statistics(
    tables: Sequence[pa.Table], row_count: float, places: SampledPlaces | None = None
) -> dict[str, ColumnStatistics]:
    """Return statistics by column from sampled rows of a whole of ``row_count`` rows; {} without rows.

    Without places the rows are drawn from everywhere.
    """
    # Files may have the same column in several widths.
    table = pa.concat_tables(tables, promote_options="permissive") if tables else None
    if table is None or table.num_rows == 0:
        return {}
    row_count = max(row_count, table.num_rows)
    places = places or SampledPlaces(1, row_count)
    return {field.name: column_statistics(table.column(field.name), row_count, places) for field in table.schema}


def column_statistics(column: pa.ChunkedArray, row_count: float, places: SampledPlaces) -> ColumnStatistics:
    """Return statistics of a column of which some rows, at least one, are known."""
    rows = len(column)
    null_fraction = column.null_count / rows
    if not is_key_type(column.type) or column.null_count == rows:
        return ColumnStatistics(null_fraction=null_fraction)
    counted, runs = _value_counts(column), _value_counts(_runs(column))
    if len(counted) < len(column) - column.null_count and pc.max(runs.field("counts")).as_py() == 1:
        in_places = _scaled_up(counted, min(1.0, rows / places.row_count))
        distinct = in_places + (row_count / places.row_count - 1) * max(0.0, in_places - places.count)
    else:
        distinct = _scaled_up(runs, min(1.0, rows / row_count))
    return ColumnStatistics(
        distinct_count=min(max(distinct, len(counted)), row_count * (1 - null_fraction)),
        null_fraction=null_fraction,
        average_width_bytes=average_width(column),
        heavy_keys=_heavy_keys(counted, rows),
    )


def _scaled_up(counted: pa.StructArray, fraction: float) -> float:
    """Return the distinct values of the whole of which a fraction was counted."""
    counts = counted.field("counts")
    seen_once = pc.sum(pc.equal(counts, scalar_of(1))).as_py() or 0
    return len(counts) / max(1e-9, 1.0 - (1.0 - fraction) * float(seen_once / pc.sum(counts).as_py()))


def _runs(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the values that are not null, those of them once that lie side by side and are equal."""
    return pa.chunked_array([pc.run_end_encode(pc.drop_null(column.combine_chunks())).values])


def average_width(column: pa.ChunkedArray) -> float | None:
    """Return the mean bytes of a variable-width column's values, None for other types."""
    data_type = column.type
    if not (pa.types.is_large_string(data_type) or pa.types.is_large_binary(data_type)) and not (
        pa.types.is_string(data_type) or pa.types.is_binary(data_type)
    ):
        return None
    mean = pc.mean(pc.binary_length(column)).as_py()
    return None if mean is None else float(mean)


def heavy_keys_of(column: pa.ChunkedArray, least_share: float) -> tuple[tuple[str, float], ...]:
    """Return (text, share of the rows) of a column's values that have at least a share, the heaviest first."""
    return _heavy_keys(_value_counts(column), len(column), least_share)


def _value_counts(column: pa.ChunkedArray) -> pa.StructArray:
    """Return (values, counts) of the different values that are not null."""
    if pa.types.is_decimal(column.type) and column.type.bit_width < 128:
        # Arrow counts the values of wider decimals only
        column = pc.cast(column, pa.decimal128(column.type.precision, column.type.scale))
    return pc.value_counts(pc.drop_null(column.combine_chunks()))


def _heavy_keys(counted: pa.StructArray, rows: int, least_share: float = HEAVY_SHARE) -> tuple[tuple[str, float], ...]:
    least = max(HEAVY_COUNT_MIN, least_share * rows)
    is_heavy = pc.greater_equal(counted.field("counts"), scalar_of(float(least)))
    if not pc.any(is_heavy).as_py():
        return ()
    heavy = pc.filter(counted, is_heavy)
    order = pc.sort_indices(heavy.field("counts"), sort_keys=[("counts", "descending")])[:HEAVY_KEYS_MAX]
    heaviest = pc.take(heavy, order)
    pairs = zip(_key_texts(heaviest.field("values")), heaviest.field("counts").to_pylist(), strict=True)
    return tuple((text, count / rows) for text, count in pairs if text is not None)


def key_text(value: pa.Scalar) -> str | None:
    """Return the text that Arrow casts to the value, None when it has none (times, bytes that are no text)."""
    (found,) = _key_texts(pa.repeat(value, 1))
    return found


def _key_texts(values: pa.Array) -> list[str | None]:
    """Return the texts of keys, None for those that have none."""
    try:
        texts = pc.cast(values, pa.string())
        same = pc.cast(texts, values.type)
        found = texts.to_pylist()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
        # one of them may have none where the others have
        return [None] if len(values) == 1 else [text for key in values for text in _key_texts(pa.repeat(key, 1))]
    if pa.types.is_float16(values.type):
        # Arrow compares wider floats only
        same, values = pc.cast(same, pa.float32()), pc.cast(values, pa.float32())
    is_same = pc.equal(same, values)
    if pa.types.is_floating(values.type):
        is_same = pc.or_(is_same, pc.is_nan(same))
    return [
        text if len(text) <= _KEY_TEXT_MAX and is_key else None
        for text, is_key in zip(found, is_same.to_pylist(), strict=True)
    ]


def footer_bounds(known: Any) -> tuple[Any, Any] | None:
    """Return minimum and maximum of a column chunk's statistics, which have them.

    None where Python has no such value: texts that are not UTF-8, dates and timestamps beyond the years 1 to 9999.
    """
    try:
        return known.min, known.max
    except (UnicodeDecodeError, OverflowError, ValueError):
        return None


def plain_bound(value: Any) -> bool | int | float | str | None:
    """Return a bound as statistics have it: decimals as floats, dates and times as days since 1970."""
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, datetime):
        return value.replace(tzinfo=value.tzinfo or UTC).timestamp() / _DAY_SECONDS
    return float(value.toordinal() - _EPOCH_DAY) if isinstance(value, date) else None


class SpreadSample:
    """Rows of a stream, each with the same chance, which is halved whenever more than SPREAD_ROWS_MAX are held.

    Every row draws a number from a fixed sequence and stays while that is below the chance: the same stream gives the
    same sample, and a pattern in the rows meets none in the draws. A column that is wide in one batch is null in the
    whole sample, and ``widths`` has how wide it is.
    """

    def __init__(self) -> None:
        self._pieces: list[tuple[pa.RecordBatch, pa.Array]] = []
        self._chance = 1.0
        self._batch_count = 0
        self._bytes = 0
        #: rows and bytes of each wide column, since it was found to be wide
        self._wide: dict[str, tuple[int, int]] = {}

    @property
    def widths(self) -> dict[str, float]:
        """Average width of the columns that are too wide to be held."""
        return {name: size_bytes / rows for name, (rows, size_bytes) in self._wide.items()}

    def add(self, batch: pa.RecordBatch) -> None:
        """Take rows of the next batch."""
        draws = pc.random(batch.num_rows, initializer=self._batch_count)
        self._batch_count += 1
        self._keep(self._drawn(self._without_wide(batch), draws))
        while sum(len(piece) for piece, _ in self._pieces) > SPREAD_ROWS_MAX or self._bytes > _SPREAD_BYTES_MAX:
            self._chance /= 2
            pieces, self._pieces, self._bytes = self._pieces, [], 0
            for piece in pieces:
                self._keep(self._drawn(*piece))

    def table(self, schema: pa.Schema) -> pa.Table:
        """Return the sampled rows."""
        return pa.Table.from_batches([_nulled(batch, self._wide) for batch, _ in self._pieces], schema=schema)

    def _keep(self, piece: tuple[pa.RecordBatch, pa.Array]) -> None:
        if piece[0].num_rows == 0:
            return
        self._pieces.append(piece)
        self._bytes += piece[0].nbytes
        if len(self._pieces) > _PIECES_MAX:
            self._put_together()

    def _put_together(self) -> None:
        """Make one piece of all."""
        rows = pa.Table.from_batches([_nulled(batch, self._wide) for batch, _ in self._pieces]).combine_chunks()
        draws = pa.concat_arrays([draws for _, draws in self._pieces])
        whole = pa.RecordBatch.from_arrays([column.chunk(0) for column in rows.columns], schema=rows.schema)
        self._pieces, self._bytes = [(whole, draws)], whole.nbytes

    def _without_wide(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch with nulls in place of wide columns."""
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if name in self._wide or column.nbytes > WIDE_COLUMN_BYTES * len(column):
                rows, size_bytes = self._wide.get(name, (0, 0))
                self._wide[name] = rows + len(column), size_bytes + column.nbytes
        return _nulled(batch, self._wide)

    def _drawn(self, batch: pa.RecordBatch, draws: pa.Array) -> tuple[pa.RecordBatch, pa.Array]:
        is_drawn = pc.less(draws, scalar_of(self._chance))
        return pc.filter(batch, is_drawn), pc.filter(draws, is_drawn)


def _nulled(batch: pa.RecordBatch, names: Container[str]) -> pa.RecordBatch:
    """Return a batch with nulls in the columns of some names."""
    if not any(name in names for name in batch.schema.names):
        return batch
    columns = zip(batch.schema, batch.columns, strict=True)
    arrays = [pa.nulls(batch.num_rows, field.type) if field.name in names else column for field, column in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)
