"""Operators over rows that come sorted: window functions, and aggregates of sorted groups.

    Window            each row with its results behind its columns     WindowEvaluator
    SortedAggregate   a row for each group                             SortedGroups

Rows that wait for others, or belong to a group that reaches over batches, lie in memory up to the bytes of
the operator's pool, none of whose pages it takes, and on disk beyond it.

Held by: tests/operators/test_sorted_rows.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.graph.operator_descriptor import SortedAggregateOperator, WindowOperator
from engine.operators.evaluated_rows import EvaluatedRows, Evaluation
from engine.window.evaluator import WindowEvaluator
from engine.window.sorted_groups import SortedGroups

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.iomanager.spill_space import SpillSpace
    from engine.operators.operator import TaskContext


class _OverSortedRows(EvaluatedRows[Evaluation]):
    """Evaluated rows whose memory stands for rows that wait in Arrow's."""

    def _share(self, context: TaskContext) -> tuple[int, SpillSpace]:
        """Return the bytes of its pages, and the space of its files."""
        pool = context.page_pool(self.descriptor)
        return pool.page_limit * pool.page_size, context.spill_space(self.descriptor)


class Window(_OverSortedRows):
    """Window functions over the sorted rows of this subtask."""

    def _made(self, schema: pa.Schema, context: TaskContext) -> Evaluation:
        one = self.descriptor.operator
        assert isinstance(one, WindowOperator)
        memory_bytes, space = self._share(context)
        return WindowEvaluator(
            schema, one.partition_by, one.order_by, one.calls, memory_bytes, space, force_spill=context.force_spill
        )


class SortedAggregate(_OverSortedRows):
    """Aggregates over the sorted rows of this subtask."""

    def _made(self, schema: pa.Schema, context: TaskContext) -> Evaluation:
        one = self.descriptor.operator
        assert isinstance(one, SortedAggregateOperator)
        memory_bytes, space = self._share(context)
        return SortedGroups(schema, one.keys, one.calls, memory_bytes, space, force_spill=context.force_spill)
