"""TaskTurns: how long one of many threads of tasks keeps the interpreter's lock before another one may ask for it.

    tasks in the process      up to 16     64      320 and more
    switch interval           as it was    20 ms   100 ms           five milliseconds, say, are what it was

A thread that waits for the lock wakes after each interval to ask for it, whether or not it is its turn. Some hundred
threads that do so every five milliseconds leave no time for work, and most tasks let go of the lock by themselves much
sooner. Therefore each has a longer wait, the more of them there are. What was set before is restored with the last of
them, unless other code has set it meanwhile. Thread: any.

Held by: tests/taskexecutor/test_task_turns.py
"""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import Final

#: number of tasks that take turns as any threads do
FEW: Final = 16
LONGEST_S: Final = 0.1


class TaskTurns:
    """Counts the tasks that run: each task is a ``with`` block."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0  # guarded by: self._lock
        self._before_s = 0.0  # guarded by: self._lock
        #: interval that was set here; None: the one from before is in force
        self._set_s: float | None = None  # guarded by: self._lock

    def __enter__(self) -> None:
        with self._lock:
            self._count += 1
            self._adapt()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._lock:
            self._count -= 1
            self._adapt()

    def _adapt(self) -> None:
        if self._set_s is None:
            if self._count <= FEW:
                return
            self._before_s = sys.getswitchinterval()
        elif sys.getswitchinterval() != self._set_s:  # other code wants another one
            self._set_s = None
            return
        before_s = self._before_s
        wanted_s = max(before_s, min(LONGEST_S, before_s * (self._count // FEW)))
        sys.setswitchinterval(wanted_s)
        self._set_s = sys.getswitchinterval() if self._count > FEW else None


#: the one of this process
TASK_TURNS: Final = TaskTurns()
