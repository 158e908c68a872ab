"""Ranges of rows of a row group: those that pages leave, and which of a batch's they are.

    ranges = of_pages(first_rows, row_count, [True, False, ...])     rows of the pages that are possible
    both = common(ranges, others)
    share_of(ranges, start, count) -> ALL_ROWS, NO_ROWS, or a mask of a batch's rows

Ranges are pairs (first row, row behind the last one), ascending, with rows between them that are in none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from engine.records.plain_scalars import scalar_of

Ranges = list[tuple[int, int]]

ALL_ROWS: Final = True
NO_ROWS: Final = False


def of_pages(first_rows: Sequence[int], row_count: int, are_possible: Sequence[bool]) -> Ranges:
    """Return the rows of pages that are possible, of which each begins with a row of these."""
    ranges: Ranges = []
    for start, end, is_possible in zip(first_rows, [*first_rows[1:], row_count], are_possible, strict=True):
        if not is_possible or start == end:
            continue
        if ranges and ranges[-1][1] == start:
            ranges[-1] = (ranges[-1][0], end)
        else:
            ranges.append((start, end))
    return ranges


def common(ranges: Ranges, others: Ranges) -> Ranges:
    """Return the rows that are in both."""
    found: Ranges = []
    index = other = 0
    while index < len(ranges) and other < len(others):
        start, end = max(ranges[index][0], others[other][0]), min(ranges[index][1], others[other][1])
        if start < end:
            found.append((start, end))
        if ranges[index][1] < others[other][1]:
            index += 1
        else:
            other += 1
    return found


def share_of(ranges: Ranges, start: int, count: int) -> bool | pa.BooleanArray:
    """Return the mask of ``count`` rows from ``start`` on that are in the ranges."""
    inside = common(ranges, [(start, start + count)])
    if not inside:
        return NO_ROWS
    if inside == [(start, start + count)]:
        return ALL_ROWS
    parts, at = [], start
    for first, end in inside:
        parts += [pa.repeat(scalar_of(False), first - at), pa.repeat(scalar_of(True), end - first)]
        at = end
    return pa.concat_arrays([*parts, pa.repeat(scalar_of(False), start + count - at)])
