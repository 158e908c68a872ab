"""Stored filters: run-time filters of a join whose inputs are finished results, made where its build side is made.

    build side ──rows──────────► stored ──► join        KeyFilters: keys of all rows ─► one filter for each key
        └──► KeyFilters ──filters──► stored ──► source  read_stored_filters: before its first row

Each subtask has a part of the build side, so a source takes filters only if all subtasks have made one. A row of the
result, ``FILTER_ROWS``, has one filter as an Arrow stream.

Held by: tests/operators/test_stored_filters.py
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from engine.errors import CorruptBlockError
from engine.expressions.schema_bridge import to_arrow_schema
from engine.graph.operator_descriptor import KeyFilterOperator
from engine.memory.budget import Kind, process_budget
from engine.operators.filter_exchange import batches_of, placed_filter
from engine.operators.operator import ChainedOperator
from engine.operators.runtime_filters import KEY_BYTES_MAX, KEYS_MAX, filters_of_keys, reserved, together_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.operators.operator import Output, TaskContext
    from engine.operators.runtime_filters import RuntimeFilters
    from engine.operators.task_inputs import TaskInput
    from engine.records.key_filter import KeyFilter

#: keys of so many rows are put together, so that the other columns of their batches are not held
_PIECE_ROWS: Final = 1 << 16


class KeyFilters(ChainedOperator):
    """Makes filters of the keys of all rows; none of too many, and none where there is no memory for them."""

    def open(self, context: TaskContext, output: Output) -> None:
        """Take no memory yet."""
        super().open(context, output)
        operator = self.descriptor.operator
        assert isinstance(operator, KeyFilterOperator)
        self._operator = operator
        self._row_count = 0
        #: keys so far: a column each, its pieces; None: there will be no filter
        self._keys: list[list[pa.Array]] | None = [[] for _ in operator.columns]
        self._new: list[list[pa.Array]] = [[] for _ in operator.columns]
        self._new_rows = 0
        self._held = process_budget.reserve(Kind.ARROW)

    @property
    def is_satisfied(self) -> bool:
        """Whether there will be no filter."""
        return self._keys is None

    def process(self, batch: pa.RecordBatch) -> None:
        """Keep the keys."""
        if self._keys is None:
            return
        for name, new in zip(self._operator.columns, self._new, strict=True):
            new.append(batch.column(name))
        self._row_count += batch.num_rows
        self._new_rows += batch.num_rows
        if self._row_count > min(KEYS_MAX, self._operator.rows_max):
            self._give_up()
        elif self._new_rows >= _PIECE_ROWS:
            self._put_together()

    def finish(self) -> None:
        """Pass the filters on."""
        self._put_together()
        if self._keys is None:
            return
        below = to_arrow_schema(self.descriptor.input_schemas[0])
        empty = [pa.nulls(0, below.field(name).type) for name in self._operator.columns]
        arrays = [pieces or [none] for pieces, none in zip(self._keys, empty, strict=True)]
        places = [(self._operator.number, key) for key in range(len(arrays))]
        made = filters_of_keys(dict(zip(places, arrays, strict=True)), self._operator.sharers)
        if made is None:
            return
        try:
            rows = [_as_row(batch) for batch in batches_of(made)]
        finally:
            made.close()
        schema = to_arrow_schema(self.descriptor.output_schema)
        for row in rows:
            self.output.process(pa.RecordBatch.from_arrays([row], schema=schema))

    def close(self) -> None:
        """Give the memory back."""
        self._give_up()

    def _put_together(self) -> None:
        if self._keys is None or not self._new_rows:
            return
        for pieces, new in zip(self._keys, self._new, strict=True):
            # a copy, also of a single one: a slice holds the whole column that it was cut from
            pieces.append(pa.concat_arrays([*new, new[0].slice(0, 0)]))
        self._new = [[] for _ in self._keys]
        self._new_rows = 0
        size = sum(piece.nbytes for pieces in self._keys for piece in pieces)
        if size > KEY_BYTES_MAX or not self._held.resize(size):
            self._give_up()

    def _give_up(self) -> None:
        self._keys = None
        self._new = []
        self._held.close()


def _as_row(batch: pa.RecordBatch) -> pa.Array:
    """Return a column of one value, an Arrow stream of a batch, which is written where it stays."""
    size = pa.MockOutputStream()
    _write(batch, size)
    stream = pa.allocate_buffer(size.size())
    _write(batch, pa.FixedSizeBufferWriter(stream))
    ends = pa.array([0, stream.size], pa.int32()).buffers()[1]
    return pa.Array.from_buffers(pa.binary(), 1, [None, ends, stream])


def _write(batch: pa.RecordBatch, sink: pa.NativeFile) -> None:
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)


def read_stored_filters(inputs: Sequence[TaskInput]) -> RuntimeFilters | None:
    """Return the filters that come through inputs, to be closed; None: there are none.

    Raises:
        CorruptBlockError: what came is no filter.
    """
    found: dict[tuple[int, int], list[KeyFilter]] = {}
    for task_input in inputs:
        parts: dict[tuple[int, int], list[KeyFilter]] = defaultdict(list)
        for batch in task_input.batches():
            for row in batch.column(0):
                place, known = _filter_of(row.as_buffer())
                parts[place].append(known)
        producers = len(task_input.channels)
        found |= {place: filters for place, filters in parts.items() if len(filters) == producers}
    return reserved(together_at(found)) if found else None


def _filter_of(row: pa.Buffer) -> tuple[tuple[int, int], KeyFilter]:
    try:
        return placed_filter(pa.ipc.open_stream(row).read_next_batch())
    except (ValueError, KeyError, OSError, StopIteration) as error:
        raise CorruptBlockError(f"a stored filter of a join: {error}") from error
