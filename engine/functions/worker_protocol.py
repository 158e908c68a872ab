"""Messages between a task and its worker: a length (4 bytes, little endian) and msgpack.

    task -> worker    OpenFunction (descriptors ride along) · ProcessBatch(slot, size) · InputEnded
                      ResultTaken · DiskGranted · StopFunction · (end of stream: the worker exits)
    worker -> task    FunctionOpened · ResultReady(size) · BatchDone · FunctionSatisfied
                      DiskWanted(size) · DiskLeft(size) · FunctionFinished(counters) · FunctionFailed

    task -> zygote    ForkWorker(number) (descriptors of socket and memory ride along) · EndWorker(number)
    zygote -> task    WorkerForked(pid) · WorkerEnded(exit code), in order of the requests

    OpenFunction ─► FunctionOpened ─► (ProcessBatch ─► BatchDone)* ─► InputEnded ─► FunctionFinished
                                       results at any time, each answered by ResultTaken
                                       DiskWanted at any time, answered by DiskGranted, or the task fails

With OpenFunction ride descriptors of broadcast data and, where the worker has the rights of another user and opens
nothing of the task's by name, those of the folders of modules and of the log, in this order.

BatchDone says that the function wants more input, so the worker sets the pace; the task sends one batch ahead. A
function that has ended before its input says FunctionSatisfied once: batches that are on their way are dropped.
StopFunction comes at any time after opening and is answered by FunctionFinished, whatever else was on its way.

A worker holds one result at a time in shared memory: after ResultReady it waits for ResultTaken. Functions are
cloudpickled bytes from the job itself; only workers open them.

Held by: tests/functions/test_stream_session.py
"""

from __future__ import annotations

import array
import signal
import socket
import struct
from functools import cache
from typing import Final

import msgspec

from engine.graph.operator_descriptor import PythonOperator
from engine.rpc.fingerprint import fingerprint
from engine.rpc.program import Program, own_program

#: most broadcast data sets of one function
BROADCASTS_MAX = 32
#: limit of descriptors sent with a message: folders of modules, the log
OPENED_MAX = 64
#: signal upon which a worker writes its stack into its trace, whatever it does
TRACE_SIGNAL: Final = signal.SIGRTMAX - 1

_LENGTH = struct.Struct("<I")


class OpenFunction(msgspec.Struct, frozen=True, tag="open"):
    """Load a function and open it; schemas are Arrow IPC; ``module_path`` is the sys.path of the job's client."""

    operator: PythonOperator
    input_schema: bytes
    output_schema: bytes
    module_path: tuple[str, ...]
    subtask_index: int
    parallelism: int
    #: folder for rows that wait to be read
    folder: str
    #: sizes of broadcast data sets, in order of the operator's names; their memory is sent along
    broadcast_sizes: tuple[int, ...] = ()
    #: folders and archives of modules that came with the job, first in the search path
    job_modules: tuple[str, ...] = ()
    #: file for the function's output; "": the standard error of the process
    log_file: str = ""
    #: time limit of a row, seconds; 0: none
    timeout_s: float = 0.0
    #: modules of the job's script, last in the search path
    script_modules: tuple[str, ...] = ()
    #: True if modules and log ride along, opened
    are_opened: bool = False
    #: fields of each JSON line that it logs; None: logs are text
    log_fields: dict[str, str] | None = None
    #: True if the row for which it fails is sent with its error
    keeps_row: bool = False


class ProcessBatch(msgspec.Struct, frozen=True, tag="batch"):
    """A batch lies in input memory ``slot``."""

    slot: int
    size_bytes: int


class InputEnded(msgspec.Struct, frozen=True, tag="input_ended"):
    """The input has no more batches."""


class StopFunction(msgspec.Struct, frozen=True, tag="stop"):
    """Stop: no more results are needed; end the function and close it."""


class ResultTaken(msgspec.Struct, frozen=True, tag="taken"):
    """The result memory may be written again."""


class FunctionOpened(msgspec.Struct, frozen=True, tag="opened"):
    """The function is loaded. It needs only these columns of a row, none: all; and a filter gives truths, not rows."""

    columns: tuple[str, ...] = ()
    #: time that opening it took
    opening_us: int = 0


class ResultReady(msgspec.Struct, frozen=True, tag="result"):
    """A result lies in the result memory."""

    size_bytes: int


