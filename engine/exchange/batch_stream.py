"""Batches as bytes: how columns travel in buffers that are not read by reference.

    stream_of(batch) ─► bytes ─► pieces in buffers of kind BATCH, the last one LAST_BATCH ─► batch_of(bytes)

Held by: tests/exchange/test_stored_columns.py
"""

from __future__ import annotations

import pyarrow as pa

from engine.errors import CorruptBlockError


def stream_of(batch: pa.RecordBatch) -> memoryview:
    """Return a batch as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return memoryview(sink.getvalue()).cast("B")


def batch_of(content: bytearray) -> pa.RecordBatch:
    """Return the batch in an Arrow IPC stream, over the same bytes.

    Raises:
        CorruptBlockError: they are none; later kernels trust the batch's offsets.
    """
    try:
        with pa.ipc.open_stream(pa.py_buffer(content)) as stream:
            batch = stream.read_next_batch()
        batch.validate(full=True)
    except (pa.ArrowException, OSError, StopIteration) as error:
        raise CorruptBlockError(f"{len(content)} bytes of an exchange are not a batch: {error}") from error
    return batch
