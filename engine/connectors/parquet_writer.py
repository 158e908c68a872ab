"""ParquetWriter: batches gathered into row groups, compressed by snappy.

A row group is written when ROW_GROUP_ROWS rows or ROW_GROUP_BYTES bytes of Arrow data are gathered; that much memory
a sink holds.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from engine.errors import SchemaError

ROW_GROUP_ROWS = 1 << 20
ROW_GROUP_BYTES = 64 << 20


class ParquetWriter:
    """Writes one Parquet file; also one without rows has the schema."""

    def __init__(self, schema: pa.Schema, path: Path, compression: str = "snappy") -> None:
        self._schema = schema
        self._path = path
        self._held: list[pa.RecordBatch] = []
        self._held_rows = 0
        self._held_bytes = 0
        self._row_count = 0
        self._file = path.open("xb")
        try:
            self._writer: pq.ParquetWriter | None = pq.ParquetWriter(
                self._file, schema, compression=compression, write_page_index=False
            )
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
            self._writer = None
            self.abort()
            raise SchemaError(f"write_parquet: {str(error).partition(chr(10))[0]}") from error

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        if batch.num_rows == 0:
            return
        self._held.append(batch)
        self._held_rows += batch.num_rows
        self._held_bytes += batch.nbytes
        if self._held_rows >= ROW_GROUP_ROWS or self._held_bytes >= ROW_GROUP_BYTES:
            self._write_group()

    def _write_group(self) -> None:
        if not self._held:
            return
        assert self._writer is not None
        table = pa.Table.from_batches(self._held, schema=self._schema)
        self._writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
        self._row_count += self._held_rows
        self._held, self._held_rows, self._held_bytes = [], 0, 0

    def finish(self) -> tuple[int, int, str]:
        """Write what is gathered and the footer; return (rows, bytes, "")."""
        self._write_group()
        assert self._writer is not None
        self._writer.close()
        self._file.close()
        return self._row_count, self._path.stat().st_size, ""

    def abort(self) -> None:
        """Close and remove the file, unless it is finished."""
        self._held = []
        if not self._file.closed:
            if self._writer is not None:
                self._writer.close()
            self._file.close()
            self._path.unlink(missing_ok=True)
