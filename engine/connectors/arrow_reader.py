"""ArrowReader: a task's record batches of Arrow IPC data, inline in the plan or in files.

Held by: tests/connectors/test_columnar_sources.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from engine.graph.source_spec import ArrowSource, SourceSplit
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
        #: by path
        self._options: dict[str, pa.ipc.IpcReadOptions] = {}

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches of all splits, with the columns that are wanted."""
        columns = list(self._spec.columns)
        for split in self._splits:
            for batch in one_by_one(self._batches(split), split.size_bytes / max(1, split.row_count)):
                yield from bounded_batches(batch if batch.schema.names == columns else batch.select(columns))
            self.bytes_read += split.size_bytes

    def _batches(self, split: SourceSplit) -> Iterator[pa.RecordBatch]:
        inline = self._spec.inline
        source = pa.OSFile(split.path) if inline is None else pa.BufferReader(inline)
        with source as file:
            if split.path not in self._options:
                self._options[split.path] = self._only_wanted(pa.ipc.open_file(file).schema.names)
            reader = pa.ipc.open_file(file, options=self._options[split.path])
            for index in range(split.start, split.end):
                yield reader.get_batch(index)

    def _only_wanted(self, names: list[str]) -> pa.ipc.IpcReadOptions:
        """Return options by which no other columns of a file are read than those that are wanted."""
        wanted = set(self._spec.columns)
        if len(set(names)) < len(names) or not wanted < set(names):
            return pa.ipc.IpcReadOptions()
        return pa.ipc.IpcReadOptions(included_fields=[names.index(name) for name in names if name in wanted])

    def close(self) -> None:
        """Do nothing: files are open only while they are read."""
