"""DiscardWriter: takes rows and keeps none, for jobs that are run to be measured. Its file is empty.

Held by: tests/connectors/test_sinks.py
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa


class DiscardWriter:
    """Counts rows."""

    is_full = False

    def __init__(self, path: Path) -> None:
        self._path = path
        self._row_count = 0
        path.open("xb").close()

    def write(self, batch: pa.RecordBatch) -> None:
        """Count rows."""
        self._row_count += batch.num_rows

    def finish(self) -> tuple[int, int, str]:
        """Return (rows, 0, "")."""
        return self._row_count, 0, ""

    def abort(self) -> None:
        """Remove the file."""
        self._path.unlink(missing_ok=True)
