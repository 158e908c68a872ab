"""A row group that does not fit into memory beside those of others: read part by part into a file, then put together.

    columns   a b c │ d e │ f ...                        parts that fit into what was reserved (pages.py)
    pass 1    batches of a b c ─► values of the space
    pass 2    batches of d e   ─► values of the space ...
    then      batch 1 of all parts, batch 2 of all parts, ...       each read back when it is asked for

Every part is read once and written once, so it costs a write and a read of the row group, and holds one part at a time,
then one batch of each. The passes of a process are made one after the other (``memory.budget``): no row is passed on in
between, so that is no waiting in a circle, and however many readers there are, one of them holds pages. The values lie
in a spill space: checked when they come back, deleted when the row group ends, counted as spilled. Cancelling the space
ends the passes.

Invariant: batches of all parts have the same numbers of rows, whatever the reader of the file gives.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from engine.errors import TaskCancelledError
from engine.memory.budget import Kind
from engine.memory.heap import decay_at_once
from engine.memory.value_stores import Place, read_back
from engine.parquet.pages import parts
from engine.records.plain_types import plain_batch
from engine.records.side_by_side import SideBySide

if TYPE_CHECKING:
    from engine.iomanager.spill_space import SpillSpace
    from engine.memory.budget import Budget

    #: place of a written batch, and its bytes
    Written = tuple[Place, int]


class PartReader(Protocol):
    """Reads some columns of the row group in batches of so many rows."""

    def __call__(self, columns: Sequence[str], rows: int) -> Iterable[pa.RecordBatch]:
        """Return the batches."""
        ...


def read_in_passes(
    read: PartReader, sizes: Mapping[str, int], rows: int, new_space: Callable[[], SpillSpace], budget: Budget
) -> Iterator[pa.RecordBatch]:
    """Yield batches of ``rows`` rows with all columns, of which ``sizes`` says what is held of each while it is read.

    Raises: TaskCancelledError, DiskFullError, SpillError; CorruptBlockError for a damaged file.
    """
    with decay_at_once(), contextlib.closing(new_space()) as space:
        schemas: list[pa.Schema] = []
        places: list[list[Written]] = []
        with budget.step(Kind.ARROW, None, lambda: space.is_cancelled) as reservation:
            if space.is_cancelled:
                raise TaskCancelledError("cancelled before a row group was read")
            for columns in parts(list(sizes), sizes, reservation.size):
                schema, written = _write(space, regular_batches(read(columns, rows), rows))
                if schema is None:
                    return
                schemas.append(schema)
                places.append(written)
        if len({len(one) for one in places}) > 1:
            raise pa.ArrowInvalid("its columns do not have the same number of rows")
        side = SideBySide()
        for batch_places in zip(*places, strict=True):
            yield side.of([_read(place, schema) for place, schema in zip(batch_places, schemas, strict=True)])


def _write(space: SpillSpace, batches: Iterable[pa.RecordBatch]) -> tuple[pa.Schema | None, list[Written]]:
    schema: pa.Schema | None = None
    places: list[Written] = []
    for batch in map(plain_batch, batches):
        schema = batch.schema
        value = memoryview(batch.serialize()).cast("B")
        del batch  # neither is kept while the next one is read
        places.append((space.write_value(value), len(value)))
        del value
    return schema, places


def _read(place: Written, schema: pa.Schema) -> pa.RecordBatch:
    written, size_bytes = place
    buffer = pa.allocate_buffer(size_bytes)
    read_back(written, memoryview(buffer).cast("B"))
    return pa.ipc.read_record_batch(buffer, schema)


def regular_batches(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Regroup rows into batches of exactly ``rows``, except the last one."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        count += batch.num_rows
        held.append(batch)
        del batch  # a wide one is not kept while the next is read
        if count == rows and len(held) == 1:
            yield held.pop()
            count = 0
            continue
        while count >= rows:
            whole = pa.concat_batches(held)
            yield whole.slice(0, rows)
            count -= rows
            held = [whole.slice(rows)] if count else []
    if count:
        yield held[0] if len(held) == 1 else pa.concat_batches(held)
