"""Merge plan: the runs that are merged together, when there are more than can be read at once.

    block size   one block of each run is in memory while it is read; a row that is larger is a block of its own
    fan-in       how many runs fit: half of the sorter's bytes hold blocks, the rest holds the output. However small
                 a sorter is, MERGE_BYTES_MIN hold blocks: each page less there would be paid in bytes written again
    steps        windows of neighbouring runs, merged into one run in their place, until the fan-in suffices

    runs  [40 40 40 40 7]   fan-in 4   ──►   merge the window (3, 2): [40 40 40 47]   ──►   the final merge reads 4

Only neighbours are merged, so that rows with equal keys stay in order of arrival. The first step merges just as many
runs as make all the later ones full. The windows of a pass lie side by side, where the fewest bytes are: windows here
and there would leave gaps too small for one, and what has been merged would be merged again.

A run is merged at most once before the last merge: n runs have a fan-in of at least the square root of n, also where
that many blocks do not fit (a few KiB more than the budget, for an input of thousands of times the memory). So what
is spilled is at most twice the input; with 128 runs or fewer it is the input.

Invariants: 2 <= fan-in; a plan of n runs ends with at most fan-in runs; no run is left out.

Source: Knuth, The Art of Computer Programming 3, 5.4.9 (optimum merge patterns); Flink's MAX_FAN_IN is 128.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

FAN_IN_MAX = 512
#: bytes of blocks that one merge may hold in any case, from the memory for I/O
MERGE_BYTES_MIN = 2 << 20
LARGE_BYTES = 32 << 20
BLOCK_SIZE_MIN = 4 << 10
BLOCK_SIZE_MAX = 256 << 10


def block_size_bytes(memory_bytes: int) -> int:
    """Return the block size of runs: the power of two that lets 256 blocks fit half of the memory, within bounds.

    Of a large memory, whose runs are few, 128: each block costs a call and two changes of threads.
    """
    wanted = max(memory_bytes // (512 if memory_bytes < LARGE_BYTES else 256), 1)
    power = 1 << (wanted.bit_length() - 1)
    return min(max(power, BLOCK_SIZE_MIN), BLOCK_SIZE_MAX)


def fan_in(memory_bytes: int, block_sizes: Sequence[int], reader_count: int = 1) -> int:
    """Return the number of runs of one sorter that may be read at the same time.

    Those that fit, whichever they are, and enough for one intermediate merge. Where ``reader_count`` readers merge the
    runs of as many sorters, each reader has that part of its memory for the runs of one sorter.

    Args: block_sizes: bytes of the largest block of each run.
    """
    room = max(memory_bytes // 2, MERGE_BYTES_MIN) // reader_count
    blocks = itertools.accumulate(sorted(block_sizes, reverse=True))
    fitting = sum(held <= room for held in itertools.islice(blocks, FAN_IN_MAX))
    return max(fitting, 2, math.isqrt(max(len(block_sizes) - 1, 0)) + 1)


def merge_steps(sizes: list[int], fan_in_count: int) -> Iterator[tuple[int, int]]:
    """Yield (first index, count) of the neighbouring runs to merge next, until the final merge can begin.

    Each merged run lies where the first of its parts lay; the index is in the list as it is by then.

    Args: sizes: bytes of each run, in order of arrival; fan_in_count: 2 or more.
    """
    sizes = list(sizes)
    while (surplus := len(sizes) - fan_in_count) > 0:
        # A merge of c runs takes away c - 1. What does not divide evenly goes first, while runs are small.
        remainder = surplus % (fan_in_count - 1)
        counts = [remainder + 1] * (remainder > 0) + [fan_in_count] * (surplus // (fan_in_count - 1))
        # Each run once: what cannot be had of these runs is merged of the merged ones.
        while sum(counts) > len(sizes):
            counts.pop()
        start = _cheapest(sizes, sum(counts))
        for count in counts:
            yield start, count
            sizes[start : start + count] = [sum(sizes[start : start + count])]
            start += 1


def _cheapest(sizes: list[int], count: int) -> int:
    """Return the index of the first of ``count`` neighbouring runs with the fewest bytes."""
    window = sum(sizes[:count])
    best, best_start = window, 0
    for start in range(1, len(sizes) - count + 1):
        window += sizes[start + count - 1] - sizes[start - 1]
        if window < best:
            best, best_start = window, start
    return best_start
