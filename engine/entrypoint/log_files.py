"""Log files that are put away: ``x.log`` becomes ``x.log.1``, that ``x.log.2``, and so on; the oldest one goes.

At each start of a process (``rotate_logs``), and while it runs when the file grows too large (``LogFileHandler``).
"""

from __future__ import annotations

import itertools
import logging
from pathlib import Path

LOGS_KEPT = 10


def rotate_logs(path: Path, kept: int = LOGS_KEPT) -> None:
    """Put ``path`` away if it is there; ``kept``: files in the end, a new one included."""
    if not path.exists():
        return
    names = [path, *(path.with_name(f"{path.name}.{number}") for number in range(1, kept))]
    if kept == 1:
        path.unlink()
    for newer, older in reversed(list(itertools.pairwise(names))):
        if newer.exists():
            newer.replace(older)


class LogFileHandler(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes a log file of bounded size; any thread (the lock is logging's own)."""

    def __init__(self, path: Path, size_max_bytes: int, kept: int) -> None:
        self._path = path
        self._size_max_bytes = size_max_bytes
        self._kept = kept
        super().__init__(path.open("a", encoding="utf-8", errors="backslashreplace"))

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record, to a new file when this one is full."""
        if self.stream.tell() > self._size_max_bytes:
            self.stream.close()
            rotate_logs(self._path, self._kept)
            self.stream = self._path.open("a", encoding="utf-8", errors="backslashreplace")
        super().emit(record)

    def close(self) -> None:
        """Close the file."""
        self.stream.close()
        super().close()
