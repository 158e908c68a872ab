"""ThreadSession: a function runs in the task's own process, for debugging, and opt-in.

Kinds that take their input batch by batch run in the task's thread. A function over all rows pulls its input while the
task pushes it, so it has a thread of its own and the two work in turns:

    task       batch ──►         waits ──► takes results, one at a time ──►         next batch
    function          runs until it wants the next batch, or has a result     waits

Only one of them ever runs. A function in a thread cannot be killed: a cancel waits for its next row.

Held by: tests/functions/test_stream_session.py
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from typing import TypeAlias

import cloudpickle
import pyarrow as pa

from engine.functions.function_body import FunctionBody
from engine.functions.function_error import FunctionStopped, UserFunctionError
from engine.functions.function_room import FunctionRoom
from engine.functions.function_session import FunctionPlan, FunctionSession
from engine.functions.user_function import FunctionContext
from engine.task_log import carry_task_log


def open_thread_session(plan: FunctionPlan) -> FunctionSession:
    """Return the session of a function in this process."""
    tables = {
        name: pa.Table.from_batches(batches, schema)
        for name, (schema, batches) in zip(plan.operator.broadcasts, plan.broadcasts, strict=True)
    }
    body = FunctionBody(
        plan.operator,
        cloudpickle.loads(plan.operator.function),
        plan.input_schema,
        plan.output_schema,
        FunctionContext(plan.subtask_index, plan.parallelism, tables),
        plan.folder or None,
        plan.room,
    )
    return StreamThreadSession(body, plan.room) if body.is_stream else ThreadSession(body)


class ThreadSession:
    """A function by batch, in the task's thread."""

    is_satisfied = False
    peak_bytes = 0
    is_at_work = False

    def __init__(self, body: FunctionBody) -> None:
        self._body = body
        body.open()

    #: time of its worker: it has none
    busy_us = 0

    @property
    def opening_us(self) -> int:
        """Time that opening it took."""
        return self._body.opening_us

    @property
    def counters(self) -> dict[str, int]:
        """The values of its counters."""
        return self._body.context.counts()

    def process(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the results of the batch."""
        return self._body.apply(batch)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Close the function; nothing is outstanding."""
        self._body.close()
        return iter(())

    def stop(self) -> None:
        """Close the function."""
        self._body.close()

    def cancel(self) -> None:
        """Do nothing: the task ends at its next batch."""

    def close(self) -> None:
        """Close the function if that has not happened, after a failure: that is what the user must see."""
        with suppress(UserFunctionError):
            self._body.close()


class _Wanted:
    """The function waits for a batch."""


class _Ended:
    """The function has ended; ``error`` says how."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


_Event: TypeAlias = "pa.RecordBatch | _Wanted | _Ended"


class StreamThreadSession:
    """A function over all rows, in a thread of its own that works in turns with the task's."""

    peak_bytes = 0
    is_at_work = False

    def __init__(self, body: FunctionBody, room: FunctionRoom | None) -> None:
        self._body = body
        self._room = room
        self._events: queue.SimpleQueue[_Event] = queue.SimpleQueue()
        #: replies to an event: a batch, None for the end of input, True to continue, False to stop
        self._replies: queue.SimpleQueue[pa.RecordBatch | bool | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._waits_for_input = False
        self._has_ended = False
        body.open()

    @property
    def is_satisfied(self) -> bool:
        """Whether the function has ended before its input."""
        return self._has_ended

    #: time of its worker: it has none
    busy_us = 0

    @property
    def opening_us(self) -> int:
        """Time that opening it took."""
        return self._body.opening_us

    @property
    def counters(self) -> dict[str, int]:
        """The values of its counters."""
        return self._body.context.counts()

    def process(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Pass a batch to the function; yield results until it reads the next one."""
        yield from self._give(batch)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """End the input; yield the rest and close the function."""
        yield from self._give(None)
        self._body.close()

    def stop(self) -> None:
        """End the function, then close it."""
        while self._thread is not None and not self._has_ended:
            self._replies.put(False)
            self._has_ended = isinstance(self._events.get(), _Ended)
        if self._thread is not None:
            self._thread.join()
        self._body.close()

    def cancel(self) -> None:
        """Do nothing: the task ends at its next batch."""

    def close(self) -> None:
        """End the function if it has not ended; idempotent."""
        with suppress(UserFunctionError):
            self.stop()
        if self._room is not None:
            self._room.close()

    def _give(self, batch: pa.RecordBatch | None) -> Iterator[pa.RecordBatch]:
        yield from self._until_input_wanted()
        if not self._has_ended:
            self._waits_for_input = False
            self._replies.put(batch)
            yield from self._until_input_wanted()

    def _until_input_wanted(self) -> Iterator[pa.RecordBatch]:
        """Yield results until the function waits for a batch or has ended."""
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, args=(carry_task_log(),), name="python function", daemon=True
            )
            self._thread.start()
        while not self._waits_for_input and not self._has_ended:
            event = self._events.get()
            if isinstance(event, _Wanted):
                self._waits_for_input = True
            elif isinstance(event, _Ended):
                self._has_ended = True
                if event.error is not None:
                    raise event.error
            else:
                yield event
                self._replies.put(True)

    # in the function's thread ----------------------------------------------------------------------------------

    def _run(self, task_log: AbstractContextManager[None]) -> None:
        failure: BaseException | None = None
        try:
            with task_log:
                for result in self._body.run(self._batches()):
                    self._ask(result)
        except FunctionStopped:
            pass
        except BaseException as error:
            failure = error
        self._events.put(_Ended(failure))

    def _batches(self) -> Iterator[pa.RecordBatch]:
        while (batch := self._ask(_Wanted())) is not None:
            assert isinstance(batch, pa.RecordBatch), "a batch was asked for"
            yield batch

    def _ask(self, event: _Event) -> pa.RecordBatch | bool | None:
        self._events.put(event)
        reply = self._replies.get()
        if reply is False:
            raise FunctionStopped
        return reply
