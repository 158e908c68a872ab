"""Aggregates of sorted groups as an operator: takes sorted batches, gives a row for each group.

Rows of a group that reaches over batches lie in memory up to the operator's share of managed pages, none of which it
takes, and on disk beyond it.

Held by: tests/integration/test_aggregate_functions.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from engine.expressions.schema_bridge import to_arrow_schema
from engine.graph.operator_descriptor import SortedAggregateOperator
from engine.operators.operator import ChainedOperator, Output, TaskContext
from engine.records.plain_types import plain_schema
from engine.window.sorted_groups import SortedGroups

if TYPE_CHECKING:
    from collections.abc import Iterable


class SortedAggregate(ChainedOperator):
    """Aggregates over the sorted rows of this subtask."""

    _groups: SortedGroups | None = None

    def open(self, context: TaskContext, output: Output) -> None:
        """Take the operator's share of memory."""
        super().open(context, output)
        operator = self.descriptor.operator
        assert isinstance(operator, SortedAggregateOperator)
        pool = context.page_pool(self.descriptor)
        self._schema = plain_schema(to_arrow_schema(self.descriptor.output_schema))
        self._groups = SortedGroups(
            to_arrow_schema(self.descriptor.input_schemas[0]),
            operator.keys,
            operator.calls,
            pool.page_limit * pool.page_size,
            context.spill_space(self.descriptor),
            force_spill=context.force_spill,
        )

    @property
    def _open_groups(self) -> SortedGroups:
        assert self._groups is not None, "the aggregate is closed"
        return self._groups

    def process(self, batch: pa.RecordBatch) -> None:
        """Add a batch and emit the groups that have ended."""
        self._emit(self._open_groups.add(batch))

    def finish(self) -> None:
        """Emit the last group."""
        self._emit(self._open_groups.finish())

    def _emit(self, batches: Iterable[pa.RecordBatch]) -> None:
        for batch in batches:
            if self.output.is_satisfied:
                break
            self.context.check_cancelled()
            self.output.process(pa.RecordBatch.from_arrays(batch.columns, schema=self._schema))

    def close(self) -> None:
        """Give back what waits."""
        if self._groups is not None:
            self._groups.close()
            self._groups = None
