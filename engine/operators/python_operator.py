"""User functions as an operator: batches go to a worker process and come back.

The worker runs beside the task: while it works on one batch the task already prepares the next, so ``process`` may
emit the results of earlier batches, and ``finish`` emits the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.expressions.schema_bridge import to_arrow_schema
from engine.functions.function_runner import FunctionSession
from engine.graph.operator_descriptor import PythonOperator
from engine.operators.operator import ChainedOperator, Output, TaskContext

if TYPE_CHECKING:
    import pyarrow as pa


class PythonFunctionOperator(ChainedOperator):
    """Runs a map, flat_map or filter function."""

    def open(self, context: TaskContext, output: Output) -> None:
        """Open a session with a worker of the job."""
        super().open(context, output)
        operator = self.descriptor.operator
        assert isinstance(operator, PythonOperator)
        self._session: FunctionSession = context.services.function_runner.open(
            context.descriptor.job_id.value,
            operator,
            to_arrow_schema(self.descriptor.input_schemas[0]),
            to_arrow_schema(self.descriptor.output_schema),
            context.configuration,
        )

    def process(self, batch: pa.RecordBatch) -> None:
        """Send a batch; emit what has come back."""
        self._emit(self._session.process(batch))

    def finish(self) -> None:
        """Emit what is still at the worker."""
        self._emit(self._session.finish())

    def _emit(self, results: Iterator[pa.RecordBatch]) -> None:
        """Hand on results while somebody wants them: a function may return rows for ever.

        What is not taken stays at the worker, which ``close`` then ends.
        """
        while not self.output.is_satisfied:
            self.context.check_cancelled()
            result = next(results, None)
            if result is None:
                return
            if result.num_rows:
                self.output.process(result)

    def cancel(self) -> None:
        """End the worker's function, whatever it does; from another thread."""
        if hasattr(self, "_session"):
            self._session.cancel()

    def close(self) -> None:
        """Give the worker back."""
        if hasattr(self, "_session"):
            self._session.close()
