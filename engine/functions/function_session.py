"""FunctionSession: a user's function at work for one task; WorkerSession has it run in a worker process.

    session.process(batch)* -> results, one batch behind: the worker works while the task prepares the next; those of a
                              very large batch at once, so that two are never there
    session.finish()        -> the rest; the function is closed
    session.stop()          instead: the rest is not needed; the function is closed, or killed if it does not end
    session.close()         the worker goes back to its job's idle ones, or dies if it was in the middle
    session.cancel()        from another thread: the worker is killed, whatever it does

    session.is_satisfied    the function has ended before its input        session.counters    known at the end

``process`` returns when the worker has asked for more than it was sent, so the function sets the pace of its input,
and the consumer of the results waits for output.

A worker that dies (a crash, ``os._exit``) is a UserFunctionError that names the function and how the process ended. One
that was ended because it held too much memory, by the watch of workers or by the kernel, is a WorkerMemoryError: it
would be again.

Held by: tests/functions/test_function_runner.py
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

import pyarrow as pa

from engine.config.options import PROCESS_SIZE
from engine.config.sizes import format_size
from engine.errors import JobCancelledError
from engine.functions.failed_row import FAILED_ROWS, unpacked_row
from engine.functions.function_error import (
    MACHINE_ERRORS,
    UserFunctionError,
    WorkerKilledError,
    WorkerMemoryError,
    describe_row,
    plain_text,
)
from engine.functions.function_room import FunctionRoom
from engine.functions.long_calls import TIMED_OUT, too_long_text
from engine.functions.shared_batches import SharedBatches
from engine.functions.waiting_rows import WaitingRows
from engine.functions.worker_excess import WorkerExcess
from engine.functions.worker_process import NO_WORKER, Worker
from engine.functions.worker_protocol import (
    BatchDone,
    DiskGranted,
    DiskLeft,
    DiskWanted,
    FunctionFailed,
    FunctionFinished,
    FunctionOpened,
    FunctionSatisfied,
    InputEnded,
    Message,
    OpenFunction,
    ProcessBatch,
    ResultReady,
    ResultTaken,
    StopFunction,
    begin_message,
    receive_message,
    send_message,
)
from engine.functions.worker_trace import TimedOut, time_out_of
from engine.functions.worker_user import close_all, open_for_worker
from engine.functions.worker_watch import anonymous_bytes
from engine.graph.operator_descriptor import PythonOperator
from engine.machine_limits import machine_limit, no_process
from engine.memory.control_group import kill_count
from engine.python_command import own_search_path

#: seconds that a function may take to end when it is stopped, before it is killed
STOP_TIMEOUT_S = 1.0
#: batch size above which no batch is prepared while the worker has another one
_LARGE_BYTES = 8 << 20
#: signals that other processes send, the out-of-memory killer among them; a crash of the function is another signal
_SIGNALS_FROM_OUTSIDE = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP})


class FunctionPlan(NamedTuple):
    """The plan of a session: the function and its environment."""

    operator: PythonOperator
    input_schema: pa.Schema
    output_schema: pa.Schema
    subtask_index: int = 0
    parallelism: int = 1
    #: broadcast data sets, in order of the operator's names
    broadcasts: Sequence[tuple[pa.Schema, Sequence[pa.RecordBatch]]] = ()
    #: folder for rows that wait to be read; "": the system's, where they are not counted
    folder: str = ""
    #: room that those rows have there; None: they are not counted
    room: FunctionRoom | None = None
    #: folders of modules that came with the job: --py-files, in front of the worker's own
    job_modules: Sequence[str] = ()
    #: files beside the script, found after all others, so that they hide nothing
    script_modules: Sequence[str] = ()
    #: file for the function's output; "": the standard error of the process
    log_file: str = ""
    #: fields of each JSON line that it logs; None: logs are text
    log_fields: dict[str, str] | None = None
    #: time limit of a row, seconds; 0: none
    timeout_s: float = 0.0


class FunctionSession(Protocol):
    """A user's function at work for one task."""

    @property
    def is_satisfied(self) -> bool:
        """Whether the function reads no more."""
        ...

    @property
    def is_at_work(self) -> bool:
        """Whether the function runs beside the task on what it was given; from any thread."""
        ...

    @property
    def counters(self) -> dict[str, int]:
        """The values of its counters when it was closed."""
        ...

    @property
    def busy_us(self) -> int:
        """Processor time of its worker, known at the end; 0 where it has none."""
        ...

    @property
    def opening_us(self) -> int:
        """Time that opening it took, known when the first batch was taken."""
        ...

    @property
    def peak_bytes(self) -> int:
        """Most memory that its worker was seen to hold; 0 where the function has no process of its own."""
        ...

    def process(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Take a batch; yield results that are ready."""
        ...

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Yield the remaining results and close the function."""
        ...

    def stop(self) -> None:
        """Close the function; its remaining results are not needed."""
        ...

    def cancel(self) -> None:
        """Stop, from another thread."""
        ...

    def close(self) -> None:
        """Release everything; idempotent."""
        ...


class WorkerSession:
    """The function runs in a worker process."""

    def __init__(self, give_back: Callable[[Worker], None], worker: Worker, plan: FunctionPlan) -> None:
        self._give_back = give_back
        self._operator = plan.operator
        self._timeout_s = plan.timeout_s
        policy = plan.operator.policy
        self._collecting = plan.output_schema if policy is not None and policy.is_collecting else None
        self._lock = threading.Lock()
        self._worker: Worker | None = worker  # guarded by: self._lock where its owner changes
        self._is_cancelled = False  # guarded by: self._lock
        self._is_opened = False
        self._is_finished = False
        self._is_healthy = True
        self._slot = 0
        self._outstanding_count = 0
        #: rows that the worker has; when it has opened the function, it reports which columns it needs
        self._rows = WaitingRows()
        self._kill_count = kill_count()
        self.is_satisfied = False
        self.counters: dict[str, int] = {}
        self.busy_us = self.opening_us = 0
        self._room = plan.room
        memories: list[SharedBatches] = []
        opened: list[int] = []
        try:
            sizes = []
            for schema, batches in plan.broadcasts:
                memories.append(SharedBatches.create("drey-broadcast"))
                sizes.append(memories[-1].write_table(batches, schema))
            opening = OpenFunction(
                plan.operator,
                plan.input_schema.serialize().to_pybytes(),
                plan.output_schema.serialize().to_pybytes(),
                own_search_path(),
                plan.subtask_index,
                plan.parallelism,
                plan.folder,
                tuple(sizes),
                tuple(plan.job_modules),
                plan.log_file,
                plan.timeout_s,
                tuple(plan.script_modules),
                bool(worker.user),
                plan.log_fields,
                FAILED_ROWS.is_wanted,
            )
            worker.broadcast_bytes = sum(sizes)
            if worker.user:
                opened = open_for_worker((*plan.job_modules, *plan.script_modules), plan.log_file)
            #: part of the opening that the worker does not read before it runs
            self._unsent = self._begin(opening, (*(memory.descriptor for memory in memories), *opened))
        except BaseException:
            worker.discard()
            raise
        finally:
            for memory in memories:
                memory.close()
            close_all(opened)

    @property
    def peak_bytes(self) -> int:
        """Most memory that the worker was seen to hold."""
        worker = self._worker
        if worker is not None:
            with suppress(OSError):
                return max(worker.peak_bytes, anonymous_bytes(worker.pid))
            return worker.peak_bytes
        return 0

    @property
    def is_at_work(self) -> bool:
        """Whether the worker runs the function on what it was sent; from any thread."""
        worker = self._worker
        return worker is not None and self._outstanding_count > 0 and worker.is_waiting

    def process(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Send the batch; yield what comes until the one before it has been read, or this one if it is very large."""
        self._await_opened()
        if self.is_satisfied:
            return
        worker = self._at_work
        # Before it is written: the watch looks at any time, and what it advises follows from it.
        worker.widest_bytes = max(worker.widest_bytes, batch.nbytes)
        size_bytes = worker.inputs[self._slot].write(self._rows.given(batch))
        del batch
        self._send(ProcessBatch(self._slot, size_bytes))
        self._slot = 1 - self._slot
        self._outstanding_count += 1
        unread_max = 0 if size_bytes >= _LARGE_BYTES else 1
        while self._outstanding_count > unread_max and not self.is_satisfied:
            yield from self._next_results()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Yield the remaining rows."""
        self._await_opened()
        self._send(InputEnded())
        while not self._is_finished:
            yield from self._next_results()

    def stop(self) -> None:
        """End and close the function within a limited time; then ``close`` kills it."""
        if self._worker is None or not self._is_healthy or self._is_finished:
            return
        if self._unsent:
            self._is_healthy = False
            return
        self._send(StopFunction())
        connection = self._at_work.connection
        connection.settimeout(STOP_TIMEOUT_S)
        try:
            while not self._is_finished:
                received = receive_message(connection)
                if received is None:
                    break
                self._take(received[0])
        except (OSError, EOFError):
            self._is_healthy = False
        finally:
            connection.settimeout(None)

    def cancel(self) -> None:
        """Kill the worker; waiting callers get JobCancelledError."""
        with self._lock:
            self._is_cancelled = True
            if self._worker is not None:
                self._worker.kill()

    def close(self) -> None:
        """Return the worker if it is idle and unharmed, end it otherwise."""
        if not self._is_cancelled:
            with suppress(UserFunctionError):
                self.stop()
        with self._lock:
            worker, self._worker = self._worker, None
            if self._room is not None:
                self._room.close()
            is_idle = self._is_finished and self._is_healthy and not self._is_cancelled
        if worker is None:
            return
        if is_idle:
            worker.broadcast_bytes = 0
            self._give_back(worker)
        else:
            worker.discard()

    @property
    def _at_work(self) -> Worker:
        assert self._worker is not None, "session is closed"
        return self._worker

    def _await_opened(self) -> None:
        """Wait for the worker to have loaded the function: not before the session can be cancelled by others."""
        unsent, self._unsent = self._unsent, b""
        if unsent:
            with suppress(OSError):
                self._at_work.connection.sendall(unsent)
        while not self._is_opened:
            self._take(self._receive())

    def _next_results(self) -> Iterator[pa.RecordBatch]:
        """Take the next message; yield the result if it is one."""
        message = self._receive()
        self._take(message)
        if isinstance(message, ResultReady):
            self._at_work.widest_bytes = max(self._at_work.widest_bytes, message.size_bytes)
            result = self._at_work.result.read(message.size_bytes, copy=True)
            self._send(ResultTaken())
            yield from self._rows.results(result)
        elif isinstance(message, DiskWanted):
            assert self._room is not None, "the worker has a folder of the task's"
            self._room.reserve(message.size_bytes)
            self._send(DiskGranted())

    def _take(self, message: Message) -> None:
        match message:
            case FunctionOpened(columns=columns):
                self._is_opened, self.opening_us = True, message.opening_us
                self._rows = WaitingRows(columns, self._operator.kind == "filter", self._collecting)
            case BatchDone():
                self._outstanding_count -= 1
                self._rows.done()
            case FunctionSatisfied():
                self.is_satisfied = True
            case FunctionFinished(counters=counters, busy_us=busy_us):
                self._is_finished = True
                self.counters = counters
                self.busy_us = busy_us
            case FunctionFailed():
                self._is_healthy = False
                if message.is_of_machine:
                    raise MACHINE_ERRORS[message.type_name](message.message)
                fields = (message.type_name, message.message, message.function_name, message.file, message.line)
                failure = UserFunctionError(*fields, message.row, message.details)
                failure.failed_row = unpacked_row(message.failed_row)
                if (row := self._rows.row_at(message.position)) is not None:
                    failure.row, failure.failed_row = plain_text(describe_row(row)), row
                raise failure
            case DiskLeft(size_bytes=size_bytes):
                assert self._room is not None, "the worker has a folder of the task's"
                self._room.give_back(size_bytes)
            case _:
                assert isinstance(message, (ResultReady, DiskWanted)), f"unexpected {message!r}"

    def _send(self, message: Message, descriptors: tuple[int, ...] = ()) -> None:
        try:
            send_message(self._at_work.connection, message, descriptors)
        except OSError:
            # The worker is gone or has failed; its last message, or its end, says more than the broken pipe.
            return

    def _begin(self, message: Message, descriptors: tuple[int, ...]) -> bytes:
        """Send the first message without waiting; return what is left of it."""
        try:
            return begin_message(self._at_work.connection, message, descriptors)
        except OSError as error:
            if machine_limit(error) is not None:
                raise
            return b""  # as above

    def _receive(self) -> Message:
        try:
            received = receive_message(self._at_work.connection)
        except (OSError, EOFError):
            received = None
        if received is None:
            raise self._worker_ended()
        return received[0]

    def _worker_ended(self) -> Exception:
        """Return the error for a worker that is gone."""
        with self._lock:
            self._is_healthy = False
            if self._is_cancelled:
                return JobCancelledError("cancelled while a Python function was running")
            worker, self._worker = self._worker, None
        assert worker is not None
        worker.kill()
        if worker.refusal is not None:
            worker.discard()
            return no_process(worker.refusal, NO_WORKER) or worker.refusal
        timed_out = time_out_of(worker)
        exit_code = worker.reap()
        if worker.excess is not None:
            return self._too_large(worker.excess)
        if exit_code == -signal.SIGKILL and kill_count() > self._kill_count:
            return self._ended_by_the_kernel(worker)
        if exit_code == 1 and timed_out is not None:
            return self._too_long(timed_out)
        if exit_code < 0:
            how = f"was ended by signal {-exit_code} ({signal.Signals(-exit_code).name})"
        else:
            how = f"exited with code {exit_code}"
        operator = self._operator
        error_class = WorkerKilledError if -exit_code in _SIGNALS_FROM_OUTSIDE else UserFunctionError
        return error_class(
            "WorkerDied",
            f"the Python worker {how} while running {operator.function_name}",
            operator.function_name,
            operator.file,
            operator.line,
        )

    def _too_long(self, timed_out: TimedOut) -> UserFunctionError:
        """Return the error for a function that kept the interpreter, so that its own watch could not end it."""
        operator = self._operator
        file, line = (timed_out.file, timed_out.line) if timed_out.file else (operator.file, operator.line)
        text = too_long_text(operator.function_name, self._timeout_s, "in native code that keeps Python's lock")
        return UserFunctionError(TIMED_OUT, text, operator.function_name, file, line, details=timed_out.stack)

    def _too_large(self, excess: WorkerExcess) -> WorkerMemoryError:
        """Return the error for a worker that held too much."""
        operator = self._operator
        file, line = (excess.file, excess.line) if excess.file else (operator.file, operator.line)
        return WorkerMemoryError(
            "WorkerMemoryError", excess.text(operator.function_name), operator.function_name, file, line
        )

    def _ended_by_the_kernel(self, worker: Worker) -> WorkerMemoryError:
        """Return the error for a worker that was chosen when the memory of the machine or container ended."""
        operator = self._operator
        return WorkerMemoryError(
            "WorkerMemoryError",
            f"the kernel ended the Python worker of {operator.function_name} for want of memory, which held "
            f"{format_size(worker.peak_bytes)} when last seen; have the function hold less at a time (yield rows as "
            f"they come), lower {PROCESS_SIZE.key} or the parallelism, or give the machine or container more",
            operator.function_name,
            operator.file,
            operator.line,
        )
