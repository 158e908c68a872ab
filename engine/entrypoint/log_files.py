"""Log files that are put away: ``x.log`` becomes ``x.log.1``, that ``x.log.2``, and so on; the oldest one goes.

At each start of a process (``rotate_logs``), and while it runs when the file grows too large (``LogFileHandler``).
"""

from __future__ import annotations

import itertools
import logging
import time
from pathlib import Path

from engine.log_output import LogFile

LOGS_KEPT = 10
#: seconds after which moving a log file is tried again
_PAUSE_S = 60.0


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


class LogFileHandler(logging.Handler):
    """Writes a log file of bounded size; any thread (the lock is logging's own).

    What cannot be written is told when it can again (log_output.py). A full file that cannot be put away grows.
    """

    def __init__(self, path: Path, size_max_bytes: int, kept: int) -> None:
        super().__init__()
        self._path = path
        self._size_max_bytes = size_max_bytes
        self._kept = kept
        self._file = LogFile(path)
        self._put_away_from_s = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record, to a new file when this one is full."""
        try:
            content = f"{self.format(record)}\n".encode(errors="backslashreplace")
        except Exception:  # whatever the arguments of a line do
            self.handleError(record)
            return
        if self._file.size > self._size_max_bytes and time.monotonic() >= self._put_away_from_s:
            try:
                rotate_logs(self._path, self._kept)
            except OSError:
                self._put_away_from_s = time.monotonic() + _PAUSE_S
            else:
                self._file.reopen()
        self._file.write(content)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()
