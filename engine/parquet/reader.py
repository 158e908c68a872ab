"""ParquetReader: a task's row groups as record batches, only the columns and the rows that are wanted.

    row groups ── footer says that none of the rows can be wanted ──► left out          row_group_bounds.py
        └─► columns of the filter, batch by batch ─► mask                                   row_filter.py
                └─► the other columns, from the first batch on of which rows are left ─► those rows

Batches are larger than elsewhere: every operator pays for a batch, and decoding costs the same for any size. A batch is
made whole before it can be cut, so row groups are read one at a time, and how many rows pyarrow is asked for follows
from their width: what the file says of the group (which is less than the truth where values repeat), or what was seen
in the rows before.

Arrow believes what the headers of pages say and reads pages whole, so they are looked at before (pages.py). What
reading a row group holds is reserved. Where that is more than there is, because of its columns or because of other
readers, it goes through a file, some columns after the others (column_passes.py); a column that does not fit alone is
an error.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from itertools import chain, groupby
from operator import attrgetter
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa

from engine.errors import DataError, SpillError
from engine.files.stored_files import statuses
from engine.graph.source_spec import ParquetSource, SourceSplit
from engine.parquet.file_scan import FileScan
from engine.parquet.open_file import OpenFile
from engine.parquet.open_scans import OpenScans
from engine.parquet.scan_memory import BATCH_BYTES_MIN, ScanMemory
from engine.parquet.scan_request import ScanRequest
from engine.parquet.small_files import SMALL_BYTES_MAX, SmallFile, has_many_files, small_file
from engine.parquet.source_types import arranged
from engine.parquet.top_groups import SeenKeys
from engine.records.bounded_batches import BYTES_MIN, put_together

if TYPE_CHECKING:
    from engine.iomanager.spill_space import SpillSpace
    from engine.records.adaptive_key_filter import AdaptiveKeyFilter
    from engine.records.top_keys import TopTest


class ParquetReader:
    """Reads row groups; the order inside a split is that of the file."""

    bad_rows = 0
    #: Flag: row groups that follow one another may come as one split.
    joins_splits = True
    #: True if all rows of a split have come when the next one is taken; set before the first row is read
    is_in_runs = False

    def __init__(
        self,
        spec: ParquetSource,
        splits: Sequence[SourceSplit],
        new_space: Callable[[], SpillSpace] | None = None,
    ) -> None:
        self._request = ScanRequest.of(spec)
        self._splits = splits
        #: Objects of stores as the plan found them.
        self._statuses = statuses(spec.stored)
        #: The splits that it reads, which may be others than its own.
        self._taken_splits: Iterator[SourceSplit] = iter(splits)
        self._memory = ScanMemory(new_space)
        self._scans = OpenScans(self._memory)
        #: Small files that were read ahead, by path and row groups.
        self._small: dict[tuple[str, tuple[int, ...]], SmallFile | None] = {}
        #: The types of the rows of the small file that was read last.
        self._small_schema: pa.Schema | None = None
        #: The file of the rows that come out.
        self.path = ""
        self.bytes_read = 0
        self.pruned_groups = 0
        #: The run of the rows that come out, where each split is a run; it grows.
        self.run = 0

    def filter_by(self, tests: Sequence[AdaptiveKeyFilter]) -> None:
        """Leave out rows that filters of keys say are not wanted; to be called before the first row is read."""
        self._request.tests = tests

    def keep_compact(self, columns: Collection[str]) -> None:
        """Let columns come as numbers of texts, and as decimals in 64 bits, where the file has them so."""
        self._request.compact = frozenset(columns)

    def keep_opened(self) -> None:
        """Let batches come opened, where they are made here; to be called before the first row is read."""
        self._request.is_opened = True

    def take_from(self, take: Callable[[], SourceSplit | None]) -> None:
        """Read the splits that are taken, until there is none, in place of its own; before the first row is read."""
        self._taken_splits = iter(take, None)

    def keep_first(self, top: TopTest) -> None:
        """Leave out rows that cannot be among the first; to be called before the first row is read."""
        self._request.first = SeenKeys(top)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Return an iterator of the rows of all splits; DataError when a file cannot be read."""
        rows, first = self._rows(), self._request.first
        if self._request.is_filtering and not self.is_in_runs:
            # A filter leaves a few rows of each batch. The first ones leave at once: the operator may want few.
            rows = filtered_batches(rows, self._memory)
        return rows if first is None else chain(self._look_ahead(first), rows)

    def _look_ahead(self, first: SeenKeys) -> Iterator[pa.RecordBatch]:
        """Find the threshold by keys of row groups; yields batches of no rows, since the task may want to stop."""
        first.test.is_dropping = False
        for path in dict.fromkeys(split.path for split in self._splits):
            try:
                yield from self._scans.of(path, self._new_scan).look_ahead(first)
            except (pa.ArrowInvalid, OSError) as error:
                raise_named(error, f"file {path}")
        first.test.keys.settle()
        first.test.is_dropping = True

    def _rows(self) -> Iterator[pa.RecordBatch]:
        splits_taken, first = self._taken_splits, self._request.first
        if self._statuses and first is None:
            splits_taken = self._scans.ahead_of(splits_taken, self._prepare)
        is_by_file = self._has_many_files and not self.is_in_runs
        is_apart = self.is_in_runs and self._request.is_filtering
        for path, splits in groupby(splits_taken, key=attrgetter("path")):
            self.path = path
            listed = list(splits) if is_by_file else splits  # noqa: B031 - one of the two
            small = self._read_small(path, listed) if isinstance(listed, list) else None
            if small is not None:
                yield from small
                continue
            scan: FileScan | None = None
            for split in listed:
                self.run, done = self.run + 1, split.start
                try:
                    scan = scan or self._scans.of(path, self._new_scan)
                    for group, end in scan.runs_of(split):
                        self.pruned_groups += group - done
                        done = end
                        if first is not None:
                            first.test.is_learning = (path, group) not in first
                        rows = scan.rows(group, end)
                        yield from filtered_batches(rows, self._memory) if is_apart else rows
                except (pa.ArrowInvalid, OSError) as error:
                    raise_named(error, f"file {path}, row groups {split.start} to {split.end}")
                self.pruned_groups += split.end - done
                self._memory.end_split()
                self.bytes_read += split.size_bytes
        self._memory.let_go()

    def _read_small(self, path: str, splits: Sequence[SourceSplit]) -> list[pa.RecordBatch] | None:
        """Return the rows of a file's splits at once, where the file is one of many small ones, read whole."""
        request = self._request
        if not self._may_be_small(splits):
            return None
        groups = tuple(group for split in splits for group in range(split.start, split.end))
        if (path, groups) in self._small:
            file = self._small.pop((path, groups))
        else:
            file = small_file(path, groups, request.columns, self._statuses.get(path))
        if file is None:
            return None
        self._scans.close_file()
        schema = self._small_schema
        if schema is None or (request.types is None and not file.schema.equals(schema)):
            types = file.schema if request.types is None else request.types
            schema = self._small_schema = pa.schema([types.field(name) for name in request.spec.columns])
        self.bytes_read += sum(split.size_bytes for split in splits)
        return [arranged(batch, schema, request.compact) for batch in file.batches]

    @cached_property
    def _has_many_files(self) -> bool:
        return has_many_files(self._splits)

    def _may_be_small(self, splits: Sequence[SourceSplit]) -> bool:
        request, size_bytes = self._request, sum(split.size_bytes for split in splits)
        return not request.is_filtering and bool(request.columns) and size_bytes <= SMALL_BYTES_MAX

    def _prepare(self, split: SourceSplit) -> None:
        """Fetch what reading a split needs. Thread: any."""
        if self._scans.is_ended:
            return
        if self._has_many_files and self._may_be_small([split]):
            groups = tuple(range(split.start, split.end))
            found = small_file(split.path, groups, self._request.columns, self._statuses.get(split.path))
            self._small[split.path, groups] = found
            if found is not None:
                return
        self._scans.fetch(self._scans.planned(split.path, self._new_scan), [split])

    def _new_scan(self, path: str) -> FileScan:
        file = OpenFile(path, self._request.columns, self._statuses.get(path))
        try:
            splits = [split for split in self._splits if split.path == path]
            return FileScan(file, self._request, self._memory, splits)
        except BaseException:
            file.close()
            raise

    def close(self) -> None:
        """Close the open file, and those that are read ahead."""
        self._scans.close()


def filtered_batches(batches: Iterator[pa.RecordBatch], memory: ScanMemory) -> Iterator[pa.RecordBatch]:
    """Return an iterator of batches of which a filter left few rows, several together; the first ones at once."""
    return put_together(batches, min(BYTES_MIN, max(BATCH_BYTES_MIN, memory.part_bytes // 8)))


def raise_named(error: pa.ArrowInvalid | OSError, place: str) -> NoReturn:
    """Raise DataError with the place in place of what Arrow says of a file, and other errors as they are."""
    # A SpillError is an OSError too, but not about the file: columns were put aside. What has a number is the
    # system's error, not Arrow's about what is in the file.
    if isinstance(error, SpillError) or (isinstance(error, OSError) and error.errno is not None):
        raise error
    reason = str(error).partition("\n")[0]
    raise DataError(f"{place}: {reason}") from error
