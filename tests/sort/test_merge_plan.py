"""Which runs are merged together."""

from hypothesis import given
from hypothesis import strategies as st

from engine.sort.merge_plan import (
    BLOCK_SIZE_MIN,
    FAN_IN_MAX,
    MERGE_BYTES_MIN,
    block_size_bytes,
    fan_in,
    merge_steps,
)


def test_few_runs_need_no_merge_before_the_last_one():
    assert list(merge_steps([10, 10, 10], 3)) == []
    assert list(merge_steps([], 2)) == []


def test_the_first_merge_takes_what_makes_the_later_ones_full():
    assert list(merge_steps([40, 40, 40, 40, 7], 4)) == [(3, 2)]
    assert list(merge_steps([10] * 7, 4)) == [(0, 4)]
    assert list(merge_steps([10] * 6, 4)) == [(0, 3)]
    assert list(merge_steps([90, 10, 10, 10, 10, 10], 3)) == [(1, 2), (2, 3)]


@given(st.lists(st.integers(1, 1000), max_size=300), st.integers(2, 40))
def test_a_plan_ends_with_at_most_fan_in_runs_and_loses_no_byte(sizes, fan_in_count):
    total, runs = sum(sizes), len(sizes)
    written = 0
    for step, (start, count) in enumerate(merge_steps(sizes, fan_in_count)):
        assert 2 <= count <= fan_in_count
        assert step == 0 or count == fan_in_count, "only the first step is smaller"
        assert 0 <= start <= len(sizes) - count
        merged = sum(sizes[start : start + count])
        sizes = [*sizes[:start], merged, *sizes[start + count :]]
        written += merged
    assert sum(sizes) == total
    assert len(sizes) == min(runs, fan_in_count)
    assert runs > fan_in_count**2 or written <= total, "no run is merged twice before the last merge"


@given(st.integers(1, 1 << 40))
def test_blocks_of_all_runs_fit_half_of_the_memory_or_the_room_of_a_small_merge(memory):
    block = block_size_bytes(memory)
    ways = fan_in(memory, [block] * 600)
    assert 128 <= ways <= FAN_IN_MAX
    assert ways >= 256 or memory >= 32 << 20
    assert ways * block <= max(memory // 2, MERGE_BYTES_MIN)
    assert block >= BLOCK_SIZE_MIN


@given(st.integers(1, 1 << 34), st.integers(0, 3000), st.integers(1, 64))
def test_readers_of_many_sorters_share_memory_and_one_intermediate_merge_is_enough(memory, runs, readers):
    block = block_size_bytes(memory // readers)
    ways = fan_in(memory, [block] * runs, readers)
    assert ways >= 2
    assert ways * ways >= runs
    assert ways <= fan_in(memory, [block] * runs)
    needed = max(2, int(max(runs - 1, 0) ** 0.5) + 1)
    assert ways <= needed or ways * readers * block <= max(memory // 2, MERGE_BYTES_MIN)


def test_runs_of_rows_larger_than_blocks_are_merged_in_the_same_room():
    """Whichever runs are neighbours: the largest are counted first."""
    large = MERGE_BYTES_MIN // 8
    assert fan_in(0, [large] * 60) == 8
    assert fan_in(0, [large] * 100) == 10, "one intermediate merge is enough"
    assert fan_in(0, [4096] * 50 + [MERGE_BYTES_MIN // 2] + [4096] * 600) == 257
    assert fan_in(0, [MERGE_BYTES_MIN * 2] * 2) == 2
