"""PairCondition: what a pair of rows with equal keys must fulfil as well before it counts as a match.

    PairCondition(columns, schema, predicate)
        columns      ((side, column index there), ...)          side 0 is the join's left input, 1 its right
        schema       of exactly these columns, in this order: what the predicate is given
        predicate    batch of pairs ─► Mask, or BooleanArray; null counts as not true

    join ... on l.key = r.key and l.begin <= r.time        the part behind the keys

The join gathers the named columns of its candidate pairs, batch by batch, and asks the predicate once for each batch. A
row all of whose pairs fail is a row without match. The predicate may raise; its error is the join's.

Held by: tests/join/test_join_condition.py
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pyarrow as pa

from engine.records.row_mask import Mask


class PairCondition(msgspec.Struct, frozen=True):
    """The residual condition of a join."""

    #: (side, column index there) of each column; side 0 is left, 1 right
    columns: tuple[tuple[int, int], ...]
    #: schema of those columns
    schema: pa.Schema
    #: null is not true
    predicate: Callable[[pa.RecordBatch], pa.BooleanArray | Mask]
