"""The row for which a function has failed, kept so that a user can call the function with it again.

    FAILED_ROWS.is_wanted = True     before the job runs, in the process that runs it
    FAILED_ROWS.kept                 FailedRow(operator, row) of the first failure, or None
        .replayed(debugger)          the function is called with the row once more, under a debugger

Only functions of one row have one: map, flat_map, filter, udf. What they were given besides rows, broadcast data sets,
is not kept.

Held by: tests/integration/test_replay.py
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

import cloudpickle

from engine.functions.function_error import UserFunctionError
from engine.functions.row import Row
from engine.functions.user_function import FunctionContext, close_function, function_of, open_function
from engine.graph.operator_descriptor import PythonOperator

#: kinds whose functions are called with one row, or its values
ROW_KINDS = ("map", "flat_map", "filter", "column:scalar", "column:truth")
#: size above which rows do not leave their worker
ROW_BYTES_MAX = 64 << 20


class FailedRow(NamedTuple):
    """A function and the row for which it failed."""

    operator: PythonOperator
    row: Row

    def replayed(self, call: Callable[[Callable[[], Any]], Any]) -> Any:
        """Return the result of ``call``, applied to the function with the row."""
        operator = self.operator
        kind = "filter" if operator.kind == "column:truth" else operator.kind.partition(":")[0]
        value = cloudpickle.loads(operator.function)
        function = function_of(kind, value)
        assert function is not None, "it was called before"
        given = [self.row[name] for name in operator.arguments] if operator.arguments else [self.row]

        def once() -> Any:
            result = function(*given)
            if operator.policy is not None and operator.policy.concurrency:
                result = runner.run(_awaited(result))
            return list(result) if kind == "flat_map" else result

        with asyncio.Runner() as runner:
            open_function(value, FunctionContext(), runner)
            try:
                return call(once)
            finally:
                close_function(value, runner)


async def _awaited(result: Any) -> Any:
    return [each async for each in result] if isinstance(result, AsyncIterator) else await result


class FailedRows:
    """Keeps the first one. Thread: any."""

    def __init__(self) -> None:
        self.is_wanted = False
        self.kept: FailedRow | None = None
        self._lock = threading.Lock()

    def keep(self, operator: PythonOperator, error: UserFunctionError) -> None:
        """Keep the row that an error came with, where it is wanted."""
        if not self.is_wanted or operator.kind not in ROW_KINDS or error.failed_row is None:
            return
        with self._lock:
            if self.kept is None:
                self.kept = FailedRow(operator, error.failed_row)


FAILED_ROWS = FailedRows()


def packed_row(error: UserFunctionError) -> bytes:
    """Return the row of an error as bytes for another process; none where it has no row, or a very large one."""
    if error.failed_row is None:
        return b""
    try:
        packed: bytes = cloudpickle.dumps(error.failed_row)
    except Exception:
        return b""  # what has no bytes is not called again
    return packed if len(packed) <= ROW_BYTES_MAX else b""


def unpacked_row(packed: bytes) -> Row | None:
    """Return the row."""
    return cloudpickle.loads(packed) if packed else None
