"""Parquet files that are open, and their footers: one for all readers of a file in a process.

    file = open_file(path, buffer_bytes)             as all files are opened that pyarrow reads
    footer, coded = shared_footer(path, columns)     keep the footer as long as the file is open
    footer = read_footer(path)
    groups = known_groups(footer)                    what was found out about row groups, to be added to

A footer of a hundred row groups and twenty columns takes 1.6 MB decoded, seven times its bytes in the file, and 7 ms to
decode. It is shared while a reader holds it, and the last ones are kept for later readers: ``_KEPT_MAX`` of them,
which have no more bytes together than ``_kept_bytes_max`` says, and each no more than half of that. A file that has
changed since is another one. What readers find out about the pages of a file is kept with its footer:
``known_groups``. Of a table of five hundred row groups that is 0.1 s of a query, in which no other thread runs Python.

Texts that are numbers of a small dictionary in all row groups are read as such (``coded_columns``): Arrow takes ten
times as long to write them out one by one, and ``text_gather`` half of that. That is how they lie in the file, whatever
Arrow type its writer had them in: Rust's programs write views, Polars large strings.

Thread: any.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import weakref
from collections import OrderedDict
from collections.abc import Collection, Hashable, Sequence
from typing import Any, BinaryIO, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from engine.files.native_files import path_or_stream
from engine.memory.budget import Kind, process_budget
from engine.parquet.footer_check import check_footer
from engine.parquet.group_reader import GroupChunks, StoredChunk
from engine.parquet.page_index import IndexPlaces, index_places
from engine.parquet.pages import Pages, flat_leaves
from engine.parquet.stored_chunks import Stored
from engine.records.plain_types import plain_type
from engine.storage.file_system import NO_DESCRIPTOR, ByteRanges, FileStatus, RangeFile
from engine.storage.file_systems import file_system_of

#: path, inode, size and time of the last change
Key = tuple[str, Hashable]

_footers: Final[weakref.WeakValueDictionary[Key, pq.FileMetaData]] = weakref.WeakValueDictionary()
#: footers that are known by path, of the version that was read last
_latest: Final[weakref.WeakValueDictionary[str, pq.FileMetaData]] = weakref.WeakValueDictionary()
#: footers that are kept, and how many bytes of files all of them are in a small process and in a large one
_KEPT_MAX: Final = 64
_KEPT_BYTES_MIN: Final = 1 << 20
_KEPT_BYTES_MAX: Final = 8 << 20
#: bytes of files for each byte that a process has for batches, of which they take a ninth when they are decoded
_KEPT_PART: Final = 1 / 64
#: limit of entries of each kind, and of forms
_GROUPS_MAX: Final = 16384
_FORMS_MAX: Final = 256

_FOOTER_BUFFER_BYTES: Final = 64 << 10
#: last bytes of a file whose footer is not encrypted
_MAGIC: Final = b"PAR1"
#: length of the end of a file, which begins with the footer's length
_TAIL_BYTES: Final = 8
#: bytes of a dictionary in the file, and of a text's number in a row
_DICTIONARY_BYTES_MAX: Final = 8 << 10
_NUMBER_BYTES_MAX: Final = 1.25
#: rows of a row group, on average, in which so few texts come again often enough
_ROWS_MIN: Final = 4096


class GroupPages(NamedTuple):
    """The pages of some columns of a row group."""

    #: bytes held while a column is read, by column
    held: dict[str, int]
    #: bytes of a row in these columns before compression, or with the wide values of dictionaries
    row_bytes: float
    row_count: int
    #: bytes of all columns of the row group before compression
    group_bytes: int
    #: bytes held while all of these columns are read, and with that column twice that holds most
    held_bytes: int
    held_bytes_max: int


#: names of columns, and the widths of their values as they are decoded
Widths = tuple[tuple[str, int], ...]


class GroupPlan(NamedTuple):
    """The pages of a row group of which all columns are decoded here, and their columns as one look needs them."""

    pages: GroupPages
    #: the columns that are looked at first
    looked_at: GroupChunks
    others: GroupChunks | None


class KnownGroups(NamedTuple):
    """The known pages and chunks of row groups."""

    #: pages by row group, and columns that are read together
    together: dict[tuple[int, tuple[str, ...]], GroupPages]
    #: pages by row group and column
    pages: dict[tuple[int, str], Pages]
    #: chunks by row group, column, and whether it comes as numbers of texts
    chunks: dict[tuple[int, str, int], StoredChunk | None]
    #: the chunks that are decoded here, of columns that are read together, by row group and the columns' widths
    decoded: dict[tuple[int, Widths], GroupChunks]
    #: number of rows by row group
    row_counts: dict[int, int]
    #: plans by the columns that are looked at, and the others; by row group, None: there is none
    plans: dict[tuple[Widths, Widths], dict[int, GroupPlan | None]]
    #: leaves of flat columns by name
    leaves: dict[str, int]
    #: conversions of leaves to types; None: pyarrow does them
    stored: dict[tuple[int, pa.DataType], Stored | None]


def new_groups() -> KnownGroups:
    """Return the known row groups of a file of which nothing is known."""
    return KnownGroups({}, {}, {}, {}, {}, {}, {}, {})


class GroupBounds(NamedTuple):
    """The bounds of a column in each row group, by the footer; null where they are missing."""

    null_counts: pa.Array
    #: lowest values, of the column's own type; None: its bounds do not apply to Arrow's values
    lowest: pa.Array | None
    highest: pa.Array | None


class _Kept(NamedTuple):
    """A footer with what was found out about its file."""

    footer: pq.FileMetaData
    #: number that no other one has
    number: int
    #: the coded columns, by those that were asked for
    coded: dict[frozenset[str], list[str]]
    groups: KnownGroups
    #: bounds by column
    bounds: dict[str, GroupBounds]
    #: places of indexes of leaf columns, by row group
    places: dict[int, list[IndexPlaces]]
    #: types of all columns by those that are coded; None: as the footer alone says
    schemas: dict[frozenset[str] | None, pa.Schema]
    #: forms of columns and rows, by what readers want: one for all of them, and not to be changed
    forms: dict[Hashable, Any]


_numbers: Final = itertools.count()


def _kept_bytes_max() -> int:
    """Return the bytes of the kept footers."""
    return max(_KEPT_BYTES_MIN, min(_KEPT_BYTES_MAX, int(process_budget.limit(Kind.ARROW) * _KEPT_PART)))


def _new(footer: pq.FileMetaData) -> _Kept:
    return _Kept(footer, next(_numbers), {}, new_groups(), {}, {}, {}, {})


class _KeptFooters:
    """Footers that were read last, with what was found out about them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: guarded by: self._lock
        self._found: OrderedDict[Key, _Kept] = OrderedDict()
        #: the same by the footers' places in memory, which no other one has as long as they are kept
        self._by_footer: dict[int, _Kept] = {}
        #: bytes of all footers; guarded by: self._lock
        self._size_bytes = 0

    def keep(self, key: Key, footer: pq.FileMetaData) -> None:
        """Keep a footer, and let go of those that were used longest ago when there are too many."""
        with self._lock:
            if key not in self._found:
                self._found[key] = self._by_footer[id(footer)] = _new(footer)
                self._size_bytes += footer.serialized_size
            while len(self._found) > _KEPT_MAX or self._size_bytes > _kept_bytes_max():
                oldest = self._found.popitem(last=False)[1].footer
                del self._by_footer[id(oldest)]
                self._size_bytes -= oldest.serialized_size

    def coded_columns(self, key: Key, footer: pq.FileMetaData, columns: Collection[str]) -> list[str]:
        """Return the coded ones of some columns of a footer, whether it is kept or not."""
        asked = frozenset(columns)
        with self._lock:
            kept = self._found.get(key)
            if kept is not None:
                self._found.move_to_end(key)
                if asked in kept.coded:
                    return kept.coded[asked]
        coded = coded_columns(footer, columns)
        if kept is not None and len(kept.coded) < _KEPT_MAX:
            kept.coded[asked] = coded
        return coded

    def of(self, footer: pq.FileMetaData) -> _Kept:
        """Return the entry of a footer; an empty one where it is not kept."""
        return self._by_footer.get(id(footer)) or _new(footer)

    def found(self, footer: pq.FileMetaData) -> _Kept | None:
        """Return the entry of a footer; None where it is not kept."""
        return self._by_footer.get(id(footer))

    def groups_of(self, footer: pq.FileMetaData) -> KnownGroups:
        """Return the known row groups of a footer; a surplus is dropped, except for current readers."""
        groups = self.of(footer).groups
        if max(len(groups.together), len(groups.pages), len(groups.chunks), len(groups.decoded)) <= _GROUPS_MAX:
            return groups
        with self._lock:
            key = next((key for key, kept in self._found.items() if kept.groups is groups), None)
            if key is not None:
                self._found[key] = self._by_footer[id(footer)] = self._found[key]._replace(groups=new_groups())
        return self.of(footer).groups


