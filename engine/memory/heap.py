"""Settings of the heap: Python's collector, what the C library keeps, and the allocators of libraries.

    where                what is done                                                          what is left behind
    a user's process     import_quickly(module)   the collector rests while modules come       nothing
                         with RESTING_COLLECTOR:  the collector rests while plans of many files come   nothing
                         with FROZEN_HEAP:        it passes over older objects during a job    nothing
                         FREED_MEMORY.give_back() holes of the heap go back after a job        nothing
                         choose_arrow_pool()      Arrow's buffers are jemalloc's               that, and their decay
    a daemon             daemon_variables()       its environment: allocators, two arenas      all of it
                         settle_daemon()          all modules frozen
    a worker             worker_variables()       its environment: allocators, no BLAS threads all of it
                         settle_worker()          all modules frozen, a lazier collector

In a user's process no variable, threshold or switch of the collector is another one afterwards. While modules are
loaded that bring pyarrow, variables that its libraries read are set, and then removed: which allocator Arrow takes is
decided there, once for all. A script that has loaded pyarrow before keeps its choice for Parquet.

Why, measured
    collector     a full collection looks at every object with the GIL held: 50 ms once the engine is loaded, several a
                  second in a busy task; while modules come, longer than a small job
    holes         after some jobs half of the C library's heap, 40 MB of 210; to have them back costs 1 to 4 ms
    arenas        glibc gives threads up to eight for each processor, which kept 60 MB of a job over 6 GB
    jemalloc      gives back what is not used again within DECAY_MS; 100 had the kernel clear twice as many pages for a
                  join of TPC-H, a tenth of its time; Arrow's 1000 keep half as much again, and forty readers 50 MB
                  that no process had used in a while; with an arena for each processor, not four, the kernel clears
                  a quarter fewer pages for statements of TPC-DS
    BLAS          a thread for each processor spins 2**26 cycles before it sleeps; 2**20 still outlast pauses

Limits: holes and arenas for glibc, others are left alone. Thread: any.
Held by: tests/memory/test_frozen_heap.py
Held by: tests/memory/test_freed_memory.py
Held by: tests/memory/test_heap.py
Held by: tests/memory/test_resting_collector.py
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from functools import cache
from types import ModuleType, TracebackType
from typing import Any, Final

from engine.clock import Clock, SystemClock
from engine.memory.blocks import keep_spare_blocks

#: growth of the blocks of memory since the last collection that calls for the next one, as a factor
GROWTH: Final = 1.5
#: allocations before a worker's collector runs: rows come and go by the thousand and are no cycles
WORKER_THRESHOLD: Final = 100_000
#: milliseconds after which Arrow's unused memory is freed; a scan's next batches reuse it before
DECAY_MS: Final = 500
#: variables that libraries read when they are loaded; values that are set already stay
_LIBRARY_VARIABLES: Final = {
    "ARROW_DEFAULT_MEMORY_POOL": "jemalloc",
    # What is as large as a very wide row goes back at once: warm, it would be in memory several times. An arena for
    # each processor: of the four that each has else, threads of short tasks find those that hold no unused memory.
    "JE_ARROW_MALLOC_CONF": "oversize_threshold:16777216,narenas_ratio:1",
    "OPENBLAS_THREAD_TIMEOUT": "20",
}
#: seconds between two counts of blocks
_LOOK_S: Final = 1.0
#: share of the time to spend on freeing memory
_SHARE: Final = 0.01


# ------------------------------------------------------------------------------------------------- the three processes


def daemon_variables() -> dict[str, str]:
    """Return the environment of a daemon: this process's, and what the C library and others read."""
    return {**_LIBRARY_VARIABLES, "MALLOC_ARENA_MAX": "2", **os.environ}


def settle_daemon() -> None:
    """Exclude everything that is loaded from the collector: it stays."""
    gc.freeze()


def settle_worker() -> None:
    """Exclude what all workers share from the collector, and run it rarely; before they are forked."""
    gc.freeze()
    gc.set_threshold(WORKER_THRESHOLD, 10, 10)


