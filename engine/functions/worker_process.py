"""The parent's side of workers: one zygote a process, workers that belong to one job, nothing left behind.

    Zygote.fork() -> Worker      start the zygote if it does not run; a worker with its socket and shared memory
    Worker.kill()                SIGKILL; the exit code is asked of the zygote, which reaps it
    Zygote.close()               the socket closes: the zygote kills its workers and ends

Calls on the zygote's socket are serialised by a lock; each worker's socket belongs to the session that uses it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import ResourceError
from engine.functions.shared_batches import SharedBatches
from engine.functions.worker_protocol import (
    ForkWorker,
    ReapWorker,
    WorkerEnded,
    WorkerForked,
    receive_message,
    send_message,
)

if TYPE_CHECKING:
    from engine.functions.worker_watch import WorkerExcess

_END_TIMEOUT_S = 5.0


class WorkerLostError(ResourceError):
    """A worker or the zygote is gone."""


class Worker:
    """A worker process: its socket, two input memories, one result memory, and where it says where it is."""

    def __init__(
        self, zygote: Zygote, pid: int, connection: socket.socket, memories: list[SharedBatches], trace: int
    ) -> None:
        self._zygote = zygote
        self.pid = pid
        self.connection = connection
        self.inputs = memories[:2]
        self.result = memories[2]
        self.trace = trace
        self.is_killed = False
        #: why it was ended, where it held too much
        self.excess: WorkerExcess | None = None
        #: of broadcast data sets, in memory that is the worker's while its function runs
        self.broadcast_bytes = 0
        #: most resident memory that was seen
        self.peak_bytes = 0

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
        return not select.select([self.connection], [], [], 0)[0]

    def kill(self) -> None:
        """End the process at once; idempotent, from any thread."""
        if not self.is_killed:
            self.is_killed = True
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def reap(self) -> int:
        """Close everything of a worker that has ended or was killed; return its exit code (minus the signal)."""
        self.connection.close()
        for memory in (*self.inputs, self.result):
            memory.close()
        if self.trace >= 0:
            os.close(self.trace)
            self.trace = -1
        return self._zygote.reap(self.pid)


class Zygote:
    """The pre-imported process that workers are forked from; starts with the first ``fork``."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None  # guarded by: self._lock
        self._connection: socket.socket | None = None  # guarded by: self._lock

    def fork(self) -> Worker:
        """Return a new worker."""
        parent_end, worker_end = socket.socketpair()
        memories = [SharedBatches.create(f"drey-{role}") for role in ("input-0", "input-1", "result")]
        trace = os.memfd_create("drey-trace", os.MFD_CLOEXEC)
        try:
            with self._lock:
                connection = self._connect()
                descriptors = (worker_end.fileno(), *(memory.descriptor for memory in memories), trace)
                send_message(connection, ForkWorker(), descriptors)
                received = receive_message(connection)
        except OSError as error:
            parent_end.close()
            os.close(trace)
            for memory in memories:
                memory.close()
            raise WorkerLostError(f"the process that starts Python workers is gone: {error}") from error
        finally:
            worker_end.close()
        if received is None or not isinstance(received[0], WorkerForked):
            parent_end.close()
            os.close(trace)
            for memory in memories:
                memory.close()
            raise WorkerLostError("the process that starts Python workers ended; see its output above")
        return Worker(self, received[0].pid, parent_end, memories, trace)

    def reap(self, pid: int) -> int:
        """Wait for an ended worker and return its exit code; -9 when the zygote is gone, too."""
        with self._lock:
            if self._connection is None:
                return -signal.SIGKILL
            try:
                send_message(self._connection, ReapWorker(pid))
                received = receive_message(self._connection)
            except (OSError, EOFError):
                return -signal.SIGKILL
        return received[0].exit_code if received and isinstance(received[0], WorkerEnded) else -signal.SIGKILL

    def close(self) -> None:
        """End the zygote and whatever workers are left; idempotent."""
        with self._lock:
            process, connection = self._process, self._connection
            self._process = self._connection = None
        if connection is not None:
            connection.close()
        if process is not None:
            try:
                process.wait(_END_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _connect(self) -> socket.socket:
        """Return the zygote's socket, starting the process first. Caller holds the lock."""
        if self._connection is None:
            parent_end, zygote_end = socket.socketpair()
            root = str(Path(__file__).resolve().parents[2])
            environment = dict(os.environ)
            # A worker is one core of a slot, and a process that forks must not have threads of a BLAS library.
            environment.setdefault("OPENBLAS_NUM_THREADS", "1")
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, [root, environment.get("PYTHONPATH", "")]))
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "engine.functions.worker", str(zygote_end.fileno())],
                    pass_fds=[zygote_end.fileno()],
                    stdin=subprocess.DEVNULL,
                    env=environment,
                    # Ctrl-C of a terminal is for this process, which ends them; it would show where they were.
                    process_group=0,
                )
            finally:
                zygote_end.close()
            self._connection = parent_end
        return self._connection
