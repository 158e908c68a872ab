"""TableScan: row groups of a table's files, of which each has columns, types and filters of its own.

    scan = TableScan(taken, splits, plan, new_space)
    plan(path, footer) -> FileRead        what is read of a file, found out once, maybe on another thread
    for rows in scan: ...                 GroupRows: of which file, which row group, and its batches
    scan.close()

    class Reader(TableReader): ...        a reader of a table, which makes its scan by ``_begin`` and has its figures

    split: a part of a file ─► FileRead.groups_of(split) ─► row groups ─► FileScan ─► batches, of the file's columns

Readers of tables stand on it: Delta's and Iceberg's. Files in stores are opened and fetched ahead as those of a plain
source are, all within one reservation.

Held by: tests/storage/test_tables_ahead.py
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from engine.files.stored_files import statuses, stored_file
from engine.graph.source_spec import SourceSplit
from engine.parquet.file_scan import FileScan
from engine.parquet.footers import opened_ranges, read_footer, shared_footer
from engine.parquet.open_file import OpenFile
from engine.parquet.open_scans import OpenScans
from engine.parquet.reader import filtered_batches, raise_named
from engine.parquet.scan_memory import ScanMemory
from engine.parquet.scan_request import ScanRequest
from engine.storage.file_system import FileStatus
from engine.storage.file_systems import file_system_of

if TYPE_CHECKING:
    from engine.iomanager.spill_space import SpillSpace


class FileRead(NamedTuple):
    """A file, as it is read."""

    request: ScanRequest
    #: row groups of a split
    groups_of: Callable[[SourceSplit], Sequence[int]]
    #: knowledge of the table's reader
    facts: Any


class GroupRows(NamedTuple):
    """A row group."""

    path: str
    facts: Any
    group: int
    batches: Iterator[pa.RecordBatch]


class TableScan:
    """See the module's text. Thread: the task's.

    Args:
        taken: the splits that are read.
        splits: those that are known before, some of which others may read.
        plan: says what is read of a file. Thread: any.
        errors: tells what is wrong with a footer; None: what reading it raises.
    """

    def __init__(
        self,
        taken: Iterator[SourceSplit],
        splits: Sequence[SourceSplit],
        plan: Callable[[str, pq.FileMetaData], FileRead],
        new_space: Callable[[], SpillSpace] | None,
        errors: Callable[[str], contextlib.AbstractContextManager[None]] = lambda _path: contextlib.nullcontext(),
    ) -> None:
        self._taken = taken
        self._known: dict[str, list[SourceSplit]] = defaultdict(list)
        for split in splits:
            self._known[split.path].append(split)
        self._plan = plan
        self._errors = errors
        self._memory = ScanMemory(new_space)
        self._scans = OpenScans(self._memory)
        self.bytes_read = 0
        self.pruned_groups = 0

    def __iter__(self) -> Iterator[GroupRows]:
        """Yield the row groups of all splits; the batches of one are read before the next comes."""
        first = next(self._taken, None)
        if first is None:
            return
        splits: Iterator[SourceSplit] = chain([first], self._taken)
        if file_system_of(first.path).objects is not None:
            splits = self._scans.ahead_of(splits, self._prepare)
        for split in splits:
            scan = self._scans.of(split.path, self._new_scan)
            for piece in _runs(split.path, scan.groups_of(split)):
                scan.add(piece)
                for group in range(piece.start, piece.end):
                    if scan.may_have(group):
                        yield GroupRows(split.path, scan.facts, group, self._batches(scan, group))
                    else:
                        self.pruned_groups += 1
            self._memory.end_split()
            self.bytes_read += split.size_bytes
        self._memory.let_go()

    def _batches(self, scan: FileScan, group: int) -> Iterator[pa.RecordBatch]:
        rows = scan.rows(group)
        try:
            yield from filtered_batches(rows, self._memory) if scan.is_filtering else rows
        except (pa.ArrowInvalid, OSError) as error:
            raise_named(error, f"file {scan.path}, row group {group}")

    def _prepare(self, split: SourceSplit) -> None:
        """Fetch what reading a split needs. Thread: any."""
        if not self._scans.is_ended:
            scan = self._scans.planned(split.path, self._new_scan)
            self._scans.fetch(scan, _runs(split.path, scan.groups_of(split)))

    def _new_scan(self, path: str) -> FileScan:
        with self._errors(path):
            footer, status = _footer_of(path)
        read = self._plan(path, footer)
        own = [run for split in self._known.get(path, ()) for run in _runs(path, read.groups_of(split))]
        file = OpenFile(path, read.request.columns, status)
        try:
            scan = FileScan(file, read.request, self._memory, own)
        except BaseException:
            file.close()
            raise
        scan.groups_of, scan.facts = read.groups_of, read.facts
        return scan

    def close(self) -> None:
        """Close all files; idempotent."""
        self._scans.close()


class TableReader:
    """Base of readers of tables: their splits, and the scan of them. Thread: the task's."""

    bad_rows = 0

    def __init__(self, splits: Sequence[SourceSplit], new_space: Callable[[], SpillSpace] | None) -> None:
        self._splits = splits
        self._taken: Iterator[SourceSplit] = iter(splits)
        self._new_space = new_space
        self._scan: TableScan | None = None

    @property
    def bytes_read(self) -> int:
        """Bytes of splits that were read."""
        return 0 if self._scan is None else self._scan.bytes_read

    @property
    def pruned_groups(self) -> int:
        """Row groups that were left out."""
        return 0 if self._scan is None else self._scan.pruned_groups

    def take_from(self, take: Callable[[], SourceSplit | None]) -> None:
        """Read the splits that are taken, until there is none, in place of its own; before the first row is read."""
        self._taken = iter(take, None)

    def _begin(
        self,
        plan: Callable[[str, pq.FileMetaData], FileRead],
        errors: Callable[[str], contextlib.AbstractContextManager[None]] = lambda _path: contextlib.nullcontext(),
    ) -> TableScan:
        """Return the scan of the splits."""
        self._scan = TableScan(self._taken, self._splits, plan, self._new_space, errors)
        return self._scan

    def close(self) -> None:
        """Close the files that are read; idempotent."""
        if self._scan is not None:
            self._scan.close()


def _runs(path: str, groups: Sequence[int]) -> list[SourceSplit]:
    """Return row groups as splits of those that follow each other."""
    runs: list[SourceSplit] = []
    for group in groups:
        first = runs.pop().start if runs and runs[-1].end == group else group
        runs.append(SourceSplit(path, first, group + 1, 0))
    return runs


def _footer_of(path: str) -> tuple[pq.FileMetaData, FileStatus | None]:
    """Return the footer of a file, and of an object its status, which comes with the same request."""
    if file_system_of(path).objects is None:
        return read_footer(path), None
    with opened_ranges(path) as opened:
        footer, _ = shared_footer(path, (), opened)
        return footer, statuses((stored_file(opened),))[path]
