"""PathReader: the splits of a source whose paths say the values of some columns.

    splits of one file ──► reader of the format ──► batches ──► + columns of the path, the same value in every row
                                                              + nulls for columns that this file has not

Held by: tests/connectors/test_path_columns.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

import msgspec
import pyarrow as pa

from engine.connectors.path_source import path_table
from engine.graph.source_spec import PathSource, SourceSpec, SourceSplit

#: returns a ``source_reader.SourceReader``
OpenSource = Callable[[SourceSpec, Sequence[SourceSplit]], Any]


class PathReader:
    """Reads splits file by file. ``open_inner`` opens the reader of the format."""

    def __init__(self, spec: PathSource, splits: Sequence[SourceSplit], open_inner: OpenSource) -> None:
        self._spec = spec
        self._splits = splits
        self._open_inner = open_inner
        self._path_names = pa.ipc.read_schema(pa.py_buffer(spec.path_schema_ipc)).names
        self._given = [name for name in spec.columns if name in self._path_names]
        self._wanted = tuple(name for name in spec.columns if name not in self._path_names)
        self._reader: Any = None
        self.bad_rows = 0
        self.bytes_read = 0
        self.pruned_groups = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of all splits."""
        for path, splits in groupby(self._splits, key=lambda split: split.path):
            names = self._wanted
            if path in self._spec.absent:
                names = tuple(name for name in names if name not in self._spec.absent[path])
            inner = msgspec.structs.replace(self._spec.inner, columns=names)
            self._reader = self._open_inner(inner, list(splits))
            constants = path_table(self._spec, [path], self._given) if self._given else None
            for batch in self._reader:
                yield self._with_constants(batch, constants)
            self._end_reader()

    def _with_constants(self, batch: pa.RecordBatch, constants: pa.RecordBatch | None) -> pa.RecordBatch:
        if tuple(batch.schema.names) == tuple(self._spec.columns):
            return batch
        columns = []
        for name in self._spec.columns:
            if constants is not None and name in self._path_names:
                columns.append(pa.repeat(constants.column(name)[0], batch.num_rows))
            elif name in batch.schema.names:
                columns.append(batch.column(name))
            else:
                columns.append(pa.nulls(batch.num_rows, self._absent_type(name)))
        if not columns:
            return batch
        return pa.RecordBatch.from_arrays(columns, names=list(self._spec.columns))

    def _absent_type(self, name: str) -> pa.DataType:
        return pa.ipc.read_schema(pa.py_buffer(self._spec.absent_schema_ipc)).field(name).type

    def _end_reader(self) -> None:
        if self._reader is not None:
            reader, self._reader = self._reader, None
            self.bad_rows += reader.bad_rows
            self.bytes_read += reader.bytes_read
            self.pruned_groups += reader.pruned_groups
            reader.close()

    def close(self) -> None:
        """Close the file that is being read."""
        self._end_reader()
