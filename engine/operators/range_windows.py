"""RangeWindowsDriver: window functions over rows that are one partition, of which each subtask has a range.

    sorted runs of all producers ─┬─ rows below the range: how many, and their values where an aggregate runs over them
                                  └─ rows of the range, merged ──► WindowEvaluator, which begins behind the others

What lies below is read run by run, in no order and only where an aggregate wants its values; rankings count it by a
search in each run. No task waits for another range, so the tasks may run in any order, and again.

Cost: with p ranges the tasks read (p - 1) / 2 times all rows once more, without merging them; those of producers in
other processes are brought here with the range.

Held by: tests/integration/test_range_windows.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from engine.expressions.schema_bridge import to_arrow_schema
from engine.graph.operator_descriptor import RangeWindowsOperator
from engine.operators.sort_exchange import MERGE_BYTES, MergeRunsDriver
from engine.records.plain_types import plain_schema
from engine.sort.merged_batches import MergedBatches
from engine.window.evaluator import WindowEvaluator

if TYPE_CHECKING:
    from collections.abc import Iterator


class RangeWindowsDriver(MergeRunsDriver):
    """Merges its range of the runs of all producers, and gives each row its results."""

    _evaluator: WindowEvaluator | None = None

    def results(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the range with their results."""
        operator = self._descriptor.operator
        assert isinstance(operator, RangeWindowsOperator)
        evaluator = self._evaluator = WindowEvaluator(
            to_arrow_schema(self._descriptor.input_schemas[0]),
            (),
            operator.keys,
            operator.calls,
            MERGE_BYTES,
            self._context.spill_space(self._descriptor),
            force_spill=self._context.force_spill,
        )
        self._begin(evaluator)
        schema = plain_schema(to_arrow_schema(self._descriptor.output_schema))
        for batch in self.merged():
            for found in evaluator.add(batch):
                yield pa.RecordBatch.from_arrays(found.columns, schema=schema)
        for found in evaluator.finish():
            yield pa.RecordBatch.from_arrays(found.columns, schema=schema)

    def _begin(self, evaluator: WindowEvaluator) -> None:
        lower = self._key_range.lower
        evaluator.begin_behind(sum(source.count_below(lower) for source in self._sources))
        if lower is None or not evaluator.reads_before:
            return
        for source in self._sources:
            below = MergedBatches([source], self._pool, None, lower)
            try:
                for batch in below.batches():
                    self._context.check_cancelled()
                    evaluator.enter(batch)
            finally:
                below.close()

    def close(self) -> None:
        """Give back what waits, and let go of the runs; idempotent."""
        if self._evaluator is not None:
            self._evaluator.close()
            self._evaluator = None
        super().close()
