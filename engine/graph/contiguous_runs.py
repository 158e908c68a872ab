"""Contiguous runs: a row of sizes cut into pieces, the largest piece as small as possible.

    sizes   5 1 1 | 4 3 | 7        three runs: the largest has 7, and no other cut has a smaller one

Runs keep the order. The smallest possible largest share is found by bisection; a run is then closed when it reaches
that share, or when only as many sizes are left as runs. Pure. Cost: O(sizes * log(sum)).

Source: the linear partition problem (Skiena, The Algorithm Design Manual, 8.5).
Held by: tests/adaptive/test_decisions.py
"""

from __future__ import annotations

from collections.abc import Sequence


def contiguous_runs(sizes: Sequence[int], count: int) -> tuple[tuple[int, int], ...]:
    """Return ``count`` (>= 1) runs [begin, end) of ``sizes`` (each >= 0); the last are empty when sizes are few."""
    limit = _smallest_largest_share(sizes, count)
    runs = []
    begin = 0
    for run_index in range(count):
        left_runs = count - run_index - 1
        end, share = begin, 0
        while end < len(sizes) and (end == begin or (share + sizes[end] <= limit and len(sizes) - end > left_runs)):
            share += sizes[end]
            end += 1
        runs.append((begin, end))
        begin = end
    return tuple(runs)


def runs_needed(sizes: Sequence[int], limit: int) -> int:
    """Return the number of runs into which the sizes go when none may exceed ``limit`` except by a single size."""
    count, share = 0, 0
    for size in sizes:
        if count == 0 or share + size > limit:
            count += 1
            share = 0
        share += size
    return count


def _smallest_largest_share(sizes: Sequence[int], count: int) -> int:
    low, high = max(sizes, default=0), sum(sizes)
    while low < high:
        middle = (low + high) // 2
        if runs_needed(sizes, middle) <= count:
            high = middle
        else:
            low = middle + 1
    return low
