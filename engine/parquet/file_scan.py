"""FileScan: the rows of one open file that a task wants.

    scan = FileScan(OpenFile(path, request.columns), request, memory, splits)
    scan.look_ahead(first)        keys of the best row groups, for the threshold of a top-n
    scan.add(split)               row groups that are read next
    scan.may_have(group)          False: the footer, the indexes or the keys say that no row of it is wanted
    scan.runs_of(split)           its row groups that may have wanted rows, in runs: (first, end)
    scan.rows(group, end)         batches of the source's types
    scan.fetch_ahead(group)       of a store: what ``rows`` will read; scan.drop_ahead(group) gives it back
    scan.close()

    row groups ► plan ──► reserved ──────► one look (group_look) ──────────────────────────────► rows
          or ──► pages ─► reserved ──────► columns of the filter ─► mask ─► the other columns ─► rows
                     └──► not reserved ──► column_passes: some columns after the others ──────► rows

What outlives the file belongs to the task: what it wants (``scan_request``), what it holds and how wide rows are
(``scan_memory``), what it counts (``reader``).

Held by: tests/parquet/test_row_filter.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Final, NamedTuple

import pyarrow as pa

from engine.graph.source_spec import SourceSplit
from engine.parquet.column_streams import ColumnStream, ConvertedColumns
from engine.parquet.footers import GroupPages, arrow_schema
from engine.parquet.group_look import PARQUET_BATCH_ROWS_MAX, GroupLook, GroupLooks
from engine.parquet.open_file import OpenFile
from engine.parquet.row_filter import RowFilter, kept
from engine.parquet.row_ranges import Ranges
from engine.parquet.scan_memory import ScanMemory
from engine.parquet.scan_request import PossibleGroups, ScanRequest
from engine.parquet.source import plain_file_schema
from engine.parquet.source_types import arranged, comes_as, converted
from engine.parquet.top_groups import SeenKeys
from engine.records.arrow_functions import pc
from engine.records.batch_limits import BATCH_ROWS_MAX
from engine.records.side_by_side import SideBySide
from engine.records.wide_rows import one_by_one

_NARROW_COLUMNS: Final = 16
_COLUMN: Final = attrgetter("column")
#: row groups of which no page was left out before those that follow are not looked at
_INDEX_LOOKS: Final = 2


class _Ahead(NamedTuple):
    """A row group that was fetched ahead."""

    #: rows that pages leave for the predicate; None: all
    rows: Ranges | None
    size_bytes: int


class _Forms(NamedTuple):
    """The form of rows that are wanted of a file, by its footer: one for all that want these."""

    #: columns that have another type in the file than in the source
    unlike: frozenset[str]
    #: columns whose decimals may be decoded to 64 bits
    narrow: frozenset[str]
    #: the columns that are looked at first, and the others that come out
    looked_at: list[str]
    others: list[str]
    output_schema: pa.Schema
    #: flag: columns that are decoded here come out as they are
    comes_as_wanted: bool
    #: flag: the filter takes its columns as they are decoded here
    filters_as_decoded: bool
    #: width of rows; None: some have no width of their own
    row_bytes: float | None


class FileScan:
    """A file that is open, until it is closed. Thread: the task's.

    Args:
        file: open for the columns of the request; closed with the scan.
        splits: those of the file that the task knows of now.
    """

    def __init__(self, file: OpenFile, request: ScanRequest, memory: ScanMemory, splits: Sequence[SourceSplit]) -> None:
        self._request = request
        self._memory = memory
        self._file = file
        self.path = file.path
        spec, tests = request.spec, request.all_tests
        key = FileScan, tuple(request.columns), spec.columns, spec.types_ipc, request.compact
        #: The types of all columns that are read.
        self._schema: pa.Schema = file.forms.get(key)
        if self._schema is None:
            self._schema = file.forms[key] = _schema_of(file, request)
        #: The filter, and the row groups that may have rows for it; None: all.
        self._filter: RowFilter | None = None
        self._groups: PossibleGroups | None = None
        if request.is_filtering:
            self._filter = RowFilter(spec.predicate, self._schema, file.coded, tests)
        looked_at = None if self._filter is None else (*self._filter.columns, self._filter.narrow_columns)
        key_of_forms = *key, looked_at, tuple(map(_COLUMN, tests))
        forms: _Forms | None = file.forms.get(key_of_forms)
        if forms is None:
            forms = file.forms[key_of_forms] = _forms_of(file, request, self._schema, self._filter)
        self._forms = forms
        file.narrow(forms.narrow)
        #: The types of the batches that come out.
        self.output_schema = self._forms.output_schema
        self.comes_as_wanted = self._forms.comes_as_wanted
        #: The types of batches that were as wanted when they were read, and of those that were as the source has them.
        self._as_wanted: pa.Schema | None = None
        self._as_source: list[pa.Schema] = []
        #: Columns that were opened, and whether they come as wanted, with rows of one width.
        self._even: dict[tuple[str, ...], bool] = {}
        #: The looks at row groups that are one batch; None: not made yet.
        self._looks: GroupLooks | None = None
        #: Row groups that were fetched ahead.
        self._ahead: dict[int, _Ahead] = {}
        #: The row groups of a split, and knowledge of the reader about the file.
        self.groups_of: Callable[[SourceSplit], Sequence[int]] = _groups_of
        self.facts: Any = None
        #: Flag: row groups may be read at once.
        self._may_look = not file.is_fetched and bool(spec.columns) and self._forms.filters_as_decoded
        if self._forms.row_bytes is not None:
            memory.expect(self._forms.row_bytes)
        #: Row groups whose pages are looked at before it is given up.
        self._index_looks = 0 if spec.predicate is None else _INDEX_LOOKS
        if self._filter is not None:
            self._groups = PossibleGroups(file, request, self._schema, splits)
            self._groups.expect_pages()
        #: The row groups of a split that may have wanted rows, in runs: the first of each, and its end.
        self.runs_of: Callable[[SourceSplit], Iterable[tuple[int, int]]]
        self.runs_of = _one_run if self._groups is None else self._groups.runs_of

    @property
    def is_filtering(self) -> bool:
        """Whether rows may be left out."""
        return self._request.is_filtering

    def look_ahead(self, first: SeenKeys) -> Iterator[pa.RecordBatch]:
        """Find the threshold by keys of row groups; yields batches of no rows, since the task may want to stop."""
        if self._filter is None or self._groups is None:
            return
        for group in self._groups.to_look_at(self._filter.columns):
            for batch in self._key_batches(group, self._filter.columns):
                mask, keys = self._filter.mask(batch), batch.column(first.test.column)
                first.add((self.path, group), keys if mask is None else pc.filter(keys, mask.array()))
                del batch, keys, mask
                yield pa.RecordBatch.from_pylist([], schema=self.output_schema)

    def _key_batches(self, group: int, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Yield the filter's columns of a row group; nothing where memory is short."""
        if self._memory.hold_fetched(self._file.fetched_bytes(group, columns)):
            self._file.fetch(group, columns)
        known = self._file.pages(group, columns)
        if known.row_count == 1 or not self._memory.hold_twice(known.held):
            return
        yield from self._batches_of(group, columns, self._rows_at_once(known.row_bytes, columns))
        self._memory.let_go()

    def add(self, split: SourceSplit) -> None:
        """Take a split that is read next, which may have been another subtask's."""
        if self._groups is not None:
            self._groups.add(split)

    def may_have(self, group: int) -> bool:
        """Return whether there may be a wanted row in a row group, as far as is known by now."""
        return self._groups is None or self._groups.may_have(group)

    def rows(self, group: int, end: int | None = None) -> Iterator[pa.RecordBatch]:
        """Return the rows of row groups that are wanted, of one or of those up to ``end``, in bounded batches."""
        end = group + 1 if end is None else end
        if self._may_look and not self._index_looks:
            return (self._looks or self._new_looks()).rows(self, group, end)
        return self._rows_one_by_one(group, end)

    def _rows_one_by_one(self, group: int, end: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of row groups that are fetched, are not decoded here, or of which pages may be left out."""
        while group < end:
            ahead = self._ahead.pop(group, None)
            possible = self._possible_rows(group) if ahead is None else ahead.rows
            group += 1
            if self._may_look and possible is None:
                yield from (self._looks or self._new_looks()).rows(self, group - 1, group)
            else:
                for batch in self.streamed(group - 1, possible, ahead):
                    yield from self._memory.bounded(batch, PARQUET_BATCH_ROWS_MAX)
                    del batch  # a wide one is not kept while the next is read
            if self._may_look and not self._index_looks:
                yield from self.rows(group, end)
                return

    def _new_looks(self) -> GroupLooks:
        """Return the looks at row groups of the file, which are kept; without a way back to this."""
        file, looked_at, others = self._file, self._forms.looked_at, self._forms.others
        looks = self._looks = GroupLooks(
            self._memory,
            file.source(0),
            file.plans(looked_at, others),
            partial(file.plan, looked_at=looked_at, others=others),
            partial(_new_look, file, self._request, self._filter, looked_at, others),
            [] if self._filter is None else [names[0] for names in (looked_at, others) if names],
        )
        return looks

    def streamed(
        self, group: int, possible: Ranges | None = None, ahead: _Ahead | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a row group that are wanted, as wanted; ``possible``: those that pages leave."""
        columns = self._request.columns
        if ahead is None:
            self._file.choose(group, columns, possible)
        else:
            self._memory.take_ahead(ahead.size_bytes)
        if possible == []:
            return
        if self._file.is_fetched and self._memory.hold_fetched(self._file.fetched_bytes(group, columns)):
            self._file.fetch(group, columns)
        known = self._file.pages(group, columns)
        self._memory.check(self.path, group, known)
        row_bytes = max(self._memory.row_bytes, known.row_bytes)
        batches = self._batches(group, self._rows_at_once(row_bytes, columns), known, possible)
        for each in one_by_one(batches, row_bytes):
            yield self.arranged(each)
            del each

    def fetch_ahead(self, group: int) -> None:
        """Fetch what is needed of a row group that is read later, as far as there is memory for it. Thread: any."""
        columns, possible = self._request.columns, self._possible_rows(group)
        self._file.choose(group, columns, possible)
        size_bytes = 0 if possible == [] else self._file.fetched_bytes(group, columns)
        if not self._memory.hold_ahead(size_bytes):
            return
        self._ahead[group] = _Ahead(possible, size_bytes)
        if size_bytes:
            self._file.fetch_ahead(group, columns)

    def drop_ahead(self, group: int) -> None:
        """Give back what was fetched of a row group ahead."""
        ahead = self._ahead.pop(group, None)
        if ahead is not None:
            self._file.drop(group)
            self._memory.take_ahead(ahead.size_bytes)

    def _batches(self, group: int, rows: int, known: GroupPages, possible: Ranges | None) -> Iterator[pa.RecordBatch]:
        """Yield the wanted rows of a row group; a single row is read at once, which keeps no page of it for later."""
        columns = list(known.held)
        if known.row_count == 1:
            yield from self._whole(map(self._of_source, self._file.single_row(group, columns)))
            return
        passes = None
        if not self._memory.hold(known):
            sizes = self._memory.sizes(known)
            if self._file.is_chosen(group):  # what follows reads all rows
                self._file.choose(group, columns, None)
                sizes = self._file.pages(group, columns).held
            passes = self._memory.passes(partial(self._passed, group), sizes, rows)
        if passes is not None:
            yield from self._whole(passes)
        elif self._filter is None:
            yield from self._batches_of(group, columns, rows)
        else:
            open_columns = partial(self._open_columns, group)
            looks = self._batches_at_once(group, self._filter.columns, rows)
            wanted = self._request.spec.columns
            yield from self._filter.batches(open_columns, wanted, rows, known.row_count, possible, looks=looks)

    def _batches_at_once(self, group: int, columns: list[str], rows: int) -> int:
        """Return the number of batches of ``rows`` rows that a filter reads at once, by the widths seen before."""
        seen = self._memory.decoded_width(columns)
        if not seen:
            return 1
        row_bytes = max(seen, self._file.pages(group, columns).row_bytes)
        return max(1, int(min(PARQUET_BATCH_ROWS_MAX, self._memory.batch_bytes_max(row_bytes) / row_bytes)) // rows)

    def _possible_rows(self, group: int) -> Ranges | None:
        """Return the rows of a row group that pages leave for the predicate; None: all."""
        predicate = self._request.spec.predicate
        if predicate is None or not self._index_looks or (self._groups is not None and self._groups.is_whole(group)):
            return None
        possible = self._file.indexes.possible_rows(group, predicate, self._schema)
        self._index_looks = _INDEX_LOOKS if possible is not None else self._index_looks - 1
        return possible

    def _whole(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the wanted rows of batches that have all of the columns."""
        for batch in batches:
            if self._filter is None:
                yield batch
            else:
                mask = self._filter.mask(batch)
                if mask is None or mask.kept:
                    yield kept(batch, mask, self._request.spec.columns)
            del batch

    def _batches_of(self, group: int, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        """Yield some columns of a row group."""
        stream = self._open_columns(group, columns, rows)
        while (batch := stream.read()) is not None:
            yield batch
            del batch  # a wide one is not kept while the next is read

    def _passed(self, group: int, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        """Yield some columns of a row group where memory is short, and keep none of it for the next ones."""
        self._let_go()
        yield from self._batches_of(group, columns, rows)
        self._let_go()

    def _let_go(self) -> None:
        if self._looks is not None:
            self._looks.let_go()
        self._file.let_go()

    def _open_columns(self, group: int, columns: Sequence[str], rows: int) -> ColumnStream:
        """Return some columns of a row group, of the source's types, in batches of so many rows."""
        stream, names = self._file.columns(group, columns, rows), tuple(columns)
        if self._even.get(names) and self._memory.decoded_width(columns):
            return stream
        if names not in self._even:
            is_even = all(_is_number(self._file.types[name]) for name in names)
            self._even[names] = is_even and self._forms.unlike.isdisjoint(names)
        self._memory.forget_decoded(columns)
        return ConvertedColumns(stream, partial(self._taken, columns))

    def _taken(self, columns: Sequence[str], batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch of some columns as the source has them, and note how wide its rows are."""
        batch = self._of_source(batch)
        if self._filter is not None:
            self._memory.note_decoded(columns, batch)
        return batch

    def _rows_at_once(self, row_bytes: float, columns: list[str]) -> int:
        """Return the number of rows to ask for at once; few, as long as no width is known."""
        rows_max = PARQUET_BATCH_ROWS_MAX
        if self._memory.row_bytes == 0.0:
            schema = self._file.found
            if len(columns) > _NARROW_COLUMNS or not all(_is_fixed(schema.field(name).type) for name in columns):
                rows_max = BATCH_ROWS_MAX
        return self._memory.rows_at_once(row_bytes, rows_max)

    def _of_source(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch as the file has it with the source's types, but for numbers of texts."""
        found, unlike = batch.schema, self._forms.unlike
        if not unlike or found in self._as_source:
            return batch  # as it was decoded here
        fields = [self._schema.field(name) for name in found.names]
        if all(field.name not in unlike or found.field(field.name).type == field.type for field in fields):
            self._as_source.append(found)
            return batch
        arrays = [
            converted(array, field.type) if field.name in unlike else array
            for array, field in zip(batch.columns, fields, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, names=found.names)

    def arranged(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns in the order asked for, of the source's types, without the file's metadata."""
        if not self._request.spec.columns:
            return batch.select([])
        found = batch.schema
        if self._as_wanted is not None and found.equals(self._as_wanted, check_metadata=True):
            return batch
        made = arranged(batch, self.output_schema, self._request.compact)
        is_coded = pa.DictionaryType in map(type, found.types)  # codes are checked, of each batch
        if not is_coded and made.schema.equals(found, check_metadata=True):
            self._as_wanted = found
        return made

    def close(self) -> None:
        """Close the file, and hold nothing for it."""
        for group in list(self._ahead):
            self.drop_ahead(group)
        self._looks = None
        self._memory.let_go()
        self._file.close()


def _groups_of(split: SourceSplit) -> Sequence[int]:
    return range(split.start, split.end)


def _one_run(split: SourceSplit) -> Iterable[tuple[int, int]]:
    return ((split.start, split.end),)


def _new_look(
    file: OpenFile, request: ScanRequest, tests: RowFilter | None, looked_at: list[str], others: list[str]
) -> GroupLook:
    """Return a look at row groups, with readers that the file keeps until it lets them go."""
    reader = file.reader(tuple(looked_at), len(looked_at))
    beside = file.reader(tuple(others), len(others)) if others else None
    wanted = request.spec.columns
    mask = None if tests is None else tests.mask
    return GroupLook(reader, beside, mask, SideBySide(wanted), list(wanted), request.is_opened)


def _forms_of(file: OpenFile, request: ScanRequest, schema: pa.Schema, tests: RowFilter | None) -> _Forms:
    """Return the form of rows of a file; its columns are narrow afterwards."""
    wanted = request.spec.columns
    plain = [field for field in schema if field.name in request.columns and field.name not in file.coded]
    unlike = frozenset([field.name for field in plain if field.type != file.found.field(field.name).type])
    # The operator behind the scan says which decimals may come in 64 bits, and the filter of those that it looks at.
    names = {*request.columns} - {test.column for test in request.all_tests} - unlike
    narrow = names - {*wanted} | names & request.compact
    looked_at: list[str] = request.columns
    others: list[str] = []
    if tests is not None:
        narrow -= {*tests.columns} - tests.narrow_columns
        looked_at, others = tests.columns, [name for name in wanted if name not in tests.columns]
    file.narrow(narrow)
    types = file.types
    output_schema = pa.schema([schema.field(name) for name in wanted])
    # Whether a field may have nulls, and its metadata, are part of it.
    found = pa.schema([pa.field(name, types[name]) for name in wanted])
    like = pa.schema([field.with_type(types[field.name]) for field in output_schema])
    filtered = [] if tests is None else tests.columns
    return _Forms(
        unlike=unlike,
        narrow=frozenset(narrow),
        looked_at=looked_at,
        others=others,
        output_schema=output_schema,
        comes_as_wanted=found.equals(like, check_metadata=True)
        and all(comes_as(types[field.name], field, request.compact) for field in output_schema),
        filters_as_decoded=all(comes_as(types[name], schema.field(name), (name,)) for name in filtered),
        row_bytes=sum(map(_fixed_width, types.values())) if all(map(_is_fixed, types.values())) else None,
    )


def _schema_of(file: OpenFile, request: ScanRequest) -> pa.Schema:
    """Return the types of the columns that are read: the source's, or else the file's."""
    if request.types is not None:
        return request.types
    fields = arrow_schema(file.footer)
    # What is coded has the type there that it has in a row.
    known = [(fields if name in file.coded else file.found).field(name) for name in request.columns]
    return plain_file_schema(pa.schema(known))


def _is_fixed(data_type: pa.DataType) -> bool:
    """Whether values have a width of their own, of at most 16 bytes."""
    return _is_number(data_type) or pa.types.is_dictionary(data_type)


def _is_number(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_primitive(data_type) or pa.types.is_decimal(data_type))


def _fixed_width(data_type: pa.DataType) -> float:
    """Return the bytes of a value and its bit of nulls; codes of a dictionary have 32 bits."""
    return ((32 if pa.types.is_dictionary(data_type) else data_type.bit_width) + 1) / 8
