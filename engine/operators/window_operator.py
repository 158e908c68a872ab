"""Window functions as an operator: takes sorted batches, gives each row's results behind its columns.

Rows that wait for others lie in memory up to the operator's share of managed pages, none of which it takes, and on disk
beyond it.

Held by: tests/operators/test_window_operator.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from engine.expressions.schema_bridge import to_arrow_schema
from engine.graph.operator_descriptor import WindowOperator
from engine.operators.operator import ChainedOperator, Output, TaskContext
from engine.records.plain_types import plain_schema
from engine.window.evaluator import WindowEvaluator

if TYPE_CHECKING:
    from collections.abc import Iterable


class Window(ChainedOperator):
    """Window functions over the sorted rows of this subtask."""

    _evaluator: WindowEvaluator | None = None

    def open(self, context: TaskContext, output: Output) -> None:
        """Take the operator's share of memory."""
        super().open(context, output)
        operator = self.descriptor.operator
        assert isinstance(operator, WindowOperator)
        pool = context.page_pool(self.descriptor)
        self._schema = plain_schema(to_arrow_schema(self.descriptor.output_schema))
        self._evaluator = WindowEvaluator(
            to_arrow_schema(self.descriptor.input_schemas[0]),
            operator.partition_by,
            operator.order_by,
            operator.calls,
            pool.page_limit * pool.page_size,
            context.spill_space(self.descriptor),
            force_spill=context.force_spill,
        )

    @property
    def _open_evaluator(self) -> WindowEvaluator:
        assert self._evaluator is not None, "window is closed"
        return self._evaluator

    def process(self, batch: pa.RecordBatch) -> None:
        """Add a batch and emit what is complete."""
        self._emit(self._open_evaluator.add(batch))

    def finish(self) -> None:
        """Emit what is left."""
        self._emit(self._open_evaluator.finish())

    def _emit(self, batches: Iterable[pa.RecordBatch]) -> None:
        for batch in batches:
            if self.output.is_satisfied:
                break
            self.context.check_cancelled()
            self.output.process(pa.RecordBatch.from_arrays(batch.columns, schema=self._schema))

    def close(self) -> None:
        """Give back what waits."""
        if self._evaluator is not None:
            self._evaluator.close()
            self._evaluator = None
