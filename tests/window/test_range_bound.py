"""Frames by distances, against a plain loop: nulls and NaN at either end, both directions, ends of types."""

import math
from decimal import Decimal

import pyarrow as pa
import pytest

from engine.window.functions import kernel_type
from engine.window.group_bounds import GroupStart
from engine.window.range_bound import RangeBound
from tests.window.queues import blocks_of, queue_of

INFINITE = math.inf
KEYS = {
    "ascending": (pa.array([None, None, 1, 3, 3, 4, 9, 9], pa.int32()), False, False),
    "descending, nulls last": (pa.array([9, 9, 4, 3, 3, 1, None, None], pa.int64()), True, True),
    "floats": (pa.array([None, -INFINITE, -1.5, 0.0, 1.0, INFINITE, math.nan, math.nan]), False, False),
    "floats descending": (pa.array([math.nan, INFINITE, 1.0, 0.5, -INFINITE, None, None, None]), True, True),
    "ends of int64": (pa.array([-(2**63), -(2**63) + 2, 0, 2**63 - 3, 2**63 - 1] + [None] * 3), False, True),
    "uint64": (pa.array([0, 1, 5, 2**64 - 3, 2**64 - 1, None, None, None], pa.uint64()), False, True),
    "decimals": (pa.array([Decimal(n) for n in (-5, -3, -3, 0, 1, 4, 4, 9)], pa.decimal128(10, 0)), False, False),
}


def plain_bounds(keys, offset, is_end, descending, nulls_last):
    """The bound of each row, by definition."""

    def place(key):
        if key is None:
            return (2 if nulls_last else -2, 0)
        if isinstance(key, float) and math.isnan(key):
            return (-1 if descending else 1, 0)
        return (0, -key if descending else key)

    found = []
    for key in keys:
        rank, value = place(key)
        target = (rank, value + offset if rank == 0 else 0)
        passed = [place(other) <= target if is_end else place(other) < target for other in keys]
        found.append(passed.index(False) if False in passed else len(keys))
    return found


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("offset", [-100, -2, -1, 1, 3, 100])
@pytest.mark.parametrize("is_end", [False, True])
def test_bounds_are_those_of_the_definition(workshop, name, offset, is_end):
    column, descending, nulls_last = KEYS[name]
    wanted = plain_bounds(column.to_pylist(), offset, is_end, descending, nulls_last)
    for sizes in ((8,), (1,) * 8, (3, 4, 1)):
        with workshop.operator(4) as (_, space):
            queue = queue_of(space, column, [0, *[2] * 7], sizes)
            starts = GroupStart(1)
            form = kernel_type(column.type)
            bound = RangeBound(0, form, offset, is_end, 1, descending, nulls_last)
            found = []
            for block in blocks_of(queue):
                found += bound.of(block, starts.of(block), queue).array().to_pylist()
            assert found == wanted
            queue.close()


def test_a_bound_waits_for_rows_and_ends_with_its_partition(workshop):
    column = pa.array([1, 2, 3, 1, 2, 3], pa.int64())
    with workshop.operator(4) as (_, space):
        queue = queue_of(space, column.slice(0, 2), [0, 2], (2,), ended=False)
        bound, starts = RangeBound(0, pa.int64(), 1, True, 1, False, False), GroupStart(1)
        block = queue.block_at(0)
        begin = starts.of(block)
        assert bound.of(block, begin, queue) is None
        queue.add(pa.record_batch({"x": column.slice(2)}), pa.array([2, 1, 2, 2], pa.uint8()))
        assert bound.of(block, begin, queue).array().to_pylist() == [2, 3]
        block = queue.block_at(2)
        begin = starts.of(block)
        assert bound.of(block, begin, queue) is None
        queue.has_ended = True
        assert bound.of(block, begin, queue).array().to_pylist() == [3, 5, 6, 6]
        queue.close()
