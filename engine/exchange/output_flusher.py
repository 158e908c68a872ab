"""OutputFlusher: one thread per TaskExecutor that hands over half-full buffers which have waited long enough.

    flusher = OutputFlusher(100) ─► register(writer)* ─► unregister(writer)* ─► close()

Best effort, as in Flink: a writer that is busy is passed over, and under back pressure flushing has no effect. The
thread starts with the first writer.
"""

from __future__ import annotations

import threading

from engine.exchange.record_writer_builder import Writer


class OutputFlusher:
    """Flushes registered writers.

    Args:
        timeout_ms: buffers at least that old are handed over, 1 or more; looked at that often.
    """

    def __init__(self, timeout_ms: int = 100) -> None:
        if timeout_ms < 1:
            raise ValueError(f"a flush interval of {timeout_ms} ms: 0 and -1 need no flusher")
        self._timeout_ms = timeout_ms
        self._lock = threading.Lock()
        self._writers: set[Writer] = set()  # guarded by: self._lock
        self._thread: threading.Thread | None = None  # guarded by: self._lock
        self._stop = threading.Event()

    def register(self, writer: Writer) -> None:
        """Begin to flush a writer."""
        with self._lock:
            self._writers.add(writer)
            if self._thread is None and not self._stop.is_set():
                self._thread = threading.Thread(target=self._run, name="output-flusher", daemon=True)
                self._thread.start()

    def unregister(self, writer: Writer) -> None:
        """Stop flushing a writer. Idempotent."""
        with self._lock:
            self._writers.discard(writer)

    def close(self) -> None:
        """End the thread. Idempotent."""
        self._stop.set()
        thread = self._thread
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._timeout_ms / 1000):
            with self._lock:
                writers = tuple(self._writers)
            for writer in writers:
                writer.flush_if_older_than(self._timeout_ms)
