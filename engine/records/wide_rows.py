"""Very wide rows at the edges of a process: how wide they are, and the room in which one is read or written.

    with room_for(row_bytes, COPIES) as room:         narrow rows do not wait, and room is None
        batch = read()                                one step of work: nothing is passed on inside
    for batch in one_by_one(batches, row_bytes):      the same for a reader of batches: what is passed on is reserved
    give_back()                                       what Arrow has freed of a row goes back to the system
    average_width(batch)                              how wide the rows of a batch are

There are several copies of a row of 64 MB while it is read or written: the page of the file, the array, the bytes for
the next file. So each of these steps has a reservation from the process's budget (``memory.budget``), and two
slots do it at the same time only where there is memory for both. Between the steps a slot holds one row, and a reader
what it has read.

A row that is larger than all memory for batches is refused with an error that names the setting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from engine.memory.blocks import drop_spare_blocks
from engine.memory.budget import Kind, process_budget
from engine.records.arrow_batch import used_bytes

if TYPE_CHECKING:
    from engine.memory.budget import Reservation

#: width from which rows are very wide
WIDE_BYTES: Final = 8 << 20
#: number of copies of a row while it is read, or written beside its source
COPIES: Final = 3
#: default pool of Arrow, from which Parquet takes its buffers whatever pool is set later
_PARQUET_POOL: Final = pa.default_memory_pool()
#: number of rows up to which one row of a batch may have most of its bytes
_FEW_ROWS: Final = 128
#: reservation for narrow rows, which most are: none; it may be entered any number of times
_NO_ROOM: Final = nullcontext()


def width_of(size_bytes: int, row_count: int) -> float:
    """Return the width of a batch's rows: the average, or the whole batch where one row may be most of it."""
    return size_bytes if row_count <= _FEW_ROWS else size_bytes / row_count


def average_width(batch: pa.RecordBatch) -> float:
    """Return the average width of the rows of a batch, which is not empty.

    A dictionary counts as far as the rows can use it: a few rows that a filter left have the texts of all others.
    """
    return used_bytes(batch) / int(batch.num_rows)


def room_for(
    row_bytes: float, copies: int = COPIES, is_ended: Callable[[], bool] = lambda: False
) -> AbstractContextManager[Reservation | None]:
    """Wait for the memory in which a row of this width is read or written; for narrow ones there is nothing to do.

    Raises: MemoryBudgetError: no process of this size has as much.
    """
    if row_bytes < WIDE_BYTES:
        return _NO_ROOM
    process_budget.check_record(int(row_bytes))
    _share_one_pool()
    return process_budget.step(Kind.ARROW, int(copies * row_bytes), is_ended)


def one_by_one(batches: Iterator[pa.RecordBatch], row_bytes: float) -> Iterator[pa.RecordBatch]:
    """Yield batches of rows of this width: very wide ones are read one at a time, each reserved until the next."""
    if row_bytes < WIDE_BYTES:
        yield from batches
        return
    while True:
        with room_for(row_bytes) as room:
            batch = next(batches, None)
            if batch is None:
                return
            assert room is not None, "wide rows have room"
            kept = room.split(batch.nbytes)
        with kept:
            give_back()
            yield batch
            give_back()


def give_back() -> None:
    """Return unused memory of Arrow and of batches to the system, after a wide row was read or written."""
    drop_spare_blocks()
    pa.default_memory_pool().release_unused()
    _PARQUET_POOL.release_unused()


def _share_one_pool() -> None:
    """Take all of Arrow's memory from one allocator from now on: what two have freed lies in memory twice.

    They differ where a script has loaded pyarrow before the engine could choose for Parquet as well.
    """
    if pa.default_memory_pool().backend_name != _PARQUET_POOL.backend_name:
        pa.set_memory_pool(_PARQUET_POOL)
