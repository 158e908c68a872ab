"""FrozenHeap: while tasks run, Python's garbage collector leaves alone what was there before them.

    with FROZEN_HEAP: ...        any number at a time, from any thread; the first freezes, the last thaws

A full collection looks at every object of the process with the GIL held: some 50 ms once the engine is loaded. Batches
are made of many small objects, so a busy task brings several of them a second, and each stops all tasks. Objects made
while the heap is frozen are collected as ever; those from before are again once the last task has ended.

To freeze and thaw makes everything old without the collector noticing that there is more of it, so it would never look
there again and what jobs leave in cycles would pile up. So the thaw itself collects when the heap has grown by a
quarter since the last time, as the collector would have.

Invariant: what somebody else has frozen stays frozen; then nothing is done here. The engine freezes itself when a
script imports it first of all (``engine``), and says so: to ask Python means to count all that is frozen.
"""

from __future__ import annotations

import gc
import threading
from types import TracebackType
from typing import Final

#: how many times as many objects as there were after a collection call for the next one
GROWTH: Final = 1.25


class FrozenHeap:
    """Counts those who want the heap frozen. Thread: any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_for_good = False
        self._user_count = 0  # guarded by: self._lock
        self._is_ours = False  # guarded by: self._lock
        self._frozen_objects = 0  # guarded by: self._lock
        #: objects there were when nothing was left to collect, 0 when nobody has looked; guarded by: self._lock
        self._objects_kept = 0

    def stays_frozen(self) -> None:
        """Do nothing from now on: most of the heap is frozen for good."""
        self._is_for_good = True

    def __enter__(self) -> None:
        """Freeze what there is, unless it is frozen."""
        if self._is_for_good:
            return
        with self._lock:
            self._user_count += 1
            if self._user_count == 1 and gc.get_freeze_count() == 0:
                gc.freeze()
                self._is_ours = True
                self._frozen_objects = gc.get_freeze_count()
                self._objects_kept = self._objects_kept or self._frozen_objects

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Thaw it when nobody is left, and collect when it has grown."""
        if self._is_for_good:
            return
        has_grown = False
        with self._lock:
            self._user_count -= 1
            if self._user_count == 0 and self._is_ours:
                gc.unfreeze()
                self._is_ours = False
                has_grown = self._frozen_objects > self._objects_kept * GROWTH
                if has_grown:
                    # the next freeze says what is left
                    self._objects_kept = 0
        if has_grown and gc.isenabled():
            gc.collect()


#: of this process
FROZEN_HEAP: Final = FrozenHeap()
