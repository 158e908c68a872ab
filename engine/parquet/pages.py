"""The pages of a row group: whether they can be what their headers say, and what reading them holds.

    pages_of(path, metadata, group, columns) -> {column: Pages}    sound ones; ``pages_at`` of an open file
        .held_bytes(buffer)    of the column, while batches of the row group are made and so much is read at a time
        .value_bytes           of a value in its dictionary, on average
        .whole_bytes           before compression
    check_fits(path, group, held, limit, is_at_once=...)           MemoryBudgetError for a column that is too large
    parts(columns, held, limit) -> lists of columns                each about within a limit, never empty

While a row group is read, each of its columns holds a part of the file, one page, and its dictionary. A dictionary
takes about three times its page: the bytes, a copy of them, a place for each value. A row group of hundreds of columns
holds hundreds of pages.

pyarrow reads a page whole, into memory of the size that its header names, before its bytes show whether that is right.
The footer says how many bytes the pages of a column have together, compressed and not; how much a codec can make of a
byte is known. What a header says beyond that is damage: pages_of raises pa.ArrowInvalid, which names row group, column,
and the page by its place.

Limits: a file whose footer and page are damaged alike is not told from a sound one.
Source: parquet-format, PageHeader (``page_sizes``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from engine.config.sizes import format_size
from engine.errors import MemoryBudgetError
from engine.parquet.fetched_bytes import FetchedBytes
from engine.parquet.page_sizes import page_sizes
from engine.storage.file_systems import file_system_of

#: bytes of the file that are read at a time for all columns together, and for one
BUFFERS_BYTES: Final = 1 << 20
BUFFER_MAX: Final = 256 << 10
BUFFER_MIN: Final = 32 << 10
_DICTIONARY_COPIES: Final = 3
#: bytes that codecs make of one at most; the others know no such limit
_EXPANSIONS: Final = {"UNCOMPRESSED": 1, "SNAPPY": 22, "LZ4": 256, "GZIP": 1033}
#: bytes by which old writers forgot the header of the dictionary; Arrow reads on for them
FORGOTTEN_BYTES: Final = 100
#: a page of so few bytes does no harm, whatever some writer put into the footer
_SIZE_HARMLESS: Final = 1 << 20


class Pages(NamedTuple):
    """The pages of a column in a row group; for a nested column, of each of its leaves."""

    #: bytes in the file of each leaf, and of a page that is read whole before it is opened
    read: tuple[tuple[int, int], ...] = ()
    #: pages and dictionaries
    opened_bytes: int = 0
    value_bytes: float = 0.0
    whole_bytes: int = 0

    def held_bytes(self, buffer: int) -> int:
        """Return the bytes held while batches are decoded and ``buffer`` bytes of the file are read at a time."""
        return self.opened_bytes + sum(min(stored, max(buffer, page)) for stored, page in self.read)

    @property
    def stored_bytes(self) -> int:
        """The bytes in the file."""
        return sum(stored for stored, _ in self.read)

    def with_leaf(self, leaf: Pages) -> Pages:
        """Return the pages of the column with one more leaf."""
        return Pages(
            self.read + leaf.read,
            self.opened_bytes + leaf.opened_bytes,
            self.value_bytes + leaf.value_bytes,
            self.whole_bytes + leaf.whole_bytes,
        )


def buffer_bytes(column_count: int) -> int:
    """Return the number of bytes of the file to read at a time for each of so many columns."""
    return max(BUFFER_MIN, min(BUFFER_MAX, BUFFERS_BYTES // max(1, column_count)))


def first_page(chunk: pq.ColumnChunkMetaData) -> int:
    """Return the position of a column's first page."""
    offset: int = chunk.data_page_offset
    dictionary: int | None = chunk.dictionary_page_offset if chunk.has_dictionary_page else None
    return min(offset, dictionary) if dictionary else offset


def chunk_range(chunk: pq.ColumnChunkMetaData) -> tuple[int, int]:
    """Return the begin of a column's pages in the file, and the end of the bytes that are read."""
    begin = first_page(chunk)
    return begin, begin + chunk.total_compressed_size + FORGOTTEN_BYTES


