"""ParquetReader: a task's row groups as record batches, only the columns and the rows that are wanted.

    row groups ── footer says that none of the rows can be wanted ──► left out              group_bounds.py
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
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

import pyarrow as pa

from engine.errors import DataError, SpillError
from engine.graph.expression import columns_of
from engine.graph.source_spec import ParquetSource, SourceSplit
from engine.memory.budget import LEAST_BYTES, Kind, Role, process_budget
from engine.parquet.column_passes import read_in_passes
from engine.parquet.column_streams import ColumnStream, ConvertedColumns
from engine.parquet.footers import arrow_schema
from engine.parquet.group_bounds import matched_groups, possible_groups
from engine.parquet.open_file import OpenFile
from engine.parquet.pages import check_fits
from engine.parquet.row_filter import RowFilter, kept
from engine.parquet.row_ranges import Ranges
from engine.parquet.small_files import FILES_MIN, SMALL_BYTES_MAX, small_file
from engine.parquet.source import plain_file_schema
from engine.parquet.source_types import arranged, converted
from engine.parquet.top_groups import SeenKeys, TopGroups
from engine.records.arrow_functions import pc
from engine.records.batch_limits import BATCH_BYTES_MAX, BATCH_ROWS_MAX
from engine.records.bounded_batches import BYTES_MIN, SmallBatches, bounded_batches
from engine.records.wide_rows import average_width, one_by_one

if TYPE_CHECKING:
    from engine.iomanager.spill_space import SpillSpace
    from engine.records.key_test import KeyTest
    from engine.records.top_keys import TopTest

#: rows of a batch, when they are narrow
PARQUET_BATCH_ROWS_MAX = 131072
#: bytes of a batch of narrow rows: of less, what every operator pays for a batch is seen beside decoding
NARROW_BATCH_BYTES_MAX = 8 << 20
_NARROW_ROW_BYTES = 128
#: bytes of a batch when there is very little memory for each reader
BATCH_BYTES_MIN = 128 << 10
_NARROW_COLUMNS = 16
#: a row group that holds so many bytes while it is read leaves blocks that are given back
_RELEASED_BYTES = 8 << 20
#: row groups of which no page was left out before those that follow are not looked at
_INDEX_LOOKS = 2


class ParquetReader:
    """Reads row groups; the order inside a split is that of the file."""

    bad_rows = 0
    #: whether no batch has rows of two splits; set before the first row is read
    is_in_runs = False

    def __init__(
        self,
        spec: ParquetSource,
        splits: Sequence[SourceSplit],
        new_space: Callable[[], SpillSpace] | None = None,
    ) -> None:
        self._spec = spec
        self._splits = splits
        #: what it reads, which may be others than its own
        self._taken_splits: Iterator[SourceSplit] = iter(splits)
        self._new_space = new_space
        #: for the row group at hand
        self._reserved = process_budget.reserve(Kind.ARROW, role=Role.READER)
        self._file: OpenFile | None = None
        predicate = spec.predicate
        #: those that are wanted, and those that the filter alone looks at
        self._columns = list(dict.fromkeys((*spec.columns, *(() if predicate is None else columns_of(predicate)))))
        #: of the source's columns, where files have others
        self._types = pa.ipc.read_schema(pa.py_buffer(spec.types_ipc)) if spec.types_ipc else None
        #: of all columns that are read, and of the batches that come out: those of the file that is open
        self._schema = self._types
        self._output_schema: pa.Schema | None = None
        self._filter: RowFilter | None = None
        #: columns of the file that have another type there than in the source
        self._unlike: set[str] = set()
        #: of the file that is open; None: all
        self._possible_groups: set[int] | None = None
        #: those that were looked at for it
        self._examined_groups: set[int] = set()
        #: row groups whose pages are looked at before it is given up; of the file that is open
        self._index_looks = 0
        #: widths of rows seen: of those that came out, and as they were decoded for a filter, by stream of columns
        self._row_bytes = 0.0
        self._decoded_widths: dict[str, float] = {}
        #: while the last row group was read
        self._held_bytes = 0
        #: columns that may come out as numbers of texts, or as decimals in 64 bits
        self._compact: frozenset[str] = frozenset()
        #: made by joins while the job runs
        self._tests: Sequence[KeyTest] = ()
        #: for what wants the first rows of an order alone; of the file that is open; of all that were looked at
        self._top: TopTest | None = None
        self._top_groups: TopGroups | None = None
        self._seen: SeenKeys | None = None
        self._has_many_files = len({split.path for split in splits}) >= FILES_MIN
        #: of the rows that come out
        self.path = ""
        self.bytes_read = 0
        self.pruned_groups = 0
        #: of the rows that come out, where each split is a run; it grows
        self.run = 0
        #: of the rows that are read
        self._run_read = 0

    def filter_by(self, tests: Sequence[KeyTest]) -> None:
        """Leave out rows that filters of keys say are not wanted; to be called before the first row is read."""
        self._tests = tests

    def keep_compact(self, columns: Collection[str]) -> None:
        """Let columns come as numbers of texts, and as decimals in 64 bits, where the file has them so."""
        self._compact = frozenset(columns)

    def take_from(self, take: Callable[[], SourceSplit | None]) -> None:
        """Read the splits that are taken, until there is none, in place of its own; before the first row is read."""
        self._taken_splits = iter(take, None)

    def keep_first(self, top: TopTest) -> None:
        """Leave out rows that cannot be among the first; to be called before the first row is read."""
        self._top, self._seen = top, SeenKeys(top)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of all splits; DataError when a file cannot be read."""
        if self._top is not None:
            yield from self._look_ahead(self._top)
        if not self._is_filtering:
            for batch in self._rows():
                self.run = self._run_read
                yield batch
                del batch  # a wide one is not kept while the next is read
            return
        # A filter leaves a few rows of each batch. The first ones are handed on at once, for who wants few.
        small = SmallBatches(rows_min=1, bytes_min=min(BYTES_MIN, max(BATCH_BYTES_MIN, self._reserved.part_bytes // 8)))
        for batch in self._rows():
            if self.is_in_runs and self.run != self._run_read:
                yield from small.rest()
                self.run = self._run_read
            yield from small.add(batch)
        yield from small.rest()

    @property
    def _is_filtering(self) -> bool:
        return self._spec.predicate is not None or bool(self._tests) or self._top is not None

    def _rows(self) -> Iterator[pa.RecordBatch]:
        for path, splits in groupby(self._taken_splits, key=attrgetter("path")):
            self.path = path
            self._run_read += 1
            listed = list(splits) if self._has_many_files else splits  # noqa: B031 - one of the two
            small = self._read_small(path, listed) if isinstance(listed, list) else None
            if small is not None:
                yield from small
                continue
            for split in listed:
                self._run_read += 1
                with _named(f"file {split.path}, row groups {split.start} to {split.end}"):
                    yield from self._read_split(split)

    def _read_small(self, path: str, splits: Sequence[SourceSplit]) -> list[pa.RecordBatch] | None:
        """Return the rows of a file's splits at once, where the file is one of many small ones, read whole."""
        size_bytes = sum(split.size_bytes for split in splits)
        if self._is_filtering or not self._columns or size_bytes > SMALL_BYTES_MAX:
            return None
        groups = [group for split in splits for group in range(split.start, split.end)]
        file = small_file(path, groups, self._columns)
        if file is None:
            return None
        self._close_file()
        if self._output_schema is None or (self._types is None and not file.schema.equals(self._output_schema)):
            schema = file.schema if self._types is None else self._types
            self._output_schema = pa.schema([schema.field(name) for name in self._spec.columns])
        self.bytes_read += size_bytes
        return [self._arranged(batch) for batch in file.batches]

    def _look_ahead(self, top: TopTest) -> Iterator[pa.RecordBatch]:
        """Find the threshold by keys of row groups; yields batches of no rows, for who wants to stop."""
        top.is_dropping = False
        for path in dict.fromkeys(split.path for split in self._splits):
            with _named(f"file {path}"):
                self._open_file(path)
                assert self._filter is not None
                assert self._top_groups is not None
                for group in self._top_groups.to_look_at(self._columns, self._filter.columns):
                    if self._top_groups.may_have(group):
                        for batch in self._key_batches(path, group):
                            self._note((path, group), batch, top)
                            del batch
                            assert self._output_schema is not None
                            yield pa.RecordBatch.from_pylist([], schema=self._output_schema)
        top.keys.settle()
        top.is_dropping = True

    def _key_batches(self, path: str, group: int) -> Iterator[pa.RecordBatch]:
        """Yield what the filter looks at of a row group; nothing where that is not to be had now."""
        assert self._file is not None
        assert self._filter is not None
        columns = self._filter.columns
        known = self._file.pages(group, columns)
        if known.row_count == 1 or not self._reserved.resize(2 * sum(known.held.values())):
            return
        rows = self._rows_at_once(known.row_bytes, columns)
        yield from self._batches_of(group, columns, rows)
        self._reserved.resize(0)

    def _note(self, place: tuple[str, int], batch: pa.RecordBatch, top: TopTest) -> None:
        assert self._filter is not None
        assert self._seen is not None
        mask, keys = self._filter.mask(batch), batch.column(top.column)
        self._seen.add(place, keys if mask is None else pc.filter(keys, mask))

    def _read_split(self, split: SourceSplit) -> Iterator[pa.RecordBatch]:
        if self._file is None or split.path != self._file.path:
            self._open_file(split.path)
        if self._possible_groups is not None and split.start not in self._examined_groups:
            self._possible_groups.update(self._examined([split]))  # of another subtask
        for group in range(split.start, split.end):
            if not self._is_possible(group):
                self.pruned_groups += 1
                continue
            if self._top is not None:
                assert self._seen is not None
                self._top.is_learning = (split.path, group) not in self._seen
            for batch in self._read_group(split.path, group):
                if batch.num_rows:
                    self._row_bytes = average_width(batch)
                size_bytes = round(self._row_bytes * batch.num_rows)
                if 0 < size_bytes <= BATCH_BYTES_MAX:
                    yield batch
                else:
                    bytes_max = max(BATCH_BYTES_MAX, self._batch_bytes_max(self._row_bytes))
                    yield from bounded_batches(batch, PARQUET_BATCH_ROWS_MAX, size_bytes, bytes_max)
                del batch  # a wide one is not kept while the next is read
        self._reserved.resize(0)
        self.bytes_read += split.size_bytes
        # Small blocks are kept for the next row group: to give them back and touch them again takes half as long as
        # decoding does. Large ones are of pages and dictionaries, which may be smaller there.
        if self._held_bytes >= _RELEASED_BYTES:
            pa.default_memory_pool().release_unused()

    def _is_possible(self, group: int) -> bool:
        if self._possible_groups is not None and group not in self._possible_groups:
            return False
        if self._top_groups is None or self._seen is None or self._file is None:
            return True
        return self._top_groups.may_have(group) and self._seen.may_have((self._file.path, group))

    def _find_possible_groups(self) -> None:
        """Look in which row groups of the file, of those that are to be read, there may be rows for the filter."""
        if not self._is_filtering:
            return
        assert self._file is not None
        assert self._schema is not None
        path, self._examined_groups = self._file.path, set()
        groups = self._examined([split for split in self._splits if split.path == path])
        self._possible_groups = set(groups)
        if self._top is not None:
            self._top_groups = TopGroups(self._top, self._file.footer, groups, self._schema)

    def _examined(self, splits: Sequence[SourceSplit]) -> Sequence[int]:
        """Return the row groups of splits of the open file in which there may be rows for the filter."""
        assert self._file is not None
        assert self._schema is not None
        footer, predicate = self._file.footer, self._spec.predicate
        groups = [group for split in splits for group in range(split.start, split.end)]
        self._examined_groups.update(groups)
        if predicate is not None:
            # Between the row groups of a split there may be some that the plan has left out.
            if self._spec.pruned_groups is None or len(groups) > len(splits):
                groups = possible_groups(footer, groups, predicate, self._schema)
            groups = [group for group in groups if self._file.indexes.may_have(group, predicate)]
        return matched_groups(footer, groups, self._tests, self._schema)

    def _read_group(self, path: str, group: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a row group that are wanted, as wanted."""
        assert self._file is not None
        known = self._file.pages(group, self._columns)
        self._held_bytes = sum(known.held.values())
        check_fits(path, group, known.held, process_budget.record_limit, is_at_once=known.row_count == 1)
        row_bytes = max(self._seen_row_bytes(), known.row_bytes)
        batches = self._batches(group, self._rows_at_once(row_bytes, self._columns), known.held)
        for each in one_by_one(batches, row_bytes):
            yield self._arranged(each)
            del each

    def _batches(self, group: int, rows: int, held: dict[str, int]) -> Iterator[pa.RecordBatch]:
        """Yield what is wanted of a row group; a single row is read at once, which keeps no page of it for later."""
        assert self._file is not None
        columns = list(held)
        if self._file.row_count(group) == 1:
            yield from self._whole(map(self._of_source, self._file.single_row(group, columns)))
            return
        sizes = self._reserved_sizes(group, held)
        # A page that is opened is there twice for a moment.
        wanted = sum(sizes.values()) + max(sizes.values(), default=0)
        is_reserved = self._reserved.resize(wanted)
        if not is_reserved:
            self._reserved.resize(0)  # what the last row group had
        if not is_reserved and self._new_space is not None and columns:
            read = partial(self._passed, group)
            yield from self._whole(read_in_passes(read, sizes, rows, self._new_space, process_budget))
        elif self._filter is None:
            yield from self._batches_of(group, columns, rows)
        else:
            open_columns = partial(self._open_columns, group)
            row_count, possible = self._file.row_count(group), self._possible_rows(group)
            looks = self._looks(group, self._filter.columns, rows)
            yield from self._filter.batches(open_columns, self._spec.columns, rows, row_count, possible, looks=looks)

    def _looks(self, group: int, columns: list[str], rows: int) -> int:
        """Return of how many batches of so many rows a filter looks at its columns together: as rows were before."""
        seen = self._decoded_widths.get(columns[0], 0.0) if columns else 0.0
        if not seen:
            return 1
        assert self._file is not None
        row_bytes = max(seen, self._file.pages(group, columns).row_bytes)
        return max(1, int(min(PARQUET_BATCH_ROWS_MAX, self._batch_bytes_max(row_bytes) / row_bytes)) // rows)

    def _possible_rows(self, group: int) -> Ranges | None:
        """Return the rows of a row group that pages leave for the predicate; None: all."""
        assert self._file is not None
        assert self._schema is not None
        if self._spec.predicate is None or not self._index_looks:
            return None
        possible = self._file.indexes.possible_rows(group, self._spec.predicate, self._schema)
        self._index_looks = _INDEX_LOOKS if possible is not None else self._index_looks - 1
        return possible

    def _whole(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield what is wanted of batches that have all of the columns."""
        for batch in batches:
            if self._filter is None:
                yield batch
            else:
                mask = self._filter.mask(batch)
                if mask is None or mask.true_count:
                    yield kept(batch, mask, self._spec.columns)
            del batch

    def _batches_of(self, group: int, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        """Yield some columns of a row group."""
        stream = self._open_columns(group, columns, rows)
        while (batch := stream.read()) is not None:
            yield batch
            del batch  # a wide one is not kept while the next is read

    def _passed(self, group: int, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        """Yield some columns of a row group where memory is short, and keep none of it for the next ones."""
        assert self._file is not None
        self._file.let_go()
        yield from self._batches_of(group, columns, rows)
        self._file.let_go()

    def _open_columns(self, group: int, columns: Sequence[str], rows: int) -> ColumnStream:
        """Return some columns of a row group, of the source's types, in batches of so many rows."""
        assert self._file is not None
        if columns:
            self._decoded_widths.pop(columns[0], None)  # those of this row group count from here on
        return ConvertedColumns(self._file.columns(group, columns, rows), partial(self._taken, columns))

    def _taken(self, columns: Sequence[str], batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch of some columns as the source has them, and note how wide its rows are."""
        batch = self._of_source(batch)
        if self._filter is not None and batch.num_rows and columns and columns[0] not in self._decoded_widths:
            self._decoded_widths[columns[0]] = average_width(batch)
        return batch

    def _reserved_sizes(self, group: int, held: dict[str, int]) -> dict[str, int]:
        """Return what is reserved for each column: no more than the row group has, where it is no more than a batch."""
        assert self._file is not None
        whole = self._file.footer.row_group(group).total_byte_size
        if whole > min(LEAST_BYTES // 2, self._reserved.part_bytes):
            return held
        return dict.fromkeys(held, whole // max(1, len(held)))

    def _rows_at_once(self, row_bytes: float, columns: list[str]) -> int:
        """Return how many rows of a row group to ask for: about a batch of bytes."""
        assert self._file is not None
        rows_max = PARQUET_BATCH_ROWS_MAX
        if self._seen_row_bytes() == 0.0:
            schema = self._file.found
            if len(columns) > _NARROW_COLUMNS or not all(_is_fixed(schema.field(name).type) for name in columns):
                rows_max = BATCH_ROWS_MAX
        return max(1, min(rows_max, int(self._batch_bytes_max(row_bytes) / row_bytes) if row_bytes else rows_max))

    def _batch_bytes_max(self, row_bytes: float) -> int:
        """Return how large a batch is. Where many read at a time it is smaller: several of each are on their way."""
        wanted = NARROW_BATCH_BYTES_MAX if row_bytes <= _NARROW_ROW_BYTES else BATCH_BYTES_MAX
        return max(BATCH_BYTES_MIN, min(wanted, self._reserved.part_bytes))

    def _seen_row_bytes(self) -> float:
        """Return how wide rows were, decoded or as they came out; 0.0 before the first one."""
        return max(self._row_bytes, sum(self._decoded_widths.values()))

    def _of_source(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch as the file has it with the source's types, but for numbers of texts."""
        if not self._unlike:
            return batch
        assert self._schema is not None
        fields = [self._schema.field(name) for name in batch.schema.names]
        arrays = [
            converted(array, field.type) if field.name in self._unlike else array
            for array, field in zip(batch.columns, fields, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)

    def _arranged(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns in the order asked for, of the source's types, without the file's metadata."""
        if not self._spec.columns:
            return batch.select([])
        assert self._output_schema is not None
        return arranged(batch, self._output_schema, self._compact)

    def close(self) -> None:
        """Close the open file."""
        self._close_file()
        self._reserved.close()
        if self._held_bytes:
            self._held_bytes = 0
            pa.default_memory_pool().release_unused()

    def _open_file(self, path: str) -> None:
        self._close_file()
        self._file = file = OpenFile(path, self._columns)
        if self._types is None:
            fields = arrow_schema(file.footer)
            # What is coded has the type there that it has in a row.
            known = [(fields if name in file.coded else file.found).field(name) for name in self._columns]
            self._schema = plain_file_schema(pa.schema(known))
        assert self._schema is not None
        plain = [field for field in self._schema if field.name in self._columns and field.name not in file.coded]
        self._unlike = {field.name for field in plain if field.type != file.found.field(field.name).type}
        self._output_schema = pa.schema([self._schema.field(name) for name in self._spec.columns])
        tests = [*self._tests, *(() if self._top is None else (self._top,))]
        if self._spec.predicate is not None or tests:
            self._filter = RowFilter(self._spec.predicate, self._schema, file.coded, tests)
        file.narrow(self._narrow_columns(tests))
        self._index_looks = _INDEX_LOOKS
        self._find_possible_groups()

    def _narrow_columns(self, tests: Sequence[KeyTest | TopTest]) -> set[str]:
        """Return the columns whose decimals may be decoded to 64 bits.

        Who takes the rows says so of those that come out, and the filter of those that it looks at.
        """
        names = {*self._columns} - {test.column for test in tests} - self._unlike
        taken = names - {*self._spec.columns} | names & self._compact
        return taken if self._filter is None else taken - ({*self._filter.columns} - self._filter.narrow_columns)

    def _close_file(self) -> None:
        self._reserved.resize(0)
        if self._file is not None:
            self._file.close()
            self._file = None


@contextmanager
def _named(place: str) -> Iterator[None]:
    """Say where it is that a file cannot be read."""
    try:
        yield
    except SpillError:
        # An OSError too, but not about the file: columns were put aside.
        raise
    except (pa.ArrowInvalid, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            # The system's error, not Arrow's about what is in the file.
            raise
        reason = str(error).partition("\n")[0]
        raise DataError(f"{place}: {reason}") from error


def _is_fixed(data_type: pa.DataType) -> bool:
    """Whether values have a width of their own, of at most 16 bytes."""
    is_number = pa.types.is_primitive(data_type) or pa.types.is_decimal128(data_type)
    return bool(is_number or pa.types.is_dictionary(data_type))