_kept: Final = _KeptFooters()


def opened_ranges(path: str, status: FileStatus | None = None) -> RangeFile:
    """Open a Parquet file for ranges; its end with the same request, where its footer has not been read.

    status: of an object, as a plan found it.
    """
    return file_system_of(path).open_ranges(path, is_tail_wanted=path not in _latest, status=status)


def shared_footer(
    path: str, columns: Collection[str] = (), opened: RangeFile | None = None
) -> tuple[pq.FileMetaData, list[str]]:
    """Return the footer of a file, and which of some columns have few texts and come as Arrow's dictionaries.

    opened: the file, where it is open already.
    """
    files = file_system_of(path)
    if opened is None and files.objects is not None:
        with opened_ranges(path) as file:
            return shared_footer(path, columns, file)
    key = (path, files.status(path).version if opened is None else opened.version)
    footer = _footers.get(key)
    if footer is None:
        with open_file(path, _FOOTER_BUFFER_BYTES, opened=opened) as parquet:
            footer = _noted(key, parquet.metadata)
    return footer, _kept.coded_columns(key, footer, columns)


def _noted(key: Key, found: pq.FileMetaData) -> pq.FileMetaData:
    """Return the footer that all readers of a file have from now on."""
    footer = _latest[key[0]] = _footers.setdefault(key, found)
    if 2 * footer.serialized_size <= _kept_bytes_max():
        _kept.keep(key, footer)
    return footer


