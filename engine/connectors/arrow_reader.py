"""ArrowReader: a task's record batches of Arrow IPC data, inline in the plan or in files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from engine.connectors.bounded_batches import bounded_batches
from engine.connectors.wide_rows import turn
from engine.graph.source_spec import ArrowSource, SourceSplit


class ArrowReader:
    """Reads ranges of record batches."""

    bad_rows = 0

    def __init__(self, spec: ArrowSource, splits: Sequence[SourceSplit]) -> None:
        self._spec = spec
        self._splits = splits
        self.bytes_read = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches of all splits, with the columns that are wanted."""
        columns = list(self._spec.columns)
        for split in self._splits:
            batches = self._inline(split) if self._spec.inline is not None else self._from_file(split)
            row_bytes = split.size_bytes / max(1, split.row_count)
            while True:
                with turn(row_bytes):
                    batch = next(batches, None)
                    if batch is None:
                        break
                    pieces = bounded_batches(batch if batch.schema.names == columns else batch.select(columns))
                    del batch
                    yield from pieces
                    del pieces
            self.bytes_read += split.size_bytes

    def _inline(self, split: SourceSplit) -> Iterator[pa.RecordBatch]:
        with pa.ipc.open_stream(pa.py_buffer(self._spec.inline)) as reader:
            for index, batch in enumerate(reader):
                if split.start <= index < split.end:
                    yield batch

    @staticmethod
    def _from_file(split: SourceSplit) -> Iterator[pa.RecordBatch]:
        with pa.OSFile(split.path) as file, pa.ipc.open_file(file) as reader:
            for index in range(split.start, split.end):
                yield reader.get_batch(index)

    def close(self) -> None:
        """Do nothing: files are open only while they are read."""
