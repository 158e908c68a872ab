"""ArrowReader: a task's record batches of Arrow IPC data, inline in the plan or in files.

The end of a file lists all of its batches, so a file is opened once for the splits of it that follow one another.

Held by: tests/connectors/test_columnar_sources.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from engine.files.native_files import native_file
from engine.graph.source_spec import ArrowSource, SourceSplit
from engine.records.batch_limits import ARROW_ROWS_MAX
from engine.records.bounded_batches import bounded_batches
from engine.records.wide_rows import one_by_one


class ArrowReader:
    """Reads ranges of record batches."""

    bad_rows = 0
    pruned_groups = 0

    def __init__(self, spec: ArrowSource, splits: Sequence[SourceSplit]) -> None:
        self._spec = spec
        self._splits = splits
        self.bytes_read = 0
        #: the file that was opened last, by its path
        self._opened: tuple[str, pa.NativeFile, pa.ipc.RecordBatchFileReader] | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches of all splits, with the columns that are wanted."""
        columns = list(self._spec.columns)
        try:
            for split in self._splits:
                for batch in one_by_one(self._batches(split), split.size_bytes / max(1, split.row_count)):
                    wanted = batch if batch.schema.names == columns else batch.select(columns)
                    yield from bounded_batches(wanted, ARROW_ROWS_MAX)
                self.bytes_read += split.size_bytes
        finally:
            self.close()

    def _batches(self, split: SourceSplit) -> Iterator[pa.RecordBatch]:
        reader = self._reader_of(split.path)
        for index in range(split.start, split.end):
            yield reader.get_batch(index)

    def _reader_of(self, path: str) -> pa.ipc.RecordBatchFileReader:
        """Return the reader of a file, or of the data in the plan."""
        if self._opened is not None and self._opened[0] == path:
            return self._opened[2]
        self.close()
        inline = self._spec.inline
        file = native_file(path) if inline is None else pa.BufferReader(inline)
        try:
            reader = pa.ipc.open_file(file)
            options = self._only_wanted(reader.schema.names)
            reader = reader if options is None else pa.ipc.open_file(file, options=options)
        except BaseException:
            file.close()
            raise
        self._opened = path, file, reader
        return reader

    def _only_wanted(self, names: list[str]) -> pa.ipc.IpcReadOptions | None:
        """Return options by which no other columns of a file are read than those that are wanted; None: all are."""
        wanted = set(self._spec.columns)
        if len(set(names)) < len(names) or not wanted < set(names):
            return None
        return pa.ipc.IpcReadOptions(included_fields=[names.index(name) for name in names if name in wanted])

    def close(self) -> None:
        """Close the file."""
        opened, self._opened = self._opened, None
        if opened is not None:
            opened[1].close()
