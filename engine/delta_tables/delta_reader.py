"""DeltaReader: a task's pieces of a table's files, as the table has their rows.

    piece of a file ─► its row groups ─► TableScan: columns of the file, rows that the filter wants
          └─► rows that its deletion vector leaves ─► columns of the table: renamed, converted, of the partition, null

What a predicate says of columns that the file has is left to the reader of Parquet, which passes over row groups, pages
and rows by it. In a file with deleted rows these are told by their places, so that all rows are read before.

Held by: tests/delta_tables/test_read_delta.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from engine.delta_tables.delta_source import DELETED, PATH, files_table, plain_schema_of, table_schema
from engine.delta_tables.file_columns import FileColumns
from engine.delta_tables.table_log import selected
from engine.errors import DataError
from engine.expressions.evaluate import evaluate
from engine.formats.patched_rows import numbers_from
from engine.graph.expression import ColumnRef, Expression, columns_of, conjunction, conjuncts, replaced
from engine.graph.merge_action import POSITION
from engine.graph.source_spec import FormatSource, SourceSplit
from engine.parquet.footers import arrow_schema
from engine.parquet.scan_request import ScanRequest
from engine.parquet.table_scan import FileRead, GroupRows, TableReader
from engine.records.adaptive_key_filter import mask_of
from engine.records.arrow_functions import pc
from engine.records.bounded_batches import put_together
from engine.records.kept_rows import kept_rows
from engine.records.plain_scalars import scalar_of
from engine.records.row_mask import Mask

if TYPE_CHECKING:
    from engine.iomanager.spill_space import SpillSpace
    from engine.records.adaptive_key_filter import AdaptiveKeyFilter


class _File(NamedTuple):
    """A file of the table, as it is read."""

    columns: FileColumns
    #: columns of the table that are read of it
    names: list[str]
    #: parts of the predicate, and tests, that are left to this reader
    parts: tuple[Expression, ...]
    tests: Sequence[AdaptiveKeyFilter]
    #: rows of its row groups, where their places count
    counts: list[int] | None

    @property
    def has_places(self) -> bool:
        """Whether places of rows count, so that all rows are read."""
        return self.counts is not None


class DeltaReader(TableReader):
    """Reads pieces of files; the order inside a piece is that of the file. Thread: the task's."""

    def __init__(
        self, spec: FormatSource, splits: Sequence[SourceSplit], new_space: Callable[[], SpillSpace] | None = None
    ) -> None:
        super().__init__(splits, new_space)
        self._spec = spec
        self._schema, self._plain = table_schema(spec), plain_schema_of(spec)
        predicate = () if spec.predicate is None else columns_of(spec.predicate)
        #: The columns that are read of files, or known of them.
        self._names = list(dict.fromkeys((*spec.columns, *predicate)))
        self._files = files_table(spec)
        self._rows: dict[str, int] = {}
        if self._files is not None:
            self._rows = {path: row for row, path in enumerate(self._files.column(PATH).to_pylist())}
        self._tests: Sequence[AdaptiveKeyFilter] = ()

    def filter_by(self, tests: Sequence[AdaptiveKeyFilter]) -> None:
        """Leave out rows that filters of keys say are not wanted; to be called before the first row is read."""
        self._tests = tests

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Return an iterator of the rows of all pieces; DataError when a file cannot be read."""
        return put_together(self._left_rows())

    def _left_rows(self) -> Iterator[pa.RecordBatch]:
        left: tuple[str, pa.BooleanArray | None] = "", None
        for rows in self._begin(self._file_read, self._told):
            if rows.facts.has_places and left[0] != rows.path:
                left = rows.path, self._left(rows.path)
            yield from self._placed_rows(rows, left[1]) if rows.facts.has_places else self._wanted_rows(rows)

    @contextmanager
    def _told(self, path: str) -> Iterator[None]:
        """Raise DataError for a file that cannot be opened."""
        try:
            yield
        except FileNotFoundError:
            raise DataError(
                f"read_delta: {path}: the file is missing, which version {self._spec.options['version']} of the table"
                " has; files of older versions are gone after a vacuum: read the last version, or restore the file"
            ) from None
        except pa.ArrowInvalid as error:
            raise DataError(f"read_delta: {path}: {str(error).partition(chr(10))[0]}") from error

    def _file_read(self, path: str, footer: pq.FileMetaData) -> FileRead:
        """Return the request for a file. Thread: any."""
        names = [name for name in self._names if name != POSITION and not self._is_of(name)]
        columns = FileColumns(self._schema, arrow_schema(footer), names)
        counts = [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
        has_places = POSITION in self._names or bool(self._deleted(path))
        parts = () if self._spec.predicate is None else tuple(conjuncts(self._spec.predicate))
        if has_places:
            file = _File(columns, [name for name in self._names if name in columns.stored], parts, self._tests, counts)
            request = self._request(path, file.names, columns, None)
        else:
            known = [part for part in parts if columns.simple({*columns_of(part)})]
            others = tuple(part for part in parts if not columns.simple({*columns_of(part)}))
            kept = {*self._spec.columns} | {name for part in others for name in columns_of(part)}
            # A test names the column as the table does.
            stored = columns.stored
            own = [test for test in self._tests if columns.simple([test.column]) and stored[test.column] == test.column]
            rest = [test for test in self._tests if test not in own]
            read = [name for name in self._names if name in kept and name in columns.stored]
            file = _File(columns, read, others, rest, None)
            request = self._request(path, read, columns, conjunction(known) if known else None)
            request.tests = own

        def groups_of(split: SourceSplit) -> list[int]:
            return [group for group, count in enumerate(counts) if count and _is_in(footer, group, split)]

        return FileRead(request, groups_of, file)

    def _is_of(self, name: str) -> bool:
        """Return whether a column is one of the partition."""
        return self._files is not None and name in self._files.column_names

    def _deleted(self, path: str) -> int:
        if self._files is None:
            return 0
        count: int = self._files.column(DELETED)[self._rows[path]].as_py()
        return count

    def _wanted_rows(self, rows: GroupRows) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a row group without deleted ones, as far as they are wanted."""
        file: _File = rows.facts
        for batch in rows.batches:
            yield self._wanted(self._table_batch(rows.path, batch, file), file.parts, file.tests)
            del batch

    def _left(self, path: str) -> pa.BooleanArray | None:
        """Return a mask of the rows of a file that are not deleted, as far as some are; None: none is."""
        if not self._deleted(path):
            return None
        version = self._spec.options["version"]
        assert isinstance(version, int)
        left = selected(self._spec.paths[0], version, str(self._spec.options["table"]), path)
        if left is None:
            raise DataError(f"read_delta: {path}: its deletion vector is missing in version {version} of the table")
        return left

    def _placed_rows(self, rows: GroupRows, left: pa.BooleanArray | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a row group of which the places count, as far as they are wanted."""
        file: _File = rows.facts
        names, columns = file.names, file.columns
        early = [part for part in file.parts if {*columns_of(part)} <= {*names}]
        late = [part for part in file.parts if part not in early]
        early_tests = [test for test in file.tests if test.column in names]
        late_tests = [test for test in file.tests if test not in early_tests]
        place = sum((file.counts or ())[: rows.group])
        for batch in rows.batches:
            mask = None
            if left is not None:
                flags = left.slice(place, batch.num_rows)
                if len(flags) < batch.num_rows:
                    flags = pa.concat_arrays([flags, pa.repeat(scalar_of(True), batch.num_rows - len(flags))])
                mask = Mask(flags)
            if names:
                # Before there are columns of places and of values that all rows of the file have.
                arrays = [columns.column(name, batch.column(columns.stored[name])) for name in names]
                own = pa.RecordBatch.from_arrays(arrays, names=names)
                mask = mask_of(early_tests, own, _mask_of_parts(early, own, mask))
            places = numbers_from(place, batch.num_rows)
            place += batch.num_rows
            kept = batch
            if mask is not None:
                kept, places = kept_rows(batch, mask) if names else batch, places.filter(mask.array())
            found = self._table_batch(rows.path, kept, file, places)
            yield self._wanted(found, late, late_tests)
            del batch, kept, found

    def _request(
        self, path: str, names: Sequence[str], columns: FileColumns, predicate: Expression | None
    ) -> ScanRequest:
        """Return the request for columns of a file, and for its rows for which a predicate over the table's is true."""
        stored = columns.stored
        if predicate is not None:
            predicate = replaced(
                predicate, lambda each: ColumnRef(stored[each.name]) if isinstance(each, ColumnRef) else None
            )
        return ScanRequest.of_file(path, [stored[name] for name in names], columns.types, predicate)

    def _table_batch(
        self, path: str, batch: pa.RecordBatch, file: _File, places: pa.Array | None = None
    ) -> pa.RecordBatch:
        """Return rows with all columns of the table that are asked for; ``places``: in the file, where they count."""
        arrays = []
        count = batch.num_rows if places is None else len(places)
        for name in self._names:
            if self._is_of(name):
                assert self._files is not None
                value = self._files.column(name)[self._rows[path]]
                arrays.append(pa.repeat(value.cast(self._plain.field(name).type), count))
            elif name == POSITION:
                arrays.append(places)
            elif name in file.names:
                arrays.append(file.columns.column(name, batch.column(file.columns.stored[name])))
            else:
                arrays.append(pa.nulls(count, self._plain.field(name).type))
        if not arrays:
            return batch
        return pa.RecordBatch.from_arrays(arrays, names=self._names)

    def _wanted(
        self, batch: pa.RecordBatch, parts: Sequence[Expression], tests: Sequence[AdaptiveKeyFilter]
    ) -> pa.RecordBatch:
        """Return the rows for which parts of the predicate are true and tests allow it, with the columns asked for."""
        mask = mask_of(tests, batch, _mask_of_parts(parts, batch, None))
        columns = list(self._spec.columns)
        chosen = batch if not self._names or batch.schema.names == columns else batch.select(columns)
        return chosen if mask is None else kept_rows(chosen, mask)


def _mask_of_parts(parts: Sequence[Expression], batch: pa.RecordBatch, mask: Mask | None) -> Mask | None:
    """Return a mask of the rows that a mask leaves and for which parts of a predicate are true; None: all."""
    for part in parts:
        found = Mask(pc.fill_null(evaluate(part, batch), scalar_of(False)))
        mask = found if mask is None else mask.both(found)
    return mask


def _is_in(footer: pq.FileMetaData, group: int, split: SourceSplit) -> bool:
    """Return whether the middle of a row group lies in a piece of a file."""
    metadata = footer.row_group(group)
    chunks = [metadata.column(index) for index in range(metadata.num_columns)]
    if not chunks:
        return split.start == 0
    starts = [
        min(offset for offset in (chunk.dictionary_page_offset, chunk.data_page_offset) if offset is not None)
        for chunk in (chunks[0], chunks[-1])
    ]
    middle: int = (starts[0] + starts[1] + chunks[-1].total_compressed_size) // 2
    return split.start <= middle < split.end
