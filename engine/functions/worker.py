"""The worker side: ``python -m engine.functions.worker DESCRIPTOR`` is the zygote; workers are forked from it.

The zygote imports what workers need once (pyarrow, cloudpickle), stays single-threaded and does nothing but fork and
reap; a fork is ready in a millisecond. When its socket closes (the parent is gone, however it went) it kills its
workers and ends. A worker serves one session after another until its socket closes; what the user's code prints goes
to standard error, because standard output belongs to the command that was run.

Source: the zygote of Android and Chromium; PySpark's daemon.py does the same for its workers.
Held by: tests/functions/test_stream_session.py
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import faulthandler
import logging
import os
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Generator, Iterator
from pathlib import Path

import cloudpickle
import msgspec
import pyarrow as pa

from engine.errors import SpillError
from engine.functions.failed_row import packed_row
from engine.functions.function_body import FunctionBody
from engine.functions.function_error import FunctionPlace, FunctionStopped, UserFunctionError
from engine.functions.long_calls import TIMED_OUT, LongCalls
from engine.functions.shared_batches import SharedBatches
from engine.functions.user_function import FunctionContext
from engine.functions.worker_protocol import (
    BROADCASTS_MAX,
    OPENED_MAX,
    TRACE_SIGNAL,
    BatchDone,
    DiskGranted,
    DiskLeft,
    DiskWanted,
    EndWorker,
    ForkRefused,
    ForkWorker,
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
    WorkerEnded,
    WorkerForked,
    receive_message,
    send_message,
    worker_program,
)
from engine.functions.worker_user import become, log_descriptor, opened_search_path, read_by_descriptor
from engine.log_format import JsonLines
from engine.log_output import guard_output
from engine.machine_limits import machine_limit
from engine.memory.heap import settle_worker

#: number of descriptors: socket, two input memories, one result memory, trace
DESCRIPTOR_COUNT = 5
_PR_SET_PDEATHSIG = 1
_IMPORT_ERRORS = (ImportError.__name__, ModuleNotFoundError.__name__)
_TEXT_FORMAT = "%(asctime)s %(levelname)-5s %(name)s - %(message)s"
#: log handlers that no function's module has added
_own_handlers: list[logging.Handler] = []


def run_zygote(connection: socket.socket) -> None:
    """Fork and reap workers until the parent closes the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    workers: dict[int, int] = {}
    try:
        while (received := receive_message(connection, DESCRIPTOR_COUNT)) is not None:
            message, descriptors = received
            if isinstance(message, ForkWorker):
                send_message(connection, _fork(connection, message, descriptors, workers))
            elif isinstance(message, EndWorker):
                send_message(connection, WorkerEnded(_end(workers.pop(message.number, 0))))
    except (BrokenPipeError, ConnectionResetError):
        pass  # it was closed while its last requests were answered
    finally:
        for pid in workers.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _fork(
    connection: socket.socket, message: ForkWorker, descriptors: tuple[int, ...], workers: dict[int, int]
) -> Message:
    """Return the answer about a new worker."""
    try:
        if len(descriptors) < DESCRIPTOR_COUNT:  # the others did not fit into this process
            return ForkRefused(errno.EMFILE)
        pid = os.fork()
        if pid == 0:
            connection.close()
            _run_worker_and_exit(descriptors, message.user)
    except OSError as error:
        return ForkRefused(error.errno or errno.EAGAIN)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    workers[message.number] = pid
    return WorkerForked(pid)


def _end(pid: int) -> int:
    """End a worker and return its exit code; -SIGKILL where there was none."""
    if pid == 0:
        return -signal.SIGKILL
    # It may have been given up before its process id was known; one that has ended is not changed.
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def _run_worker_and_exit(descriptors: tuple[int, ...], user: str) -> None:
    """Serve one parent and end the process without running exit handlers."""
    exit_code = 1
    unreadable: list[str] = []
    try:
        if user:
            opened = opened_search_path()
            become(user)
            unreadable = read_by_descriptor(opened)
        # After that: a change of user resets it.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        # Works whatever the function does, also in a library's loop.
        faulthandler.register(TRACE_SIGNAL, descriptors[4], all_threads=False)
        sys.breakpointhook = _refuse_breakpoint
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)  # what the function starts shall not hold them open
        connection = socket.socket(fileno=descriptors[0])
        inputs = (SharedBatches(descriptors[1]), SharedBatches(descriptors[2]))
        hint = f"; functions run as {user} here, who may not read {', '.join(unreadable)}" if unreadable else ""
        serve(connection, inputs, SharedBatches(descriptors[3]), descriptors[4], hint)
        exit_code = 0
    except (EOFError, BrokenPipeError, ConnectionResetError):
        exit_code = 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(exit_code)


def _refuse_breakpoint(*_arguments: object, **_named: object) -> None:
    """End the function as a debugger does that finds no terminal, before it prints its prompt."""
    import bdb

    raise bdb.BdbQuit


