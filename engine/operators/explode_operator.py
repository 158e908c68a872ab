"""Explode as an operator: a row for each element of a list, the list's other columns repeated beside it.

    batch ──► lists ──► elements, and the row that each is of ──► take of the other columns ──► batches within bounds

    k  x            k  x
    a  [1, 2]       a  1
    b  []      ──►  a  2
    c  null         b  null      with keep_empty
                    c  null

A row may have millions of elements, or a text of megabytes beside a few of them. So a batch is divided before it
becomes longer: into halves until what comes of a part is within the bounds of a batch whichever row of it is the
widest, a single row by its elements.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from engine.expressions.list_parts import positions, running_total
from engine.graph.operator_descriptor import ExplodeOperator, OperatorDescriptor
from engine.operators.operator import ChainedOperator
from engine.records.arrow_batch import batch_bytes
from engine.records.arrow_functions import pc
from engine.records.batch_limits import BATCH_BYTES_MAX, BATCH_ROWS_MAX
from engine.records.bounded_batches import bounded_batches
from engine.records.plain_scalars import scalar_of


class Explode(ChainedOperator):
    """The elements of a list, a row each."""

    def __init__(self, descriptor: OperatorDescriptor) -> None:
        super().__init__(descriptor)
        operator = descriptor.operator
        assert isinstance(operator, ExplodeOperator)
        self._operator = operator

    @property
    def is_satisfied(self) -> bool:
        """True if the operators behind it need no more rows."""
        return self.output.is_satisfied

    def process(self, batch: pa.RecordBatch) -> None:
        """Pass on the rows of the elements, until no more are wanted."""
        operator = self._operator
        for piece in exploded(batch, operator.column, operator.position, operator.keep_empty):
            self.output.process(piece)
            if self.output.is_satisfied:
                return


def exploded(batch: pa.RecordBatch, column: str, position: str, keep_empty: bool) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a batch with an element in place of each list, in batches within the bounds."""
    index = batch.schema.get_field_index(column)
    lists = batch.column(index)
    if pa.types.is_map(lists.type):
        entry = pa.struct([pa.field("key", lists.type.key_type, nullable=False), lists.type.item_field])
        batch = batch.set_column(index, column, lists.cast(pa.list_(entry)))
        lists = batch.column(index)
    lengths = pc.cast(pc.fill_null(pc.list_value_length(lists), 0), pa.int64())
    counts = pc.max_element_wise(lengths, scalar_of(1)) if keep_empty else lengths
    # what is repeated beside the elements
    beside = batch.remove_column(index) if batch.num_columns > 1 else None
    waiting = [(0, batch.num_rows)]
    while waiting:
        start, count = waiting.pop()
        own = counts.slice(start, count)
        total = pc.sum(own).as_py()
        if not total:
            continue
        carried = 0 if beside is None else batch_bytes(beside.slice(start, count))
        most = pc.max(own).as_py()
        if total <= BATCH_ROWS_MAX and (most == 1 or carried * most <= BATCH_BYTES_MAX):
            yield from bounded_batches(_of_rows(batch.slice(start, count), index, own, total, position))
        elif count == 1:
            step = max(1, min(BATCH_ROWS_MAX, BATCH_BYTES_MAX // max(1, carried)))
            yield from _of_one_row(batch.slice(start, 1), index, step, position)
        else:
            half = count // 2
            waiting += [(start + half, count - half), (start, half)]


def _of_rows(rows: pa.RecordBatch, index: int, counts: pa.Array, total: int, position: str) -> pa.RecordBatch:
    """Return the exploded rows; ``counts``: elements of each row, 1 also for rows without any."""
    lists = rows.column(index)
    values = pc.list_flatten(lists)
    if not position and len(values) == total and lists.null_count == 0 and not pa.types.is_fixed_size_list(lists.type):
        return _put_together(rows, index, pc.list_parent_indices(lists), values, None, "")
    offsets = running_total(counts)
    parents = pc.list_parent_indices(pa.LargeListArray.from_arrays(offsets, pa.nulls(total)))
    places = pc.subtract(positions(total), pc.take(offsets, parents))
    if len(values) < total:
        lengths = pc.cast(pc.fill_null(pc.list_value_length(lists), 0), pa.int64())
        there = pc.greater(pc.take(lengths, parents), 0)
        places = pc.if_else(there, places, scalar_of(None, pa.int64()))
        values = pc.take(values, pc.add(pc.take(running_total(lengths), parents), places))
    return _put_together(rows, index, parents, values, places if position else None, position)


def _of_one_row(row: pa.RecordBatch, index: int, step: int, position: str) -> Iterator[pa.RecordBatch]:
    """Yield the exploded rows of one row with many elements, so many at a time."""
    values = pc.list_flatten(row.column(index))
    for start in range(0, len(values), step):
        part = values.slice(start, step)
        parents = pa.repeat(scalar_of(0), len(part))
        places = pc.add(positions(len(part)), scalar_of(start)) if position else None
        yield from bounded_batches(_put_together(row, index, parents, part, places, position))


def _put_together(
    rows: pa.RecordBatch, index: int, parents: pa.Array, values: pa.Array, places: pa.Array | None, position: str
) -> pa.RecordBatch:
    """Return a batch of the rows' columns by the numbers of rows, with values in place of one."""
    columns = [values if at == index else pc.take(each, parents) for at, each in enumerate(rows.columns)]
    names = list(rows.schema.names)
    if places is not None:
        columns.append(places)
        names.append(position)
    return pa.RecordBatch.from_arrays(columns, names=names)
