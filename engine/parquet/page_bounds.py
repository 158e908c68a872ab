"""Rows that a filter cannot leave, by what a file says of pages; values that a row group has not, by Bloom filters.

    indexes = PageIndexes(file, footer)
    indexes.possible_rows(group, predicate, schema) -> Ranges, or None: all rows are possible
    indexes.which_may_have(groups, predicate)       those where each value that is asked for may be
    indexes.pages(group, column)                    the places of a column's pages; None: they are not known
    indexes.expect(groups, predicate, columns)      of a store: what is asked about next is read with few requests

    a part of the predicate over one column ──► bounds of its pages ──► pages with such rows ──► ranges, of which the
    rows that all parts leave are read        pages of other columns begin elsewhere: their rows are taken out of them

Where rows are in no order by what is asked for, each page has about the bounds of its row group and nothing is gained:
the caller gives up after a few row groups.

Limits: parts over one column; Bloom filters of whole numbers, dates and texts, for = and for lists of a few values.
Source: parquet-format, "Page Index", "Bloom Filter". Hashing is XXH64.
Held by: tests/parquet/test_page_bounds.py
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from engine.errors import EngineError
from engine.expressions.evaluate import evaluate
from engine.expressions.literals import literal_scalar
from engine.graph.expression import Call, ColumnRef, Expression, Literal, columns_of, conjuncts
from engine.parquet.footers import arrow_schema, known_places, raw_footer
from engine.parquet.index_reads import IndexReads
from engine.parquet.kept_answers import kept_answer
from engine.parquet.page_index import IndexPlaces, PagePlaces, column_index, index_places, page_places
from engine.parquet.pages import flat_leaves
from engine.parquet.row_group_bounds import as_bounds
from engine.parquet.row_ranges import Ranges, common, of_pages
from engine.parquet.split_block_filter import may_be_in
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import array_of, scalar_of
from engine.records.plain_types import plain_type
from engine.statistics.bounds_predicate import ROW_COUNT, highest, lowest, may_be_true, null_count
from engine.storage.file_system import ByteRanges

#: bytes of an index that are read at most: of some ten thousand pages
_INDEX_BYTES_MAX: Final = 4 << 20
_FOOTER_BYTES_MAX: Final = 64 << 20
#: Bloom filters of a store that are read, of all row groups together
_FILTERS_BYTES_MAX: Final = 256 << 10
#: values of a list that are looked for in a Bloom filter
_MEMBERS_MAX: Final = 16
_PLAIN: Final = {"INT32": "<i", "INT64": "<q", "FLOAT": "<f", "DOUBLE": "<d"}


class PageIndexes:
    """The page indexes of one open file. Thread: one at a time."""

    def __init__(self, file: ByteRanges, footer: pq.FileMetaData) -> None:
        self._file, self._footer = file, footer
        self._known = known_places(footer)
        self._reads = IndexReads(file)
        self._has_filters = True

    def expect(self, groups: Sequence[int], predicate: Expression | None, columns: Sequence[str]) -> None:
        """Read the indexes of row groups of a store together, once one of them is asked for."""
        parts = [] if predicate is None else [set(columns_of(part)) for part in conjuncts(predicate)]
        looked_at = {name for names in parts if len(names) == 1 for name in names}
        expected: list[tuple[int, int]] = []
        for group in groups:
            for name in dict.fromkeys((*looked_at, *columns)):
                places = self._places(group, name)
                if places is None:
                    continue
                if name in looked_at and places.column_index_bytes:
                    expected.append((places.column_index, places.column_index_bytes))
                if places.offset_index_bytes:
                    expected.append((places.offset_index, places.offset_index_bytes))
        self._reads.expect(expected)

    def expect_filters(self, groups: Sequence[int], predicate: Expression) -> None:
        """Read the Bloom filters of row groups of a store, where they are small; others leave out nothing."""
        asked = [name for name, _ in _asked_values(predicate)]
        places = [found for group in groups for name in asked if (found := self._places(group, name)) is not None]
        filters = [(each.bloom_filter, each.bloom_filter_bytes) for each in places if each.bloom_filter]
        self._has_filters = all(size for _, size in filters) and sum(size for _, size in filters) <= _FILTERS_BYTES_MAX
        if self._has_filters and filters:
            self._reads.read_together(filters)

    def pages(self, group: int, name: str) -> PagePlaces | None:
        """Return the places of the pages of a column; None: they are not known."""
        places = self._places(group, name)
        if places is None or not places.offset_index_bytes:
            return None
        try:
            return page_places(self._read(places.offset_index, places.offset_index_bytes))
        except (ValueError, OSError):
            return None  # it is not needed to read the rows

    def possible_rows(self, group: int, predicate: Expression, schema: pa.Schema) -> Ranges | None:
        """Return the rows of a row group that pages leave for a predicate; None: all, or nothing is known."""
        return kept_answer(
            self._footer, group, predicate, schema, partial(self._examined_rows, group, predicate, schema)
        )

    def _examined_rows(self, group: int, predicate: Expression, schema: pa.Schema) -> Ranges | None:
        row_count = self._footer.row_group(group).num_rows
        found: Ranges = [(0, row_count)]
        floats = {field.name for field in schema if pa.types.is_floating(field.type)}
        for part in conjuncts(predicate):
            names = set(columns_of(part))
            rewritten = may_be_true(part, floats) if len(names) == 1 else None
            if rewritten is None:
                continue
            pages = self._pages(group, names.pop(), schema)
            if pages is None:
                continue
            rows, bounds = pages
            try:
                possible = pc.fill_null(evaluate(rewritten, bounds), scalar_of(True))
            except (EngineError, pa.ArrowException):
                continue  # of values that the job may never meet
            if isinstance(possible, pa.Array):
                found = common(found, of_pages(rows, row_count, possible.to_pylist()))
        return None if found == [(0, row_count)] else found

    def _pages(self, group: int, name: str, schema: pa.Schema) -> tuple[list[int], pa.RecordBatch] | None:
        """Return the first rows of a column's pages, and what is known of them."""
        places = self._places(group, name)
        if places is None or not places.column_index_bytes or not places.offset_index_bytes:
            return None
        chunk = self._footer.row_group(group).column(self._leaves[name])
        try:
            rows = page_places(self._read(places.offset_index, places.offset_index_bytes)).first_rows
            if len(rows) == 1 and chunk.statistics is not None and chunk.statistics.has_min_max:
                return None  # the page has the bounds of the row group, which was looked at
            index = column_index(self._read(places.column_index, places.column_index_bytes))
        except (ValueError, OSError):
            return None  # it is not needed to read the rows
        if len(rows) != len(index.is_null) or not rows:
            return None
        stored = plain_type(self._stored_schema.field(name).type)
        sides = [_plain_values(side, index.is_null, chunk.physical_type) for side in (index.lowest, index.highest)]
        counts = [end - start for start, end in zip(rows, [*rows[1:], chunk.num_values], strict=True)]
        pages = zip(counts, index.is_null, strict=True)
        nulls: Sequence[int | None] = index.null_counts or [count if empty else None for count, empty in pages]
        bounds = as_bounds(sides[0], sides[1], nulls, [chunk.statistics] * len(rows), stored)
        wanted = schema.field(name).type
        columns = {ROW_COUNT: array_of(counts, pa.int64()), null_count(name): bounds.null_counts}
        for name_of, values in ((lowest, bounds.lowest), (highest, bounds.highest)):
            columns[name_of(name)] = _of_type(values, wanted, len(rows))
        return rows, pa.RecordBatch.from_pydict(columns)

    def which_may_have(self, groups: Sequence[int], predicate: Expression) -> Sequence[int]:
        """Return the row groups of which each column that a predicate compares with values may have one of these."""
        parts = _asked_values(predicate) if self._has_filters else ()
        asked = [(name, values) for name, values in parts if self._may_have_filters(name)]
        return [group for group in groups if self._may_have(group, asked)] if asked else groups

    def _may_have_filters(self, name: str) -> bool:
        leaf = self._leaves.get(name)
        if leaf is None:
            return False
        known = self._places_of_all().values()
        return bool([chunks for chunks in known if leaf < len(chunks) and chunks[leaf].bloom_filter])

    def _may_have(self, group: int, asked: Sequence[tuple[str, list[pa.Scalar]]]) -> bool:
        for name, values in asked:
            places = self._places(group, name)
            if places is None or not places.bloom_filter:
                continue
            stored = plain_type(self._stored_schema.field(name).type)
            physical = self._footer.schema.column(self._leaves[name]).physical_type
            try:
                encoded = [_encoded(value, stored, physical) for value in values]
                if None not in encoded and not may_be_in(self._reads, places.bloom_filter, encoded):
                    return False
            except (ValueError, OSError, pa.ArrowException):
                continue
        return True

    @cached_property
    def _leaves(self) -> dict[str, int]:
        return flat_leaves(self._footer.schema)

    @cached_property
    def _stored_schema(self) -> pa.Schema:
        return arrow_schema(self._footer)

    def _places(self, group: int, name: str) -> IndexPlaces | None:
        leaf = self._leaves.get(name)
        chunks = self._places_of_all().get(group, [])
        return chunks[leaf] if leaf is not None and leaf < len(chunks) else None

    def _places_of_all(self) -> dict[int, list[IndexPlaces]]:
        if not self._known:
            self._known.update(enumerate(self._read_places()))
        return self._known

    def _read_places(self) -> list[list[IndexPlaces]]:
        """Read the footer again, for what pyarrow does not tell of it."""
        try:
            groups: list[list[IndexPlaces]] = index_places(raw_footer(self._file, _FOOTER_BYTES_MAX))
        except (ValueError, OSError):
            return [[]]
        return groups or [[]]

    def _read(self, position: int, size: int) -> bytes:
        if not 0 <= size <= max(_INDEX_BYTES_MAX, _FOOTER_BYTES_MAX) or position < 0:
            raise ValueError(f"{self._file.path}: an index of {size} bytes at byte {position}")
        return self._reads.read_at(position, size)


