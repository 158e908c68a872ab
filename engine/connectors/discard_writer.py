"""DiscardWriter: takes rows and keeps none, for jobs that are run to be measured. Its file is empty.

Held by: tests/connectors/test_sinks.py
"""

from __future__ import annotations

import pyarrow as pa

from engine.storage.file_systems import file_system_of


class DiscardWriter:
    """Counts rows."""

    is_full = False

    def __init__(self, path: str) -> None:
        self._path = str(path)
        self._row_count = 0
        file_system_of(self._path).create(self._path).close()

    def write(self, batch: pa.RecordBatch) -> None:
        """Count rows."""
        self._row_count += batch.num_rows

    def finish(self) -> tuple[int, int, str]:
        """Return (rows, 0, "")."""
        return self._row_count, 0, ""

    def abort(self) -> None:
        """Remove the file."""
        file_system_of(self._path).delete(self._path)
