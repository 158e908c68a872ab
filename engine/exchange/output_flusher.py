"""OutputFlusher: one thread per TaskExecutor that sends half-full buffers which have waited long enough.

    flusher = OutputFlusher() ─► register(writer, time-out)* ─► unregister(writer)* ─► close()

Each writer has the buffer time-out of its job; the thread looks as often as the shortest of them requires, and waits
without end where it finds none. A writer that comes before a look that is in time for it wakes nothing, so that short
tasks, one after the other, do not each have the thread look. Best effort, as in Flink: a busy writer is skipped, and
under back pressure flushing has no effect. The thread starts with the first writer.

Held by: tests/exchange/test_record_writer.py
"""

from __future__ import annotations

import threading

from engine.clock import SystemClock
from engine.exchange.record_writer_builder import Writer


class OutputFlusher:
    """Flushes registered writers."""

    def __init__(self) -> None:
        self._clock = SystemClock()
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._timeouts_ms: dict[Writer, int] = {}  # guarded by: self._lock
        self._thread: threading.Thread | None = None  # guarded by: self._lock
        self._is_closed = False  # guarded by: self._lock
        #: time of the next look, in seconds of the monotonic clock; None: the thread waits for a writer
        self._next_look_s: float | None = None  # guarded by: self._lock

    def register(self, writer: Writer, timeout_ms: int) -> None:
        """Begin to flush a writer whose buffers wait so long; 0 (after each batch) and -1 (never) need no flusher."""
        if timeout_ms < 1:
            return
        with self._lock:
            self._timeouts_ms[writer] = timeout_ms
            if self._thread is None and not self._is_closed:
                self._thread = threading.Thread(target=self._run, name="output-flusher", daemon=True)
                self._thread.start()
            next_look_s = self._next_look_s
            if next_look_s is None or next_look_s - self._clock.monotonic_s() > timeout_ms / 1000:
                self._changed.notify()  # else the thread looks in time

    def unregister(self, writer: Writer) -> None:
        """Stop flushing a writer. Idempotent."""
        with self._lock:
            self._timeouts_ms.pop(writer, None)

    def close(self) -> None:
        """End the thread. Idempotent."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                shortest_ms = min(self._timeouts_ms.values(), default=None)
                pause_s = None if shortest_ms is None else shortest_ms / 1000
                self._next_look_s = None if pause_s is None else self._clock.monotonic_s() + pause_s
                if not self._is_closed:
                    self._changed.wait(pause_s)
                if self._is_closed:
                    return
                writers = tuple(self._timeouts_ms.items())
            for writer, timeout_ms in writers:
                writer.flush_if_older_than(timeout_ms)
