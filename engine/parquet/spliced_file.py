"""SplicedFile: a Parquet file in the place of another one, of which most columns of most row groups are as they were.

    file = SplicedFile(former, path, schema)
    file.copy(group)                             its bytes, as they lie there
    file.write(group, {"x": change, ...})        some columns as ``change`` returns them, the others are copied
    file.finish() -> bytes; file.footer

What is copied is neither decompressed nor decoded. A column that changes is read whole, changed and encoded, one after
the other, with the codec that it had. A row group has the rows that it had, unless all of its columns change.

Indexes of pages and Bloom filters of the former file are left out. A column is encoded as ``schema`` says, and must
come out as the former file has it (``differing``): one footer describes both.

Held by: tests/parquet/test_spliced_file.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from engine.files.native_files import native_output
from engine.parquet.column_forms import KnownColumns
from engine.parquet.footer_fields import I64, LIST, STRUCT, Field, Struct, fields_of, file_end, footer_of
from engine.parquet.footers import arrow_schema, coded_columns, open_file, opened_ranges, read_footer
from engine.storage.file_systems import file_system_of

_MAGIC: Final = b"PAR1"
#: bytes that are copied at once
_STEP_BYTES: Final = 1 << 20
#: bytes of a column that are read at once
_BUFFER_BYTES: Final = 256 << 10
#: rows that tell whether a column gets a dictionary
_TELLING_ROWS: Final = 1 << 13
#: numbers of fields: of a footer, a row group, a chunk and its description, an element of the schema
_SCHEMA, _ROWS, _GROUPS = 2, 3, 4
_G_COLUMNS, _G_BYTES, _G_ROWS, _G_SORTING, _G_OFFSET, _G_COMPRESSED, _G_ORDINAL = range(1, 8)
_C_FILE, _C_OFFSET, _C_META, _C_CRYPTO = 1, 2, 3, 8
_M_PATH, _M_UNCOMPRESSED, _M_COMPRESSED, _M_DATA, _M_INDEX, _M_DICTIONARY = 3, 6, 7, 9, 10, 11
_M_BLOOM: Final = (14, 15)
_E_NAME, _E_CHILDREN, _E_ID, _E_REPETITION = 4, 5, 9, 3

Change = Callable[[pa.Array], pa.Array]


class SplicedFile:
    """See the module's text. Thread: the task's."""

    def __init__(self, former: str, path: str, schema: pa.Schema) -> None:
        self.former = read_footer(former)
        self._fields = fields_of(self.former)
        self._elements = _columns_of(self._fields)
        self._schema = pa.schema([self._as_there(field) for field in schema])
        #: columns of the schema that the former file has not, or otherwise
        self.differing = frozenset(field.name for field in self._schema if not self._is_alike(field))
        if any(_C_FILE in chunk or _C_CRYPTO in chunk for group in self._former_groups for chunk in _chunks(group)):
            self.differing = frozenset(self._schema.names)
        self._known = {field.name: KnownColumns(pa.schema([field])) for field in self._schema}
        self._ranges = opened_ranges(former)
        coded = coded_columns(self.former, self._schema.names)
        self._reader: pq.ParquetFile = open_file(former, _BUFFER_BYTES, self.former, coded)
        self._path, self._file = path, native_output(path)
        self._position = 0
        self._groups: list[Struct] = []
        #: footer of the finished file
        self.footer: pq.FileMetaData | None = None
        self._put([_MAGIC])

    @property
    def columns(self) -> list[str]:
        """The columns of the former file."""
        return list(self._elements)

    def bytes_of(self, group: int, name: str) -> int:
        """Return the bytes of a column in a row group, decompressed."""
        chunks = self.former.row_group(group)
        return sum(chunks.column(leaf).total_uncompressed_size for leaf in self._leaves(name))

    def copy(self, group: int) -> None:
        """Append a row group as it is."""
        self.write(group, {})

    def write(self, group: int, changes: Mapping[str, Change]) -> None:
        """Append a row group with some columns as they are returned."""
        made: Struct = dict(self._former_groups[group])
        chunks: list[Struct] = []
        rows: int = made[_G_ROWS].value
        for name in self._elements:
            if name in changes:
                column = self._changed(group, name, changes[name])
                rows = len(column)
                if not rows:
                    return  # so have all others
                chunks += self._encoded(group, name, column)
                del column
            else:
                chunks += [self._copied(_chunks(self._former_groups[group])[leaf]) for leaf in self._leaves(name)]
        metas = [chunk[_C_META].value for chunk in chunks]
        assert rows == made[_G_ROWS].value or len(changes) == len(self._elements), "rows of some columns are gone"
        made[_G_COLUMNS] = Field(LIST, (STRUCT, chunks))
        made[_G_BYTES] = Field(I64, sum(meta[_M_UNCOMPRESSED].value for meta in metas))
        made[_G_ROWS] = Field(I64, rows)
        made[_G_COMPRESSED] = Field(I64, sum(meta[_M_COMPRESSED].value for meta in metas))
        made[_G_OFFSET] = Field(I64, _start(metas[0]) if metas else self._position)
        made.pop(_G_ORDINAL, None)
        if rows != self._former_groups[group][_G_ROWS].value or changes:
            made.pop(_G_SORTING, None)
        self._groups.append(made)

    def finish(self) -> int:
        """Complete the file; return its bytes."""
        fields = dict(self._fields)
        fields[_ROWS] = Field(I64, sum(group[_G_ROWS].value for group in self._groups))
        fields[_GROUPS] = Field(LIST, (STRUCT, self._groups))
        self._put([file_end(fields)])
        self.footer = footer_of(fields)
        self._file.close()
        self._close_former()
        return self._position

    def abort(self) -> None:
        """Close and remove the file; does nothing after ``finish``."""
        self._close_former()
        if not self._file.closed:
            self._file.close()
            file_system_of(self._path).delete(self._path)

    def _close_former(self) -> None:
        self._reader.close()
        self._ranges.close()

    @property
    def _former_groups(self) -> list[Struct]:
        found: list[Struct] = self._fields[_GROUPS].value[1]
        return found

    def _leaves(self, name: str) -> range:
        start = 0
        for column, elements in self._elements.items():
            count = sum(not _child_count(each) for each in elements)
            if column == name:
                return range(start, start + count)
            start += count
        raise KeyError(name)

    # ---- columns that are copied

    def _copied(self, chunk: Struct) -> Struct:
        meta = chunk[_C_META].value
        start, end = _start(meta), _start(meta) + meta[_M_COMPRESSED].value
        steps = range(start, end, _STEP_BYTES)
        position = self._put(self._ranges.read_at(step, min(_STEP_BYTES, end - step)) for step in steps)
        return _moved(meta, position - start)

    # ---- columns that change

    def _as_there(self, field: pa.Field) -> pa.Field:
        """Return a field that may be null where it may be in the former file."""
        elements = self._elements.get(field.name)
        is_required = elements is not None and elements[0][_E_REPETITION].value == 0
        return field.with_nullable(not is_required)

    def _is_alike(self, field: pa.Field) -> bool:
        """Return whether the former file has a column as it is encoded here."""
        there = self._elements.get(field.name)
        found = None if there is None else arrow_schema(self.former).field(field.name).type
        if there is None or (pa.types.is_nested(field.type) and field.type != found):
            return False
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(sink, pa.schema([field]), store_schema=False):
            pass
        made = _columns_of(fields_of(pq.read_metadata(pa.BufferReader(sink.getvalue()))))
        return _shapes(made[field.name]) == _shapes(there)

    def _changed(self, group: int, name: str, change: Change) -> pa.Array:
        field = self._schema.field(name)
        found = self._reader.read_row_group(group, columns=[name], use_threads=False).column(name)
        if pa.types.is_dictionary(found.type):
            return change(_joined(found.unify_dictionaries()))
        return change(_joined(found if found.type == field.type else found.cast(field.type)))

    def _encoded(self, group: int, name: str, column: pa.Array) -> Iterator[Struct]:
        field = self._schema.field(name).with_type(column.type)
        codec = self.former.row_group(group).column(self._leaves(name)[0]).compression
        sink = pa.BufferOutputStream()
        is_coded = pa.types.is_dictionary(column.type)
        plain = column.dictionary if is_coded else column.slice(0, _TELLING_ROWS)
        forms = self._known[name].forms(pa.RecordBatch.from_arrays([plain], names=[name]), frozenset())
        with pq.ParquetWriter(
            sink,
            pa.schema([field]),
            compression="none" if codec == "UNCOMPRESSED" or forms.huge else codec.removesuffix("_RAW"),
            use_dictionary=is_coded or forms.dictionaries,
            write_statistics=forms.statistics,
            write_page_index=False,
            store_schema=False,
            write_batch_size=forms.values_at_once,
        ) as writer:
            writer.write_table(pa.table([column], schema=pa.schema([field])), row_group_size=len(column))
        made = sink.getvalue()
        (found,) = fields_of(pq.read_metadata(pa.BufferReader(made)))[_GROUPS].value[1]
        for leaf, chunk in zip(self._leaves(name), _chunks(found), strict=True):
            meta = dict(chunk[_C_META].value)
            meta[_M_PATH] = _chunks(self._former_groups[group])[leaf][_C_META].value[_M_PATH]
            start = _start(meta)
            yield _moved(meta, self._put([made[start : start + meta[_M_COMPRESSED].value]]) - start)

    def _put(self, parts: Any) -> int:
        """Append bytes; return where they begin."""
        start = self._position
        for part in parts:
            self._file.write(part)
            self._position += len(part)
        return start


def _joined(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    if isinstance(found, pa.ChunkedArray):  # of no chunk, or of texts of more than 2 GB
        return found.chunk(0) if found.num_chunks == 1 else pa.concat_arrays(found.chunks)
    return found


def _chunks(group: Struct) -> list[Struct]:
    found: list[Struct] = group[_G_COLUMNS].value[1]
    return found


def _start(meta: Struct) -> int:
    """Return the first byte of a chunk."""
    dictionary = meta.get(_M_DICTIONARY)
    data: int = meta[_M_DATA].value
    return min(dictionary.value, data) if dictionary is not None and dictionary.value > 0 else data


def _moved(meta: Struct, by: int) -> Struct:
    """Return a chunk with its bytes elsewhere."""
    moved = {number: field for number, field in meta.items() if number not in _M_BLOOM}
    for number in (_M_DATA, _M_INDEX, _M_DICTIONARY):
        if number in moved and moved[number].value > 0:
            moved[number] = Field(I64, moved[number].value + by)
    return {_C_OFFSET: Field(I64, 0), _C_META: Field(STRUCT, moved)}


def _columns_of(fields: Struct) -> dict[str, list[Struct]]:
    """Return the elements of the schema of each column, those of nested ones in their order."""
    root, *others = fields[_SCHEMA].value[1]
    left = iter(others)

    def next_column() -> list[Struct]:
        element = next(left)
        return [element, *(inner for _ in range(_child_count(element)) for inner in next_column())]

    columns = [next_column() for _ in range(_child_count(root))]
    return {column[0][_E_NAME].value.decode(): column for column in columns}


def _child_count(element: Struct) -> int:
    return element[_E_CHILDREN].value if _E_CHILDREN in element else 0


def _shapes(elements: Sequence[Struct]) -> list[Struct]:
    """Return the form of values: elements without ids, and names, which writers differ in within lists."""
    return [{number: field for number, field in each.items() if number not in (_E_ID, _E_NAME)} for each in elements]