def _of_type(values: pa.Array | None, wanted: pa.DataType, count: int) -> pa.Array:
    if values is None:
        return pa.nulls(count, wanted)
    return values if values.type == wanted else pc.cast(values, wanted)


def _plain_values(side: list[bytes], is_null: list[bool], physical: str) -> list[Any]:
    return [None if empty else _plain_value(raw, physical) for raw, empty in zip(side, is_null, strict=True)]


def _plain_value(raw: bytes, physical: str) -> Any:
    """Return a bound as pyarrow gives those of row groups: numbers, or bytes."""
    if physical in _PLAIN:
        return struct.unpack(_PLAIN[physical], raw)[0] if len(raw) == struct.calcsize(_PLAIN[physical]) else None
    return raw[:1] == b"\1" if physical == "BOOLEAN" else raw


def _asked_values(predicate: Expression) -> Iterator[tuple[str, list[pa.Scalar]]]:
    """Yield the columns of which a predicate asks for a few values."""
    for part in conjuncts(predicate):
        match part:
            case Call(function="equal", arguments=(ColumnRef(name=name), Literal() as literal)):
                yield name, [literal_scalar(literal)]
            case Call(function="equal", arguments=(Literal() as literal, ColumnRef(name=name))):
                yield name, [literal_scalar(literal)]
            case Call(function="is_in", arguments=(ColumnRef(name=name), *members)) if len(
                members
            ) <= _MEMBERS_MAX and all(isinstance(member, Literal) for member in members):
                yield name, [literal_scalar(member) for member in members if isinstance(member, Literal)]


def _encoded(value: pa.Scalar, stored: pa.DataType, physical: str) -> bytes | None:
    """Return a value as a page has it; None: it is not known how. pa.ArrowInvalid: no row of the file has it."""
    if not value.is_valid or pa.types.is_floating(value.type):
        return None
    if pa.types.is_string(stored) or pa.types.is_large_string(stored):
        return str(value.as_py()).encode() if pa.types.is_string(plain_type(value.type)) else None
    if physical in ("INT32", "INT64") and (pa.types.is_integer(stored) or pa.types.is_date32(stored)):
        number = pc.cast(value, stored)
        whole = pc.cast(pc.cast(number, pa.int32()) if pa.types.is_date32(stored) else number, pa.int64())
        width = struct.calcsize(_PLAIN[physical])
        return bytes((whole.as_py() & (1 << 8 * width) - 1).to_bytes(width, "little"))
    return None
