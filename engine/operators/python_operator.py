"""User functions as an operator: batches go to a worker process and come back.

The worker runs beside the task: while it works on one batch the task already prepares the next, so ``process`` may
emit the results of earlier batches, and ``finish`` emits the rest. A function over groups gets its batches sorted, and
with marks where groups begin. With broadcast data sets it starts when these are there (broadcast_driver.py).

A batch on its way to a worker and back costs as much as a few thousand calls of a light function: rows for it are put
together, as long as it is done with a batch within LONG_S. One that takes longer gets them as they come.

Held by: tests/operators/test_python_operator.py
Held by: tests/functions/test_function_copies.py
Held by: tests/property/test_wide_functions_bound.py
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence

import pyarrow as pa

from engine.errors import ResourceError
from engine.expressions.schema_bridge import to_arrow_schema
from engine.functions.failed_row import FAILED_ROWS
from engine.functions.function_error import UserFunctionError
from engine.functions.function_session import FunctionPlan, FunctionSession
from engine.graph.job_graph import SCRIPT_MODULES
from engine.graph.operator_descriptor import OperatorDescriptor, PythonOperator
from engine.operators.attached_column import AttachedColumn
from engine.operators.group_marker import GroupMarker
from engine.operators.operator import ChainedOperator, Output, TaskContext
from engine.records.batch_limits import BATCH_ROWS_MAX
from engine.records.bounded_batches import SmallBatches

#: kinds whose function is called once for each group
GROUP_KINDS = ("reduce", "co_group")
#: kinds whose function does not see where batches end
ROW_KINDS = ("map", "flat_map", "filter", "map_partition", *GROUP_KINDS)
#: waiting so long for a worker, or for what comes behind: batches are no larger than they came
LONG_S = 0.02
#: enough for any function
ROWS_ENOUGH = 8 * BATCH_ROWS_MAX
#: rows that are sent to a worker together: a source may give more, and a function takes long for each
ROWS_AT_ONCE = 8 * BATCH_ROWS_MAX


def _plain(kind: str) -> str:
    """Return a kind without the format of its batches, except of functions that see where batches end."""
    name, mark, _ = kind.partition(":")
    return name if mark and name in GROUP_KINDS else kind


class PythonFunctionOperator(ChainedOperator):
    """Runs a user's function."""

    def __init__(self, descriptor: OperatorDescriptor) -> None:
        super().__init__(descriptor)
        operator = descriptor.operator
        assert isinstance(operator, PythonOperator)
        self.operator = operator
        self._session: FunctionSession | None = None
        #: rows that wait for a function that makes a column
        self._rows: AttachedColumn | None = None
        #: rows for a function that sees no batches
        self._small = SmallBatches(1, rows_enough=ROWS_ENOUGH) if _plain(operator.kind) in ROW_KINDS else None
        self._lock = threading.Lock()
        self._is_cancelled = False  # guarded by: self._lock

    def open(self, context: TaskContext, output: Output) -> None:
        """Open a session with a worker of the job, unless broadcast data sets are still to come."""
        super().open(context, output)
        schema = to_arrow_schema(self.descriptor.input_schemas[0])
        self._marker = GroupMarker(schema, self.operator.keys) if _plain(self.operator.kind) in GROUP_KINDS else None
        if self.operator.kind.startswith("column"):
            self._rows = AttachedColumn(self.operator.arguments, to_arrow_schema(self.descriptor.output_schema))
        if not self.operator.broadcasts:
            self.start(())

    def start(self, broadcasts: Sequence[tuple[pa.Schema, Sequence[pa.RecordBatch]]]) -> None:
        """Open the session, with the broadcast data sets in order of their names."""
        plan = FunctionPlan(
            self.operator,
            *self._schemas(),
            self.context.descriptor.subtask_index,
            self.context.descriptor.parallelism,
            broadcasts,
            job_modules=self._modules(of_script=False),
            script_modules=self._modules(of_script=True),
        )
        job = self.context.descriptor.job_id.value
        session = self.context.services.function_runner.open(job, plan, self.context.configuration)
        self.context.count_function(session)
        with self._lock:
            self._session = session
            if self._is_cancelled:
                session.cancel()

    def _schemas(self) -> tuple[pa.Schema, pa.Schema]:
        """Return the schemas of what the function is given and of what it gives."""
        given = to_arrow_schema(self.descriptor.input_schemas[0])
        made = to_arrow_schema(self.descriptor.output_schema)
        if self._rows is None:
            declared = [field.with_nullable(field.name not in self.operator.not_null) for field in made]
            return given, pa.schema(declared)
        name = self.operator.function_name
        return pa.schema([given.field(each) for each in self.operator.arguments]), pa.schema([(name, made[-1].type)])

    @property
    def is_at_work(self) -> bool:  # type: ignore[override]
        """Whether the function runs, beside the task."""
        session = self._session
        return session is not None and session.is_at_work

    def _modules(self, *, of_script: bool) -> Sequence[str]:
        """Return the places of modules that came with the job, fetched first: its script's, or all others."""
        descriptor = self.context.descriptor
        artifacts = [each for each in descriptor.artifacts if (each.name == SCRIPT_MODULES) == of_script]
        if not artifacts:
            return ()
        store = self.context.services.module_store
        if store is None:
            raise ResourceError(f"job {descriptor.job_name} brings modules, and this process cannot fetch them")
        return store.search_path(descriptor.job_id, artifacts)

    @property
    def _started(self) -> FunctionSession:
        assert self._session is not None, "the function has not started"
        return self._session

    @property
    def is_satisfied(self) -> bool:
        """Whether nothing more is needed: downstream, or because the function has ended before its input."""
        return self.output.is_satisfied or (self._session is not None and self._session.is_satisfied)

    def process(self, batch: pa.RecordBatch) -> None:
        """Send a batch, perhaps with others that came before; emit what has come back."""
        if self._small is None:
            self._send(batch)
            return
        ready = self._small.add(batch)
        del batch  # a very wide one is not kept while the function works on it
        while ready:
            began = time.perf_counter()
            self._send(ready.pop(0))
            if time.perf_counter() - began > LONG_S:
                self._small.shrink()

    def _send(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows > ROWS_AT_ONCE:
            for start in range(0, batch.num_rows, ROWS_AT_ONCE):
                self._send(batch.slice(start, ROWS_AT_ONCE))
            return
        if not batch.num_rows:
            return
        if self._marker is not None:
            batch = self._marker.mark(batch)
        if self._rows is not None:
            batch = self._rows.keep(batch)
        self._emit(self._started.process(batch))

    def finish(self) -> None:
        """Emit what is still at the worker; a function whose results are not needed is stopped."""
        session = self._started
        for batch in self._small.rest() if self._small is not None else ():
            if not self.is_satisfied:
                self._send(batch)
        if not self.output.is_satisfied:
            self._emit(session.finish())
        if self.output.is_satisfied:
            session.stop()
        self.context.add_function_counters(session.counters)
        account = self.context.accounts.of(self.descriptor)
        account.function_us, account.opening_us = session.busy_us, session.opening_us
        self.context.count_resources()

    def _emit(self, results: Iterator[pa.RecordBatch]) -> None:
        """Pass on results while they are needed: a function may return rows for ever."""
        while not self.output.is_satisfied:
            self.context.check_cancelled()
            try:
                result = next(results, None)
            except UserFunctionError as error:
                FAILED_ROWS.keep(self.operator, error)
                raise
            if result is None:
                return
            if self._rows is not None:
                for rows in self._rows.attached(result):
                    self.output.process(rows)
            elif result.num_rows:
                self.output.process(result)

    def cancel(self) -> None:
        """End the worker's function, whatever it does; from another thread."""
        with self._lock:
            self._is_cancelled = True
            if self._session is not None:
                self._session.cancel()

    def close(self) -> None:
        """Give the worker back."""
        if self._session is not None:
            if self.context.is_cancelled:
                self._session.cancel()  # a cancellation while this operator was opened has not reached it
            self._session.close()
