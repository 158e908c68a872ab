"""Splits that follow one another are joined, and each thread keeps some to take."""

import pytest

from engine.graph.source_spec import SourceSplit
from engine.operators.joined_splits import joined_splits


def splits_of(*runs):
    return [SourceSplit(path, group, group + 1, 10, 3) for path, begin, end in runs for group in range(begin, end)]


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("runs", [[("a", 0, 200)], [("a", 0, 50), ("a", 51, 60), ("b", 60, 140)], [("a", 0, 7)]])
def test_joined_splits_are_the_same_row_groups_in_order(runs, threads):
    splits = splits_of(*runs)
    joined = joined_splits(splits, threads)
    assert [(one.path, group) for one in joined for group in range(one.start, one.end)] == [
        (one.path, one.start) for one in splits
    ]
    assert sum(one.size_bytes for one in joined) == 10 * len(splits)
    assert all(one.row_count == 3 * (one.end - one.start) for one in joined)
    assert len(joined) >= min(len(splits), 4 * threads)


def test_many_splits_are_joined_by_two_dozen_and_few_are_not():
    sizes = [one.end - one.start for one in joined_splits(splits_of(("a", 0, 800)), 2)]
    assert sizes[:25] == [24] * 25
    few = splits_of(("a", 0, 7))
    assert joined_splits(few, 2) is few
    assert joined_splits([], 1) == []


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_runs_are_shorter_towards_the_end_and_the_last_ones_are_single_splits(threads):
    sizes = [one.end - one.start for one in joined_splits(splits_of(("a", 0, 200)), threads)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-2 * threads :] == [1] * 2 * threads
    lefts = [sum(sizes[number:]) for number in range(len(sizes))]
    assert all(size * 2 * threads <= left or size == 1 for size, left in zip(sizes, lefts, strict=True))