def worker_variables() -> dict[str, str]:
    """Return the environment of a worker: this process's without secret settings, and what its libraries read."""
    from engine.config.secret_keys import is_secret_variable

    own = {name: text for name, text in os.environ.items() if not is_secret_variable(name)}
    # A worker is one core of a slot, and a process that forks must not have threads of a BLAS library.
    return {**_LIBRARY_VARIABLES, "OPENBLAS_NUM_THREADS": "1", **own}


def import_quickly(module: str) -> ModuleType:
    """Import a module that brings most others, and keep the collector from looking at what it brings.

    Modules live as long as the process. They become as old as can be, so that collections of young objects pass over
    them. The interpreter's last collections do look at them: they also close files that a user's cycles hold.
    """
    is_collecting, is_ours = gc.isenabled(), gc.get_freeze_count() == 0
    gc.disable()
    try:
        with _library_variables():
            return importlib.import_module(module)
    finally:
        if is_ours:
            gc.freeze()
            gc.unfreeze()
        if is_collecting:
            gc.enable()


@contextlib.contextmanager
def _library_variables() -> Iterator[None]:
    """Set what libraries read while they are loaded, and remove it again."""
    if "pyarrow" in sys.modules:
        yield
        return
    missing = [name for name in _LIBRARY_VARIABLES if name not in os.environ]
    os.environ.update({name: _LIBRARY_VARIABLES[name] for name in missing})
    try:
        # They read it when they first give out memory.
        importlib.import_module("pyarrow").allocate_buffer(1)
        yield
    finally:
        for name in missing:
            os.environ.pop(name, None)


# -------------------------------------------------------------------------------------------------------- the collector


class FrozenHeap:
    """Counts the tasks that want the heap frozen: the collector leaves alone what was there before the first of them.

    Objects made meanwhile are collected as ever; those from before are again once the last one has left. To freeze and
    thaw makes everything old without the collector noticing that there is more of it, so it would never look there
    again, and what jobs leave in cycles would pile up. So the thaw itself collects when the heap has grown.

    Growth is told by the interpreter's blocks of memory. To count what is frozen is to walk through it: 5 ms of every
    task once the engine is loaded, where the blocks take 0.02. So it is checked once, too, whether other code froze it.

    Invariant: what other code has frozen stays frozen; then nothing is done here. Thread: any.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._user_count = 0  # guarded by: self._lock
        self._is_ours = False  # guarded by: self._lock
        self._is_theirs = False  # guarded by: self._lock
        self._blocks = 0  # guarded by: self._lock
        #: time of the next count, which takes as long as a small task; guarded by: self._lock
        self._not_before_s = 0.0
        #: number of blocks when nothing was left to collect, 0 when they were not counted; guarded by: self._lock
        self._blocks_kept = 0

    def __enter__(self) -> None:
        """Freeze what there is, unless it is frozen."""
        with self._lock:
            self._user_count += 1
            if self._user_count > 1 or self._is_theirs:
                return
            self._is_theirs = gc.get_freeze_count() > 0
            if not self._is_theirs:
                gc.freeze()
                self._is_ours = True
                now_s = time.monotonic()
                if now_s >= self._not_before_s or not self._blocks_kept:
                    self._not_before_s = now_s + _LOOK_S
                    # Another allocator than Python's own counts no blocks.
                    self._blocks = sys.getallocatedblocks() or gc.get_freeze_count()
                    self._blocks_kept = self._blocks_kept or self._blocks

    def is_frozen(self) -> bool:
        """Whether the heap is frozen, here or by other code, without a walk through what is."""
        with self._lock:
            self._is_theirs = self._is_theirs or (not self._is_ours and gc.get_freeze_count() > 0)
            return self._is_ours or self._is_theirs

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Thaw it when no task is left, and collect when it has grown."""
        has_grown = False
        with self._lock:
            self._user_count -= 1
            if self._user_count == 0 and self._is_ours:
                gc.unfreeze()
                self._is_ours = False
                has_grown = self._blocks > self._blocks_kept * GROWTH
                if has_grown:
                    # the next freeze says what is left
                    self._blocks_kept = 0
        if has_grown and gc.isenabled():
            gc.collect()


