"""Contiguous runs: a row of sizes cut into pieces, the largest piece as small as possible.

    sizes   5 1 1 | 4 3 | 7        three runs: the largest has 7, and no other cut has a smaller one

Runs keep the order. The smallest possible largest share is found by bisection; a run is then closed when it reaches
that share, or when only as many sizes are left as runs. The end of a run is looked up among the sums of the first
sizes. Pure. Cost: O(sizes + runs * log(sizes) * log(largest size)).

Source: the linear partition problem (Skiena, The Algorithm Design Manual, 8.5).
Held by: tests/adaptive/test_decisions.py
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate


def contiguous_runs(sizes: Sequence[int], count: int) -> tuple[tuple[int, int], ...]:
    """Return ``count`` (>= 1) runs [begin, end) of ``sizes`` (each >= 0); the last are empty when sizes are few."""
    limit, last = _smallest_largest_share(sizes, count), len(sizes)
    sums = [0, *accumulate(sizes)]
    runs = []
    begin = 0
    for left_runs in reversed(range(count)):
        # as far as the limit reaches, if each run behind it gets one; one at least
        reached = min(bisect_right(sums, sums[begin] + limit, begin) - 1, last - left_runs)
        end = max(reached, min(begin + 1, last))
        runs.append((begin, end))
        begin = end
    return tuple(runs)


def runs_needed(sizes: Sequence[int], limit: int) -> int:
    """Return the number of runs into which the sizes go when none may exceed ``limit`` except by a single size."""
    return _runs_of([0, *accumulate(sizes)], limit)


def _runs_of(sums: Sequence[int], limit: int) -> int:
    """Return the number of runs of sizes (each >= 0), of which ``sums`` has those of the first 0, 1, 2 and so on."""
    count, begin, last = 0, 0, len(sums) - 1
    while begin < last:
        begin = max(begin + 1, bisect_right(sums, sums[begin] + limit, begin) - 1)
        count += 1
    return count


def _smallest_largest_share(sizes: Sequence[int], count: int) -> int:
    if len(sizes) <= count:
        return max(sizes, default=0)
    sums = [0, *accumulate(sizes)]
    even, largest = -(-sums[-1] // count), max(sizes, default=0)
    # Each run but the last has more than an even share where the next size goes beyond that by less than itself.
    low, high = max(largest, even), min(sums[-1], even + largest)
    while low < high:
        middle = (low + high) // 2
        if _runs_of(sums, middle) <= count:
            high = middle
        else:
            low = middle + 1
    return low