def serve(
    connection: socket.socket,
    inputs: tuple[SharedBatches, SharedBatches],
    result: SharedBatches,
    trace: int,
    import_hint: str = "",
) -> None:
    """Run one function after another until the connection closes.

    ``trace``: descriptor of the worker's trace; ``import_hint``: what may be behind an import that fails.
    """
    folders: dict[str, str] = {}
    while (received := receive_message(connection, BROADCASTS_MAX + OPENED_MAX)) is not None:
        message, descriptors = received
        if isinstance(message, StopFunction):
            continue  # it crossed with the end of the function it was meant for
        assert isinstance(message, OpenFunction), f"unexpected {message!r}"
        try:
            log: str | int = message.log_file
            if message.are_opened:
                message, log, descriptors = _named(message, descriptors, folders)
            with output_to(log, message.log_fields):
                run_function(TaskLink(connection, inputs, result), message, descriptors, trace)
        except UserFunctionError as error:
            text = error.message + import_hint * (error.type_name in _IMPORT_ERRORS)
            fields = (error.type_name, text, error.function_name, error.file, error.line, error.row)
            row = packed_row(error) if message.keeps_row else b""
            send_message(connection, FunctionFailed(*fields, error.details, row, error.position))
            return
        except (EOFError, BrokenPipeError, ConnectionResetError):
            raise
        except BaseException as error:
            failure = FunctionPlace(message.operator).error(error)
            limit = error if isinstance(error, SpillError) else machine_limit(error)
            if limit is not None:  # of what surrounds the function
                failure.type_name, failure.message = type(limit).__name__, str(limit)
            fields = (failure.type_name, failure.message, failure.function_name, failure.file, failure.line, "")
            send_message(connection, FunctionFailed(*fields, failure.details, is_of_machine=limit is not None))
            return


def _named(
    message: OpenFunction, descriptors: tuple[int, ...], folders: dict[str, str]
) -> tuple[OpenFunction, str | int, tuple[int, ...]]:
    """Return the message with names by which this process reaches what rode along, the log, and the other descriptors.

    ``folders``: names that were given before; what was imported by one keeps it.
    """
    count = len(message.broadcast_sizes)
    riding = deque(descriptors[count:])
    for path in (*message.job_modules, *message.script_modules):
        descriptor = riding.popleft()
        if path in folders:
            os.close(descriptor)
        else:
            os.set_inheritable(descriptor, False)
            folders[path] = f"/proc/self/fd/{descriptor}"
    named = msgspec.structs.replace(
        message,
        job_modules=tuple(folders[path] for path in message.job_modules),
        script_modules=tuple(folders[path] for path in message.script_modules),
    )
    return named, riding.popleft() if message.log_file else "", descriptors[:count]


def _long_calls(link: TaskLink, message: OpenFunction, trace: int) -> LongCalls:
    """Return a watch over the function, which reports a call that takes too long."""
    operator = message.operator

    def fail(text: str, file: str, line: int, row: str, details: str) -> None:
        link.send(FunctionFailed(TIMED_OUT, text, operator.function_name, file, line, row, details))

    return LongCalls(operator, message.timeout_s, lambda: link.sent_count, fail, trace=trace)


@contextlib.contextmanager
def output_to(log: str | int, fields: dict[str, str] | None = None) -> Iterator[None]:
    """Send what the function prints and logs to a file, which may be open; "": to where it goes anyway.

    ``fields``: lines that it logs are JSON, with these in each; None: they are text.
    """
    if log == "":
        yield
        return
    # Line by line: what a function printed before it crashed is what a person looks for. No room for it is no failure.
    guard_output()
    if not logging.root.handlers:
        logging.basicConfig(level=logging.INFO)
        _own_handlers.extend(logging.root.handlers)
    formatter = logging.Formatter(_TEXT_FORMAT) if fields is None else JsonLines(fields)
    for handler in _own_handlers:
        handler.setFormatter(formatter)
    descriptor = log if isinstance(log, int) else log_descriptor(log)
    others = os.dup(1), os.dup(2)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, other in zip((1, 2), others, strict=True):
            os.dup2(other, number)
            os.close(other)


