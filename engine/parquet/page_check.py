"""Whether the pages of a row group can be as large as their headers say, before they are read.

    check_pages(path, metadata, group, columns)     pa.ArrowInvalid names row group, column, and the page by its place

The footer says how many bytes the pages of a column have together, compressed and not; how much a codec can make of a
byte is known. What a page says beyond that is damage, and Arrow would allocate it first.

Limits: a file whose footer and page are damaged alike is not told from a sound one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from engine.parquet.page_sizes import bad_page
from engine.parquet.pages import first_page
from engine.parquet.residence import chunks_of

#: bytes that codecs make of one at most; the others know no such limit
_EXPANSIONS: Final = {"UNCOMPRESSED": 1, "SNAPPY": 22, "LZ4": 256, "GZIP": 1033}
#: bytes by which old writers forgot the header of the dictionary; Arrow reads on for them
_FORGOTTEN_BYTES: Final = 100
#: a page of so few bytes does no harm, whatever some writer put into the footer
_SIZE_HARMLESS: Final = 1 << 20


def check_pages(path: str, metadata: pq.FileMetaData, group: int, columns: Sequence[str]) -> None:
    """Raise pa.ArrowInvalid where a page of these columns cannot be what it says."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        for _, chunk in chunks_of(metadata, group, columns):
            begin = first_page(chunk)
            total = max(chunk.total_uncompressed_size, chunk.total_compressed_size)
            found = bad_page(
                descriptor,
                begin,
                begin + chunk.total_compressed_size + _FORGOTTEN_BYTES,
                chunk.num_values,
                max(total, _SIZE_HARMLESS),
                _EXPANSIONS.get(chunk.compression, 0),
            )
            if found is not None:
                position, what, count = found
                raise pa.ArrowInvalid(
                    f"row group {group}, column {chunk.path_in_schema}: the page at byte {position} is damaged: "
                    f"it says that it has {count} {what}, the column has {chunk.total_compressed_size} compressed "
                    f"bytes of {chunk.total_uncompressed_size}"
                )
    finally:
        os.close(descriptor)
