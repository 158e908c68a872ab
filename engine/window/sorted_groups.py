"""SortedGroups: aggregates of rows that come sorted by keys, then in any order, in one pass; a row for each group.

    groups = SortedGroups(schema, keys, calls, budget_bytes, space)
    for batch in groups.add(sorted_batch): ...       groups that have ended
    for batch in groups.finish(): ...                the last one
    groups.close()                                   always; idempotent

    batch   │ ..open │ group │ group │ group │ open.. │      groups that lie in a batch are done at once, by kernels
                 └─► the group that reaches over batches: its rows wait in a BlockQueue, which spills them

A quantile is selected from the values of its group; of one that is larger than memory its rows are read a few times.
A list is the result and lies in memory: one that is larger than the operator's pool is an error.

    list        values for which ``where`` is true, in the order of the rows; null without any
    quantile    between the two values beside share * (n - 1) (``quantiles``)
    only        the first value that is not null

Held by: tests/window/test_sorted_groups.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from engine.errors import MemoryBudgetError
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import array_of, scalar_of
from engine.records.plain_types import plain_batch, plain_schema
from engine.window.block_queue import BlockQueue
from engine.window.group_kernels import first_kept, group_starts, kept_before
from engine.window.key_levels import KeyLevels
from engine.window.quantiles import quantile_type, quantiles, searched_quantile

if TYPE_CHECKING:
    from engine.graph.window import SortedCall
    from engine.iomanager.spill_space import SpillSpace

#: a list may be as large as that whatever the budget
LIST_BYTES_MIN = 1 << 20
#: values of a group that are selected from at once: one for so many bytes of the budget, and so many in any case
SEARCH_ROW_BYTES = 64
SEARCH_ROWS_MIN = 1 << 14


def sorted_schema(schema: pa.Schema, keys: Sequence[str], calls: Sequence[SortedCall]) -> pa.Schema:
    """Return the schema of the result of rows of a schema: keys, then the calls by their names."""
    results = [pa.field(call.name, _result_type(call, schema.field(call.argument).type)) for call in calls]
    return pa.schema([*(schema.field(key) for key in keys), *results])


def _result_type(call: SortedCall, data_type: pa.DataType) -> pa.DataType:
    if call.function == "list":
        return pa.list_(data_type)
    return quantile_type(data_type) if call.function == "quantile" else data_type


class SortedGroups:
    """Args: schema: of the sorted batches; budget_bytes: of rows that wait, and of a list."""

    def __init__(
        self,
        schema: pa.Schema,
        keys: Sequence[str],
        calls: Sequence[SortedCall],
        budget_bytes: int,
        space: SpillSpace,
        *,
        force_spill: bool = False,
    ) -> None:
        self._schema = plain_schema(schema)
        self._keys = list(keys)
        self._calls = list(calls)
        self._budget_bytes = budget_bytes
        self._space = space
        self._force_spill = force_spill
        self._levels = KeyLevels(self._keys)
        self._open: _OpenGroup | None = None
        #: schema of the output
        self.schema = sorted_schema(self._schema, self._keys, calls)

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Take a batch (not empty) and yield groups that have ended."""
        rows = plain_batch(batch)
        starts = group_starts(self._levels.of(rows), len(self._keys))
        first = starts[0].as_py() if len(starts) else rows.num_rows
        if first > 0:
            assert self._open is not None, "the first row of all begins a group"
            self._open.add(rows.slice(0, first))
        if len(starts) == 0:
            return
        if self._open is not None:
            yield self._open.result()
            self._open.close()
        last = starts[len(starts) - 1].as_py()
        if len(starts) > 1:
            yield self._whole_groups(rows, starts)
        self._open = _OpenGroup(self)
        self._open.add(rows.slice(last))

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Yield the last group; without keys there is one whatever the rows are."""
        if self._open is not None:
            yield self._open.result()
        elif not self._keys:
            yield pa.RecordBatch.from_arrays([pa.nulls(1, field.type) for field in self.schema], schema=self.schema)

    def close(self) -> None:
        """Give back what waits."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def _whole_groups(self, rows: pa.RecordBatch, bounds: pa.Array) -> pa.RecordBatch:
        """Return the groups between bounds; the rows from the last bound on are not looked at."""
        starts = bounds.slice(0, len(bounds) - 1)
        columns = [pc.take(rows.column(key), starts) for key in self._keys]
        for call in self._calls:
            values = rows.column(call.argument)
            if call.function == "list":
                where = None if call.where is None else rows.column(call.where)
                columns.append(lists_between(values, where, bounds))
            elif call.function == "quantile":
                columns.append(quantiles(values, None, bounds, call.share))
            else:
                columns.append(pc.take(values, first_kept(pc.is_valid(values), bounds)))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def lists_between(values: pa.Array, where: pa.Array | None, bounds: pa.Array) -> pa.ListArray:
    """Return the values between bounds as lists, null where none is kept."""
    if where is None:
        first = bounds[0]
        offsets = pc.cast(pc.subtract(bounds, first), pa.int32())
        values = values.slice(first.as_py(), offsets[len(offsets) - 1].as_py())
        return pa.ListArray.from_arrays(offsets, values, type=pa.list_(values.type))
    kept = pc.fill_null(where, False)
    offsets = kept_before(kept, bounds)
    first, last = bounds[0].as_py(), bounds[len(bounds) - 1].as_py()
    chosen = pc.filter(values.slice(first, last - first), kept.slice(first, last - first))
    count = len(bounds) - 1
    is_empty = pc.equal(offsets.slice(0, count), offsets.slice(1))
    return pa.ListArray.from_arrays(offsets, chosen, type=pa.list_(values.type), mask=is_empty)


