"""WorkerWatch: Python workers stay within their budget, or the greediest one is ended.

    watch.begin(worker)        it works for a task            watch.rest(worker)     it waits for the next one
    watch.settle()             joins the thread if no worker is left that works; ``begin`` starts another
    watch.close()              idempotent; the same in any case

    every LOOK_S, while a worker works:    what all of them hold  >  what they may hold?
        no   nothing
        yes  workers that wait are ended; if there are none, the largest is asked where it is, and ended

What they hold: anonymous memory of every worker, pages that two of them still share from the zygote counted once, and
the memory through which batches come and go, counted once although two processes map it. What they may hold: their
budget (``worker_budget``), and beyond it what the rest of the process does not use: what fits into the process size
is not refused. So one that is ended has the largest part of a sum that is too much.

That is the kind WORKER of the process's ``Budget``. Nothing is reserved of it: what a function takes is not known
before it has run, so memory is looked at afterwards, and no thread waits for it.

Why resident memory, and not a limit of the kernel on the process: RLIMIT_AS counts addresses, of which Arrow, NumPy,
BLAS and thread stacks reserve gigabytes that are never touched, and RLIMIT_DATA counts every private writable mapping,
the same gigabytes once allocators have made them writable. Both would refuse what fits. And a refused allocation is a
MemoryError that a function may catch, or a library may turn into a crash; the end of a process is neither.

Memory can grow by some ten MiB between two looks. Should the kernel itself run out meanwhile, it ends a worker and not
the process that runs tasks (worker.py raises its own score); a session that sees that says so as well.

Callers must not wait for a worker that has ended, even if a process that its function started holds its socket.

Limits: what a function's own child processes hold is not counted.
Source: the resource watchdogs of Dask's nanny; PySpark's spark.executor.pyspark.memory, which is RLIMIT_AS.
Held by: tests/property/test_wide_functions_bound.py
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path

from engine.functions.worker_excess import WorkerExcess
from engine.functions.worker_process import Worker
from engine.functions.worker_trace import asked_place
from engine.memory.worker_budget import WorkerBudget

LOOK_S = 0.05
#: copies of a row in a worker: Arrow's and Python's value, in and out, and the shared memory
ROW_COPIES = 5
#: memory of an idle worker: interpreter and libraries
_IDLE_BYTES = 32 << 20
#: factor on the memory of a worker that was ended, which would have grown further
_ROOM = 1.25
#: pause after a slow look, as a multiple of the time that it took
_LONG_LOOK = 3
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class WorkerWatch:
    """Watches the workers of a process. Thread: any."""

    def __init__(
        self,
        budget: WorkerBudget,
        process_bytes: int,
        look_s: float = LOOK_S,
        process_for: Callable[[int], int] | None = None,
    ) -> None:
        self._budget = budget
        self._process_bytes = process_bytes
        #: function from bytes of workers to the process size that allows them
        self._process_for = process_for
        self._look_s = look_s
        self._changed = threading.Condition()
        self._working: list[Worker] = []  # guarded by: self._changed
        self._waiting: list[Worker] = []  # guarded by: self._changed
        self._thread: threading.Thread | None = None  # guarded by: self._changed
        self._is_closed = False  # guarded by: self._changed

    def begin(self, worker: Worker) -> None:
        """Watch a worker that begins to work for a task."""
        with self._changed:
            worker.peak_bytes = worker.least_bytes = worker.widest_bytes = 0
            if worker in self._waiting:
                self._waiting.remove(worker)
            self._working.append(worker)
            if self._thread is None and not self._is_closed:
                self._thread = threading.Thread(target=self._run, name="python worker watch", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def rest(self, worker: Worker) -> None:
        """Record that a worker waits for its next task."""
        with self._changed:
            if worker in self._working:
                self._working.remove(worker)
                self._waiting.append(worker)

    def settle(self) -> None:
        """End the thread where no worker works any more."""
        with self._changed:
            self._forget_ended()
            if self._working:
                return
        self._end_thread()

    def close(self) -> None:
        """End the thread; idempotent."""
        with self._changed:
            self._is_closed = True
        self._end_thread()

    def _end_thread(self) -> None:
        with self._changed:
            thread, self._thread = self._thread, None
            self._changed.notify_all()
        if thread is not None:
            thread.join()

    def _forget_ended(self) -> None:
        """Remove workers that were ended. Caller holds the lock."""
        self._working = [worker for worker in self._working if not worker.is_killed]
        self._waiting = [worker for worker in self._waiting if not worker.is_killed]

    def look(self) -> bool:
        """Look once; ends workers where they hold too much. Returns whether it took the kernel long."""
        with self._changed:
            self._forget_ended()
            working, waiting = tuple(self._working), tuple(self._waiting)
        workers = (*working, *waiting)
        shared = sum(worker.shared_bytes for worker in workers)
        # First what two of them share counts twice: to know better takes the kernel a walk through all of their pages.
        started = [worker for worker in workers if worker.pid]
        sizes = {worker: anonymous_bytes(worker.pid) for worker in started}
        _hang_up_ended(sizes)
        _note_peaks(sizes)
        total, allowed = shared + sum(sizes.values()), self._budget.size
        if total > allowed:
            allowed = max(allowed, self._process_bytes - anonymous_bytes(os.getpid()))
        if total <= allowed:
            return False
        sizes = {worker: proportional_bytes(worker.pid) for worker in started}
        total = shared + sum(sizes.values())
        if total <= allowed:
            return True
        if waiting:
            with self._changed:
                # Not one that has been given a task meanwhile.
                for worker in self._waiting:
                    worker.kill()
        elif sizes:
            largest = max(sizes, key=lambda worker: sizes[worker] + worker.shared_bytes)
            excess = WorkerExcess(
                sizes[largest] + largest.shared_bytes,
                total,
                allowed,
                len(workers),
                self._process_bytes,
                None if self._process_for is None else self._process_for(_enough_bytes(sizes)),
                own_bytes=anonymous_bytes(os.getpid()),
            )
            file, line = asked_place(largest)
            largest.excess = excess._replace(file=file, line=line)
            largest.kill()
        return True

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._working and self._thread is threading.current_thread():
                    self._changed.wait()
                if self._thread is not threading.current_thread():
                    return
            took_long = True
            with contextlib.suppress(OSError):  # nothing can be read: this process has no descriptors left
                took_long = self.look()
            pause_s = self._look_s * (_LONG_LOOK if took_long else 1)
            with self._changed:
                if self._thread is threading.current_thread():
                    self._changed.wait(pause_s)


def _hang_up_ended(sizes: dict[Worker, int]) -> None:
    """End waits for workers that have ended by themselves: they hold no memory."""
    for worker, size in sizes.items():
        if size == 0:
            worker.hang_up()


def _note_peaks(sizes: dict[Worker, int]) -> None:
    for worker, size in sizes.items():
        worker.peak_bytes = max(worker.peak_bytes, size)
        worker.least_bytes = min(worker.least_bytes or size, size)


def _enough_bytes(sizes: dict[Worker, int]) -> int:
    """Return the most memory that workers like these can hold, each with the widest row at once.

    One that holds more has kept rows: it is not known how many more it would keep, so it gets some room.
    """
    widest = max(worker.widest_bytes for worker in sizes)
    return sum(
        max(
            max(_IDLE_BYTES, worker.least_bytes) + ROW_COPIES * widest,
            int(_ROOM * (size + worker.shared_bytes)),
        )
        for worker, size in sizes.items()
    )


def anonymous_bytes(pid: int) -> int:
    """Return the resident memory of a process that no file stands behind; 0 when it has ended.

    Raises: OSError when that cannot be read: then it has not ended.
    """
    fields = _text_of(pid, "statm").split()
    return 0 if not fields else (int(fields[1]) - int(fields[2])) * _PAGE_BYTES


def proportional_bytes(pid: int) -> int:
    """Return the memory of a process, of pages shared by several processes only its part."""
    lines = _text_of(pid, "smaps_rollup").splitlines()
    for line in lines:
        if line.startswith("Pss_Anon:"):
            return int(line.split()[1]) << 10
    return anonymous_bytes(pid) if lines else 0


def _text_of(pid: int, name: str) -> str:
    """Return the kernel's file about a process, "" when it has ended."""
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return ""
