"""Operators over rows that come sorted: window functions, and aggregates of sorted groups.

    Window            each row with its results behind its columns     WindowEvaluator
    SortedAggregate   a row for each group                             SortedGroups

Rows that wait for others, or belong to a group that reaches over batches, lie in memory up to the operator's share of
managed pages, none of which it takes, and on disk beyond it.

Held by: tests/operators/test_sorted_rows.py
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from engine.expressions.schema_bridge import to_arrow_schema
from engine.graph.operator_descriptor import SortedAggregateOperator, WindowOperator
from engine.operators.operator import ChainedOperator, Output, TaskContext
from engine.records.plain_types import plain_schema
from engine.window.evaluator import WindowEvaluator
from engine.window.sorted_groups import SortedGroups

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.iomanager.spill_space import SpillSpace


class Evaluation(Protocol):
    """What turns sorted rows into results."""

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Take rows; give what is complete."""
        ...

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Give what is left."""
        ...

    def close(self) -> None:
        """Give back what waits."""
        ...


class _OverSortedRows(ChainedOperator):
    """Hands sorted batches to an evaluation and its results on."""

    _evaluation: Evaluation | None = None

    def open(self, context: TaskContext, output: Output) -> None:
        """Take the operator's share of memory."""
        super().open(context, output)
        pool = context.page_pool(self.descriptor)
        self._schema = plain_schema(to_arrow_schema(self.descriptor.output_schema))
        input_schema = to_arrow_schema(self.descriptor.input_schemas[0])
        space = context.spill_space(self.descriptor)
        self._evaluation = self._made(input_schema, pool.page_limit * pool.page_size, space, context.force_spill)

    @abstractmethod
    def _made(self, schema: pa.Schema, memory_bytes: int, space: SpillSpace, force_spill: bool) -> Evaluation:
        """Return the evaluation of this operator."""

    @property
    def _open_evaluation(self) -> Evaluation:
        assert self._evaluation is not None, "the operator is closed"
        return self._evaluation

    def process(self, batch: pa.RecordBatch) -> None:
        """Add a batch and emit what is complete."""
        self._emit(self._open_evaluation.add(batch))

    def finish(self) -> None:
        """Emit what is left."""
        self._emit(self._open_evaluation.finish())

    def _emit(self, batches: Iterable[pa.RecordBatch]) -> None:
        for batch in batches:
            if self.output.is_satisfied:
                break
            self.context.check_cancelled()
            self.output.process(pa.RecordBatch.from_arrays(batch.columns, schema=self._schema))

    def close(self) -> None:
        """Give back what waits."""
        if self._evaluation is not None:
            self._evaluation.close()
            self._evaluation = None


class Window(_OverSortedRows):
    """Window functions over the sorted rows of this subtask."""

    def _made(self, schema: pa.Schema, memory_bytes: int, space: SpillSpace, force_spill: bool) -> Evaluation:
        one = self.descriptor.operator
        assert isinstance(one, WindowOperator)
        return WindowEvaluator(
            schema, one.partition_by, one.order_by, one.calls, memory_bytes, space, force_spill=force_spill
        )


class SortedAggregate(_OverSortedRows):
    """Aggregates over the sorted rows of this subtask."""

    def _made(self, schema: pa.Schema, memory_bytes: int, space: SpillSpace, force_spill: bool) -> Evaluation:
        one = self.descriptor.operator
        assert isinstance(one, SortedAggregateOperator)
        return SortedGroups(schema, one.keys, one.calls, memory_bytes, space, force_spill=force_spill)
