"""PartitionedAggregate: aggregates of groups whose values it holds, of rows in any order.

A thread that reads for the task puts the rows of its batches group by group (``work_ahead``), while that is of use.

Half of its pages hold rows that wait; the others stand for what it works with in Arrow's memory.

Held by: tests/integration/test_groups_of_values.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.graph.operator_descriptor import PartitionedAggregateOperator
from engine.operators.evaluated_rows import EvaluatedRows
from engine.operators.helper_threads import HelperThreads
from engine.operators.work_ahead import WorkAhead
from engine.window.grouped_rows import GroupedBatch
from engine.window.partitioned_groups import PartitionedGroups

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.operators.operator import TaskContext
    from engine.operators.work_ahead import Ahead


class PartitionedAggregate(EvaluatedRows[PartitionedGroups]):
    """Aggregates of all input of this subtask."""

    #: an aggregate needs all of its input
    is_satisfied = False

    def _made(self, schema: pa.Schema, context: TaskContext) -> PartitionedGroups:
        one = self.descriptor.operator
        assert isinstance(one, PartitionedAggregateOperator)
        pool, space = context.half_page_pool(self.descriptor), context.spill_space(self.descriptor)
        budget_bytes = pool.page_limit * pool.page_size
        groups = PartitionedGroups(
            schema, one.keys, one.calls, one.order_by, pool, budget_bytes, space, force_spill=context.force_spill
        )
        if context.descriptor.chain[0] is self.descriptor:
            groups.expect_pages()
        if one.threads > 1:
            groups.do_together(HelperThreads(context, one.threads))
        self.router = groups.router
        self._ahead = WorkAhead[GroupedBatch]()
        return groups

    def ahead(self) -> Ahead | None:
        """Return the grouping of a batch's rows."""
        groups = self._open_evaluation

        def group(batch: pa.RecordBatch) -> None:
            made = groups.ahead(batch)
            if made is not None:
                self._ahead.keep(batch, made)

        return group

    def process(self, batch: pa.RecordBatch) -> None:
        """Add a batch."""
        self._emit(self._open_evaluation.add(batch, self._ahead.take(batch)))
