"""How much memory the reading of a row group takes, column by column, before it begins.

    held_bytes(path, metadata, group, columns) -> {column: bytes}            what is there while its batches are made
    parts(columns, bytes, limit) -> lists of columns                         each about within a limit, never empty

While a row group is read, each of its columns holds a part of the file, one page, and its dictionary. A page may be as
large as the column is in the row group, so the first ones say how large they are: the second field of their headers.

A row group of hundreds of columns holds hundreds of pages, and a dictionary takes about three times its page: the
bytes, a copy of them, a place for each value.

Limits: pages of a column are taken to be as large as the first one.
Source: parquet-format, PageHeader (``compact_protocol``).
Held by: tests/parquet/test_column_passes.py
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from engine.parquet.compact_protocol import CompactReader

#: bytes of the file that are read at a time for all columns together, and for one
BUFFERS_BYTES: Final = 1 << 20
BUFFER_MAX: Final = 256 << 10
BUFFER_MIN: Final = 32 << 10
_DICTIONARY_COPIES: Final = 3
#: the first three fields of a header take less
_HEADER_BYTES: Final = 64
_SIZE_FIELD: Final = 2


def buffer_bytes(column_count: int) -> int:
    """Return how much of the file to read at a time for each of so many columns."""
    return max(BUFFER_MIN, min(BUFFER_MAX, BUFFERS_BYTES // max(1, column_count)))


def chunks_of(
    metadata: pq.FileMetaData, group: int, columns: Iterable[str]
) -> Iterator[tuple[str, pq.ColumnChunkMetaData]]:
    """Yield the leaf columns of a row group, each with the name of the wanted column that it belongs to."""
    wanted = set(columns)
    chunks = metadata.row_group(group)
    for index in range(chunks.num_columns):
        chunk = chunks.column(index)
        name = chunk.path_in_schema.partition(".")[0]
        if name in wanted:
            yield name, chunk


def held_bytes(path: str, metadata: pq.FileMetaData, group: int, columns: Sequence[str]) -> dict[str, int]:
    """Return for each column what is held of it while the row group is read."""
    sizes = dict.fromkeys(columns, 0)
    buffer = buffer_bytes(len(columns))
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        for name, chunk in chunks_of(metadata, group, columns):
            whole = chunk.total_uncompressed_size
            dictionary = 0
            if chunk.has_dictionary_page:
                dictionary = _page_bytes(descriptor, chunk.dictionary_page_offset) or whole
            page = _page_bytes(descriptor, chunk.data_page_offset) or whole
            sizes[name] += min(chunk.total_compressed_size, buffer)
            sizes[name] += min(whole, dictionary) * _DICTIONARY_COPIES + min(whole, page)
    finally:
        os.close(descriptor)
    return sizes


def parts(columns: Sequence[str], sizes: Mapping[str, int], limit_bytes: int) -> list[list[str]]:
    """Divide columns, in order, into parts within a limit; a column that is larger is a part of its own."""
    divided: list[list[str]] = []
    room = 0
    for name in columns:
        if not divided or sizes[name] > room:
            divided.append([])
            room = limit_bytes
        divided[-1].append(name)
        room -= sizes[name]
    return divided


def _page_bytes(descriptor: int, offset: int | None) -> int | None:
    """Return the size of a page before compression; None where its header is not as expected."""
    if offset is None or offset < 0:
        return None
    header = CompactReader(os.pread(descriptor, _HEADER_BYTES, offset))
    try:
        size = next((value for number, value in header.fields() if number == _SIZE_FIELD), None)
    except (IndexError, pa.ArrowInvalid):
        return None
    return size if isinstance(size, int) and size >= 0 else None
