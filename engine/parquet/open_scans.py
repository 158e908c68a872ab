"""OpenScans: the files that a reader has open, one that is read now, and of stores those that are fetched ahead.

    scans = OpenScans(memory)
    for split in scans.ahead_of(splits, prepare): ...   the next ones are prepared meanwhile (``read_ahead``)
    scans.fetch(scans.planned(path, open_scan), splits) in ``prepare``: what reading their row groups needs
    scans.of(path, open_scan)                           the scan of a file, in place of the one before
    scans.close_file()  scans.close()

Held by: tests/storage/test_read_ahead.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from engine.closing import close_all
from engine.graph.source_spec import SourceSplit
from engine.parquet.file_scan import FileScan
from engine.parquet.read_ahead import ReadAhead
from engine.parquet.scan_memory import ScanMemory


class OpenScans:
    """See the module's text. Thread: the task's, but for ``fetch`` and ``planned``."""

    def __init__(self, memory: ScanMemory) -> None:
        self._memory = memory
        self._ahead: ReadAhead | None = None
        #: The scan of the file that is open.
        self._scan: FileScan | None = None

    def ahead_of(self, splits: Iterator[SourceSplit], prepare: Callable[[SourceSplit], None]) -> Iterator[SourceSplit]:
        """Return the splits, of which the next ones are prepared while one is read."""
        self._ahead = ReadAhead(splits, prepare)
        self._memory.drop_ahead = self._ahead.drop
        return iter(self._ahead)

    @property
    def is_ended(self) -> bool:
        """Whether nothing is to be fetched any more."""
        return self._ahead is None or self._ahead.is_ended

    def planned(self, path: str, open_scan: Callable[[str], FileScan]) -> FileScan:
        """Return the scan of a file that is read later. Thread: any. Raises what opening does."""
        assert self._ahead is not None
        return self._ahead.scan(path, open_scan)

    def fetch(self, scan: FileScan, pieces: Sequence[SourceSplit]) -> None:
        """Fetch what reading row groups needs. Thread: any."""
        for piece in pieces:
            scan.add(piece)
            for group in range(piece.start, piece.end):
                if not self.is_ended and scan.may_have(group):
                    scan.fetch_ahead(group)

    def of(self, path: str, open_scan: Callable[[str], FileScan]) -> FileScan:
        """Return the scan of a file; another one that is open is closed before."""
        if self._scan is None or self._scan.path != path:
            self.close_file()
            self._scan = open_scan(path) if self._ahead is None else self._ahead.scan(path, open_scan)
        return self._scan

    def close_file(self) -> None:
        """Close the file that is read."""
        scan, self._scan = self._scan, None
        if scan is not None and self._ahead is not None:
            self._memory.let_go()
            self._ahead.leave(scan.path)
        elif scan is not None:
            scan.close()

    def close(self) -> None:
        """Close all files, and the memory; idempotent."""
        close_all([self.close_file, *(() if self._ahead is None else (self._ahead.close,)), self._memory.close])
