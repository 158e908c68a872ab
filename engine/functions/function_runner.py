"""FunctionRunner: gives each task a session with a worker process of its job.

    runner.open(job, operator, schemas, configuration) -> FunctionSession
        session.process(batch)* -> results, one batch behind: the worker works while the task prepares the next
        session.finish()        -> the rest
        session.close()         the worker goes back to its job's idle ones, or dies if it was in the middle
        session.cancel()        from another thread: the worker is killed, whatever it does
    runner.release_job(job)     all workers of a finished job end: memory given back, modules forgotten
    runner.close()

The worker loads the function while the task opens the rest of its chain; that runs the user's imports, so whoever waits
for it can be cancelled.

A worker that dies (a crash, ``os._exit``, the out-of-memory killer) is a UserFunctionError that names the function
and how the process ended.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections import defaultdict, deque
from collections.abc import Iterator
from typing import Protocol

import cloudpickle
import pyarrow as pa

from engine.config.loader import Configuration
from engine.config.options import PYTHON_EXECUTION_MODE
from engine.errors import JobCancelledError
from engine.functions.function_body import FunctionBody, UserFunctionError
from engine.functions.worker_process import Worker, Zygote
from engine.functions.worker_protocol import (
    BatchDone,
    FunctionFailed,
    FunctionOpened,
    Message,
    OpenFunction,
    ProcessBatch,
    ResultReady,
    ResultTaken,
    receive_message,
    send_message,
)
from engine.graph.operator_descriptor import PythonOperator


class FunctionSession(Protocol):
    """A user's function at work for one task."""

    def process(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Take a batch; yield results that are ready."""
        ...

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Yield the remaining results."""
        ...

    def cancel(self) -> None:
        """Stop, from another thread."""
        ...

    def close(self) -> None:
        """Give everything back; idempotent."""
        ...


class FunctionRunner:
    """Sessions and workers of one process."""

    def __init__(self) -> None:
        self._zygote = Zygote()
        self._lock = threading.Lock()
        self._idle: dict[str, deque[Worker]] = defaultdict(deque)  # guarded by: self._lock

    def open(
        self,
        job_id: str,
        operator: PythonOperator,
        input_schema: pa.Schema,
        output_schema: pa.Schema,
        configuration: Configuration,
    ) -> FunctionSession:
        """Return a session; its worker loads the function meanwhile, an error of that is raised by the first call."""
        if configuration.get(PYTHON_EXECUTION_MODE) == "thread":
            return ThreadSession(operator, input_schema, output_schema)
        with self._lock:
            idle = self._idle[job_id]
            worker = idle.pop() if idle else None
        return WorkerSession(self, job_id, worker or self._zygote.fork(), operator, input_schema, output_schema)

    def give_back(self, job_id: str, worker: Worker) -> None:
        """Keep an unharmed worker for the job's next session."""
        with self._lock:
            self._idle[job_id].append(worker)

    def release_job(self, job_id: str) -> None:
        """End the idle workers of a job."""
        with self._lock:
            workers = self._idle.pop(job_id, deque())
        for worker in workers:
            worker.kill()
            worker.reap()

    def close(self) -> None:
        """End all workers and the zygote; idempotent."""
        for job_id in list(self._idle):
            self.release_job(job_id)
        self._zygote.close()


class ThreadSession:
    """The function runs in the task's own thread: for debugging, and opt-in."""

    def __init__(self, operator: PythonOperator, input_schema: pa.Schema, output_schema: pa.Schema) -> None:
        self._body = FunctionBody(operator, cloudpickle.loads(operator.function), input_schema, output_schema)

    def process(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the results of the batch."""
        return self._body.apply(batch)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Nothing is outstanding."""
        return iter(())

    def cancel(self) -> None:
        """Do nothing: a function in a thread cannot be stopped; the task ends at its next batch."""

    def close(self) -> None:
        """Nothing is held."""


class WorkerSession:
    """The function runs in a worker process."""

    def __init__(
        self,
        runner: FunctionRunner,
        job_id: str,
        worker: Worker,
        operator: PythonOperator,
        input_schema: pa.Schema,
        output_schema: pa.Schema,
    ) -> None:
        self._runner = runner
        self._job_id = job_id
        self._operator = operator
        self._worker: Worker | None = worker
        self._is_opened = False
        self._slot = 0
        self._outstanding_count = 0
        self._is_cancelled = False
        self._is_healthy = True
        opening = OpenFunction(
            operator,
            input_schema.serialize().to_pybytes(),
            output_schema.serialize().to_pybytes(),
            tuple(sys.path),
        )
        self._send(opening)

    def process(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Send the batch; yield the results of the one before it."""
        self._await_opened()
        assert self._worker is not None, "session is closed"
        size_bytes = self._worker.inputs[self._slot].write(batch)
        self._send(ProcessBatch(self._slot, size_bytes))
        self._slot = 1 - self._slot
        self._outstanding_count += 1
        while self._outstanding_count > 1:
            yield from self._results()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Yield the results of the last batch."""
        self._await_opened()
        while self._outstanding_count:
            yield from self._results()

    def cancel(self) -> None:
        """Kill the worker; whoever waits for it gets JobCancelledError."""
        self._is_cancelled = True
        worker = self._worker
        if worker is not None:
            worker.kill()

    def close(self) -> None:
        """Return the worker if it is idle and unharmed, end it otherwise."""
        worker, self._worker = self._worker, None
        if worker is None:
            return
        if self._is_opened and self._is_healthy and not self._outstanding_count and not self._is_cancelled:
            self._runner.give_back(self._job_id, worker)
        else:
            worker.kill()
            worker.reap()

    def _await_opened(self) -> None:
        """Wait for the worker to have loaded the function: not before the session can be cancelled by others."""
        if not self._is_opened:
            self._expect(FunctionOpened)
            self._is_opened = True

    def _results(self) -> Iterator[pa.RecordBatch]:
        while True:
            message = self._expect(ResultReady, BatchDone)
            if isinstance(message, BatchDone):
                self._outstanding_count -= 1
                return
            assert isinstance(message, ResultReady)
            assert self._worker is not None, "session is closed"
            result = self._worker.result.read(message.size_bytes, copy=True)
            self._send(ResultTaken())
            yield result

    def _send(self, message: Message) -> None:
        assert self._worker is not None, "session is closed"
        try:
            send_message(self._worker.connection, message)
        except OSError:
            # The worker is gone or has failed; its last message, or its end, says more than the broken pipe.
            return

    def _expect(self, *kinds: type[Message]) -> Message:
        assert self._worker is not None, "session is closed"
        try:
            received = receive_message(self._worker.connection)
        except (OSError, EOFError):
            received = None
        if received is None:
            raise self._worker_ended()
        message = received[0]
        if isinstance(message, FunctionFailed):
            self._is_healthy = False
            fields = (message.type_name, message.message, message.function_name, message.file, message.line)
            raise UserFunctionError(*fields, message.row, message.details)
        assert isinstance(message, kinds), f"unexpected {message!r}"
        return message

    def _worker_ended(self) -> Exception:
        """Return the error for a worker that is gone."""
        self._is_healthy = False
        if self._is_cancelled:
            return JobCancelledError("cancelled while a Python function was running")
        worker, self._worker = self._worker, None
        assert worker is not None
        worker.kill()
        exit_code = worker.reap()
        if exit_code < 0:
            how = f"was ended by signal {-exit_code} ({signal.Signals(-exit_code).name})"
        else:
            how = f"exited with code {exit_code}"
        operator = self._operator
        return UserFunctionError(
            "WorkerDied",
            f"the Python worker {how} while running {operator.function_name}",
            operator.function_name,
            operator.file,
            operator.line,
        )