class RestingCollector:
    """Counts the threads that want no collection: they make very many objects that stay, and hardly a cycle.

    A collection looks at all of them again and again: it is half of the time in which entries of manifests are read.
    What is there at the end is as old as can be, so that collections of young objects pass over it.

    Invariant: a collector that other code has switched off stays so. Thread: any.
    """

    def __init__(self, heap: FrozenHeap) -> None:
        self._heap = heap
        self._lock = threading.Lock()
        self._user_count = 0  # guarded by: self._lock
        self._is_ours = False  # guarded by: self._lock

    def __enter__(self) -> None:
        """Switch the collector off, unless it is."""
        with self._lock:
            self._user_count += 1
            if self._user_count == 1 and gc.isenabled():
                gc.disable()
                self._is_ours = True

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Switch it on again when no thread is left."""
        with self._lock:
            self._user_count -= 1
            if self._user_count or not self._is_ours:
                return
            self._is_ours = False
            if not self._heap.is_frozen():
                gc.freeze()
                gc.unfreeze()
            gc.enable()


# ------------------------------------------------------------------------------------------------- the C library's heap


@cache
def _malloc_trim() -> Any:
    return getattr(ctypes.CDLL(None), "malloc_trim", None)


class FreedMemory:
    """Gives holes of the C library's heap back, for a hundredth of the time at most."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._not_before_s = clock.monotonic_s()  # guarded by: self._lock

    def give_back(self) -> bool:
        """Release the holes of the heap unless that took long not long ago; return whether it was done."""
        with self._lock:
            began_s = self._clock.monotonic_s()
            trim = _malloc_trim()
            if trim is None or began_s < self._not_before_s:
                return False
            trim(0)
            ended_s = self._clock.monotonic_s()
            self._not_before_s = ended_s + (ended_s - began_s) / _SHARE
            return True


# --------------------------------------------------------------------------------------------------------- Arrow's heap


class _Short:
    """Return the number of steps of this process that are short of memory."""

    lock: Final = threading.Lock()
    count = 0  # guarded by: lock
    #: bytes of spare blocks that are kept otherwise
    spare_bytes = 0  # guarded by: lock


def choose_arrow_pool() -> None:
    """Take Arrow's buffers from jemalloc, unless the user has chosen, and have unused ones go back soon."""
    import pyarrow as pa

    if "jemalloc" not in pa.supported_memory_backends():
        return
    _set_decay(DECAY_MS)
    if "ARROW_DEFAULT_MEMORY_POOL" not in os.environ:
        pa.set_memory_pool(pa.jemalloc_memory_pool())


@contextlib.contextmanager
def decay_at_once() -> Iterator[None]:
    """Return unused memory of Arrow and of batches to the system at once, while this lasts; holes of the heap after it.

    For steps that are short of memory.
    The allocator looks at the time when it is asked for memory, and each of its arenas is asked by some of the threads
    only. To have memory back means to touch it first again, which costs less than what is done where it is short.
    """
    with _Short.lock:
        _Short.count += 1
        if _Short.count == 1:
            _set_decay(0)
            _Short.spare_bytes = keep_spare_blocks(0)
    try:
        yield
    finally:
        FREED_MEMORY.give_back()
        with _Short.lock:
            _Short.count -= 1
            if _Short.count == 0:
                _set_decay(DECAY_MS)
                keep_spare_blocks(_Short.spare_bytes)


def _set_decay(decay_ms: int) -> None:
    import pyarrow as pa

    if "jemalloc" in pa.supported_memory_backends():
        pa.jemalloc_set_decay_ms(decay_ms)


#: frozen heap of this process
FROZEN_HEAP: Final = FrozenHeap()
#: switch of this process's collector
RESTING_COLLECTOR: Final = RestingCollector(FROZEN_HEAP)
FREED_MEMORY: Final = FreedMemory(SystemClock())
