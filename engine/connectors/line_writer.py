"""LineWriter: what writers of files of lines share: text of Arrow goes to the file as it lies in memory.

Held by: tests/connectors/test_text.py
Held by: tests/connectors/test_json.py
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import pyarrow as pa

from engine.files.output_file import OutputFile


class LineWriter(ABC):
    """Base of writers that make a text for each row, its line end included."""

    is_full = False

    def __init__(self, path: str, compression: str) -> None:
        self._row_count = 0
        self._file = OutputFile(path, compression)

    @abstractmethod
    def _lines(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the strings of a batch with rows, one each and no null."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Append a line for each row."""
        if batch.num_rows == 0:
            return
        lines = self._lines(batch)
        _validity, offsets, data = lines.buffers()
        bounds = memoryview(offsets).cast("i")
        self._file.write(memoryview(data)[bounds[lines.offset] : bounds[lines.offset + len(lines)]])
        self._row_count += batch.num_rows

    def finish(self) -> tuple[int, int, str]:
        """Close the file; return (rows, bytes, "")."""
        self._file.close()
        return self._row_count, self._file.size_bytes, ""

    def abort(self) -> None:
        """Close and remove the file, unless it is finished."""
        self._file.abort()
