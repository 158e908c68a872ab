"""Selectivity of predicates, counted in a sample of a source's rows.

    counted(rows, predicates, is_whole) -> Counted(shares, bounds)      of sampled rows
    measured(counted, predicates, columns) -> what estimates take over (``optimizer.selectivity``)

Of each predicate the whole is counted, and each of its parts: rules may take them apart. A sample is the begin of a few
row groups; where its rows have less than half of the range that all rows have in some column, it is not asked about
predicates over that column: the source is sorted, or nearly. What fails for a row of the sample is left to the job.
A share of 0 is a proof: all rows of the source were looked at, and none meets the predicate (see
``optimizer.rules.constant_filters``).

Held by: tests/sources/test_key_samples.py
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
import pyarrow as pa

from engine.errors import EngineError
from engine.expressions.evaluate import evaluate
from engine.graph.expression import Expression, columns_of, conjuncts
from engine.graph.source_spec import ColumnStatistics, ComputedStatistics
from engine.records.arrow_functions import pc
from engine.statistics.column_statistics import plain_bound

#: limit of predicates and their parts that are counted for one source
_COUNTED_MAX: Final = 32
#: share of a column's range that the sample must cover
_COVERED: Final = 0.5
_TRUE: Final = "true"


class Counted(msgspec.Struct, frozen=True):
    """Selectivity of predicates in a sample: the share of rows by place, None where one fails; bounds of columns."""

    shares: tuple[float | None, ...]
    bounds: dict[str, tuple[float, float]]


def parts_of(predicates: Iterable[Expression]) -> tuple[Expression, ...]:
    """Return predicates, and what AND connects in them, once each, those of more parts first."""
    found: list[Expression] = []
    for predicate in predicates:
        parts = conjuncts(predicate)
        found += [part for part in ([predicate, *parts] if len(parts) > 1 else parts) if part not in found]
    return tuple(sorted(found, key=lambda part: -len(conjuncts(part)))[:_COUNTED_MAX])


def counted(rows: pa.Table, predicates: Sequence[Expression], is_whole: bool = False) -> Counted:
    """Count the rows that predicates keep; ``is_whole``: these are all rows of the source."""
    if not predicates or rows.num_rows == 0:
        return Counted((), {})
    (batch,) = rows.combine_chunks().to_batches()
    names = dict.fromkeys(name for predicate in predicates for name in columns_of(predicate))
    bounds = {name: found for name in names if (found := _bounds(batch.column(name))) is not None}
    # none of the sampled rows is half a row
    least = 0.0 if is_whole else 0.5
    return Counted(tuple(_share(batch, predicate, least) for predicate in predicates), bounds)


def measured(
    found: Counted, predicates: Sequence[Expression], columns: Mapping[str, ColumnStatistics]
) -> tuple[ComputedStatistics, ...]:
    """Return the shares of those predicates that the sample can speak of."""
    narrow = {name for name, bounds in found.bounds.items() if not _covers(bounds, columns.get(name))}
    return tuple(
        ComputedStatistics(predicate, ColumnStatistics(heavy_keys=((_TRUE, share),)))
        for predicate, share in zip(predicates, found.shares, strict=False)
        if share is not None and narrow.isdisjoint(columns_of(predicate))
    )


def _share(batch: pa.RecordBatch, predicate: Expression, least: float) -> float | None:
    try:
        kept = pc.sum(evaluate(predicate, batch)).as_py() or 0
    except (EngineError, pa.ArrowException):
        return None
    share: float = max(least, kept) / batch.num_rows
    return share


def _bounds(values: pa.Array) -> tuple[float, float] | None:
    """Return the lowest and the highest of numbers, dates and times; None for others."""
    try:
        found = pc.min_max(values)
        low, high = (plain_bound(found[side].as_py()) for side in ("min", "max"))
    except (pa.ArrowException, ValueError, OverflowError):
        return None
    if isinstance(low, int | float) and isinstance(high, int | float) and not isinstance(low, bool):
        return float(low), float(high)
    return None


def _covers(bounds: tuple[float, float], known: ColumnStatistics | None) -> bool:
    if known is None or not isinstance(known.minimum, int | float) or not isinstance(known.maximum, int | float):
        return True
    return bounds[1] - bounds[0] >= _COVERED * (known.maximum - known.minimum)