class _OpenGroup:
    """The group whose end has not come yet."""

    def __init__(self, groups: SortedGroups) -> None:
        self._groups = groups
        self._queue = BlockQueue(lambda _: [], groups._budget_bytes, groups._space, force_spill=groups._force_spill)
        self._keys: list[pa.Array] = []
        #: number of values of each quantile
        self._counts = [0] * len(groups._calls)
        self._only: list[pa.Array | None] = [None] * len(groups._calls)
        self._list_bytes = 0
        self._keeps_rows = any(call.function != "only" for call in groups._calls)

    def add(self, rows: pa.RecordBatch) -> None:
        """Take the next rows of the group."""
        if not self._keys:
            self._keys = [pc.take(rows.column(key), array_of([0])) for key in self._groups._keys]
        for index, call in enumerate(self._groups._calls):
            values = rows.column(call.argument)
            if call.function == "quantile":
                self._counts[index] += len(values) - values.null_count
            elif call.function == "list":
                kept = values if call.where is None else pc.filter(values, rows.column(call.where))
                self._list_bytes += kept.nbytes
                self._check_list(call)
            elif self._only[index] is None and values.null_count < len(values):
                self._only[index] = pc.drop_null(values).slice(0, 1)
        if self._keeps_rows:
            self._queue.add(rows, pa.repeat(scalar_of(0, pa.uint8()), rows.num_rows))
            self._queue.shrink()

    def _check_list(self, call: SortedCall) -> None:
        most = max(self._groups._budget_bytes, LIST_BYTES_MIN)
        if self._list_bytes > most:
            keys = ", ".join(f"{name}={value[0]}" for name, value in zip(self._groups._keys, self._keys, strict=True))
            # the part of an expression has a generated name
            name = "collect_list or string_agg" if call.name.startswith("__") else call.name
            raise MemoryBudgetError(
                f"{name}: the list of the group {keys or 'of all rows'} has more than {most} bytes, which is the "
                "memory of its operator: give the TaskManager more (taskmanager.memory.managed.size where that is set, "
                "else taskmanager.memory.process.size), keep fewer values by filter= or distinct=, or leave them as "
                "rows, for group_by(...).reduce(...) or a window"
            )

    def result(self) -> pa.RecordBatch:
        """Return the group's row."""
        columns = list(self._keys)
        for index, call in enumerate(self._groups._calls):
            data_type = self._groups._schema.field(call.argument).type
            if call.function == "list":
                columns.append(self._list(call, data_type))
            elif call.function == "quantile":
                columns.append(self._quantile(call, self._counts[index], data_type))
            else:
                found = self._only[index]
                columns.append(pa.nulls(1, data_type) if found is None else found)
        return pa.RecordBatch.from_arrays(columns, schema=self._groups.schema)

    def _blocks(self) -> Iterator[pa.RecordBatch]:
        row = 0
        while row < self._queue.stop:
            block = self._queue.block_at(row)
            yield block.batch
            row = block.stop

    def _list(self, call: SortedCall, data_type: pa.DataType) -> pa.Array:
        pieces = []
        for rows in self._blocks():
            values = rows.column(call.argument)
            if call.where is not None:
                values = pc.filter(values, rows.column(call.where))
            pieces.append(values)
        values = pa.concat_arrays(pieces) if pieces else pa.nulls(0, data_type)
        bounds = pa.array([0, len(values)], pa.int32())
        mask = pa.array([len(values) == 0])
        return pa.ListArray.from_arrays(bounds, values, type=pa.list_(data_type), mask=mask)

    def _quantile(self, call: SortedCall, count: int, data_type: pa.DataType) -> pa.Array:
        if count == 0:
            return pa.nulls(1, quantile_type(data_type))
        rows_max = max(SEARCH_ROWS_MIN, self._groups._budget_bytes // SEARCH_ROW_BYTES)
        if self._queue.stop <= rows_max:
            values = pa.concat_arrays(self._values(call.argument))
            return quantiles(values, None, array_of([0, len(values)]), call.share)
        return searched_quantile(lambda: self._values(call.argument), data_type, count, call.share, rows_max)

    def _values(self, column: str) -> Iterator[pa.Array]:
        return (rows.column(column) for rows in self._blocks())

    def close(self) -> None:
        """Give back what waits."""
        self._queue.close()
