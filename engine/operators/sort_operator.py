"""Sort as an operator: takes all input, then emits it in order.

It takes Arrow batches, and row pages straight from an exchange: rows stay rows; a page is copied whole into the
operator's own memory, so its network buffer goes back at once.

Held by: tests/operators/test_batch_task.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.expressions.schema_bridge import to_arrow_schema
from engine.graph.operator_descriptor import SortOperator, SortRunsOperator
from engine.operators.operator import ChainedOperator, Output, TaskContext
from engine.operators.state_combining import state_combiner
from engine.sort.external_sorter import ExternalSorter

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.memory.segment import MemorySegment


class Sort(ChainedOperator):
    """External sort of all input of this subtask."""

    takes_pages = True

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

    @property
    def _open_sorter(self) -> ExternalSorter:
        assert self._sorter is not None, "sort is closed"
        return self._sorter

    @property
    def rows_in(self) -> int:
        """Rows taken so far."""
        return self._open_sorter.rows_in

    @property
    def is_satisfied(self) -> bool:
        """A sort needs all of its input."""
        return False

    def process(self, batch: pa.RecordBatch) -> None:
        """Add a batch."""
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
