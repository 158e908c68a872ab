"""How soon Arrow's unused memory goes back to the system.

    set_decay()              once, when the process is set up: after a tenth of a second
    with at_once():          while memory is short: unused memory goes back when it is freed

The allocator looks at the time when it is asked for memory, and each of its arenas is asked by some of the threads
only: with forty readers it kept 50 MB that nobody had asked for in a while. To have it back means to touch it first
again, which costs less than what is done where memory is short.

Thread: any.
Held by: tests/property/test_wide_sources_bound.py
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Final

import pyarrow as pa

#: its own 1000 hold what a task frees in a second
DECAY_MS: Final = 100

_lock: Final = threading.Lock()


class _Short:
    """Who is short of memory in this process."""

    count = 0  # guarded by: _lock


def set_decay() -> None:
    """Have unused memory go back after DECAY_MS."""
    _set(DECAY_MS)


@contextlib.contextmanager
def at_once() -> Iterator[None]:
    """Have it go back at once while this lasts."""
    with _lock:
        _Short.count += 1
        if _Short.count == 1:
            _set(0)
    try:
        yield
    finally:
        with _lock:
            _Short.count -= 1
            if _Short.count == 0:
                _set(DECAY_MS)


def _set(decay_ms: int) -> None:
    if "jemalloc" in pa.supported_memory_backends():
        pa.jemalloc_set_decay_ms(decay_ms)
