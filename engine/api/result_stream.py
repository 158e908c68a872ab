"""ResultStream: the rows of a job, batch by batch while it runs; what is not taken holds the job back.

    with data_set.to_batches() as batches:        the job runs in a thread
        for batch in batches: ...                 its sink is some files ahead (``connectors.stream_writer``)
                                                  leaving early, or an error, cancels the job

Rows come in the order of ``collect`` where they were sorted: one subtask after the other. Otherwise they come as they
are made. A row is returned once: where a task is repeated after its first rows were taken (on a cluster that lost a
process), the stream is an error that says so, since a repeated task may give its rows in another order.

A job that is held back keeps its slots. Where another job of this process waits for slots, all streams give way: their
jobs write the rows that were not read yet to disk, and end.

Held by: tests/integration/test_result_streams.py
Held by: tests/entrypoint/test_streams_from_a_cluster.py
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pyarrow as pa

from engine.client.job_listener import JobListener, heard_by
from engine.client.job_result import JobResult
from engine.client.notebook_progress import listener_of_job
from engine.client.termination import uninterrupted
from engine.connectors.stream_writer import TURN_OF_ANY, turn_of
from engine.errors import JobExecutionError
from engine.files.native_files import native_file
from engine.storage.file_systems import file_system_of

_LOOK_S: Final = 0.002
_LOOK_MAX_S: Final = 0.02


class _NoMoreWantedError(BaseException):
    """Raised where a job is waited for, which ends the job."""


class _Beside:
    """A listener that lets streams give way to a waiting job, and passes everything on to the process's listener."""

    wants_progress = True

    def __init__(self, listener: JobListener, folder: Path | None = None) -> None:
        """``folder``: of the stream that the job is of."""
        self._listener = listener
        self._folder = None if folder is None else os.fspath(folder)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._listener, name)

    def on_progress(self, progress: Any) -> None:
        """Check whether the job waits."""
        if progress.waiting is not None:
            for stream in _streams():
                if stream._folder != self._folder:
                    stream.give_way()
        if self._listener.wants_progress:
            self._listener.on_progress(progress)


class _Watcher(_Beside):
    """Ends the job of a stream that was closed."""

    def __init__(self, listener: JobListener, folder: Path) -> None:
        super().__init__(listener, folder)
        self.is_unwanted = threading.Event()

    def on_progress(self, progress: Any) -> None:
        """Check whether the rows are still wanted."""
        if self.is_unwanted.is_set():
            raise _NoMoreWantedError
        super().on_progress(progress)


