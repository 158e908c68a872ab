"""ParquetReader: a task's row groups as record batches, only the columns that are wanted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from engine.connectors.bounded_batches import BATCH_ROWS_MAX, bounded_batches
from engine.errors import DataError
from engine.graph.source_spec import ParquetSource, SourceSplit
from engine.records.plain_types import plain_batch


class ParquetReader:
    """Reads row groups; the order inside a split is that of the file."""

    bad_rows = 0

    def __init__(self, spec: ParquetSource, splits: Sequence[SourceSplit]) -> None:
        self._spec = spec
        self._splits = splits
        self._file: pq.ParquetFile | None = None
        self._path = ""
        self.bytes_read = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of all splits; DataError when a file cannot be read."""
        for split in self._splits:
            try:
                yield from self._read_split(split)
            except (pa.ArrowInvalid, OSError) as error:
                if isinstance(error, OSError) and error.errno is not None:
                    # The system's error, not Arrow's about what is in the file.
                    raise
                reason = str(error).partition("\n")[0]
                raise DataError(f"file {split.path}, row groups {split.start} to {split.end}: {reason}") from error

    def _read_split(self, split: SourceSplit) -> Iterator[pa.RecordBatch]:
        if split.path != self._path:
            self.close()
            self._file = pq.ParquetFile(split.path, memory_map=False, pre_buffer=False, buffer_size=1 << 20)
            self._path = split.path
        assert self._file is not None
        columns = list(self._spec.columns)
        groups = list(range(split.start, split.end))
        for batch in self._file.iter_batches(BATCH_ROWS_MAX, row_groups=groups, columns=columns, use_threads=False):
            yield from bounded_batches(self._arranged(batch, columns))
        self.bytes_read += split.size_bytes
        # Decoding leaves blocks as large as column chunks behind.
        pa.default_memory_pool().release_unused()

    @staticmethod
    def _arranged(batch: pa.RecordBatch, columns: list[str]) -> pa.RecordBatch:
        """Return the columns in the order asked for, plain, without the file's metadata."""
        plain = plain_batch(batch)
        schema = pa.schema([pa.field(name, plain.schema.field(name).type) for name in columns])
        if not columns:
            return plain.select([])
        return pa.RecordBatch.from_arrays([plain.column(name) for name in columns], schema=schema)

    def close(self) -> None:
        """Close the open file."""
        if self._file is not None:
            self._file.close()
            self._file = None
            self._path = ""
