"""ArrowWriter: batches as an Arrow IPC file, for results that the client collects.

Held by: tests/api/test_environment.py
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa


class ArrowWriter:
    """Writes one IPC file."""

    is_full = False

    def __init__(self, schema: pa.Schema, path: Path) -> None:
        self._path = path
        self._row_count = 0
        self._file = path.open("xb")
        self._writer = pa.ipc.new_file(self._file, schema)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        self._writer.write_batch(batch)
        self._row_count += batch.num_rows

    def finish(self) -> tuple[int, int, str]:
        """Write the footer; return (rows, bytes, "")."""
        self._writer.close()
        self._file.close()
        return self._row_count, self._path.stat().st_size, ""

    def abort(self) -> None:
        """Close and remove the file, unless it is finished."""
        if not self._file.closed:
            self._writer.close()
            self._file.close()
            self._path.unlink(missing_ok=True)
