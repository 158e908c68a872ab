"""OpenFile: a Parquet file open for some columns, each decoded here or by pyarrow, whichever knows it.

    file = OpenFile(path, columns, status)      status: of an object, as a plan found it
    file.footer    file.types    file.coded     of the columns: as what they come, and which come as numbers of texts
    file.narrow(columns)                        those of decimals that come in 64 bits, where they are decoded here
    file.choose(group, columns, rows)           of a store: only pages with some rows are fetched, or all again
    file.pages(group, columns)                  what is known of pages, looked at once for all readers of a file
    file.columns(group, columns, rows)          a stream of batches (column_streams)
    file.indexes                                what the file says of pages (page_bounds)
    file.close()

    with OpenFiles(columns) as files:           several, each opened when it is first asked for
        files.of(path)

Invariant: a stream gives all rows of its row group, or raises pa.ArrowInvalid.

Held by: tests/parquet/test_group_reader.py
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, Self

import pyarrow as pa
import pyarrow.parquet as pq

from engine.parquet.column_streams import ArrowColumns, ColumnStream, DecodedColumns, JoinedStreams
from engine.parquet.fetched_bytes import FetchedBytes
from engine.parquet.fetched_chunks import ChunkFile
from engine.parquet.footers import (
    GroupPages,
    GroupPlan,
    KnownGroups,
    Widths,
    arrow_schema,
    known_forms,
    known_groups,
    known_schemas,
    new_groups,
    open_file,
    opened_ranges,
    shared_footer,
)
from engine.parquet.group_reader import GroupChunks, GroupReader, StoredChunk
from engine.parquet.page_bounds import PageIndexes
from engine.parquet.page_ranges import NeededPages, needed_pages
from engine.parquet.page_rooms import let_rooms_go
from engine.parquet.pages import buffer_bytes, chunk_range, first_page, flat_leaves, leaf_places, pages_at
from engine.parquet.row_ranges import Ranges
from engine.parquet.stored_chunks import Stored, has_differences, is_known, stored_chunk, stored_values
from engine.records.narrow_decimals import NARROW_DIGITS_MAX, narrow_type
from engine.records.plain_types import plain_type
from engine.storage.file_system import FileStatus, RangeFile

#: values of a dictionary that count, since some rows may be a gigabyte of them
_WIDE_VALUE_BYTES = 64 << 10
#: limit of cached schemas of coded columns, for one file
_SCHEMAS_MAX = 64
#: limit of cached kinds of plans, for one file
_PLANS_MAX = 64
#: rows read at a time to find the column that cannot be decoded
_LOOKED_AT_ROWS = 4096


class _ChosenPages(NamedTuple):
    """A row group of which some pages are fetched."""

    columns: dict[str, NeededPages]
    #: pages and chunks as far as these pages tell
    known: KnownGroups


class _Forms(NamedTuple):
    """The form in which columns of a file come, by its footer."""

    #: types in which pyarrow would read all columns of the file
    found: pa.Schema
    types: dict[str, pa.DataType]
    #: encodings of columns that can be decoded here, if their row group allows it
    values: dict[str, Stored | None]
    #: widths of values as they are decoded, and types, of columns that are read together; to be added to
    widths: dict[tuple[str, ...], Widths]
    schemas: dict[tuple[str, ...], pa.Schema]


class OpenFile:
    """See the module's text. Thread: one at a time."""

    def __init__(self, path: str, columns: Sequence[str], status: FileStatus | None = None) -> None:
        self.path = path
        self._columns = tuple(columns)
        opened = opened_ranges(path, status)
        try:
            self._open(path, columns, opened)
        except BaseException:
            opened.close()
            raise

    def _open(self, path: str, columns: Sequence[str], opened: RangeFile) -> None:
        self.footer, coded = shared_footer(path, columns, opened)
        self._arrow: pq.ParquetFile | None = None
        #: number of the file that pyarrow has open, which is another one for each row group of a store
        self._arrow_number = 0
        self._known = known_groups(self.footer)
        self._readers: dict[tuple[str, ...], GroupReader] = {}
        #: row groups of which some pages are fetched
        self._chosen: dict[int, _ChosenPages] = {}
        self._leaf_places: dict[tuple[str, ...], list[tuple[str, int]]] = {}
        self.coded = frozenset(coded)
        #: forms of columns and rows, by what readers want; not to be changed
        self.forms = known_forms(self.footer)
        self._take(frozenset())
        self.found = self._forms.found
        # Last: nothing fails any more, which would leave it open.
        self._file = ChunkFile(opened)
        #: Flag: the file is in a store, of which parts are fetched.
        self.is_fetched = self._file.is_fetched
        self.indexes = PageIndexes(self._file, self.footer)

    def narrow(self, columns: Iterable[str]) -> None:
        """Let decimals that are stored as integers come as such (``narrow_decimals``); before any column is read."""
        self._take(frozenset(columns))

    def _take(self, narrow: frozenset[str]) -> None:
        key = OpenFile, self._columns, narrow
        forms: _Forms | None = self.forms.get(key)
        if forms is None:
            forms = self.forms[key] = self._new_forms(narrow)
        self._forms, self.types = forms, forms.types

    def _new_forms(self, narrow: frozenset[str]) -> _Forms:
        forms = _Forms(self._found_schema(), {}, {}, {}, {})
        for name in self._columns:
            found, leaf = forms.found.field(name).type, self._leaves.get(name)
            data_type = found if name in self.coded else plain_type(found)
            stored = None if leaf is None else self._stored_values(leaf, data_type)
            is_short = pa.types.is_decimal128(data_type) and data_type.precision <= NARROW_DIGITS_MAX
            if leaf is not None and name in narrow and is_short:
                narrowed = self._stored_values(leaf, narrow_type(data_type))
                if narrowed is not None:
                    data_type, stored = narrow_type(data_type), narrowed
            forms.types[name], forms.values[name] = data_type, stored
        return forms

    def _found_schema(self) -> pa.Schema:
        """Return the types in which pyarrow would read all columns of the file, which are found out once."""
        known = known_schemas(self.footer)
        found = known.get(self.coded)
        if found is None:
            found = known[self.coded] = self._new_schema()
            if len(known) > _SCHEMAS_MAX:
                known.clear()
        return found

    def _new_schema(self) -> pa.Schema:
        leaves = self.footer.schema
        if any(leaves.column(index).physical_type == "INT96" for index in range(self.footer.num_columns)):
            return self._by_arrow().schema_arrow  # times whose unit we choose
        schema = arrow_schema(self.footer)
        for name in self.coded:
            index = schema.get_field_index(name)
            field = schema.field(index)
            schema = schema.set(index, field.with_type(pa.dictionary(pa.int32(), plain_type(field.type))))
        return schema

    def _by_arrow(self, group: int | None = None) -> pq.ParquetFile:
        """Return the file as pyarrow has it, which takes a quarter of a millisecond to open; None: for types alone."""
        path = self.path if group is None else self._file.library_path(group)
        number = 0 if group is None else self._file.number(group)
        if self._arrow is not None and group is not None and number != self._arrow_number:
            self._arrow.close()
            self._arrow = None
        if self._arrow is None:
            buffer = buffer_bytes(len(self._columns))
            self._arrow = open_file(path, buffer, self.footer, list(self.coded))
            self._arrow_number = number
        return self._arrow

    def fetched_bytes(self, group: int, columns: Sequence[str]) -> int:
        """Return the bytes of columns in a row group that ``fetch`` holds; 0 for a file of this machine."""
        return sum(end - begin for begin, end in self._ranges(group, columns)) if self._file.is_fetched else 0

    def fetch(self, group: int, columns: Sequence[str]) -> None:
        """Have the chunks of columns in memory, with one request for neighbours; those of other groups go."""
        if self._file.is_fetched:
            if group != self._file.current:
                self._chosen.pop(self._file.current, None)
            self._file.fetch(group, self._ranges(group, columns), self._headers(group, columns))

    def fetch_ahead(self, group: int, columns: Sequence[str]) -> None:
        """Have the chunks of a row group of a store in memory, which is read later. Thread: any."""
        self._file.fetch_ahead(group, self._ranges(group, columns), self._headers(group, columns))

    def drop(self, group: int) -> None:
        """Give back what was fetched of a row group."""
        self._chosen.pop(group, None)
        self._file.drop(group)

    def _ranges(self, group: int, columns: Sequence[str]) -> list[tuple[int, int]]:
        chunks, chosen = self.footer.row_group(group), self._chosen_of(group)
        ranges: list[tuple[int, int]] = []
        for name, leaf in self._places_of(tuple(columns)):
            ranges += chosen[name].ranges if name in chosen else [chunk_range(chunks.column(leaf))]
        return ranges

    def _headers(self, group: int, columns: Sequence[str]) -> list[tuple[int, bytes]]:
        chosen = self._chosen_of(group)
        return [header for name in columns if name in chosen for header in chosen[name].headers]

    def _chosen_of(self, group: int) -> dict[str, NeededPages]:
        return self._chosen[group].columns if group in self._chosen else {}

    def choose(self, group: int, columns: Sequence[str], rows: Ranges | None) -> None:
        """Have those pages alone fetched that have some of these rows, as far as they are known; None: all pages."""
        if not self._file.is_fetched:
            return
        if self._chosen.pop(group, None) is not None:
            self._file.drop(group)
        if rows is None:
            return
        chunks, found = self.footer.row_group(group), {}
        for name in columns:
            chunk = chunks.column(self._leaves[name]) if self._forms.values[name] is not None else None
            places = None if chunk is None or not is_known(chunk) else self.indexes.pages(group, name)
            if chunk is None or places is None:
                continue
            begin = first_page(chunk)
            needed = needed_pages((begin, begin + chunk.total_compressed_size), places, rows, chunks.num_rows)
            if needed is not None and needed.headers:
                found[name] = needed
        if found:
            self._chosen[group] = _ChosenPages(found, new_groups())

    def is_chosen(self, group: int) -> bool:
        """Return whether some pages of a row group are left out."""
        return group in self._chosen

    def _known_of(self, group: int) -> KnownGroups:
        return self._chosen[group].known if group in self._chosen else self._known

    def row_count(self, group: int) -> int:
        """Return the number of rows of a row group."""
        count = self._known.row_counts.get(group)
        if count is None:
            count = self._known.row_counts[group] = self.footer.row_group(group).num_rows
        return count

    def pages(self, group: int, columns: Sequence[str]) -> GroupPages:
        """Return the pages of columns of a row group."""
        key, together = (group, tuple(columns)), (self._known_of(group) if self._chosen else self._known).together
        found = together.get(key)
        if found is None:
            found = together[key] = self._together(group, columns)
        return found

    def _together(self, group: int, columns: Sequence[str]) -> GroupPages:
        known = self._known_of(group).pages
        new = [name for name in columns if (group, name) not in known]
        # What is fetched for its headers alone is so one column at a time.
        for some in [[name] for name in new] if self._file.is_fetched else [new] if new else []:
            was_there = self._file.has(group)
            self.fetch(group, some)
            pages_of_new = pages_at(self._file.source(group), self.footer, group, some, self._places_of(tuple(some)))
            known.update({(group, name): pages for name, pages in pages_of_new.items()})
            if not was_there:
                self._file.let_go()
        pages = [known[group, name] for name in columns]
        buffer = buffer_bytes(len(columns))
        held = {
            name: one.held_bytes(buffer) + self.fetched_bytes(group, [name])
            for name, one in zip(columns, pages, strict=True)
        }
        metadata = self.footer.row_group(group)
        # Where no column is wanted a batch is about as many rows as if all were.
        encoded = sum(one.whole_bytes for one in pages) or metadata.total_byte_size
        wide = sum(one.value_bytes for one in pages if one.value_bytes >= _WIDE_VALUE_BYTES)
        row_bytes = max(wide, encoded / max(1, metadata.num_rows))
        total = sum(held.values())
        peak = total + max(held.values(), default=0)
        return GroupPages(held, row_bytes, metadata.num_rows, metadata.total_byte_size, total, peak)

    def columns(self, group: int, columns: Sequence[str], rows: int) -> ColumnStream:
        """Return some columns of a row group in batches of so many rows; another stream of the columns ends with it."""
        if self._file.is_fetched:
            self.fetch(group, columns)
        decoded = self._decoded(group, columns)
        names = decoded.names
        others = [name for name in columns if name not in names] if len(names) < len(columns) else []
        if others:
            chosen = self._chosen_of(group)
            self.fetch(group, [name for name in others if chosen.pop(name, None) is not None])  # pyarrow reads all
            self._file.library_path(group)  # what was fetched is not there twice while pyarrow reads it
        streams: list[ColumnStream] = []
        if names:
            reader = self.reader(names, len(columns))
            reader.begin(self.source(group), decoded)
            streams.append(DecodedColumns(reader, self.row_count(group), rows))
        if others or not columns:
            streams.append(ArrowColumns(self._checked(group, others, self._arrow_batches(group, others, rows)), rows))
        return streams[0] if len(streams) == 1 else JoinedStreams(streams, columns)

    def source(self, group: int) -> int | FetchedBytes:
        """Return the place that readers of a row group begin at."""
        return self._file.source(group)

    def plans(self, looked_at: Sequence[str], others: Sequence[str]) -> dict[int, GroupPlan | None]:
        """Return the known plans of row groups whose columns these are, to be added to; see ``plan``."""
        known = self._known.plans
        if len(known) > _PLANS_MAX:
            known.clear()
        return known.setdefault((self._widths_of(tuple(looked_at)), self._widths_of(tuple(others))), {})

    def plan(self, group: int, looked_at: Sequence[str], others: Sequence[str]) -> GroupPlan | None:
        """Return the plan for a look at a row group of this machine; None: some column is not decoded here."""
        pages = self.pages(group, self._columns)
        decoded = self._decoded(group, looked_at)
        beside = self._decoded(group, others) if others else None
        if decoded.names != tuple(looked_at) or (beside is not None and beside.names != tuple(others)):
            return None
        return GroupPlan(pages, decoded, beside)

    def reader(self, columns: tuple[str, ...], column_count: int) -> GroupReader:
        """Return the reader of some columns, out of so many, with the memory that it took for another row group."""
        reader = self._readers.get(columns)
        if reader is None:
            schema = self._forms.schemas.get(columns)
            if schema is None:
                schema = pa.schema([pa.field(name, self.types[name]) for name in columns])
                self._forms.schemas[columns] = schema
            reader = self._readers[columns] = GroupReader(schema, buffer_bytes(column_count))
        return reader

    def let_go(self) -> None:
        """Give back the memory that was taken for pages, and is kept for the next row group."""
        self._readers.clear()
        self._file.let_go()
        self._chosen.pop(self._file.current, None)
        let_rooms_go()

    def single_row(self, group: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the row of a row group that has one, read at once: no page of it is kept for later."""
        if any(self._has_differences(group, name) for name in columns):
            return iter(self.columns(group, columns, 1).read, None)
        self.fetch(group, columns)
        table = self._by_arrow(group).read_row_group(group, columns=list(columns), use_threads=False)
        return self._checked(group, columns, table.to_batches())

    def _arrow_batches(self, group: int, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        batches: Iterator[pa.RecordBatch] = self._by_arrow(group).iter_batches(
            rows, row_groups=[group], columns=list(columns), use_threads=False
        )
        return batches

    def _places_of(self, columns: tuple[str, ...]) -> list[tuple[str, int]]:
        """Return the leaves of columns, which are the same in all row groups."""
        places = self._leaf_places.get(columns)
        if places is None:
            places = self._leaf_places[columns] = leaf_places(self.footer.schema, columns)
        return places

    @cached_property
    def _leaves(self) -> dict[str, int]:
        known = self._known.leaves
        if not known:
            known.update(flat_leaves(self.footer.schema))
        return known

    def _stored_values(self, leaf: int, wanted: pa.DataType) -> Stored | None:
        known, key = self._known.stored, (leaf, wanted)
        if key not in known:
            known[key] = stored_values(self.footer.schema.column(leaf), wanted)
        return known[key]

    def _decoded(self, group: int, columns: Sequence[str]) -> GroupChunks:
        """Return the columns that are decoded here, in order."""
        names = tuple(columns)
        widths = self._widths_of(names)
        known = (self._known_of(group) if self._chosen else self._known).decoded
        found = known.get((group, widths))
        if found is None:
            chunks = ((name, self._stored(group, name)) for name in names)
            found = known[group, widths] = GroupChunks({name: chunk for name, chunk in chunks if chunk is not None})
        return found

    def _widths_of(self, names: tuple[str, ...]) -> Widths:
        widths = self._forms.widths.get(names)
        if widths is None:
            widths = self._forms.widths[names] = tuple((name, self._width(name)) for name in names)
        return widths

    def _width(self, name: str) -> int:
        values = self._forms.values[name]
        return -1 if values is None else values.width

    def _stored(self, group: int, name: str) -> StoredChunk | None:
        """Return the chunk of a column that is decoded here, None for others."""
        values = self._forms.values[name]
        key = (group, name, self._width(name))
        known = self._known_of(group).chunks
        if key not in known:
            self.pages(group, self._columns)  # knows those of the column
            pages = self._known_of(group).pages[group, name]
            known[key] = None if values is None else stored_chunk(self.footer, group, self._leaves[name], values, pages)
        return known[key]

    def _checked(
        self, group: int, columns: Sequence[str], batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a row group; pa.ArrowInvalid where they are not all of it, or cannot be decoded."""
        rows_left = self.row_count(group)
        remaining = iter(batches)
        while True:
            try:
                batch = next(remaining, None)
            except (pa.ArrowInvalid, OSError) as error:
                if not columns or (isinstance(error, OSError) and error.errno is not None):
                    raise  # the system's, not about what is in a column
                name = self._failing(group, columns)
                row = self.row_count(group) - rows_left
                raise pa.ArrowInvalid(f"column {name!r}: {error}{self._writer(group, name, row)}") from error
            if batch is None:
                break
            rows_left -= batch.num_rows
            yield batch
            del batch  # a wide one is not kept while the next is read
        if rows_left:
            # Arrow passes over pages whose headers are damaged, and says nothing of the rows.
            raise pa.ArrowInvalid(f"row group {group} has {-rows_left:+} rows against what the file says of it")

    def _has_differences(self, group: int, name: str) -> bool:
        """Return whether integers of a column are stored as differences."""
        metadata = self.footer.row_group(group)
        return any(has_differences(metadata.column(leaf)) for _, leaf in self._places_of((name,)))

    def _writer(self, group: int, name: str, row: int) -> str:
        """Return the note about the writer of differences that pyarrow does not read."""
        writer = self.footer.created_by or ""
        if not self._has_differences(group, name):
            return ""
        place = f" in a page at or behind row {row} of the row group, written by {writer or 'an unknown program'}"
        if not writer.startswith("DuckDB"):
            return place
        return (
            f"{place}: it stores INT32 values that are far apart as differences of more than 32 bits, which Parquet"
            " does not allow, and within lists and structs they are not read; write the file with PARQUET_VERSION V1"
        )

    def _failing(self, group: int, columns: Sequence[str]) -> str:
        """Return the first of some columns that pyarrow cannot decode by itself; the last one where it can all."""
        for name in columns[:-1]:
            try:
                for batch in self._arrow_batches(group, [name], _LOOKED_AT_ROWS):
                    del batch
            except (pa.ArrowInvalid, OSError):
                return name
        return columns[-1]

    def close(self) -> None:
        """Close the file; it may be closed already."""
        if self._arrow is not None:
            self._arrow.close()
            self._arrow = None
        self._readers.clear()
        self._file.close()


class OpenFiles:
    """Files open for some columns until the end of a block; a few, since all of them are open at the same time."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = columns
        self._files: dict[str, OpenFile] = {}

    def of(self, path: str) -> OpenFile:
        """Return the file, opened now if it was not before. Raises what opening it does."""
        if path not in self._files:
            self._files[path] = OpenFile(path, self._columns)
        return self._files[path]

    def __enter__(self) -> Self:
        """Return the files."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close them."""
        for file in self._files.values():
            file.close()
