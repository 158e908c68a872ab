"""TaskRow: tasks that begin together run one after the other in one thread, as long as that is no wait for anything.

    add(task)*, begin() ─► the first task ─┬─ over ─► the next one, in the same thread
                                           ├─ about to wait (``passing``) ─► the next one, in another thread
                                           └─ at work for LONG_S ─► all others, each in a thread of its own

A task of a small job takes a millisecond, most of it in Python. Tasks that run at one time each hold up the others
when they take the interpreter's lock, and to wake a thread takes longer than what it waits for. What the tasks tell
the loop meanwhile is told together. Thread: ``add``, ``begin`` and the clock on the loop, others any.

Held by: tests/taskexecutor/test_task_rows.py
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from engine.taskexecutor.task_threads import TaskThread

#: seconds after which a task that is still at work is a long one: it is found after once or twice as long
LONG_S: Final = 0.005


class TaskRow:
    """Tasks of one message."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lock = threading.Lock()
        # guarded by: self._lock
        self._waiting: deque[TaskThread] = deque()
        self._told: list[tuple[Callable[..., object], tuple[Any, ...]]] = []
        self._begun = 0
        self._is_over = False

    def add(self, task: TaskThread) -> None:
        """Add a task, before the row begins."""
        self._waiting.append(task)

    def begin(self) -> None:
        """Begin the first task."""
        self.pass_on()
        if not self._is_over:
            self._loop.call_later(LONG_S, self._look, self._begun)

    def following(self) -> TaskThread | None:
        """Return the next task, None where there is none: what was told meanwhile is passed on then."""
        with self._lock:
            if self._waiting:
                self._begun += 1
                return self._waiting.popleft()
            self._is_over = True
            told, self._told = self._told, []
        if told:
            self._loop.call_soon_threadsafe(_call, told)
        return None

    def tell(self, callback: Callable[..., object], *arguments: Any) -> None:
        """Call back on the loop: when the row is over, where it is not."""
        with self._lock:
            if not self._is_over:
                self._told.append((callback, arguments))
                return
        self._loop.call_soon_threadsafe(callback, *arguments)

    def pass_on(self) -> None:
        """Begin the next task in a thread that is free: this one has another task, which is about to wait."""
        task = self.following()
        if task is not None:
            task.begin_apart()

    def _look(self, begun: int) -> None:
        """Begin all others if the same task is at work since the last look."""
        with self._lock:
            if self._is_over:
                return
            told, self._told = self._told, []
            apart: list[TaskThread] = []
            if begun == self._begun:
                self._is_over = True
                apart, self._waiting = list(self._waiting), deque()
            else:
                begun = self._begun
        _call(told)
        for task in apart:
            task.begin_apart()
        if not self._is_over:
            self._loop.call_later(LONG_S, self._look, begun)


def _call(told: list[tuple[Callable[..., object], tuple[Any, ...]]]) -> None:
    for callback, arguments in told:
        callback(*arguments)
