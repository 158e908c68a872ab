"""Values of other rows: over blocks, of rows whose block is gone, and of rows that are not there."""

import pyarrow as pa
import pytest

from engine.window import rank_kernels
from engine.window.group_bounds import GroupEnd, GroupStart
from engine.window.row_values import RowValues
from tests.window.queues import blocks_of, queue_of

LEVELS = [0, 2, 2, 1, 2, 2, 2, 2, 2, 1]
COLUMNS = {
    "texts": pa.array(["a", None, "c", "d", "e", "f", None, "h", "i", "j"]),
    "lists": pa.array([[1], None, [], [2, 3], [4], [5], [6], [7], None, [9]]),
    "structs": pa.array([{"a": number} if number % 3 else None for number in range(10)]),
}


@pytest.mark.parametrize("sizes", [(10,), (1,) * 10, (4, 3, 3)], ids=str)
@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("offset", [-3, -1, 0, 1, 2])
def test_values_so_many_rows_away(workshop, sizes, name, offset):
    column = COLUMNS[name]
    with workshop.operator(4) as (_, space):
        queue = queue_of(space, column, LEVELS, sizes)
        starts, ends, values = GroupStart(1), GroupEnd(1), RowValues(0)
        found = []
        for block in blocks_of(queue):
            rows = rank_kernels.shifted(starts.of(block), ends.of(block, queue), offset, True)
            found += values.at(rows, queue).to_pylist()
        partitions = ((0, 3), (3, 9), (9, 10))
        rows = [(row, start, end) for start, end in partitions for row in range(start, end)]
        wanted = [row + offset if start <= row + offset < end else None for row, start, end in rows]
        assert found == [None if row is None else column[row].as_py() for row in wanted]
        queue.close()


def test_a_first_value_is_kept_when_its_block_is_gone(workshop):
    with workshop.operator(4) as (_, space):
        queue = queue_of(space, COLUMNS["texts"], LEVELS, (4, 3, 3))
        starts, ends, values = GroupStart(1), GroupEnd(1), RowValues(0)
        found = []
        for block in blocks_of(queue):
            begin = starts.of(block)
            found += values.at(rank_kernels.nth_rows(begin, ends.of(block, queue), 1), queue).to_pylist()
            queue.drop(block.stop)
        assert found == ["a"] * 3 + ["d"] * 6 + ["j"]
        queue.close()
