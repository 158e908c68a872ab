"""FrozenHeap: while tasks run, Python's garbage collector leaves alone what was there before them.

    with FROZEN_HEAP: ...        any number at a time, from any thread; the first freezes, the last thaws

A full collection looks at every object of the process with the GIL held: some 50 ms once the engine is loaded. Batches
are made of many small objects, so a busy task brings several of them a second, and each stops all tasks. Objects made
while the heap is frozen are collected as ever; those from before are again once the last task has ended.

Invariant: what somebody else has frozen stays frozen; then nothing is done here.
"""

from __future__ import annotations

import gc
import threading
from types import TracebackType
from typing import Final


class FrozenHeap:
    """Counts those who want the heap frozen. Thread: any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._user_count = 0  # guarded by: self._lock
        self._is_ours = False  # guarded by: self._lock

    def __enter__(self) -> None:
        """Freeze what there is, unless it is frozen."""
        with self._lock:
            self._user_count += 1
            if self._user_count == 1 and gc.get_freeze_count() == 0:
                gc.freeze()
                self._is_ours = True

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Thaw it when nobody is left."""
        with self._lock:
            self._user_count -= 1
            if self._user_count == 0 and self._is_ours:
                gc.unfreeze()
                self._is_ours = False


#: of this process
FROZEN_HEAP: Final = FrozenHeap()