def known_groups(footer: pq.FileMetaData) -> KnownGroups:
    """Return the known row groups of a footer that ``shared_footer`` returned.

    What a reader adds is known to later ones where the footer is kept. A file with such a footer has not changed.
    """
    return _kept.groups_of(footer)


def kept_number(footer: pq.FileMetaData) -> int | None:
    """Return the number of a footer that is kept, which no other one has; None where it is not kept."""
    kept = _kept.found(footer)
    return None if kept is None else kept.number


def known_bounds(footer: pq.FileMetaData) -> dict[str, GroupBounds]:
    """Return the known bounds of columns in row groups of a footer; callers may add to them."""
    return _kept.of(footer).bounds


def known_places(footer: pq.FileMetaData) -> dict[int, list[IndexPlaces]]:
    """Return the known places of indexes of row groups; callers may add to them."""
    return _kept.of(footer).places


def known_schemas(footer: pq.FileMetaData) -> dict[frozenset[str] | None, pa.Schema]:
    """Return the types of all columns by those that are coded, to be added to as ``known_groups`` is."""
    return _kept.of(footer).schemas


def known_forms(footer: pq.FileMetaData) -> dict[Hashable, Any]:
    """Return the known forms of columns and rows of a footer, by what readers want; callers may add to them."""
    forms = _kept.of(footer).forms
    if len(forms) > _FORMS_MAX:
        forms.clear()
    return forms


def arrow_schema(footer: pq.FileMetaData) -> pa.Schema:
    """Return the types of a footer's columns, which are made of its bytes once."""
    known = known_schemas(footer)
    found = known.get(None)
    if found is None:
        found = known[None] = footer.schema.to_arrow_schema()
    return found


def read_footer(path: str) -> pq.FileMetaData:
    """Return the footer of a file that is not to be read yet. Raises what pyarrow does."""
    return shared_footer(path)[0]


def coded_columns(footer: pq.FileMetaData, columns: Collection[str]) -> list[str]:
    """Return the columns whose values are, in every row group, numbers of a small dictionary of texts."""
    if footer.num_row_groups == 0 or not columns:
        return []
    schema = arrow_schema(footer)
    groups = [footer.row_group(index) for index in range(footer.num_row_groups)]
    return [
        name
        for name, index in flat_leaves(footer.schema).items()
        if name in columns
        and _is_text(schema.field(name).type)
        and _are_coded([group.column(index) for group in groups])
    ]


def _is_text(data_type: pa.DataType) -> bool:
    return plain_type(data_type) in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


def _are_coded(chunks: Sequence[pq.ColumnChunkMetaData]) -> bool:
    # The last row group of a file may be a short one.
    return sum(chunk.num_values for chunk in chunks) >= _ROWS_MIN * len(chunks) and all(map(_is_coded, chunks))


