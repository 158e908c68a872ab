"""Which splits each subtask reads: contiguous runs, in order, the largest run as small as possible.

    sizes   5 1 1 | 4 3 | 7        parallelism 3: the largest share is 7, and no assignment of runs has a smaller one

Runs keep the order of rows: reading the subtasks one after the other reads the source in order. The smallest
possible largest share is found by bisection; runs are then closed when they reach it, or when only as many splits are
left as subtasks. Pure. Cost: O(splits * log(bytes)).

Source: the linear partition problem (Skiena, The Algorithm Design Manual, 8.5).
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.graph.source_spec import SourceSplit


def assign_splits(splits: Sequence[SourceSplit], parallelism: int) -> tuple[tuple[SourceSplit, ...], ...]:
    """Return one run of splits for each of ``parallelism`` subtasks (>= 1); some are empty when splits are few."""
    sizes = [max(1, split.size_bytes) for split in splits]
    limit = _smallest_largest_share(sizes, parallelism)
    runs: list[tuple[SourceSplit, ...]] = []
    begin = 0
    for subtask_index in range(parallelism):
        left_subtasks = parallelism - subtask_index - 1
        end, share = begin, 0
        while end < len(splits) and (
            end == begin or (share + sizes[end] <= limit and len(splits) - end > left_subtasks)
        ):
            share += sizes[end]
            end += 1
        runs.append(tuple(splits[begin:end]))
        begin = end
    return tuple(runs)


def _smallest_largest_share(sizes: Sequence[int], parallelism: int) -> int:
    low, high = max(sizes, default=0), sum(sizes)
    while low < high:
        middle = (low + high) // 2
        if _runs_needed(sizes, middle) <= parallelism:
            high = middle
        else:
            low = middle + 1
    return low


def _runs_needed(sizes: Sequence[int], limit: int) -> int:
    count, share = 0, 0
    for size in sizes:
        if count == 0 or share + size > limit:
            count += 1
            share = 0
        share += size
    return count
