"""PathReader: the splits of a source whose paths say the values of some columns.

    splits of one file ──► reader of the format ──► batches ──► + columns of the path, the same value in every row
                                                              + nulls for columns that this file has not

Held by: tests/connectors/test_path_columns.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import msgspec
import pyarrow as pa

from engine.connectors.path_source import path_table
from engine.graph.source_spec import PathSource, SourceSpec, SourceSplit
from engine.records.bounded_batches import put_together

#: function that returns a ``source_reader.SourceReader``
OpenSource = Callable[[SourceSpec, Sequence[SourceSplit]], Any]


class PathReader:
    """Reads splits file by file, or all at once where the reader of the format tells which file its rows are of."""

    def __init__(
        self, spec: PathSource, splits: Sequence[SourceSplit], open_inner: OpenSource, *, names_paths: bool
    ) -> None:
        self._spec = spec
        self._splits = splits
        self._open_inner = open_inner
        self._names_paths = names_paths
        self._path_names = pa.ipc.read_schema(pa.py_buffer(spec.path_schema_ipc)).names
        self._given = [name for name in spec.columns if name in self._path_names]
        self._wanted = tuple(name for name in spec.columns if name not in self._path_names)
        self._reader: Any = None
        self.bad_rows = 0
        self.bytes_read = 0
        self.pruned_groups = 0
        self._notes: dict[str, str] = {}

    @property
    def notes(self) -> Mapping[str, str]:
        """Notes of readers for the author of the program, by topic."""
        return {**getattr(self._reader, "notes", {}), **self._notes}

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Return an iterator of the rows of all splits; those of many small files together."""
        return put_together(self._rows())

    def _rows(self) -> Iterator[pa.RecordBatch]:
        if self._names_paths and not self._spec.absent:
            yield from self._rows_of(self._splits)
            return
        for _, splits in groupby(self._splits, key=lambda split: split.path):
            yield from self._rows_of(list(splits))

    def _rows_of(self, splits: Sequence[SourceSplit]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of splits, which are of one file or have all columns."""
        if not splits:
            return
        names, path, constants = self._wanted, "", None
        if self._spec.absent:
            absent = self._spec.absent.get(splits[0].path, ())
            names = tuple(name for name in names if name not in absent)
        inner = msgspec.structs.replace(self._spec.inner, columns=names)
        self._reader = self._open_inner(inner, splits)
        for batch in self._reader:
            found = getattr(self._reader, "path", splits[0].path)
            if self._given and found != path:
                path, constants = found, path_table(self._spec, [found], self._given)
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
            self._notes = dict(self.notes)
            reader, self._reader = self._reader, None
            self.bad_rows += reader.bad_rows
            self.bytes_read += reader.bytes_read
            self.pruned_groups += reader.pruned_groups
            reader.close()

    def close(self) -> None:
        """Close the file that is being read."""
        self._end_reader()