class DiskWanted(msgspec.Struct, frozen=True, tag="disk_wanted"):
    """The function is about to write so many bytes more to its file."""

    size_bytes: int


class DiskGranted(msgspec.Struct, frozen=True, tag="disk_granted"):
    """The bytes may be written."""


class DiskLeft(msgspec.Struct, frozen=True, tag="disk_left"):
    """The file is gone that had so many bytes."""

    size_bytes: int


class BatchDone(msgspec.Struct, frozen=True, tag="done"):
    """The oldest batch has been read to its end."""


class FunctionSatisfied(msgspec.Struct, frozen=True, tag="satisfied"):
    """The function has ended and reads no more."""


class FunctionFinished(msgspec.Struct, frozen=True, tag="finished"):
    """The function is closed; what its counters stand at."""

    counters: dict[str, int]
    #: processor time of the function, with making its rows and reading its results
    busy_us: int = 0


class FunctionFailed(msgspec.Struct, frozen=True, tag="failed"):
    """The function raised; the fields of UserFunctionError."""

    type_name: str
    message: str
    function_name: str
    file: str
    line: int
    row: str
    details: str
    #: pickled row, where the client wants it
    failed_row: bytes = b""
    #: position of the row in the current batch; -1: none
    position: int = -1
    #: True if it is one of MACHINE_ERRORS
    is_of_machine: bool = False


class ForkWorker(msgspec.Struct, frozen=True, tag="fork"):
    """Fork a worker that serves the socket and memory whose descriptors come with this message."""

    #: number by which the asker knows the worker: it has no process id yet
    number: int
    #: user of the process; "": the zygote's
    user: str = ""


class EndWorker(msgspec.Struct, frozen=True, tag="end"):
    """Kill a worker if it has not ended, and wait for its end."""

    number: int


class WorkerForked(msgspec.Struct, frozen=True, tag="forked"):
    """The worker runs."""

    pid: int


class ForkRefused(msgspec.Struct, frozen=True, tag="refused"):
    """The machine gives no process, or no files for it."""

    error_number: int


class WorkerEnded(msgspec.Struct, frozen=True, tag="ended"):
    """The end of a worker: the exit code, or minus the signal."""

    exit_code: int


Message = (
    OpenFunction
    | ProcessBatch
    | InputEnded
    | StopFunction
    | ResultTaken
    | FunctionOpened
    | ResultReady
    | DiskWanted
    | DiskGranted
    | DiskLeft
    | BatchDone
    | FunctionSatisfied
    | FunctionFinished
    | FunctionFailed
    | ForkWorker
    | EndWorker
    | WorkerForked
    | ForkRefused
    | WorkerEnded
)


@cache
def worker_program(role: str) -> Program:
    """Return the program that a process on either side reports: its files may have been replaced since it started."""
    return own_program(role, fingerprint(Message.__args__))


_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Message)


def send_message(connection: socket.socket, message: Message, descriptors: tuple[int, ...] = ()) -> None:
    """Send one message, with descriptors riding along."""
    rest = _encode(message)
    if descriptors:
        rest = rest[socket.send_fds(connection, [rest], list(descriptors)) :]
    if rest:
        connection.sendall(rest)


def begin_message(connection: socket.socket, message: Message, descriptors: tuple[int, ...] = ()) -> bytes:
    """Send so much of a first message as the connection takes without waiting; return the rest."""
    frame = _encode(message)
    # socket.send_fds ignores flags before Python 3.12.
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
    return frame[connection.sendmsg([frame], rights, socket.MSG_DONTWAIT) :]


def _encode(message: Message) -> bytes:
    body = _encoder.encode(message)
    return _LENGTH.pack(len(body)) + body


def receive_message(connection: socket.socket, descriptor_count: int = 0) -> tuple[Message, tuple[int, ...]] | None:
    """Return the next message and its descriptors, or None when the other side has closed."""
    head, descriptors, _flags, _address = socket.recv_fds(connection, _LENGTH.size, descriptor_count)
    if not head:
        return None
    head += _receive_exactly(connection, _LENGTH.size - len(head))
    body = _receive_exactly(connection, _LENGTH.unpack(head)[0])
    return _decoder.decode(body), tuple(descriptors)


def _receive_exactly(connection: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        part = connection.recv(size)
        if not part:
            raise EOFError("the other side closed in the middle of a message")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