def _is_coded(chunk: pq.ColumnChunkMetaData) -> bool:
    begin = chunk.dictionary_page_offset if chunk.has_dictionary_page else None
    return (
        begin is not None
        and 0 < chunk.data_page_offset - begin <= _DICTIONARY_BYTES_MAX
        # more is in it where a writer has given up its dictionary
        and chunk.total_uncompressed_size <= _DICTIONARY_BYTES_MAX + _NUMBER_BYTES_MAX * chunk.num_values
    )


def raw_footer(file: ByteRanges, bytes_max: int | None = None) -> bytes:
    """Return the bytes of an open file's footer; none where it is encrypted, damaged, or longer than ``bytes_max``."""
    size = file.size_bytes
    tail = file.read_at(max(0, size - _TAIL_BYTES), _TAIL_BYTES)
    room, footer_bytes = size - _TAIL_BYTES, int.from_bytes(tail[:4], "little")
    if not tail.endswith(_MAGIC) or footer_bytes > (room if bytes_max is None else min(room, bytes_max)):
        return b""
    return file.read_at(room - footer_bytes, footer_bytes)


def _check_footer(footer: bytes) -> None:
    """Raise pa.ArrowInvalid where pyarrow would end the process for what a footer says; the rest it finds itself."""
    try:
        check_footer(footer)
    except ValueError as error:
        raise pa.ArrowInvalid(f"its footer is damaged: {error}") from None


def open_file(
    path: str,
    buffer_bytes: int,
    footer: pq.FileMetaData | None = None,
    coded: Sequence[str] = (),
    opened: RangeFile | None = None,
) -> pq.ParquetFile:
    """Open a file with a buffer of so many bytes for each column, without reading a footer that is known.

    The 96-bit timestamps that Spark writes by default are microseconds there: in Arrow's nanoseconds the years from
    1677 to 2262 have room, and others came as one of these. A UUID comes as its 16 bytes, JSON as its text: with types
    of their own neither could be a key.
    """
    if footer is not None:
        return _opened(path_or_stream(path), buffer_bytes, footer, coded)
    with opened_ranges(path) if opened is None else contextlib.nullcontext(opened) as file:
        raw = raw_footer(file)
        _check_footer(raw)
        if file.descriptor == NO_DESCRIPTOR:
            parquet = _opened(pa.BufferReader(_alone(raw, file)), buffer_bytes, None, coded)
            _note_places(_noted((path, file.version), parquet.metadata), raw)
            return parquet
    return _opened(path_or_stream(path), buffer_bytes, None, coded)


def _note_places(footer: pq.FileMetaData, raw: bytes) -> None:
    """Keep the places of indexes, which would take another request to be found out."""
    places = known_places(footer)
    if not places:
        with contextlib.suppress(ValueError):
            places.update(enumerate(index_places(raw)))


def _alone(raw: bytes, file: ByteRanges) -> bytes:
    """Return a footer as a file of its own, without pages; where there is none, the end of the file, to be refused."""
    if not raw:
        return file.read_at(max(0, file.size_bytes - _FOOTER_BUFFER_BYTES), _FOOTER_BUFFER_BYTES)
    return b"".join((_MAGIC, raw, len(raw).to_bytes(4, "little"), _MAGIC))


def open_bytes(data: bytes) -> pq.ParquetFile:
    """Open a file of which all bytes are here, as ``open_file`` does."""
    room, size = len(data) - _TAIL_BYTES, int.from_bytes(data[-_TAIL_BYTES : -len(_MAGIC)], "little")
    _check_footer(data[room - size : room] if data.endswith(_MAGIC) and 0 <= size <= room else b"")
    return _opened(pa.BufferReader(data), 0, None, ())


def _opened(
    source: str | BinaryIO | pa.BufferReader, buffer_bytes: int, footer: pq.FileMetaData | None, coded: Sequence[str]
) -> pq.ParquetFile:
    # Left to itself pyarrow reads the columns of a row group whole, for a few rows of a sample.
    # Checksums of pages are looked at where there are any: in record data sets, and in what Spark writes.
    return pq.ParquetFile(
        source,
        metadata=footer,
        read_dictionary=coded or None,
        memory_map=False,
        pre_buffer=False,
        buffer_size=buffer_bytes,
        page_checksum_verification=True,
        coerce_int96_timestamp_unit="us",
        arrow_extensions_enabled=False,
    )
