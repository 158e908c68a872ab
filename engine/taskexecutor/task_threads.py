"""TaskThreads: the threads of tasks, each of which runs one task after the other.

    thread(work, name).start() ─► an idle thread, else a new one ─► work() ─► idle ─┬─ the next task
                                                                                   └─ IDLE_S without one: its end

To begin and to end a thread takes longer than a small task does. A task finds a thread as a new one would be: with a
name and a context of its own. Threads are daemons: one that never ends its task must not keep the process alive.

Invariant: at most IDLE_MAX threads are idle, and none after ``close``.

Held by: tests/taskexecutor/test_task_threads.py
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import Context
from typing import Final, Protocol

from engine.exchange.passing import passing_on

#: idle threads of one TaskExecutor
IDLE_MAX: Final = 32
#: seconds without a task after which a thread ends
IDLE_S: Final = 5.0
_IDLE_NAME: Final = "drey-task-idle"


class Row(Protocol):
    """Tasks that begin together (``task_rows.TaskRow``)."""

    def add(self, task: TaskThread) -> None:
        """Add a task, before the row begins."""
        ...

    def following(self) -> TaskThread | None:
        """Return the next task, None where there is none."""
        ...

    def pass_on(self) -> None:
        """Begin the next task in a thread that is free."""
        ...


class TaskThread:
    """One task's thread, as ``threading.Thread`` would be."""

    def __init__(self, threads: TaskThreads, work: Callable[[], None], name: str) -> None:
        self._threads = threads
        self.work: Callable[[], None] | None = work
        self.name = name
        #: lock that is held until the work is done
        self.runs = threading.Lock()
        #: thread that ends with this work
        self.last_of: threading.Thread | None = None
        self.ident: int | None = None
        #: tasks that it begins with, and what is told where the machine gives no thread
        self.row: Row | None = None
        self.refused: Callable[[RuntimeError], None] | None = None

    def start(self) -> None:
        """Begin; RuntimeError where the machine gives no thread."""
        self.runs.acquire()
        self._threads.begin(self)

    def start_in(self, row: Row, refused: Callable[[RuntimeError], None]) -> None:
        """Begin in its turn in a row."""
        self.runs.acquire()
        self.row, self.refused = row, refused
        row.add(self)

    def begin_apart(self) -> None:
        """Begin in a thread that is not the row's."""
        try:
            self._threads.begin(self)
        except RuntimeError as error:
            assert self.refused is not None, "it is in a row"
            self.refused(error)

    def join(self) -> None:
        """Wait until the work is done, and its thread has ended or is idle."""
        with self.runs:
            pass
        if self.last_of is not None:
            self.last_of.join()


class TaskThreads:
    """Threads of one TaskExecutor. Thread: any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # guarded by: self._lock
        self._idle: list[_Worker] = []
        self._is_closed = False

    def thread(self, work: Callable[[], None], name: str) -> TaskThread:
        """Return the thread of a task that has not begun."""
        return TaskThread(self, work, name)

    def begin(self, task: TaskThread) -> None:
        """Run a task in an idle thread, else in a new one; RuntimeError where the machine gives none."""
        with self._lock:
            worker = self._idle.pop() if self._idle else None
        if worker is None:
            worker = _Worker(self)
            worker.task = task
            worker.start()
        else:
            worker.task = task
            worker.is_wanted.release()

    def keep(self, worker: _Worker) -> bool:
        """Have an idle thread, if there is room for one more."""
        with self._lock:
            has_room = not self._is_closed and len(self._idle) < IDLE_MAX
            if has_room:
                self._idle.append(worker)
        return has_room

    def leave(self, worker: _Worker) -> bool:
        """Have an idle thread no more; False: a task is about to begin in it."""
        with self._lock:
            is_idle = worker in self._idle
            if is_idle:
                self._idle.remove(worker)
        return is_idle

    def close(self) -> None:
        """End the idle threads; others end with their tasks."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.is_wanted.release()
        for worker in idle:
            worker.join()


class _Worker(threading.Thread):
    def __init__(self, threads: TaskThreads) -> None:
        super().__init__(name=_IDLE_NAME, daemon=True)
        self._threads = threads
        self.task: TaskThread | None = None
        #: lock that is released when there is a task, or when the thread is to end
        self.is_wanted = threading.Lock()
        self.is_wanted.acquire()

    def run(self) -> None:
        """Run one task after the other."""
        is_kept = True
        while is_kept and (task := self.task) is not None:
            self.task, is_kept, following = None, False, None
            try:
                self.name, task.ident = task.name, self.ident
                assert task.work is not None, "it runs once"
                with passing_on(None if task.row is None else task.row.pass_on):
                    Context().run(task.work)
                self.name, task.work = _IDLE_NAME, None
                following = None if task.row is None else task.row.following()
                # a thread that is kept may be given a task from here on
                is_kept = following is not None or self._threads.keep(self)
            finally:
                task.last_of = None if is_kept else self
                task.row = task.refused = None
                task.runs.release()
            del task  # nothing of it is kept while the thread is idle
            if following is not None:
                self.task = following
            elif is_kept and not self.is_wanted.acquire(timeout=IDLE_S) and not self._threads.leave(self):
                self.is_wanted.acquire()
