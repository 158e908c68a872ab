"""The worker side: ``python -m engine.functions.worker DESCRIPTOR`` is the zygote; workers are forked from it.

The zygote imports what workers need once (pyarrow, cloudpickle), stays single-threaded and does nothing but fork and
reap; a fork is ready in a millisecond. When its socket closes (the parent is gone, however it went) it kills its
workers and ends. A worker serves one session after another until its socket closes; what the user's code prints goes
to standard error, because standard output belongs to the command that was run.

Source: the zygote of Android and Chromium; PySpark's daemon.py does the same for its workers.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import sys
from collections import deque

import cloudpickle
import pyarrow as pa

from engine.functions.function_body import FunctionBody, UserFunctionError
from engine.functions.shared_batches import SharedBatches
from engine.functions.worker_protocol import (
    BatchDone,
    ForkWorker,
    FunctionFailed,
    FunctionOpened,
    Message,
    OpenFunction,
    ProcessBatch,
    ReapWorker,
    ResultReady,
    ResultTaken,
    WorkerEnded,
    WorkerForked,
    receive_message,
    send_message,
)

#: socket, two input memories, one result memory
DESCRIPTOR_COUNT = 4
_PR_SET_PDEATHSIG = 1


def run_zygote(connection: socket.socket) -> None:
    """Fork and reap workers until the parent closes the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    workers: set[int] = set()
    try:
        while (received := receive_message(connection, DESCRIPTOR_COUNT)) is not None:
            message, descriptors = received
            if isinstance(message, ForkWorker):
                pid = os.fork()
                if pid == 0:
                    connection.close()
                    _run_worker_and_exit(descriptors)
                for descriptor in descriptors:
                    os.close(descriptor)
                workers.add(pid)
                send_message(connection, WorkerForked(pid))
            elif isinstance(message, ReapWorker) and message.pid in workers:
                _, status = os.waitpid(message.pid, 0)
                workers.discard(message.pid)
                send_message(connection, WorkerEnded(os.waitstatus_to_exitcode(status)))
    finally:
        for pid in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _run_worker_and_exit(descriptors: tuple[int, ...]) -> None:
    """Serve one parent and end the process without running anybody's exit handlers."""
    exit_code = 1
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        connection = socket.socket(fileno=descriptors[0])
        inputs = (SharedBatches(descriptors[1]), SharedBatches(descriptors[2]))
        serve(connection, inputs, SharedBatches(descriptors[3]))
        exit_code = 0
    except (EOFError, BrokenPipeError, ConnectionResetError):
        exit_code = 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(exit_code)


def serve(connection: socket.socket, inputs: tuple[SharedBatches, SharedBatches], result: SharedBatches) -> None:
    """Open functions and process batches until the connection closes."""
    body: FunctionBody | None = None
    # The task sends the next batch before it takes the results of this one, so a batch may arrive where the
    # acknowledgement is awaited.
    waiting: deque[Message] = deque()
    while (message := waiting.popleft() if waiting else _next_message(connection)) is not None:
        try:
            if isinstance(message, OpenFunction):
                body = _open(message)
                send_message(connection, FunctionOpened())
            elif isinstance(message, ProcessBatch):
                assert body is not None, "a batch before its function"
                for output in body.apply(inputs[message.slot].read(message.size_bytes, copy=False)):
                    send_message(connection, ResultReady(result.write(output)))
                    while not isinstance(reply := _next_message(connection), ResultTaken):
                        if reply is None:
                            return
                        waiting.append(reply)
                send_message(connection, BatchDone())
        except UserFunctionError as error:
            fields = (error.type_name, error.message, error.function_name, error.file, error.line, error.row)
            send_message(connection, FunctionFailed(*fields, error.details))
            return


def _next_message(connection: socket.socket) -> Message | None:
    received = receive_message(connection)
    return None if received is None else received[0]


def _open(message: OpenFunction) -> FunctionBody:
    known = set(sys.path)
    sys.path.extend(entry for entry in message.module_path if entry not in known)
    operator = message.operator
    try:
        function = cloudpickle.loads(operator.function)
    except Exception as error:
        raise UserFunctionError(
            type(error).__name__,
            f"the function could not be loaded in the worker: {error}",
            operator.function_name,
            operator.file,
            operator.line,
        ) from error
    return FunctionBody(
        operator,
        function,
        pa.ipc.read_schema(pa.py_buffer(message.input_schema)),
        pa.ipc.read_schema(pa.py_buffer(message.output_schema)),
    )


def main() -> None:
    """Run the zygote on the socket whose descriptor is the only argument."""
    os.dup2(2, 1)
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    # Arrow looks for NumPy and pandas when it first takes Python values: once here, not in every worker.
    pa.array([0])
    run_zygote(socket.socket(fileno=int(sys.argv[1])))


if __name__ == "__main__":
    main()
