"""CarefulCalls: a map or flat_map whose function is async, is called again where it failed, or may fail for some rows.

    row ─► function, at most 1 + retries times ─► result ─► batch
                    │ still an error, or a result that does not fit
                    └─► on_error: fail │ null │ skip │ collect (null; why, where and for what row behind it)

    async     ┌ calls in flight: at most ``concurrency`` ┐
    row row row row ─► results in the order of the rows ─► batches

What a function of flat_map gives is read to its end within the call, so that its failures count; of what it gives,
each row that does not fit is a failure of its own.

Rows are taken ahead of those that wait for the slowest call, WINDOW times as many as calls are made at once.

Held by: tests/integration/test_careful_calls.py
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from engine.functions.function_error import BadOutputError, FunctionPlace, message_of, plain_text
from engine.functions.function_output import FunctionOutput
from engine.functions.row import Row, RowsAt
from engine.functions.row_reader import RowReader
from engine.functions.user_function import Counter, FunctionContext
from engine.graph.call_policy import ERROR_COLUMNS, CallPolicy

WINDOW: Final = 4
#: name of a job's counter of rows for which a function has failed
FAILED_ROWS: Final = "rows for which {} failed"

#: a row's place, the function's result for it, and the error that it raised
_Result = tuple[Sequence[Row], Any, Exception | None]


class CarefulCalls:
    """The calls of one function."""

    def __init__(
        self,
        function: Callable[..., Any],
        policy: CallPolicy,
        place: FunctionPlace,
        output: FunctionOutput,
        context: FunctionContext,
        runner: asyncio.Runner,
        kind: str = "map",
    ) -> None:
        self._function = function
        self._is_flat = kind == "flat_map"
        self._policy = policy
        self._place = place
        self._output = output
        self._context = context
        self._failed: Counter | None = None
        self._runner = runner
        #: columns of the results, without those that "collect" adds
        self._names = output.schema.names[: -len(ERROR_COLUMNS)] if policy.is_collecting else output.schema.names
        #: True if it has to know where rows are in their batch
        self.needs_places = policy.is_collecting
        self._no_error = (None,) * len(ERROR_COLUMNS) if policy.is_collecting else ()

    def batches(self, source: RowReader) -> Iterator[pa.RecordBatch]:
        """Yield the results for the rows of a batch."""
        appender = self._output.appender
        for place, value, error in self._awaited(source) if self._policy.concurrency else self._called(source):
            for item in value if self._is_flat and error is None else (value,):
                self._add(place, item, error)
                if appender.rows >= appender.limit:
                    yield self._output.take()
        if appender.rows:
            yield self._output.take()

    def _called(self, source: RowReader) -> Iterator[_Result]:
        for place, given in source:
            row = given[0]  # noqa: F841 - long_calls.py looks at it
            for attempt in range(self._policy.retries + 1):
                try:
                    yield place, self._whole(self._function(*given)), None
                    break
                except Exception as error:
                    if attempt == self._policy.retries:
                        yield place, None, error
                        break
                time.sleep(self._policy.retry_delay_s)

    def _awaited(self, source: RowReader) -> Iterator[_Result]:
        """Yield the results of calls that are made side by side."""
        loop, policy = self._runner.get_loop(), self._policy
        at_once = asyncio.Semaphore(policy.concurrency)
        waiting: deque[tuple[Sequence[Row], Any, asyncio.Task[tuple[Any, Exception | None]]]] = deque()
        rows = iter(source)
        try:
            while True:
                while len(waiting) < WINDOW * policy.concurrency and (taken := next(rows, None)) is not None:
                    place, given = taken
                    waiting.append((place, given[0], loop.create_task(self._call(given, at_once))))
                if not waiting:
                    return
                place, row, task = waiting.popleft()
                yield place, *loop.run_until_complete(task)
                del row
        finally:
            loop.run_until_complete(_cancelled([task for _, _, task in waiting]))

    def _whole(self, result: Any) -> Any:
        """Return a result; of a flat_map all rows of it."""
        if not self._is_flat:
            return result
        if isinstance(result, str | bytes | dict) or not isinstance(result, Iterable):
            raise BadOutputError(f"flat_map must return an iterable of rows, not {type(result).__name__}")
        return list(result)

    async def _call(self, given: tuple[Any, ...], at_once: asyncio.Semaphore) -> tuple[Any, Exception | None]:
        for attempt in range(self._policy.retries + 1):
            try:
                async with at_once:
                    result = self._function(*given)
                    if isinstance(result, AsyncIterator):
                        return [each async for each in result], None
                    return self._whole(await result), None
            except Exception as error:
                if attempt == self._policy.retries:
                    return None, error
            await asyncio.sleep(self._policy.retry_delay_s)
        raise AssertionError("the last attempt has returned")

    def _add(self, place: Sequence[Row], value: Any, error: Exception | None) -> None:
        appender = self._output.appender
        if error is None:
            try:
                appender.append(self._record(value), place, check=self._policy.on_error != "fail")
                return
            except Exception as unfit:
                error = unfit
        if self._policy.on_error == "fail":
            raise self._place.error_at(error, place) from error
        if self._failed is None:
            self._failed = self._context.counter(FAILED_ROWS.format(self._place.name))
        self._failed.add()
        if self._policy.on_error == "skip":
            return
        nulls = (None,) * len(self._names)
        appender.append((*nulls, *self._described(error, place)), place, check=False)

    def _described(self, error: Exception, place: Sequence[Row]) -> tuple[Any, ...]:
        """Return the values of the columns that describe a failure, behind those of the results."""
        if not self._no_error:
            return ()
        assert isinstance(place, RowsAt), "the reader has kept the batch"
        kind = "" if isinstance(error, BadOutputError) else f"{type(error).__name__}: "
        file, line = self._place.place_of(error)
        return plain_text(f"{kind}{message_of(error)}"), plain_text(f"{file}, line {line}"), place.positions[0]

    def _record(self, value: Any) -> Any:
        """Return a result as a row of the schema."""
        if not self._no_error:
            return value
        names = self._names
        if isinstance(value, tuple | list):
            if len(value) != len(names):
                raise BadOutputError(f"returned {len(value)} values, the schema has {len(names)}: {', '.join(names)}")
            return (*value, *self._no_error)
        fields = getattr(type(value), "__dataclass_fields__", None)
        if fields is not None:
            value = {name: getattr(value, name) for name in fields}
        if isinstance(value, dict):
            if value.keys() != set(names):
                raise BadOutputError(f"returned keys {sorted(map(str, value))}, the schema has {names}")
            return (*(value[name] for name in names), *self._no_error)
        if len(names) == 1 and value is not None:
            return (value, *self._no_error)
        raise BadOutputError(f"returned {type(value).__name__}; expected a tuple, a dict or a row")


async def _cancelled(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait for their ends."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
