"""ReadAhead: splits of files in stores, of which the next ones are fetched while one is read.

    ahead = ReadAhead(splits, prepare)
    for split in ahead: ...         the splits, in order; what was begun for a split has ended when it comes
    ahead.scan(path, open_scan)     the scan of a file, opened once for all threads
    ahead.leave(path)               closes it, unless splits of the file are still to come
    ahead.drop()                    nothing is fetched ahead any more of what was begun: memory is short
    ahead.close()                   ends the threads and closes all scans

    split 7   split 8   split 9 ...  split 22         taken from the queue as long as so many are begun
    read      fetched   fetched      being fetched    each reserves what it fetches (``ScanMemory.hold_ahead``), or
                                                      is left to its reader

A split that fails while it is fetched is left to its reader as well, which meets the error where it is told.

Held by: tests/storage/test_read_ahead.py
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from engine.closing import close_all
from engine.graph.source_spec import SourceSplit
from engine.parquet.file_scan import FileScan
from engine.storage.known_objects import shared

#: splits that are begun, and threads that fetch them
_BEGUN_MAX: Final = 16
_THREADS: Final = 8


class ReadAhead:
    """See the module's text. Thread: the task's, but for ``scan``."""

    def __init__(self, splits: Iterator[SourceSplit], prepare: Callable[[SourceSplit], None]) -> None:
        self._splits = splits
        self._prepare = shared(prepare)
        self._begun: deque[tuple[SourceSplit, Future[None]]] = deque()
        #: begun splits by path
        self._pending: Counter[str] = Counter()
        self._threads: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()
        #: guarded by: self._lock
        self._scans: dict[str, Future[FileScan]] = {}
        #: True: no thread fetches anything more
        self.is_ended = False

    def __iter__(self) -> Iterator[SourceSplit]:
        """Yield the splits."""
        while True:
            self._top_up()
            if not self._begun:
                return
            split, done = self._begun.popleft()
            with contextlib.suppress(Exception):
                done.result()
            yield split
            self._pending[split.path] -= 1

    def _top_up(self) -> None:
        while len(self._begun) < _BEGUN_MAX and (split := next(self._splits, None)) is not None:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(_THREADS, "drey-read-ahead")
            self._pending[split.path] += 1
            self._begun.append((split, self._threads.submit(self._prepare, split)))

    def scan(self, path: str, open_scan: Callable[[str], FileScan]) -> FileScan:
        """Return the scan of a file, opened where no thread has done so. Thread: any. Raises what opening does."""
        with self._lock:
            found = self._scans.get(path)
            if is_first := found is None:
                found = self._scans[path] = Future()
        assert found is not None
        if is_first:
            try:
                found.set_result(open_scan(path))
            except BaseException as error:
                with self._lock:
                    del self._scans[path]
                found.set_exception(error)
        return found.result()

    def leave(self, path: str) -> None:
        """Close a scan that no split to come needs."""
        if self._pending[path] <= 0:
            with self._lock:
                found = self._scans.pop(path, None)
            if found is not None:
                found.result().close()

    def drop(self) -> None:
        """Give back what was fetched ahead, once it is there."""
        for split, done in self._begun:
            with contextlib.suppress(Exception):
                done.result()
            with self._lock:
                found = self._scans.get(split.path)
            if found is not None and found.done() and found.exception() is None:
                for group in found.result().groups_of(split):
                    found.result().drop_ahead(group)

    def close(self) -> None:
        """End all; idempotent. Requests that are under way are waited for."""
        self.is_ended = True
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
        scans, self._scans = list(self._scans.values()), {}
        close_all(each.result().close for each in scans if each.exception() is None)
