"""in_turns: batches that are made one by one, each very wide one within a turn of the process (``wide_rows``).

    for batch in in_turns(sorter.batches()): output.process(batch); del batch

A batch with a wide value is read into memory when it is asked for. So the turn begins before that, and ends when the
next one is asked for: what becomes of it in this task is within the turn too, as for rows that a reader gives. Who
makes the batches may keep the last one until it makes the next. So behind a wide one the turn goes on: else each task
that waits for its turn would keep one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from engine.connectors.wide_rows import WIDE_BYTES, turn, width_of
from engine.memory import value_stores
from engine.memory.wide_turns import go_on


def in_turns(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches; where they are as wide as the last one was, while no other task handles so wide a one."""
    source = iter(batches)
    width: float = WIDE_BYTES if value_stores.any_open() else 0
    while True:
        with turn(width):
            has_turn = width >= WIDE_BYTES
            goes_on = True
            while goes_on:
                go_on()
                batch = next(source, None)
                if batch is None:
                    return
                width = width_of(batch.nbytes, batch.num_rows)
                goes_on = has_turn and width >= WIDE_BYTES
                handed = [batch]
                del batch  # not kept while the next one is made
                yield handed.pop()
