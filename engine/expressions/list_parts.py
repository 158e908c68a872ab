"""Elements of lists by their positions, without a look at each list in Python.

    element_at(lists, index)        the element at a position, negative from the end, null beyond

    offsets ──► begin + index, or end + index ──► null where that is outside ──► take

Held by: tests/expressions/test_text_functions.py
"""

from __future__ import annotations

import pyarrow as pa

from engine.expressions.binding import Datum
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of


def bounds_of(lists: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return where each list begins and ends in ``lists.values``, as int64."""
    offsets = pc.cast(lists.offsets, pa.int64())
    return offsets.slice(0, len(lists)), offsets.slice(1, len(lists))


def element_at(lists: pa.Array, index: Datum) -> pa.Array:
    """Return the element of each list at a position, an int or int64 values; null where the list has none there."""
    begins, ends = bounds_of(lists)
    position = scalar_of(index, pa.int64()) if isinstance(index, int) else index
    # far positions are as good as one beyond the longest list, and do not overflow
    position = pc.min_element_wise(pc.max_element_wise(position, -(2**40), skip_nulls=False), 2**40, skip_nulls=False)
    place = pc.if_else(pc.less(position, 0), pc.add(ends, position), pc.add(begins, position))
    is_there = pc.and_(pc.greater_equal(place, begins), pc.less(place, ends))
    is_there = pc.and_(is_there, pc.is_valid(lists))
    return pc.take(lists.values, pc.if_else(is_there, place, scalar_of(None, pa.int64())))
