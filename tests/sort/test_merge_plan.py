"""Which runs are merged together."""

from hypothesis import given
from hypothesis import strategies as st

from engine.sort.merge_plan import BLOCK_SIZE_MIN, FAN_IN_MAX, block_size_bytes, fan_in, next_window


def test_few_runs_need_no_merge_before_the_last_one():
    assert next_window([10, 10, 10], 3) is None
    assert next_window([], 2) is None


def test_the_first_merge_takes_what_makes_the_later_ones_full():
    assert next_window([40, 40, 40, 40, 7], 4) == (3, 2)
    assert next_window([10] * 7, 4) == (0, 4)
    assert next_window([10] * 6, 4) == (0, 3)


@given(st.lists(st.integers(1, 1000), max_size=300), st.integers(2, 40))
def test_a_plan_ends_with_at_most_fan_in_runs_and_loses_no_byte(sizes, fan_in_count):
    total = sum(sizes)
    written = steps = 0
    window = next_window(sizes, fan_in_count)
    while window is not None:
        start, count = window
        assert 2 <= count <= fan_in_count
        assert start >= 0
        assert start + count <= len(sizes)
        merged = sum(sizes[start : start + count])
        sizes = [*sizes[:start], merged, *sizes[start + count :]]
        written += merged
        steps += 1
        window = next_window(sizes, fan_in_count)
        assert window is None or window[1] == fan_in_count, "only the first step is smaller"
    assert sum(sizes) == total
    assert len(sizes) <= fan_in_count or steps == 0


@given(st.integers(1, 1 << 40))
def test_blocks_of_all_runs_fit_half_of_the_memory(memory):
    block = block_size_bytes(memory)
    ways = fan_in(memory, block)
    assert 2 <= ways <= FAN_IN_MAX
    assert ways == 2 or ways * block <= memory // 2
    assert block >= BLOCK_SIZE_MIN


def test_memory_of_six_small_pages_merges_three_runs_at_once():
    assert (block_size_bytes(6 * 4096), fan_in(6 * 4096, 4096)) == (4096, 3)


def test_a_large_memory_merges_at_least_64_runs_at_once():
    for memory in (1 << 20, 16 << 20, 1 << 30):
        assert fan_in(memory, block_size_bytes(memory)) >= 64


@given(st.integers(1, 1 << 34), st.integers(0, 5000), st.integers(1, 64))
def test_readers_of_many_sorters_open_few_files_and_one_intermediate_merge_is_enough(memory, runs, readers):
    ways = fan_in(memory, block_size_bytes(memory), runs, readers)
    assert ways >= 2
    assert ways * ways >= runs
    assert ways <= fan_in(memory, block_size_bytes(memory), runs)
    needed = max(2, int(max(runs - 1, 0) ** 0.5) + 1)
    assert ways <= needed or ways * readers**2 <= 512