def flat_leaves(schema: pq.ParquetSchema) -> dict[str, int]:
    """Return the top-level columns that are leaves and have unique names, by name.

    The path of a nested leaf is longer than its name: ``a.b`` may be both, a column and the field b of a column a.
    """
    leaves = [schema.column(leaf) for leaf in range(len(schema))]
    names = Counter(leaf.name for leaf in leaves if leaf.path == leaf.name)
    return {leaf.name: place for place, leaf in enumerate(leaves) if leaf.path == leaf.name and names[leaf.name] == 1}


def leaf_places(schema: pq.ParquetSchema, columns: Iterable[str]) -> list[tuple[str, int]]:
    """Return the leaf columns of the wanted ones: the name of the wanted one, the number of the leaf."""
    wanted = set(columns)
    places = []
    for leaf in range(len(schema)):
        path: str = schema.column(leaf).path
        name = path if path == schema.column(leaf).name else path.partition(".")[0]
        if name in wanted:
            places.append((name, leaf))
    return places


def pages_of(path: str, metadata: pq.FileMetaData, group: int, columns: Sequence[str]) -> dict[str, Pages]:
    """Return the pages of columns in a row group; pa.ArrowInvalid where a page's header cannot be right."""
    with file_system_of(path).open_ranges(path) as file:
        return pages_at(file.descriptor, metadata, group, columns, leaf_places(metadata.schema, columns))


def pages_at(
    source: int | FetchedBytes,
    metadata: pq.FileMetaData,
    group: int,
    columns: Sequence[str],
    places: Sequence[tuple[str, int]],
) -> dict[str, Pages]:
    """Return pages as ``pages_of`` does, for an open file with known ``leaf_places`` of the columns."""
    found = dict.fromkeys(columns, Pages())
    chunks = metadata.row_group(group)
    for name, leaf in places:
        found[name] = found[name].with_leaf(leaf_pages(source, chunks.column(leaf), group))
    return found


def leaf_pages(source: int | FetchedBytes, chunk: pq.ColumnChunkMetaData, group: int) -> Pages:
    """Return the pages of a leaf in a row group of an open file; raises as ``pages_of``."""
    (begin, end), compressed = chunk_range(chunk), chunk.total_compressed_size
    whole = chunk.total_uncompressed_size
    largest = max(whole, compressed, _SIZE_HARMLESS)
    sizes = page_sizes(source, begin, end, chunk.num_values, largest, _EXPANSIONS.get(chunk.compression, 0))
    if sizes.bad_size:
        raise pa.ArrowInvalid(
            f"row group {group}, column {chunk.path_in_schema}: the page at byte {sizes.position} is damaged: "
            f"it says that it has {sizes.bad_count} {sizes.bad_size}, the column has {compressed} compressed "
            f"bytes of {whole}"
        )
    page = sizes.page_bytes if sizes.is_complete else whole
    read_whole = 0 if chunk.compression == "UNCOMPRESSED" else sizes.compressed_bytes
    opened = min(whole, sizes.dictionary_bytes) * _DICTIONARY_COPIES + min(whole, page)
    value = sizes.dictionary_bytes / max(1, sizes.dictionary_values)
    return Pages(((compressed, read_whole),), opened, value, whole)


def check_fits(path: str, group: int, held: Mapping[str, int], limit_bytes: int, *, is_at_once: bool) -> None:
    """Raise MemoryBudgetError where reading a column alone, or all of them at once, holds more than there is."""
    total = sum(held.values())
    if total <= limit_bytes:
        return
    name = max(held, key=lambda column: held[column], default="")
    wanted = total if is_at_once else held.get(name, 0)
    if wanted > limit_bytes:
        raise MemoryBudgetError(
            f"file {path}, row group {group}, column {name!r}: reading it takes {format_size(wanted)}, since pages"
            f" are read whole, and this process has {format_size(limit_bytes)} for that; raise"
            " taskmanager.memory.process.size, or write the file with smaller pages and no dictionary of wide values"
        )


def parts(columns: Sequence[str], held: Mapping[str, int], limit_bytes: int) -> list[list[str]]:
    """Divide columns, in order, into parts within a limit; a column that is larger is a part of its own."""
    divided: list[list[str]] = []
    room = 0
    for name in columns:
        if not divided or held[name] > room:
            divided.append([])
            room = limit_bytes
        divided[-1].append(name)
        room -= held[name]
    return divided
