"""EvaluatedRows: the base of operators that pass their rows to an evaluation, and its results on.

    Window, SortedAggregate      rows come sorted           ``sorted_rows``
    PartitionedAggregate         rows come in any order     ``partitioned_aggregate``

Held by: tests/operators/test_sorted_rows.py
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import pyarrow as pa

from engine.expressions.schema_bridge import to_arrow_schema
from engine.operators.operator import ChainedOperator, Output, TaskContext
from engine.records.plain_types import plain_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Evaluation(Protocol):
    """An evaluation that turns rows into results."""

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Take rows; give what is complete."""
        ...

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Return the remaining results."""
        ...

    def close(self) -> None:
        """Give back what waits."""
        ...


EvaluationT = TypeVar("EvaluationT", bound=Evaluation)


class EvaluatedRows(ChainedOperator, Generic[EvaluationT]):
    """Passes batches to an evaluation, and its results on."""

    _evaluation: EvaluationT | None = None

    def open(self, context: TaskContext, output: Output) -> None:
        """Take the operator's pool."""
        super().open(context, output)
        self._schema = plain_schema(to_arrow_schema(self.descriptor.output_schema))
        self._evaluation = self._made(to_arrow_schema(self.descriptor.input_schemas[0]), context)

    @abstractmethod
    def _made(self, schema: pa.Schema, context: TaskContext) -> EvaluationT:
        """Return the evaluation of this operator."""

    @property
    def _open_evaluation(self) -> EvaluationT:
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
