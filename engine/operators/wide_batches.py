"""in_turns: batches that are made one by one, each very wide one within a turn of the process (``wide_rows``).

    for batch in in_turns(sorter.batches()): output.process(batch); del batch

A batch with a wide value is read into memory when it is asked for. So the turn begins before that, and ends when the
next one is asked for: what becomes of it in this task is within the turn too, as for rows that a reader gives. A narrow
one is made within a turn as well, for nobody knows before, and handed on outside: behind NARROW_COUNT of them nobody
expects a wide one, and none waits any more. Who makes the batches may keep the last one until it makes the next. So
behind a wide one the turn goes on: else each task that waits for its turn would keep one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

import pyarrow as pa

from engine.memory import value_stores
from engine.memory.wide_turns import go_on, has_seen_wide
from engine.records.wide_rows import WIDE_BYTES, turn, width_of

#: behind so many narrow batches in a row the next is taken for narrow, too
NARROW_COUNT: Final = 16


def in_turns(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches; the very wide ones while no other task handles so wide a one."""
    source = iter(batches)
    narrow_count = 0
    while True:
        may_be_wide = narrow_count < NARROW_COUNT and has_seen_wide() and value_stores.any_open()
        with turn(WIDE_BYTES if may_be_wide else 0):
            handed = list(islice(source, 1))  # in a list: a batch is not kept while the next one is made
            while may_be_wide and handed and _width(handed[0]) >= WIDE_BYTES:
                narrow_count = 0
                yield handed.pop()
                go_on()
                handed = list(islice(source, 1))
            if not handed:
                return
        width = _width(handed[0])
        narrow_count = 0 if width >= WIDE_BYTES else narrow_count + 1
        with turn(width):
            yield handed.pop()
        go_on()


def _width(batch: pa.RecordBatch) -> float:
    return width_of(batch.nbytes, batch.num_rows)
