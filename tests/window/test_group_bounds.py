"""Where groups begin and end, and the rankings made of that, whatever the blocks."""

import pyarrow as pa
import pytest

from engine.window import rank_kernels
from engine.window.group_bounds import OPEN_END, GroupEnd, GroupNumber, GroupStart
from tests.window.queues import blocks_of, queue_of

#: two keys: partitions [0, 3) [3, 9) [9, 10), peers in the second one [3, 5) [5, 6) [6, 9)
LEVELS = [0, 2, 3, 1, 3, 2, 2, 3, 3, 1]
STARTS = [0, 0, 0, 3, 3, 3, 3, 3, 3, 9]
ENDS = [3, 3, 3, 9, 9, 9, 9, 9, 9, 10]
PEER_STARTS = [0, 1, 1, 3, 3, 5, 6, 6, 6, 9]
PEER_ENDS = [1, 3, 3, 5, 5, 6, 9, 9, 9, 10]
SIZES = [(10,), (1,) * 10, (3, 6, 1), (4, 4, 2), (9, 1)]


def opened(space, sizes, **how):
    return queue_of(space, pa.array(range(10)), LEVELS, sizes, **how)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_groups_begin_and_end_where_levels_say(workshop, sizes):
    with workshop.operator(4) as (_, space):
        queue = opened(space, sizes)
        for kernel, wanted in ((1, (STARTS, ENDS)), (2, (PEER_STARTS, PEER_ENDS))):
            starts, ends = GroupStart(kernel), GroupEnd(kernel)
            found = ([], [])
            for block in blocks_of(queue):
                found[0].extend(starts.of(block).array().to_pylist())
                found[1].extend(ends.of(block, queue).array().to_pylist())
            assert found == wanted
        numbers = GroupNumber(1, 2)
        found = [value for block in blocks_of(queue) for value in numbers.of(block).array().to_pylist()]
        assert found == [1, 2, 2, 1, 1, 2, 3, 3, 3, 1]
        queue.close()


def test_an_end_that_is_not_there_yet_is_asked_for_again(workshop):
    with workshop.operator(4) as (_, space):
        queue = opened(space, (7,), ended=False)
        block = queue.block_at(0)
        ends, open_ends = GroupEnd(1), GroupEnd(1)
        assert ends.of(block, queue) is None
        assert open_ends.of(block, queue, False).array().to_pylist() == [3, 3, 3] + [OPEN_END] * 4
        queue.add(pa.record_batch({"x": [0, 0, 0]}), pa.array(LEVELS[7:], pa.uint8()))
        assert ends.of(block, queue).array().to_pylist() == ENDS[:7]
        assert open_ends.of(block, queue, False).array().to_pylist() == ENDS[:7]
        assert ends.of(queue.block_at(7), queue) is None
        queue.has_ended = True
        assert ends.of(queue.block_at(7), queue).array().to_pylist() == ENDS[7:]
        queue.close()


def test_rankings_of_one_block(workshop):
    with workshop.operator(4) as (_, space):
        queue = opened(space, (10,))
        block = queue.block_at(0)
        starts, ends = GroupStart(1).of(block), GroupEnd(1).of(block, queue)
        peers, peer_ends = GroupStart(2).of(block), GroupEnd(2).of(block, queue)
        assert rank_kernels.offset_from(starts).to_pylist() == [1, 2, 3, 1, 2, 3, 4, 5, 6, 1]
        assert rank_kernels.ranks(starts, peers).to_pylist() == [1, 2, 2, 1, 1, 3, 4, 4, 4, 1]
        assert rank_kernels.percent_ranks(starts, peers, ends).to_pylist() == [
            0, 0.5, 0.5, 0, 0, 0.4, 0.6, 0.6, 0.6, 0,
        ]  # fmt: skip
        assert rank_kernels.cumulative(starts, peer_ends, ends).to_pylist()[3:] == [2 / 6, 2 / 6, 3 / 6, 1, 1, 1, 1]
        assert rank_kernels.tiles(starts, ends, 4).to_pylist() == [1, 2, 3, 1, 1, 2, 2, 3, 4, 1]
        assert rank_kernels.frame_rows(peers, ends).to_pylist() == [3, 2, 2, 6, 6, 4, 3, 3, 3, 1]
        queue.close()


def test_offsets_stay_within_the_partition_however_large_they_are(workshop):
    with workshop.operator(4) as (_, space):
        queue = opened(space, (10,))
        block = queue.block_at(0)
        starts, ends = GroupStart(1).of(block), GroupEnd(1).of(block, queue)
        assert rank_kernels.shifted(starts, ends, -2).array().to_pylist() == [0, 0, 0, 3, 3, 3, 4, 5, 6, 9]
        assert rank_kernels.shifted(starts, ends, 2, True).array().to_pylist() == [2, -1, -1, 5, 6, 7, 8, -1, -1, -1]
        for most in (2**62, -(2**62)):
            assert rank_kernels.shifted(starts, ends, most, True).array().to_pylist() == [-1] * 10
        assert rank_kernels.shifted(starts, ends, 2**62).array().to_pylist() == ENDS
        assert rank_kernels.nth_rows(starts, ends, 3).array().to_pylist() == [2, 2, 2, 5, 5, 5, 5, 5, 5, -1]
        assert rank_kernels.nth_rows(starts, starts, -1).array().to_pylist() == [-1] * 10
        queue.close()
