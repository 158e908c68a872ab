"""Splits are assigned to subtasks by their bytes, in order."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from engine.jobmaster.split_assignment import assign_splits
from tests.jobmaster.job_graphs import splits


def largest_share(runs):
    return max((sum(split.size_bytes for split in run) for run in runs), default=0)


def best_possible(sizes, parallelism):
    best = sum(sizes)
    for cuts in itertools.combinations_with_replacement(range(len(sizes) + 1), parallelism - 1):
        bounds = [0, *cuts, len(sizes)]
        best = min(best, max(sum(sizes[a:b]) for a, b in itertools.pairwise(bounds)))
    return best


@given(st.lists(st.integers(1, 50), max_size=7), st.integers(1, 4))
def test_runs_keep_the_order_and_the_largest_share_is_the_smallest_possible(sizes, parallelism):
    given_splits = splits(*sizes)
    runs = assign_splits(given_splits, parallelism)
    assert len(runs) == parallelism
    assert [split for run in runs for split in run] == list(given_splits)
    assert largest_share(runs) == best_possible(sizes, parallelism)


@given(st.lists(st.integers(0, 10**12), max_size=200), st.integers(1, 64))
def test_no_subtask_is_idle_while_there_are_splits_for_it(sizes, parallelism):
    runs = assign_splits(splits(*sizes), parallelism)
    assert sum(bool(run) for run in runs) == min(len(sizes), parallelism)


def test_one_giant_split_does_not_drag_others_along():
    runs = assign_splits(splits(100, 1, 1, 1), 2)
    assert [len(run) for run in runs] == [1, 3]
