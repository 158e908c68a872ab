"""Queues of blocks for tests: rows of one column, with levels by hand."""

import pyarrow as pa

from engine.window.block_queue import BlockQueue
from engine.window.functions import kernel_type, to_kernel


def queue_of(space, column, levels, sizes, budget=1 << 20, ended=True):
    """A queue that holds a column in blocks of some sizes; kernels read it as column 0."""
    form = kernel_type(column.type)
    queue = BlockQueue(lambda batch: [to_kernel(batch.column(0), form)] if form else [], budget, space)
    start = 0
    for size in sizes:
        batch = pa.record_batch({"x": column.slice(start, size)})
        queue.add(batch, pa.array(levels[start : start + size], pa.uint8()))
        queue.shrink()
        start += size
    queue.has_ended = ended
    return queue


def blocks_of(queue):
    """All blocks, in order."""
    row = 0
    while (block := queue.next_block(row)) is not None:
        yield block
        row = block.stop
