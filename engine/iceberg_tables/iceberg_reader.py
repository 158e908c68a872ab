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
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any

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
from engine.parquet.footers import arrow_schema, read_footer
from engine.parquet.reader import ParquetReader
from engine.records.bounded_batches import SmallBatches

if TYPE_CHECKING:
    from engine.iomanager.spill_space import SpillSpace


class IcebergReader:
    """Reads data files, one after the other; the order within one is that of the file."""

    bad_rows = 0

    def __init__(
        self,
        spec: FormatSource,
        splits: Sequence[SourceSplit],
        new_space: Callable[[], SpillSpace] | None = None,
    ) -> None:
        self._spec = spec
        self._taken: Iterator[SourceSplit] = iter(splits)
        self._new_space = new_space
        self._schema = pa.ipc.read_schema(pa.py_buffer(spec.file_schema_ipc))
        #: Facts about single files beside their columns: uri, deletes and constants.
        self._files: dict[str, dict[str, Any]] = json.loads(str(spec.options["files"]))
        self._mapping = str(spec.options["mapping"])
        self._reader: ParquetReader | None = None
        self._bytes_read = 0
        self._pruned_groups = 0

    @property
    def bytes_read(self) -> int:
        """Bytes of splits read so far."""
        return self._bytes_read + (0 if self._reader is None else self._reader.bytes_read)

    @property
    def pruned_groups(self) -> int:
        """Row groups left out so far."""
        return self._pruned_groups + (0 if self._reader is None else self._reader.pruned_groups)

    def take_from(self, take: Callable[[], SourceSplit | None]) -> None:
        """Read the splits that are taken, until there is none, in place of its own; before the first row is read."""
        self._taken = iter(take, None)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of all splits."""
        small = SmallBatches(rows_min=1)
        for path, splits in groupby(self._taken, key=attrgetter("path")):
            for split in splits:
                for batch in self._rows(path, split):
                    yield from small.add(batch)
        yield from small.rest()

    def _rows(self, path: str, split: SourceSplit) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split."""
        footer = read_footer(path)
        groups = _groups_of(footer, split)
        if not groups:
            return
        known = self._files.get(path, {})
        deletes = known.get("deletes", ())
        positions = deleted_positions(known["uri"], deletes) if deletes else None
        predicate = self._spec.predicate
        wanted = list(dict.fromkeys([*self._spec.columns, *(() if predicate is None else columns_of(predicate))]))
        fields = [self._schema.field(name) for name in wanted]
        has_places = any(field_id(field) == POSITION_ID for field in fields)
        columns = FileColumns(arrow_schema(footer), fields, known.get("constants", {}), self._mapping, path)
        pushed, rest = _divided(predicate, frozenset() if deletes or has_places else columns.simple)
        names = list(dict.fromkeys([*self._spec.columns, *(() if rest is None else columns_of(rest))]))
        first = sum(footer.row_group(group).num_rows for group in range(groups.start))
        own = SourceSplit(path, groups.start, groups.stop, split.size_bytes)
        self._reader = ParquetReader(columns.source(own, names, pushed), (own,), self._new_space)
        for batch in self._reader:
            found = columns.arranged(batch, names)
            if has_places:
                places = pa.arange(first, first + batch.num_rows)
                found = found.set_column(found.schema.get_field_index(POSITION), POSITION, places)
            mask = None if positions is None else kept_rows(positions, first, batch.num_rows)
            first += batch.num_rows
            if mask is not None:
                found = found.filter(mask)
            if rest is not None:
                found = found.filter(evaluate(rest, found))
            if found.num_rows:
                yield found.select(list(self._spec.columns))
        self._end_reader()

    def _end_reader(self) -> None:
        if self._reader is not None:
            self._bytes_read, self._pruned_groups = self.bytes_read, self.pruned_groups
            reader, self._reader = self._reader, None
            reader.close()

    def close(self) -> None:
        """Close the file that is being read."""
        self._end_reader()


def _divided(predicate: Expression | None, simple: Collection[str]) -> tuple[Expression | None, Expression | None]:
    """Return the part of a filter that looks at simple columns alone, and the rest."""
    parts = () if predicate is None else conjuncts(predicate)
    taken = [part for part in parts if {*columns_of(part)} and {*columns_of(part)} <= {*simple}]
    rest = [part for part in parts if part not in taken]
    return conjunction(taken) if taken else None, conjunction(rest) if rest else None


def _groups_of(footer: pq.FileMetaData, split: SourceSplit) -> range:
    """Return the row groups of a file that begin within the bytes of a split."""
    begins = [_begin(footer.row_group(group)) for group in range(footer.num_row_groups)]
    inside = [group for group, begin in enumerate(begins) if split.start <= begin < split.end]
    return range(inside[0], inside[-1] + 1) if inside else range(0)


def _begin(group: pq.RowGroupMetaData) -> int:
    """Return the byte at which a row group begins."""
    chunk = group.column(0)
    return int(chunk.dictionary_page_offset or chunk.data_page_offset)
