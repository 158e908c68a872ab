"""ArrowWriter: batches as an Arrow IPC file or stream: results that the client collects, and ``write_ipc``.

Held by: tests/api/test_environment.py
Held by: tests/connectors/test_block_files.py
"""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa

from engine.files.native_files import buffered_output
from engine.storage.file_systems import file_system_of, size_of


class ArrowWriter:
    """Writes one IPC file."""

    is_full = False

    def __init__(self, schema: pa.Schema, path: str, compression: str = "", *, is_stream: bool = False) -> None:
        self._path = path
        self._row_count = 0
        self._output = file_system_of(str(path)).create(str(path))
        self._file = buffered_output(self._output)
        options = pa.ipc.IpcWriteOptions(compression=compression or None)
        open_writer = pa.ipc.new_stream if is_stream else pa.ipc.new_file
        self._writer = open_writer(self._file, schema, options=options)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        self._writer.write_batch(batch)
        self._row_count += batch.num_rows

    def finish(self) -> tuple[int, int, str]:
        """Write the footer; return (rows, bytes, "")."""
        self._writer.close()
        self._file.close()
        return self._row_count, size_of(str(self._path)), ""

    def abort(self) -> None:
        """Close and remove the file, unless it is finished."""
        if not self._file.closed:
            with suppress(OSError):  # the disk may be full: what was to be written goes anyway
                self._writer.close()
            with suppress(OSError):
                self._file.flush()
            self._output.abort()
