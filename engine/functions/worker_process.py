"""The parent's side of workers: one zygote a process, workers that belong to one job, nothing left behind.

    Zygote.fork() -> Worker      start the zygote if it does not run; a worker with its socket and shared memory, at
                                 once: what is sent to it waits in the socket until it runs
    Worker.kill()                SIGKILL, and readers of the worker's messages see their end
    Worker.reap()                its exit code, of the zygote        Worker.discard()     the code is not needed
    Zygote.close()               the socket closes: the zygote kills its workers and ends

    fork    request ──►  zygote imports, forks  ──► pid ──►  thread that reads what the zygote says ──► worker.pid

Only a caller that needs an exit code waits for the zygote: it imports Arrow at first, and a task that is cancelled
meanwhile has to end. A worker that is killed before its process id is known is killed when it is.

Requests to the zygote are serialised by a lock and answered in order; each worker's socket belongs to the session that
uses it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import socket
import subprocess
import threading
from collections import deque
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from engine.closing import close_all
from engine.errors import ResourceError
from engine.functions.shared_batches import SharedBatches
from engine.functions.worker_protocol import (
    EndWorker,
    ForkRefused,
    ForkWorker,
    Message,
    WorkerEnded,
    WorkerForked,
    receive_message,
    send_message,
    worker_program,
)
from engine.machine_limits import no_process
from engine.memory.heap import worker_variables
from engine.python_command import drop_current_folder, python_command

if TYPE_CHECKING:
    from engine.functions.worker_excess import WorkerExcess

_END_TIMEOUT_S = 5.0
#: seconds for which an exit code is waited for
_REAP_TIMEOUT_S = 15.0
#: last bytes kept of a zygote's output before it has started
_SAID_BYTES = 8192

#: message where the machine allows no process, or no files for it
NO_WORKER = "no process can be started for a Python function"

_log = logging.getLogger(__name__)


class WorkerLostError(ResourceError):
    """A worker or the zygote is gone."""


class Worker:
    """A worker process: its socket, two input memories, one result memory, and where it says where it is."""

    def __init__(self, zygote: Zygote, number: int) -> None:
        self._zygote = zygote
        self.number = number
        #: user whose rights it has; "": that of this process
        self.user = zygote.user
        with contextlib.ExitStack() as given_back:
            self.connection, self._other_end = map(given_back.enter_context, socket.socketpair())
            memories = []
            for role in ("input-0", "input-1", "result"):
                memories.append(SharedBatches.create(f"drey-{role}"))
                given_back.callback(memories[-1].close)
            self.inputs = memories[:2]
            self.result = memories[2]
            self.trace = os.memfd_create("drey-trace", os.MFD_CLOEXEC)
            given_back.pop_all()
        self._lock = threading.Lock()
        #: process id; 0 until the zygote has sent it  # guarded by: self._lock
        self.pid = 0  # guarded by: self._lock
        self.is_killed = False  # guarded by: self._lock
        #: OSError of a machine that gives no process, or None
        self.refusal: OSError | None = None
        #: reason why it was ended, where it held too much memory
        self.excess: WorkerExcess | None = None
        #: bytes of broadcast data sets, in memory that is the worker's while its function runs
        self.broadcast_bytes = 0
        #: largest resident memory seen, and the smallest while it worked
        self.peak_bytes = 0
        self.least_bytes = 0
        #: bytes of its largest batch: a wide row is a batch of its own
        self.widest_bytes = 0

    @property
    def descriptors(self) -> tuple[int, ...]:
        """File descriptors that the process uses."""
        return (self._other_end.fileno(), *(memory.descriptor for memory in (*self.inputs, self.result)), self.trace)

    @property
    def shared_bytes(self) -> int:
        """Memory through which batches come and go, and broadcast data sets came."""
        total = self.broadcast_bytes
        for memory in (*self.inputs, self.result):
            with contextlib.suppress(OSError):
                total += os.fstat(memory.descriptor).st_blocks * 512
        return total

    @property
    def is_waiting(self) -> bool:
        """Whether an idle worker is still there: one that has ended, or was killed, has closed its socket."""
        looking = select.poll()  # which takes descriptors of any number
        looking.register(self.connection, select.POLLIN)
        return not looking.poll(0)

    def started(self, reply: Future[Message]) -> None:
        """Take the zygote's reply to a fork; called in the thread that reads it."""
        # Not before: a caller waiting for a worker that will never run is to see its end, not one that is on its way.
        self._other_end.close()
        if reply.exception() is not None:
            return
        forked = reply.result()
        if isinstance(forked, ForkRefused):
            self.refusal = OSError(forked.error_number, os.strerror(forked.error_number))
            self.hang_up()
            return
        assert isinstance(forked, WorkerForked), f"unexpected {forked!r}"
        with self._lock:
            self.pid = forked.pid
            if self.is_killed:
                self._signal()

    def kill(self) -> None:
        """End the process at once; idempotent, from any thread."""
        with self._lock:
            if self.is_killed:
                return
            self.is_killed = True
            if self.pid:
                self._signal()
        self.hang_up()

    def hang_up(self) -> None:
        """End all waits for more than was sent: a process that the function started may hold the socket open."""
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def _signal(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def reap(self) -> int:
        """Close everything of a worker that has ended or was killed; return its exit code (minus the signal)."""
        self.close()
        try:
            ended = self._zygote.end(self.number).result(_REAP_TIMEOUT_S)
        except TimeoutError:
            return -signal.SIGKILL
        except WorkerLostError:
            if not self.pid:
                raise
            return -signal.SIGKILL
        return ended.exit_code if isinstance(ended, WorkerEnded) else -signal.SIGKILL

    def discard(self) -> None:
        """End the process and close everything of it, without waiting for its end."""
        close_all([self.kill, self.close, partial(self._zygote.end, self.number)])

    def close(self) -> None:
        """Close everything of this side; idempotent."""
        trace, self.trace = self.trace, -1
        memories = [memory.close for memory in (*self.inputs, self.result)]
        traces = [partial(os.close, trace)] if trace >= 0 else []
        close_all([self.connection.close, self._other_end.close, *memories, *traces])


def _end_process(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_END_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Zygote:
    """The pre-imported process that workers are forked from; starts with the first ``fork``."""

    def __init__(self, user: str = "") -> None:
        #: user whose rights workers have; "": that of this process
        self.user = user
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None  # guarded by: self._lock
        self._connection: socket.socket | None = None  # guarded by: self._lock
        self._reader: threading.Thread | None = None  # guarded by: self._lock
        self._fork_count = 0  # guarded by: self._lock
        #: output of the process before it has started
        self._said = -1  # guarded by: self._lock
        #: unanswered requests, in order  # guarded by: self._lock
        self._replies: deque[Future[Message]] = deque()
        #: True if the process has ended by itself: every request would fail
        self.has_ended = False
        #: text on how it has ended
        self._end = "is gone"  # guarded by: self._lock

    def fork(self) -> Worker:
        """Return a new worker, which runs when the zygote comes to it."""
        with self._lock:
            try:
                worker = Worker(self, self._fork_count)
            except OSError as error:
                raise no_process(error, NO_WORKER) or error from error
            self._fork_count += 1
            try:
                self._start()
                reply = self._ask(ForkWorker(worker.number, worker.user), worker.descriptors)
            except (OSError, RuntimeError) as error:
                worker.close()
                raise no_process(error, NO_WORKER) or _lost(f"{self._end}: {error}") from error
        reply.add_done_callback(worker.started)
        return worker

    def end(self, number: int) -> Future[Message]:
        """End and reap a worker; return how it ended, once the zygote has come to it."""
        with self._lock:
            try:
                return self._ask(EndWorker(number))
            except OSError:
                gone: Future[Message] = Future()
                gone.set_exception(_lost(self._end))
                return gone

    def close(self) -> None:
        """End the zygote and whatever workers are left; idempotent."""
        with self._lock:
            process, connection, reader = self._process, self._connection, self._reader
            self._process = self._connection = self._reader = None
            said, self._said = self._said, -1
        if connection is None or process is None or reader is None:
            return
        # Closing alone would leave the thread where it waits.
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        close_all([reader.join, connection.close, partial(_end_process, process), partial(os.close, said)])

    def _ask(self, message: Message, descriptors: tuple[int, ...] = ()) -> Future[Message]:
        """Send a request; return what will be its answer. Caller holds the lock."""
        if self._connection is None or self.has_ended:
            raise BrokenPipeError("it has ended")
        reply: Future[Message] = Future()
        self._replies.append(reply)
        # The thread that reads learns how a process ended that takes no request any more, and answers all of them.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            send_message(self._connection, message, descriptors)
        return reply

    def _read(self, connection: socket.socket) -> None:
        """Pass each answer to its caller, until the zygote ends; then no caller is left waiting."""
        try:
            while (received := receive_message(connection)) is not None:
                with self._lock:
                    reply = self._replies.popleft()
                reply.set_result(received[0])
        except (OSError, EOFError):
            pass  # it ended in the middle of a message, or with unread ones
        with self._lock:
            process, said = self._process, self._said
        why = "was closed" if process is None else _how_ended(process, said)
        with self._lock:
            self.has_ended, self._end = True, why
            unanswered = tuple(self._replies)
            self._replies.clear()
        for reply in unanswered:
            reply.set_exception(_lost(why))

    def _start(self) -> None:
        """Start the process, unless that has happened. Caller holds the lock."""
        if self._connection is not None:
            return
        root = str(Path(__file__).resolve().parents[2])
        drop_current_folder()
        environment = worker_variables()
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [root, environment.get("PYTHONPATH", "")]))
        with contextlib.ExitStack() as closed, contextlib.ExitStack() as given_back:
            parent_end, zygote_end = socket.socketpair()
            given_back.callback(parent_end.close)
            closed.callback(zygote_end.close)
            said = os.memfd_create("drey-zygote", os.MFD_CLOEXEC)
            given_back.callback(os.close, said)
            standard_error = closed.enter_context(os.fdopen(os.dup(2), "wb"))
            passed = (zygote_end.fileno(), standard_error.fileno())
            words = (*map(str, passed), worker_program("task-process").header)
            process = subprocess.Popen(
                python_command("engine.functions.worker", *words),
                pass_fds=passed,
                stdin=subprocess.DEVNULL,
                stderr=said,
                env=environment,
                # Ctrl-C of a terminal is for this process, which ends them; it would show where they were.
                process_group=0,
            )
            given_back.callback(process.wait)
            given_back.callback(process.kill)
            reader = threading.Thread(target=self._read, args=(parent_end,), name="python zygote", daemon=True)
            reader.start()  # it waits for the lock before it looks at the next ones
            self._process, self._connection, self._said, self._reader = process, parent_end, said, reader
            given_back.pop_all()


def _lost(how: str) -> WorkerLostError:
    return WorkerLostError(f"the process that starts Python workers {how}")


def _how_ended(process: subprocess.Popen[bytes], said: int) -> str:
    """Describe how a zygote ended early; its output before it had started goes to the log, whole."""
    how = "hung up"
    with contextlib.suppress(subprocess.TimeoutExpired):
        code = process.wait(_END_TIMEOUT_S)
        how = f"exited with code {code}" if code >= 0 else f"was ended by signal {-code}"
    text = os.pread(said, _SAID_BYTES, max(0, os.fstat(said).st_size - _SAID_BYTES)).decode(errors="replace").strip()
    if text:
        _log.error("the process that starts Python workers did not start:\n%s", text)
    return f"{how}: {text.splitlines()[-1]}" if text else how
