"""Sort and hash aggregation as operators: take all input, then emit.

Both take Arrow batches. A sort also takes row pages straight from an exchange: rows stay rows; a page is copied whole
into the operator's own memory, so its network buffer goes back at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.aggregate.hash_aggregate import PASS_RATIO, PASS_RATIO_BEFORE_SORT, HashAggregate
from engine.expressions.schema_bridge import to_arrow_schema
from engine.graph.operator_descriptor import HashAggregateOperator, SortOperator, SortRunsOperator
from engine.operators.operator import ChainedOperator, Output, TaskContext
from engine.operators.state_combining import state_combiner
from engine.operators.wide_batches import in_turns
from engine.sort.external_sorter import ExternalSorter

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.memory.segment import MemorySegment


class Sort(ChainedOperator):
    """External sort of all input of this subtask."""

    def open(self, context: TaskContext, output: Output) -> None:
        """Take the operator's memory."""
        super().open(context, output)
        operator = self.descriptor.operator
        assert isinstance(operator, SortOperator | SortRunsOperator)
        self._pool = context.page_pool(self.descriptor)
        self._space = context.spill_space()
        self._sorter: ExternalSorter | None = ExternalSorter(
            to_arrow_schema(self.descriptor.input_schemas[0]),
            operator.keys,
            self._pool,
            self._space,
            limit=operator.limit,
            force_spill=context.force_spill,
            reader_count=context.descriptor.parallelism if isinstance(operator, SortRunsOperator) else 1,
            # Another process reads the runs, and could not follow a reference.
            has_values_inside=isinstance(operator, SortRunsOperator) and context.services.data_plane is not None,
            combiner=state_combiner(getattr(operator, "groups", None), self.descriptor),
        )

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
        for batch in in_turns(self._open_sorter.batches()):
            if self.output.is_satisfied:
                break
            self.context.check_cancelled()
            self.output.process(batch)
            del batch

    def close(self) -> None:
        """Give pages and files back."""
        if getattr(self, "_sorter", None) is not None:
            self._open_sorter.close()
            self._sorter = None


class Aggregate(ChainedOperator):
    """Hash aggregation in one of its phases."""

    def open(self, context: TaskContext, output: Output) -> None:
        """Take the operator's memory."""
        super().open(context, output)
        operator = self.descriptor.operator
        assert isinstance(operator, HashAggregateOperator)
        self._aggregate: HashAggregate | None = HashAggregate(
            operator.phase,
            to_arrow_schema(self.descriptor.input_schemas[0]),
            operator.keys,
            operator.calls,
            to_arrow_schema(self.descriptor.output_schema),
            context.page_pool(self.descriptor),
            context.spill_space(),
            force_spill=context.force_spill,
            pass_ratio=PASS_RATIO_BEFORE_SORT if operator.is_sorted_next else PASS_RATIO,
        )

    @property
    def is_satisfied(self) -> bool:
        """An aggregate needs all of its input."""
        return False

    @property
    def _open_aggregate(self) -> HashAggregate:
        assert self._aggregate is not None, "aggregate is closed"
        return self._aggregate

    def process(self, batch: pa.RecordBatch) -> None:
        """Add a batch; a partial aggregate may emit."""
        for result in self._open_aggregate.add_batch(batch):
            self.output.process(result)
            del result

    def finish(self) -> None:
        """Emit the groups."""
        for result in in_turns(self._open_aggregate.finish()):
            self.context.check_cancelled()
            self.output.process(result)
            del result

    def close(self) -> None:
        """Give pages and files back."""
        if getattr(self, "_aggregate", None) is not None:
            self._open_aggregate.close()
            self._aggregate = None
