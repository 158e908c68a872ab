"""DeltaReader: a task's pieces of a table's files, as the table has their rows.

    piece of a file ─► its row groups ─► ParquetReader: columns of the file, rows that the filter wants
          └─► rows that its deletion vector leaves ─► columns of the table: renamed, converted, of the partition, null

What a predicate says of columns that the file has is left to the reader of Parquet, which passes over row groups, pages
and rows by it. In a file with deleted rows these are told by their places, so that all rows are read before.

Held by: tests/delta_tables/test_read_delta.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from engine.delta_tables.delta_source import DELETED, PATH, files_table, plain_schema_of, table_schema
from engine.delta_tables.file_columns import FileColumns
from engine.delta_tables.table_log import selected
from engine.errors import DataError
from engine.expressions.evaluate import evaluate
from engine.graph.expression import ColumnRef, Expression, columns_of, conjunction, conjuncts, replaced
from engine.graph.merge_action import POSITION
from engine.graph.source_spec import FormatSource, ParquetSource, SourceSplit
from engine.parquet.footers import arrow_schema, read_footer
from engine.parquet.reader import ParquetReader
from engine.records.adaptive_key_filter import mask_of
from engine.records.arrow_functions import pc
from engine.records.bounded_batches import SmallBatches
from engine.records.kept_rows import kept_rows
from engine.records.plain_scalars import scalar_of

if TYPE_CHECKING:
    from engine.iomanager.spill_space import SpillSpace
    from engine.records.adaptive_key_filter import AdaptiveKeyFilter


class DeltaReader:
    """Reads pieces of files; the order inside a piece is that of the file. Thread: the task's."""

    bad_rows = 0

    def __init__(
        self, spec: FormatSource, splits: Sequence[SourceSplit], new_space: Callable[[], SpillSpace] | None = None
    ) -> None:
        self._spec = spec
        self._splits: Iterator[SourceSplit] = iter(splits)
        self._new_space = new_space
        self._schema, self._plain = table_schema(spec), plain_schema_of(spec)
        predicate = () if spec.predicate is None else columns_of(spec.predicate)
        #: The columns that are read of files, or known of them.
        self._names = list(dict.fromkeys((*spec.columns, *predicate)))
        self._files = files_table(spec)
        self._rows: dict[str, int] = {}
        if self._files is not None:
            self._rows = {path: row for row, path in enumerate(self._files.column(PATH).to_pylist())}
        self._tests: Sequence[AdaptiveKeyFilter] = ()
        self._inner: ParquetReader | None = None
        self.bytes_read = 0
        self.pruned_groups = 0

    def filter_by(self, tests: Sequence[AdaptiveKeyFilter]) -> None:
        """Leave out rows that filters of keys say are not wanted; to be called before the first row is read."""
        self._tests = tests

    def take_from(self, take: Callable[[], SourceSplit | None]) -> None:
        """Read the splits that are taken, until there is none, in place of its own; before the first row is read."""
        self._splits = iter(take, None)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of all pieces; DataError when a file cannot be read."""
        small = SmallBatches(rows_min=1)
        for path, splits in groupby(self._splits, key=attrgetter("path")):
            for split in splits:
                for batch in self._file_rows(path, split):
                    yield from small.add(batch)
                    del batch  # a wide one is not kept while the next is read
        yield from small.rest()

    def _file_rows(self, path: str, split: SourceSplit) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a piece of a file."""
        try:
            footer = read_footer(path)
        except FileNotFoundError:
            raise DataError(
                f"read_delta: {path}: the file is missing, which version {self._spec.options['version']} of the table"
                " has; files of older versions are gone after a vacuum: read the last version, or restore the file"
            ) from None
        except pa.ArrowInvalid as error:
            raise DataError(f"read_delta: {path}: {str(error).partition(chr(10))[0]}") from error
        names = [name for name in self._names if name != POSITION and not self._is_of(name)]
        columns = FileColumns(self._schema, arrow_schema(footer), names)
        groups = [group for group in range(footer.num_row_groups) if _is_in(footer, group, split)]
        pieces = [
            SourceSplit(path, group, group + 1, max(1, footer.row_group(group).total_byte_size), row_count)
            for group in groups
            if (row_count := footer.row_group(group).num_rows)
        ]
        if POSITION in self._names or self._deleted(path):
            yield from self._placed_rows(path, footer, pieces, columns)
        else:
            yield from self._wanted_rows(path, pieces, columns)

    def _is_of(self, name: str) -> bool:
        """Return whether a column is one of the partition."""
        return self._files is not None and name in self._files.column_names

    def _deleted(self, path: str) -> int:
        if self._files is None:
            return 0
        count: int = self._files.column(DELETED)[self._rows[path]].as_py()
        return count

    def _wanted_rows(self, path: str, pieces: list[SourceSplit], columns: FileColumns) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file without deleted ones, as far as they are wanted."""
        parts = () if self._spec.predicate is None else conjuncts(self._spec.predicate)
        known = [part for part in parts if columns.simple({*columns_of(part)})]
        others = [part for part in parts if not columns.simple({*columns_of(part)})]
        kept = {*self._spec.columns} | {name for part in others for name in columns_of(part)}
        predicate = conjunction(known) if known else None
        names = [name for name in self._names if name in kept and name in columns.stored]
        inner = self._opened(path, pieces, names, columns, predicate)
        # A test names the column as the table does.
        stored = columns.stored
        own = [test for test in self._tests if columns.simple([test.column]) and stored[test.column] == test.column]
        if own:
            inner.filter_by(own)
        rest = [test for test in self._tests if test not in own]
        for batch in inner:
            yield self._wanted(self._table_batch(path, batch, names, columns), others, rest)
            del batch
        self._close_inner()

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

    def _placed_rows(
        self, path: str, footer: pq.FileMetaData, pieces: list[SourceSplit], columns: FileColumns
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file of which the places count, as far as they are wanted."""
        left = self._left(path)
        parts = () if self._spec.predicate is None else conjuncts(self._spec.predicate)
        names = [name for name in self._names if name in columns.stored]
        for piece in pieces:
            place = sum(footer.row_group(group).num_rows for group in range(piece.start))
            for batch in self._opened(path, [piece], names, columns, None):
                rows = self._table_batch(path, batch, names, columns, place)
                if left is not None:
                    mask = left.slice(place, batch.num_rows)
                    if len(mask) < batch.num_rows:
                        mask = pa.concat_arrays([mask, pa.repeat(scalar_of(True), batch.num_rows - len(mask))])
                    rows = kept_rows(rows, mask)
                place += batch.num_rows
                yield self._wanted(rows, parts, self._tests)
                del batch, rows
            self._close_inner()

    def _opened(
        self,
        path: str,
        pieces: list[SourceSplit],
        names: Sequence[str],
        columns: FileColumns,
        predicate: Expression | None,
    ) -> ParquetReader:
        """Return the reader of columns of a file, and of its rows for which a predicate over the table's is true."""
        if predicate is not None:
            stored = columns.stored
            predicate = replaced(
                predicate, lambda each: ColumnRef(stored[each.name]) if isinstance(each, ColumnRef) else None
            )
        spec = ParquetSource(
            (path,),
            tuple(pieces),
            tuple(columns.stored[name] for name in names),
            types_ipc=columns.types.serialize().to_pybytes(),
            predicate=predicate,
        )
        self._inner = ParquetReader(spec, pieces, self._new_space)
        return self._inner

    def _table_batch(
        self, path: str, batch: pa.RecordBatch, names: Sequence[str], columns: FileColumns, place: int = 0
    ) -> pa.RecordBatch:
        """Return rows with all columns of the table that are asked for; ``place``: that of the first one."""
        arrays = []
        for name in self._names:
            if self._is_of(name):
                assert self._files is not None
                value = self._files.column(name)[self._rows[path]]
                arrays.append(pa.repeat(value, batch.num_rows).cast(self._plain.field(name).type))
            elif name == POSITION:
                ones = pa.repeat(scalar_of(1, pa.int64()), batch.num_rows)
                arrays.append(pc.cumulative_sum(ones, start=scalar_of(place - 1, pa.int64())))
            elif name in names:
                arrays.append(columns.column(name, batch.column(columns.stored[name])))
            else:
                arrays.append(pa.nulls(batch.num_rows, self._plain.field(name).type))
        if not arrays:
            return batch
        return pa.RecordBatch.from_arrays(arrays, names=self._names)

    def _wanted(
        self, batch: pa.RecordBatch, parts: Sequence[Expression], tests: Sequence[AdaptiveKeyFilter]
    ) -> pa.RecordBatch:
        """Return the rows for which parts of the predicate are true and tests allow it, with the columns asked for."""
        mask: pa.BooleanArray | None = None
        for part in parts:
            found = pc.fill_null(evaluate(part, batch), scalar_of(False))
            mask = found if mask is None else pc.and_(mask, found)
        mask = mask_of(tests, batch, mask)
        columns = list(self._spec.columns)
        chosen = batch if not self._names or batch.schema.names == columns else batch.select(columns)
        return chosen if mask is None else kept_rows(chosen, mask)

    def _close_inner(self) -> None:
        if self._inner is not None:
            inner, self._inner = self._inner, None
            self.bytes_read += inner.bytes_read
            self.pruned_groups += inner.pruned_groups
            inner.close()

    def close(self) -> None:
        """Close the file that is being read; idempotent."""
        self._close_inner()


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
