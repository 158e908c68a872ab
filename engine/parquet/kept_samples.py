"""KeptSamples: sampled columns of row groups, kept for the plans that come after.

    (path, time of change, row group, rows, column) ─► column        the least recently used ones go first

A session asks many questions of the same files, and each plan samples the columns that it reads: most of them were
sampled for another plan. What is kept takes BYTES_MAX of a process; a column of wide values is not kept. What samples
said is kept too (``memory.kept_results``), by the bytes that it takes when it is encoded.

Held by: tests/parquet/test_kept_samples.py
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Final

import msgspec
import pyarrow as pa

from engine.graph.source_spec import SourceSplit
from engine.storage.file_systems import file_system_of

BYTES_MAX: Final = 8 << 20
#: limit of a column's bytes, so that many columns fit
_COLUMN_BYTES_MAX: Final = BYTES_MAX // 32
#: bytes in memory of an encoded byte of a finding and its key, measured; what several share counts for each
_BYTES_PER_ENCODED: Final = 2

_Key = tuple[str, int, int, int, str]
#: (row group, rows, columns) -> a table of these columns
ReadRows = Callable[[SourceSplit, int, list[str]], pa.Table]


def stamps_of(groups: Sequence[SourceSplit]) -> tuple[int, ...]:
    """Return the time of its file's last change for each row group, in nanoseconds; OSError without a file."""
    paths = {group.path for group in groups}
    stamps = {path: file_system_of(path).status(path).modified_ns for path in paths}
    return tuple(stamps[group.path] for group in groups)


class KeptSamples:
    """First rows of row groups, by column; for any thread."""

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._columns: OrderedDict[_Key, pa.ChunkedArray] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def rows(self, group: SourceSplit, stamp_ns: int, count: int, columns: list[str], read: ReadRows) -> pa.Table:
        """Return the first ``count`` rows of columns; those that are not kept are read. Raises what reading does."""
        keys = {name: (group.path, stamp_ns, group.start, count, name) for name in columns}
        with self._lock:
            found = {name: self._columns[key] for name, key in keys.items() if key in self._columns}
            for name in found:
                self._columns.move_to_end(keys[name])
        missing = [name for name in columns if name not in found]
        if missing:
            table = read(group, count, missing)
            for name, column in zip(missing, table.columns, strict=True):
                found[name] = column
                self._keep(keys[name], column)
        return pa.table([found[name] for name in columns], columns)

    def _keep(self, key: _Key, column: pa.ChunkedArray) -> None:
        size = column.nbytes
        if size > _COLUMN_BYTES_MAX:
            return
        with self._lock:
            if key not in self._columns:
                self._columns[key] = column
                self._bytes += size
            while self._bytes > self._bytes_max:
                _, dropped = self._columns.popitem(last=False)
                self._bytes -= dropped.nbytes


def encoded_bytes(key: Hashable, found: msgspec.Struct) -> int:
    """Return the size of what samples said with its key, an estimate."""
    return _BYTES_PER_ENCODED * len(msgspec.msgpack.encode((key, found), enc_hook=repr))
