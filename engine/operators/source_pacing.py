"""Pacing: batches of a source at no more than so many rows a second, smoothly.

    paced(batches, rows_per_second, wait)     batches cut into slices of about SLICE_S; a slice comes when it is due

A slice is due when, at the rate, its last row would be: n rows take n / rate seconds, the first ones too. What was late
(a slow disk, a consumer that made the source wait) is caught up with, but no more than CATCH_UP_S of it.

    share_of(splits, own)     part of the source, 0..1, that one subtask reads: its part of the rate, so that all of
                              them end together
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.graph.source_spec import SourceSplit

SLICE_S: Final = 0.05
CATCH_UP_S: Final = 0.5
#: longest sleep, so that a cancelled task ends soon
_NAP_S: Final = 0.05


def share_of(splits: Sequence[SourceSplit], own: Sequence[SourceSplit]) -> float:
    """Return the share of ``own`` in all splits, by rows where they are known, else by bytes."""
    if all(split.row_count >= 0 for split in splits):
        part, whole = sum(split.row_count for split in own), sum(split.row_count for split in splits)
    else:
        part, whole = sum(split.size_bytes for split in own), sum(split.size_bytes for split in splits)
    return part / whole if part else 1.0


def paced(
    batches: Iterable[pa.RecordBatch],
    rows_per_second: float,
    check_cancelled: Callable[[], None],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of batches, in order, when they are due.

    Args:
        batches: of the source.
        rows_per_second: more than 0.
        check_cancelled: called while waiting, at least every 50 ms; raises when the task is to end.
        clock: seconds from anywhere.
        sleep: for so many seconds.
    """
    slice_rows = max(1, int(rows_per_second * SLICE_S))
    due = clock()
    for batch in batches:
        for start in range(0, batch.num_rows, slice_rows):
            piece = batch if batch.num_rows <= slice_rows else batch.slice(start, slice_rows)
            due = max(due, clock() - CATCH_UP_S) + piece.num_rows / rows_per_second
            while (left := due - clock()) > 0:
                check_cancelled()
                sleep(min(left, _NAP_S))
            yield piece
