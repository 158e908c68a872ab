"""BroadcastDriver: in front of a function that is told whole data sets before its first row.

    broadcast inputs (1 and up), each to its end ─► the function starts ─► the main input (0), batch by batch

The broadcast data sets are held in memory, once in each subtask's worker, so their size is limited.

Source: Flink's broadcast sets, read by BatchTask before the driver runs.
Held by: tests/integration/test_rich_functions.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import MemoryBudgetError
from engine.operators.drivers import InputDriver

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.operators.operator import Output, TaskContext
    from engine.operators.python_operator import PythonFunctionOperator
    from engine.operators.task_inputs import TaskInput

#: a broadcast data set may take this part of the process's budget of pages, and at least the bytes of the second number
BROADCAST_PART = 4
BROADCAST_BYTES_FLOOR = 16 << 20


class BroadcastDriver:
    """Reads broadcast inputs to their end, then passes on the main one; in front of a function."""

    def __init__(self, inputs: dict[int, TaskInput], function: PythonFunctionOperator) -> None:
        self._inputs = inputs
        self._function = function
        self._main = InputDriver(inputs[0])
        self._names = function.operator.broadcasts
        self._broadcast_rows = 0

    @property
    def rows_in(self) -> int:
        """Rows taken from all inputs so far."""
        return self._broadcast_rows + self._main.rows_in

    @property
    def bytes_in(self) -> int:
        """Bytes taken from all inputs so far."""
        return sum(task_input.bytes_in for task_input in self._inputs.values())

    def open(self, context: TaskContext, output: Output) -> None:
        """Remember the output; gates are opened by the task."""
        manager = context.services.memory_manager
        self._limit_bytes = max(BROADCAST_BYTES_FLOOR, manager.budget_bytes // BROADCAST_PART)
        self._context = context
        self._main.open(context, output)

    def run(self) -> None:
        """Collect the broadcast data sets, start the function, push the main input."""
        tables = [self._collect(index + 1, name) for index, name in enumerate(self._names)]
        self._function.start(tables)
        self._main.run()

    def _collect(self, index: int, name: str) -> tuple[pa.Schema, list[pa.RecordBatch]]:
        task_input = self._inputs[index]
        batches = []
        for batch in task_input.batches():
            self._context.check_cancelled()
            batches.append(batch)
            self._broadcast_rows += batch.num_rows
            if task_input.bytes_in > self._limit_bytes:
                raise MemoryBudgetError(
                    f"the broadcast data set {name!r} of {self._function.descriptor.name} is larger than"
                    f" {self._limit_bytes} bytes, a quarter of the managed memory: {task_input.bytes_in} bytes after"
                    f" {task_input.rows_in} rows; join with it instead, or raise taskmanager.memory.managed.size"
                )
        return task_input.schema, batches

    def close(self) -> None:
        """Do nothing: the driver holds nothing."""
        self._main.close()
