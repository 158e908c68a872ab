"""OutputFile: the new file of a text sink, written without a buffer in between.

write(view)* ─► close()     size_bytes are in it
write(view)* ─► abort()     it is gone; what was closed stays

Held by: tests/connectors/test_sinks.py
"""

from __future__ import annotations

from pathlib import Path


class OutputFile:
    """Creates the file; FileExistsError when there is one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("xb", buffering=0)
        self.size_bytes = 0

    def write(self, view: memoryview) -> None:
        """Append all of it; the system may take it in pieces."""
        self.size_bytes += len(view)
        while view:
            view = view[self._file.write(view) :]

    def close(self) -> None:
        """Keep what was written; idempotent."""
        self._file.close()

    def abort(self) -> None:
        """Close and remove the file, unless it is closed."""
        if not self._file.closed:
            self._file.close()
            self._path.unlink(missing_ok=True)
