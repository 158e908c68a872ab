"""Sort as an operator: takes all input, then emits it in order.

It takes Arrow batches, and row pages straight from an exchange: rows stay rows; a page is copied whole into the
operator's own memory, so its network buffer goes back at once. Of a top-n that comes in batches, rows which cannot be
among the first are left out by their keys (``records.top_rows``), and no more than some times n rows are held.

Held by: tests/operators/test_batch_task.py
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Final, cast

from engine.expressions.schema_bridge import to_arrow_schema
from engine.graph.operator_descriptor import SortOperator, SortRunsOperator
from engine.operators.operator import ChainedOperator, Output, TaskContext
from engine.operators.state_combining import state_combiner
from engine.records.kept_rows import kept_rows
from engine.records.top_keys import has_top_keys
from engine.records.top_rows import TopRows
from engine.sort.external_sorter import ExternalSorter

#: largest limit of a sort for which rows are dropped by their first key before they are sorted
TOP_ROWS_MAX: Final = 1 << 14

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.memory.segment import MemorySegment


class Sort(ChainedOperator):
    """External sort of all input of this subtask."""

    takes_pages = True
    #: a sort needs all of its input
    is_satisfied = False

    def open(self, context: TaskContext, output: Output) -> None:
        """Take the operator's memory."""
        super().open(context, output)
        operator = self.descriptor.operator
        assert isinstance(operator, SortOperator | SortRunsOperator)
        self._pool = context.page_pool(self.descriptor)
        self._space = context.spill_space(self.descriptor)
        self._sorter: ExternalSorter | None = ExternalSorter(
            to_arrow_schema(self.descriptor.input_schemas[0]),
            operator.keys,
            self._pool,
            self._space,
            limit=operator.limit,
            force_spill=context.force_spill,
            reader_count=context.descriptor.parallelism if isinstance(operator, SortRunsOperator) else 1,
            combiner=state_combiner(getattr(operator, "groups", None), self.descriptor),
        )
        if isinstance(operator, SortOperator) and operator.top is not None:
            self._sorter.cut_groups(operator.top)
        self._rows_dropped = 0
        is_top = operator.limit is not None and 0 < operator.limit <= TOP_ROWS_MAX and not context.force_spill
        schema = self._sorter.schema
        keys = list(takewhile(lambda key: has_top_keys(schema.field(key.column).type), operator.keys if is_top else ()))
        self._key_indices = [schema.get_field_index(key.column) for key in keys]
        self._top: TopRows | None = None
        if keys:  # a window over all rows without an order has them sorted by nothing
            self._top = TopRows(keys, cast("int", operator.limit), is_whole=len(keys) == len(operator.keys))

    @property
    def _open_sorter(self) -> ExternalSorter:
        assert self._sorter is not None, "sort is closed"
        return self._sorter

    @property
    def rows_in(self) -> int:
        """Rows taken so far."""
        return self._open_sorter.rows_in + self._rows_dropped

    def process(self, batch: pa.RecordBatch) -> None:
        """Add a batch: of a top-n those rows that can be among the first, as far as that is known."""
        columns = [batch.column(index) for index in self._key_indices]
        mask = None if self._top is None else self._top.mask(columns)
        if mask is not None:
            kept = kept_rows(batch, mask)
            self._rows_dropped += batch.num_rows - kept.num_rows
            batch = kept
        if batch.num_rows:
            self._open_sorter.add_batch(batch)

    def process_page(self, segment: MemorySegment, size_bytes: int) -> None:
        """Add a page of rows."""
        self._open_sorter.add_page(segment, size_bytes)

    def process_rows(self, rows: bytearray) -> None:
        """Add rows that are larger than a page."""
        self._open_sorter.add_rows(rows)

    def finish(self) -> None:
        """Emit everything in order."""
        self._open_sorter.finish()
        for batch in self._open_sorter.batches():
            if self.output.is_satisfied:
                break
            self.context.check_cancelled()
            self.output.process(batch)

    def close(self) -> None:
        """Give pages and files back."""
        if getattr(self, "_sorter", None) is not None:
            self._open_sorter.close()
            self._sorter = None