class TaskLink:
    """The worker's end of one function: batches come when asked for, results go when the last one was taken."""

    def __init__(
        self, connection: socket.socket, inputs: tuple[SharedBatches, SharedBatches], result: SharedBatches
    ) -> None:
        self._connection = connection
        self._inputs = inputs
        self._result = result
        # The task sends the next batch before it takes results, so one may come where the other is awaited.
        self._waiting: deque[Message] = deque()
        self._has_ended = False
        #: number of messages to the task, which shows whether a batch or a result was finished
        self.sent_count = 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the input, copied out of the shared memory: what functions keep of it stays as it was."""
        while not self._has_ended:
            message = self._waiting.popleft() if self._waiting else self._next()
            if isinstance(message, InputEnded):
                self._has_ended = True
                return
            assert isinstance(message, ProcessBatch), f"unexpected {message!r}"
            yield self._inputs[message.slot].read(message.size_bytes, copy=True)
            self.send(BatchDone())

    def emit(self, batch: pa.RecordBatch) -> None:
        """Send a result."""
        size_bytes = self._result.write(batch)
        del batch
        self.send(ResultReady(size_bytes))
        while not isinstance(reply := self._next(), ResultTaken):
            self._waiting.append(reply)

    def reserve(self, size_bytes: int) -> None:
        """Take bytes of a disk before they are written; the task fails where there are none."""
        self.send(DiskWanted(size_bytes))
        while not isinstance(reply := self._next(), DiskGranted):
            self._waiting.append(reply)

    def give_back(self, size_bytes: int) -> None:
        """Give bytes of a disk back."""
        self.send(DiskLeft(size_bytes))

    def skip_input(self) -> None:
        """Drop what comes until the input ends."""
        if not self._has_ended:
            self.send(FunctionSatisfied())
            while not isinstance(self._waiting.popleft() if self._waiting else self._next(), InputEnded):
                pass

    def send(self, message: Message) -> None:
        """Send a message to the task."""
        self.sent_count += 1
        send_message(self._connection, message)

    def _next(self) -> Message:
        received = receive_message(self._connection)
        if received is None:
            raise EOFError("the task has closed the connection")
        if isinstance(received[0], StopFunction):
            raise FunctionStopped
        return received[0]


def run_function(link: TaskLink, message: OpenFunction, descriptors: tuple[int, ...], trace: int) -> None:
    """Load, open, run and close a function; an error of closing does not hide one of running."""
    began_ns = time.process_time_ns()
    memories = [SharedBatches(descriptor) for descriptor in descriptors]
    try:
        body = _load(message, memories, link)
        with _long_calls(link, message, trace):
            _run_body(link, body)
        # A worker that waits for its next function has no thread of ours.
        link.send(FunctionFinished(body.context.counts(), (time.process_time_ns() - began_ns) // 1000))
    finally:
        for memory in memories:
            memory.close()


def _run_body(link: TaskLink, body: FunctionBody) -> None:
    results: Iterator[pa.RecordBatch] = iter(())
    try:
        body.open()
        link.send(FunctionOpened(body.narrow(), body.opening_us))
        results = body.run(link.batches())
        for batch in results:
            handed = [batch]
            del batch  # a very wide one is not kept while the next is made
            link.emit(handed.pop())
        link.skip_input()
    except FunctionStopped:
        pass
    except BaseException:
        with contextlib.suppress(UserFunctionError):
            body.close()
        raise
    try:
        _unwind(results)
    finally:
        body.close()


def _unwind(results: Iterator[pa.RecordBatch]) -> None:
    """Run the user's generators to their ends, as ``close`` of a generator does."""
    if isinstance(results, Generator):
        results.close()


def _load(message: OpenFunction, memories: list[SharedBatches], link: TaskLink) -> FunctionBody:
    sys.path[:0] = [entry for entry in message.job_modules if entry not in sys.path]
    known = set(sys.path)
    sys.path.extend(entry for entry in (*message.module_path, *message.script_modules) if entry not in known)
    operator = message.operator
    try:
        function = cloudpickle.loads(operator.function)
    except Exception as error:
        failure = FunctionPlace(operator).error(error)
        failure.message = f"the function could not be loaded in the worker: {failure.message}"
        raise failure from error
    sizes = zip(operator.broadcasts, memories, message.broadcast_sizes, strict=True)
    broadcasts = {name: memory.read_table(size_bytes) for name, memory, size_bytes in sizes}
    return FunctionBody(
        operator,
        function,
        pa.ipc.read_schema(pa.py_buffer(message.input_schema)),
        pa.ipc.read_schema(pa.py_buffer(message.output_schema)),
        FunctionContext(message.subtask_index, message.parallelism, broadcasts),
        message.folder or None,
        link if message.folder else None,
    )


def main() -> None:
    """Run the zygote: the arguments are the descriptors of its socket and of standard error, and the parent's program.

    Standard error is a file of the parent's until the zygote has started.
    """
    worker_program("worker-process").check(sys.argv[3], "the other end")
    # Where memory ends after all, the kernel shall end a worker, not the process that runs tasks.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    # Arrow looks for NumPy and pandas when it first takes Python values: once here, not in every worker.
    pa.array([0])
    settle_worker()
    standard_error = int(sys.argv[2])
    os.write(standard_error, os.pread(2, os.fstat(2).st_size, 0))  # warnings
    os.ftruncate(2, 0)
    os.dup2(standard_error, 2)
    os.dup2(2, 1)
    os.close(standard_error)
    run_zygote(socket.socket(fileno=int(sys.argv[1])))


if __name__ == "__main__":
    main()
