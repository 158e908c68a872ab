"""ProcessorTime: how long the thread of a task was on a processor, and how long it was ready and had none.

    with processor.of_this_thread(): ...        the attempt
    processor.times_us()                        (on a processor, ready to run), from any thread; (0, 0): not known

    clock of the thread                         on a processor: half a microsecond to read
    /proc/self/task/<thread>/schedstat          "<ns on a processor> <ns ready to run> <time slices>": twenty times that

What is left of an attempt, beside its waits for input and for room, is time that it waited for a disk, a store, a
worker or a lock. The kernel's numbers are read for attempts alone that last, each time that counters are asked for: no
cost a row. Elsewhere than on Linux nothing is known.

Held by: tests/profile/test_processor_time.py
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import AbstractContextManager
from typing import Final

#: bits of a clock's number: of one thread, in nanoseconds (MAKE_THREAD_CPUCLOCK of Linux)
_THREAD_CLOCK: Final = 0b110
#: more than three numbers of 64 bits have
_TIMES_BYTES: Final = 64
#: nanoseconds within which it is not asked how long a thread was ready to run
_SHORT_NS: Final = 20_000_000


class _Waited(threading.local):
    """Nanoseconds for which a thread was ready to run, when that was read last; it runs one attempt after another."""

    ns = 0


_WAITED = _Waited()


def clock_of(thread: int) -> int:
    """Return the clock of a thread's processor time, by the number that the kernel has for it, which may have ended.

    ``time.pthread_getcpuclockid`` reads memory of the thread, which is gone with it.
    """
    return (~thread << 3) | _THREAD_CLOCK


class ProcessorTime:
    """The times of one thread from one moment to another; of several blocks, one after the other, all together."""

    def __init__(self) -> None:
        #: clock and number of the thread while the attempt runs
        self._thread: tuple[int, int] | None = None
        self._began_ns = self._worked_before_ns = self._waited_before_ns = 0
        self._taken_us = self._before_us = (0, 0)

    def of_this_thread(self) -> AbstractContextManager[None]:
        """Count this thread's times during the block."""
        return self

    def __enter__(self) -> None:
        clock = clock_of(threading.get_native_id())
        self._before_us = self._taken_us
        self._began_ns, self._waited_before_ns = time.monotonic_ns(), _WAITED.ns
        self._worked_before_ns = time.clock_gettime_ns(clock)
        self._thread = clock, threading.get_native_id()

    def __exit__(self, *_: object) -> None:
        self._taken_us, self._thread = self.times_us(), None
        _WAITED.ns = self._waited_before_ns + 1000 * (self._taken_us[1] - self._before_us[1])

    def times_us(self) -> tuple[int, int]:
        """Return microseconds on a processor and ready to run, so far."""
        thread = self._thread
        if thread is None:
            return self._taken_us
        clock, number = thread
        try:
            worked_ns = time.clock_gettime_ns(clock) - self._worked_before_ns
        except OSError:  # the thread has ended meanwhile
            return self._taken_us
        lasted_ns = time.monotonic_ns() - self._began_ns
        waited_ns = _waited_ns(number) - self._waited_before_ns if lasted_ns > _SHORT_NS else 0
        worked_before, waited_before = self._before_us
        waited_us = max(0, min(waited_ns, lasted_ns - worked_ns)) // 1000
        return worked_before + worked_ns // 1000, waited_before + waited_us


def _waited_ns(number: int) -> int:
    try:
        times = os.open(f"/proc/self/task/{number}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        return int(os.read(times, _TIMES_BYTES).split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    finally:
        os.close(times)
