"""IcebergReader: a task's splits of an Iceberg table as record batches.

    split: bytes of a data file ─► row groups that begin there ─► Parquet's reader ─► columns by ids ─► rows left

    no positions deleted      Parquet's reader leaves out rows by the filter, on columns that the file has
    positions deleted         it gives all rows in order, and the filter follows behind the deletes;
    or asked for              each row is numbered by its place in the file then

Held by: tests/iceberg_tables/test_read_iceberg.py
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from engine.expressions.evaluate import evaluate
from engine.graph.expression import Expression, columns_of, conjunction, conjuncts
from engine.graph.merge_action import POSITION
from engine.graph.source_spec import FormatSource, SourceSplit
from engine.iceberg_tables.arrow_types import field_id
from engine.iceberg_tables.file_columns import FileColumns
from engine.iceberg_tables.iceberg_source import POSITION_ID
from engine.iceberg_tables.row_deletes import deleted_positions, kept_rows
from engine.parquet.footers import arrow_schema
from engine.parquet.table_scan import FileRead, GroupRows, TableReader
from engine.records.bounded_batches import put_together

if TYPE_CHECKING:
    from engine.iomanager.spill_space import SpillSpace


class _File(NamedTuple):
    """A data file, as it is read."""

    columns: FileColumns
    names: list[str]
    #: part of the filter that is left to this reader
    rest: Expression | None
    #: rows of its row groups
    counts: list[int]
    #: flag of rows with their places
    has_places: bool


class IcebergReader(TableReader):
    """Reads data files, one after the other; the order within one is that of the file."""

    def __init__(
        self,
        spec: FormatSource,
        splits: Sequence[SourceSplit],
        new_space: Callable[[], SpillSpace] | None = None,
    ) -> None:
        super().__init__(splits, new_space)
        self._spec = spec
        self._schema = pa.ipc.read_schema(pa.py_buffer(spec.file_schema_ipc))
        #: Facts about single files beside their columns: uri, deletes and constants.
        self._files: dict[str, dict[str, Any]] = json.loads(str(spec.options["files"]))
        self._mapping = str(spec.options["mapping"])

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Return an iterator of the rows of all splits."""
        return put_together(self._left_rows())

    def _left_rows(self) -> Iterator[pa.RecordBatch]:
        path, positions = "", None
        for rows in self._begin(self._file_read):
            if rows.path != path:
                path, known = rows.path, self._files.get(rows.path, {})
                deletes = known.get("deletes", ())
                positions = deleted_positions(known["uri"], deletes) if deletes else None
            yield from self._rows(rows, positions)

    def _file_read(self, path: str, footer: pq.FileMetaData) -> FileRead:
        """Return the request for a file. Thread: any."""
        known = self._files.get(path, {})
        predicate = self._spec.predicate
        wanted = list(dict.fromkeys([*self._spec.columns, *(() if predicate is None else columns_of(predicate))]))
        fields = [self._schema.field(name) for name in wanted]
        has_places = any(field_id(field) == POSITION_ID for field in fields)
        columns = FileColumns(arrow_schema(footer), fields, known.get("constants", {}), self._mapping, path)
        is_plain = not known.get("deletes") and not has_places
        pushed, rest = _divided(predicate, columns.simple if is_plain else frozenset())
        names = list(dict.fromkeys([*self._spec.columns, *(() if rest is None else columns_of(rest))]))
        counts = [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
        file = _File(columns, names, rest, counts, has_places)
        request = columns.request(path, names, pushed)
        return FileRead(request, partial(_groups_of, footer), file)

    def _rows(self, rows: GroupRows, positions: Any) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a row group; ``positions``: of rows of the file that are deleted, None for none."""
        file: _File = rows.facts
        first = sum(file.counts[: rows.group])
        for batch in rows.batches:
            found = file.columns.arranged(batch, file.names)
            if file.has_places:
                places = pa.arange(first, first + batch.num_rows)
                found = found.set_column(found.schema.get_field_index(POSITION), POSITION, places)
            mask = None if positions is None else kept_rows(positions, first, batch.num_rows)
            first += batch.num_rows
            if mask is not None:
                found = found.filter(mask)
            if file.rest is not None:
                found = found.filter(evaluate(file.rest, found))
            if found.num_rows:
                yield found.select(list(self._spec.columns))


def _divided(predicate: Expression | None, simple: Collection[str]) -> tuple[Expression | None, Expression | None]:
    """Return the part of a filter that looks at simple columns alone, and the rest."""
    parts = () if predicate is None else conjuncts(predicate)
    taken = [part for part in parts if {*columns_of(part)} and {*columns_of(part)} <= {*simple}]
    rest = [part for part in parts if part not in taken]
    return conjunction(taken) if taken else None, conjunction(rest) if rest else None


def _groups_of(footer: pq.FileMetaData, split: SourceSplit) -> list[int]:
    """Return the row groups of a file that begin within the bytes of a split."""
    begins = [_begin(footer.row_group(group)) for group in range(footer.num_row_groups)]
    return [group for group, begin in enumerate(begins) if split.start <= begin < split.end]


def _begin(group: pq.RowGroupMetaData) -> int:
    """Return the byte at which a row group begins."""
    chunk = group.column(0)
    return int(chunk.dictionary_page_offset or chunk.data_page_offset)
