"""larger: small batches put together, for an operator that gives out many of a few rows.

    for batch in larger(join.finish_probe()): output.process(batch)

Partitions come back from disk page by page, and of a page of wide rows a join may leave ten. What follows pays for
every batch and every column of it, as much as for a hundred rows; arrays of so few rows are larger than what is in
them.

The first ones are handed on sooner, for who wants a few rows only. Limits: a batch is held back until enough have come,
so this is for streams that do not wait for anybody.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa

#: a batch of so many rows or bytes is large enough
ROWS_MIN: Final = 2048
BYTES_MIN: Final = 128 << 10


def larger(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in the same order, in fewer batches where they are small."""
    held: list[pa.RecordBatch] = []
    rows = size_bytes = 0
    rows_min = 1
    for batch in batches:
        batch_bytes = batch.nbytes
        if batch.num_rows >= rows_min or batch_bytes >= BYTES_MIN:
            if held:
                yield _joined(held)
                held, rows, size_bytes = [], 0, 0
            handed = [batch]
            del batch  # a wide one is not kept while the next is made
            yield handed.pop()
            rows_min = min(2 * rows_min, ROWS_MIN)
            continue
        held.append(batch)
        rows += batch.num_rows
        size_bytes += batch_bytes
        if rows >= rows_min or size_bytes >= BYTES_MIN:
            yield _joined(held)
            held, rows, size_bytes = [], 0, 0
            rows_min = min(2 * rows_min, ROWS_MIN)
    if held:
        yield _joined(held)


def _joined(held: list[pa.RecordBatch]) -> pa.RecordBatch:
    return held[0] if len(held) == 1 else pa.concat_batches(held)