class _Job:
    """A job in a thread of its own; it holds no reference to its reader, which may be dropped."""

    def __init__(self, run: Callable[[], JobResult], folder: Path) -> None:
        self._run_it = run
        self.error: BaseException | None = None
        self.watcher = _Watcher(listener_of_job(), folder)
        # The user of the job is a variable of the thread that asks.
        asked = copy_context().run
        self.thread = threading.Thread(target=asked, args=(self._run,), name="drey-result-stream", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            with heard_by(self.watcher):
                self._run_it()
        except _NoMoreWantedError:
            return
        except BaseException as error:  # raised in the thread that reads
            self.error = error


class ResultStream(Iterator[pa.RecordBatch]):
    """Batches of a running job. To be closed, at the latest by ``with``; running out of rows does it too."""

    def __init__(self, schema: pa.Schema, folder: Path, run: Callable[[], JobResult], *, is_ordered: bool) -> None:
        """Begin the job. ``folder``: exists, for the files of the stream; ``run`` runs the job to its end."""
        self.schema = schema
        self._folder = os.fspath(folder)
        self._files = file_system_of(self._folder)
        self._is_ordered = is_ordered
        self._turn = 0
        #: attempt of each subtask whose rows were read
        self._taken: dict[str, str] = {}
        self._batches: Iterator[pa.RecordBatch] = iter(())
        self._is_closed = False
        self._closed_by = "the stream was closed"
        #: True if its last row was read
        self._is_read = False
        self._gives_way = False
        self._begin_turn(turn_of(f"{0:05d}") if is_ordered else TURN_OF_ANY)
        self._job = _Job(run, folder)
        with _open_lock:
            _open.add(self)

    def __iter__(self) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if not getattr(self, "_is_closed", True):
            self.close()

    def __next__(self) -> pa.RecordBatch:
        batch = None if self._is_read else self._next()
        if batch is None:
            self._is_read = True
            self.close()
            raise StopIteration
        return batch

    def _next(self) -> pa.RecordBatch | None:
        """Return the next batch, None behind the last one; an error where the stream was closed before."""
        try:
            while (batch := next(self._batches, None)) is None:
                found = None if self._is_closed else self._next_file()
                if self._is_closed:
                    raise self._cut()
                if found is None:
                    return None
                self._batches = found
        except BaseException as error:
            was_closed = self._is_closed
            self.close()
            if was_closed and isinstance(error, OSError):  # its files went while they were looked for
                raise self._cut() from None
            raise
        return batch

    def _cut(self) -> JobExecutionError:
        return JobExecutionError(f"{self._closed_by} before all of its rows were read")

    def _next_file(self) -> Iterator[pa.RecordBatch] | None:
        """Return the batches of the next file, having waited for it; None: there are no more."""
        pause_s = _LOOK_S
        while True:
            # The thread is asked first: files that are there when it has ended are all there are.
            has_ended = not self._job.thread.is_alive()
            if self._job.error is not None:
                raise self._job.error
            path = self._pick(has_ended=has_ended)
            if path is not None:
                return self._read(path)
            if has_ended:
                return None
            time.sleep(pause_s)
            pause_s = min(_LOOK_MAX_S, 2 * pause_s)

    def _begin_turn(self, name: str) -> None:
        self._files.create_if_absent(f"{self._folder}/{name}", b"", is_durable=False)

    def _pick(self, *, has_ended: bool) -> str | None:
        entries = self._files.entries(self._folder)
        names = sorted(each.name for each in entries if not each.name.startswith((".", "turn-")))
        files = [name for name in names if name.endswith(".arrow")]
        if not self._is_ordered:
            # The first files of all subtasks before the second ones.
            return f"{self._folder}/{min(files, key=_number)}" if files else None
        while True:
            turn = f"{self._turn:05d}"
            mine = [name for name in files if name.startswith(turn)]
            if mine:
                return f"{self._folder}/{mine[0]}"
            is_over = any(name.startswith(turn) and name.endswith(".end") for name in names)
            if not is_over and not (has_ended and files):
                return None
            self._files.delete(f"{self._folder}/{turn_of(turn)}")
            self._turn += 1
            if not self._gives_way:
                self._begin_turn(turn_of(f"{self._turn:05d}"))

    def _read(self, path: str) -> Iterator[pa.RecordBatch]:
        subtask, nonce, _ = path.rpartition("/")[2].split("-")
        if self._taken.setdefault(subtask, nonce) != nonce:
            raise JobExecutionError(
                f"subtask {int(subtask)} was repeated after some of its rows had been read; collect() and write_* wait"
                " for the whole result and know no such trouble"
            )
        with native_file(path) as file, pa.ipc.open_file(file) as reader:
            batches = [reader.get_batch(index) for index in range(reader.num_record_batches)]
        self._files.delete(path)
        return iter(batches)

    @property
    def is_running(self) -> bool:
        """Whether its job has not ended."""
        return self._job.thread.is_alive()

    def give_way(self) -> None:
        """Run the job to its end, whether or not its rows are read; may be called in any thread."""
        self._gives_way = True
        self._end_turns()

    def _end_turns(self) -> None:
        with suppress(FileNotFoundError):  # another thread has just closed the stream
            for each in self._files.entries(self._folder):
                if each.name.startswith("turn-"):
                    self._files.delete(each.path)

    def close_with_environment(self) -> None:
        """Close it as its environment ends."""
        if not self._is_closed:
            self._closed_by = "the stream was closed with its environment (read it inside of `with Environment()`)"
        self.close()

    def close(self) -> None:
        """End the job, unless it has ended, and remove what is left of its rows; idempotent."""
        if self._is_closed:
            return
        self._is_closed = True
        self._batches = iter(())
        with uninterrupted():
            self._job.watcher.is_unwanted.set()
            # A writer that waits goes on, and finds that its task is cancelled.
            self._end_turns()
            self._job.thread.join()
            with suppress(OSError):
                self._files.delete_tree(self._folder)


#: open streams of this process
_open: Final[weakref.WeakSet[ResultStream]] = weakref.WeakSet()
_open_lock: Final = threading.Lock()


def _streams() -> list[ResultStream]:
    """Return the streams whose jobs may run."""
    with _open_lock:
        return [stream for stream in _open if not stream._is_closed]


@contextmanager
def beside_streams() -> Iterator[None]:
    """Run a job in this thread to which streams give way."""
    if not _streams():
        yield
        return
    with heard_by(_Beside(listener_of_job())):
        yield


def _number(name: str) -> tuple[str, str]:
    subtask, _, number = name.split("-")
    return number, subtask
