"""ProcessorTime: how long the thread of a task was on a processor, and how long it was ready and had none.

    with processor.of_this_thread(): ...        the attempt
    processor.times_us()                        (on a processor, ready to run), from any thread; (0, 0): not known

    /proc/self/task/<thread>/schedstat          "<ns on a processor> <ns ready to run> <time slices>"

What is left of an attempt, beside its waits for input and for room, is time that it waited for a disk, a store, a
worker or a lock. One small read of the kernel's numbers each time that counters are asked for: no cost a row.
Elsewhere than on Linux nothing is known.

Held by: tests/profile/test_processor_time.py
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class ProcessorTime:
    """The times of one thread from one moment to another."""

    def __init__(self) -> None:
        self._place: Path | None = None
        self._before = (0, 0)
        self._taken_us = (0, 0)

    @contextmanager
    def of_this_thread(self) -> Iterator[None]:
        """Count this thread's times during the block; threads are used again by other attempts."""
        place = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")
        self._before = _times_ns(place)
        self._place = place
        try:
            yield
        finally:
            self._taken_us, self._place = self.times_us(), None

    def times_us(self) -> tuple[int, int]:
        """Return microseconds on a processor and ready to run, so far."""
        place = self._place
        if place is None:
            return self._taken_us
        now = _times_ns(place)
        return max(0, now[0] - self._before[0]) // 1000, max(0, now[1] - self._before[1]) // 1000


def _times_ns(place: Path) -> tuple[int, int]:
    try:
        on_processor, ready, _ = place.read_text().split()
        return int(on_processor), int(ready)
    except (OSError, ValueError):
        return 0, 0
