"""A batch is bounded by rows and by bytes, so that wide records do not break the promise of memory."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from engine.records.batch_limits import BATCH_BYTES_MAX, BATCH_ROWS_MAX


def bounded_batches(batch: pa.RecordBatch, rows_max: int = BATCH_ROWS_MAX) -> Iterator[pa.RecordBatch]:
    """Yield slices of a batch, each within the limits of rows and (about) bytes, never less than one row."""
    rows = batch.num_rows
    if rows == 0:
        return
    row_bytes = max(1, batch.nbytes // rows)
    step = max(1, min(rows_max, BATCH_BYTES_MAX // row_bytes))
    if rows <= step:
        handed = [batch]
        del batch  # a wide one is not kept while it is handled
        yield handed.pop()
        return
    for start in range(0, rows, step):
        yield batch.slice(start, step)
