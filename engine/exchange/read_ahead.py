"""ReadAhead: a view's buffers, of which another thread reads the next ones from a disk.

    disk = DiskReaders() ─► close()                                one for a data server
    ahead = ReadAhead(load, disk, notify, close) ─► take()* ─► release()

    sender's thread    take ─► take ─► few are left, the next would be waited for ──┐           take ─► ...
    a disk reader                                                                   └─► load ─► notify

A connection to another TaskManager has one thread that sends for all of its channels. It never waits for a disk: a slow
file holds up its own channel and no other. Without disk readers ``take`` loads in the caller's thread, which is for
consumers in the same process: they hold up only themselves.

``load`` is called by one thread at a time and never together with ``close``, which is called once, at the end.

Limits: when sixteen files stand still at the same time, further ones wait for them.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeAlias

from engine.errors import PartitionReleasedError
from engine.exchange.buffer_pool import Buffer
from engine.exchange.elements import EndOfPartitionEvent

#: files that may be read at the same time
DISK_READERS_MAX: Final = 16
#: the next elements are read when so many are left
_FEW: Final = 3

Element: TypeAlias = Buffer | EndOfPartitionEvent


class DiskReaders:
    """Threads that read for views; they begin with the first of them. Thread: any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # guarded by: self._lock
        self._threads: ThreadPoolExecutor | None = None
        self._is_closed = False

    def run(self, work: Callable[[], None]) -> None:
        """Have a thread do the work; PartitionReleasedError after ``close``."""
        with self._lock:
            if self._is_closed:
                raise PartitionReleasedError("this TaskManager is closing")
            if self._threads is None:
                self._threads = ThreadPoolExecutor(DISK_READERS_MAX, "data-disk")
            self._threads.submit(work)

    def close(self) -> None:
        """End the threads when they have done what they were given. Idempotent."""
        with self._lock:
            self._is_closed = True
            threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown()


class ReadAhead:
    """Elements of one view.

    Args:
        load: the next elements, none at the end.
        disk: the readers that call it; None: the taker does.
        notify: told when there is something to take that was waited for: elements, an error, the end.
        close: called when no thread loads any more.
        load_at_once: as ``load``, or None when that would wait; called by the taker, to save the way to a thread.
    """

    def __init__(
        self,
        load: Callable[[], Sequence[Element]],
        disk: DiskReaders | None,
        notify: Callable[[], None],
        close: Callable[[], None],
        load_at_once: Callable[[], Sequence[Element] | None] | None = None,
    ) -> None:
        self._load = load
        self._load_at_once = load_at_once
        self._disk = disk
        self._notify = notify
        self._close = close
        self._few = 0 if disk is None or load_at_once is not None else _FEW
        self._lock = threading.Lock()
        # guarded by: self._lock
        self._elements: deque[Element] = deque()
        self._error: Exception | None = None
        self._is_loading = False
        self._is_ended = False
        self._is_released = False

    def take(self) -> tuple[Element | None, bool]:
        """Return (element, True); (None, True): it will be told when there is one; (None, False): there are no more.

        Raises: what ``load`` raised, behind the elements before it; PartitionReleasedError.
        """
        with self._lock:
            must_load = not (self._is_loading or self._is_ended or self._error or self._is_released)
            must_load = must_load and len(self._elements) <= self._few
            self._is_loading = self._is_loading or must_load
        if must_load:
            self._load_more()
        with self._lock:
            if self._is_released:
                raise PartitionReleasedError("the view was released")
            if self._elements:
                return self._elements.popleft(), True
            if self._error is not None:
                raise self._error
            return None, not self._is_ended

    def release(self) -> None:
        """Drop what was read. Idempotent. Thread: any."""
        with self._lock:
            is_first = not self._is_released
            self._is_released = True
            elements, self._elements = self._elements, deque()
            must_close = is_first and not self._is_loading
        _recycle(elements)
        if must_close:
            self._end()

    def _load_more(self) -> None:
        if self._disk is None:
            self._read(self._load)
        elif self._load_at_once is None or not self._read(self._load_at_once):
            self._disk.run(self._read_and_notify)

    def _read_and_notify(self) -> None:
        self._read(self._load)
        self._notify()

    def _read(self, load: Callable[[], Sequence[Element] | None]) -> bool:
        """Load in this thread; False: that would wait."""
        loaded: Sequence[Element] | None = ()
        error = None
        try:
            loaded = load()
        except Exception as failure:
            error = failure
        if loaded is None:
            return False
        with self._lock:
            self._is_loading = False
            is_released = self._is_released
            if not is_released:
                self._elements.extend(loaded)
                self._error = error
                self._is_ended = not loaded
        if is_released:
            _recycle(loaded)
            self._end()
        return True

    def _end(self) -> None:
        """Forget the view, too: both know each other, and would be garbage that is collected."""
        close = self._close
        self._load = self._load_at_once = _no_elements
        self._notify = self._close = _nothing
        close()


def _no_elements() -> Sequence[Element]:
    return ()


def _nothing() -> None:
    pass


def _recycle(elements: Sequence[Element] | deque[Element]) -> None:
    for element in elements:
        if isinstance(element, Buffer):
            element.recycle()
