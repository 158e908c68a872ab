"""FreedMemory: what the C library has free goes back to the system when a job, or a stage of one, has ended.

    few_arenas()                    before the first task
    FREED_MEMORY.give_back()        after each job, and when stored results were read

The C library keeps what is freed below what is still in use. A job allocates and frees megabytes between objects that
stay (footers, codecs, modules that it was the first to load), so after some jobs half of its heap were holes: 40 MB of
a process of 210, which the next job does not fill, as its blocks have other sizes. To have the holes back costs one to
four milliseconds here and their first touch in the next job; in a script with a large heap of its own it may be more,
so it is done at most a hundredth of the time. Arrow's allocator gives back what it has by itself.

glibc gives threads arenas, up to eight for each processor, and each keeps what is freed in it: the threads of a job
over 6 GB held 60 MB in five of them. What tasks work on is in pages and with Arrow; two arenas are enough for the rest,
unless MALLOC_ARENA_MAX says otherwise.

Limits: for glibc; others are left alone. Thread: any.
"""

from __future__ import annotations

import ctypes
import os
import threading
from typing import Final

from engine.clock import Clock, SystemClock

#: of the time, for giving back
_SHARE: Final = 0.01
#: M_ARENA_MAX of malloc.h
_ARENA_MAX: Final = -8
_ARENAS: Final = 2


def few_arenas() -> None:
    """Let threads that have no arena of the heap yet share two."""
    limit = getattr(ctypes.CDLL(None), "mallopt", None)
    if limit is not None and "MALLOC_ARENA_MAX" not in os.environ:
        limit(_ARENA_MAX, _ARENAS)


class FreedMemory:
    """Knows when it may look for holes again."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._not_before_s = clock.monotonic_s()  # guarded by: self._lock

    def give_back(self) -> bool:
        """Give back the holes of the heap unless that took long not long ago; return whether it was done."""
        with self._lock:
            began_s = self._clock.monotonic_s()
            trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
            if trim is None or began_s < self._not_before_s:
                return False
            trim(0)
            ended_s = self._clock.monotonic_s()
            self._not_before_s = ended_s + (ended_s - began_s) / _SHARE
            return True


#: of this process
FREED_MEMORY: Final = FreedMemory(SystemClock())
