"""Page sizes in the headers of a Parquet column's pages, read before memory is reserved for it.

    page_sizes(source, position, end, value_count, size_max, expansion) ──► PageSizes

    header ─► sizes ─► sound? ─► the next header lies behind the page ...      until the column's values are there

A page is read into memory of the size that its header names, before its bytes show whether that is right; a flipped bit
in it is a gigabyte. Of each page the first bytes are read, and parsed without the GIL: some 3 us a page.

Limits: a header that does not end within HEADER_BYTES_MAX, or is none at all, is left to Arrow.
Source: parquet-format, PageHeader (``page_header``).
Held by: tests/parquet/test_pages.py
"""

from typing import NamedTuple

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc

from engine.parquet.fetched_bytes cimport FetchedBytes, Parts, read_bytes
from engine.parquet.page_header cimport PAGE_DICTIONARY, PageHeader, parse_page_header

cdef enum:
    HEADER_BYTES = 512
    HEADER_BYTES_MAX = 16 << 10
    EXPANSION_ADDED = 64        # bytes of a frame around what is compressed


cdef int64_t read_header(int descriptor, const Parts* parts, int64_t position, uint8_t* memory, int64_t room,
                         PageHeader* header) noexcept nogil:
    """Read a header; returns how many bytes it has, 0 when it does not end within the room."""
    return parse_page_header(memory, read_bytes(descriptor, parts, memory, room, position), header)


class PageSizes(NamedTuple):
    """The largest page, as it is and compressed, and the dictionary of a column; or what cannot be right."""

    page_bytes: int
    compressed_bytes: int
    dictionary_bytes: int
    dictionary_values: int
    is_complete: bool            # False: a header could not be read, and those behind it neither
    position: int                # where the last header that was read begins
    bad_size: str                # which of its sizes cannot be right, "": all are sound
    bad_count: int


def page_sizes(source not None, int64_t position, int64_t end, int64_t value_count, int64_t size_max,
               int64_t expansion):
    """Return the sizes of a column's pages, up to the first that cannot be right.

    Args:
        source: descriptor of the file, or what was fetched of it.
        position, end: of the column's pages in the file, bytes.
        value_count: of the column; pages behind the last value are not looked at.
        size_max: no page of the column has more bytes.
        expansion: nor so many times its compressed ones and EXPANSION_ADDED more, 0: the codec knows no such limit.
    """
    cdef int descriptor = source if isinstance(source, int) else -1
    cdef const Parts* parts = NULL if isinstance(source, int) else (<FetchedBytes?>source).parts()
    cdef uint8_t[HEADER_BYTES] near
    cdef uint8_t* memory = NULL
    cdef PageHeader sizes
    cdef int64_t header = 0
    cdef const char* what = b""
    cdef int64_t found = 0
    cdef int64_t next_position = position
    cdef int64_t page = 0
    cdef int64_t compressed = 0
    cdef int64_t dictionary = 0
    cdef int64_t dictionary_values = 0
    cdef bint is_complete = True
    try:
        with nogil:
            while value_count > 0 and next_position < end:
                position = next_position
                header = read_header(descriptor, parts, position, near, HEADER_BYTES, &sizes)
                if header == 0:
                    if memory == NULL:
                        memory = <uint8_t*>malloc(HEADER_BYTES_MAX)
                    if memory != NULL:
                        header = read_header(descriptor, parts, position, memory, HEADER_BYTES_MAX, &sizes)
                if header == 0:
                    is_complete = False
                    break
                if sizes.compressed < 0 or sizes.compressed > end - position - header:
                    what, found = b"compressed bytes", sizes.compressed
                    break
                if sizes.size < 0 or sizes.size > size_max or (
                        expansion > 0 and sizes.size // expansion > sizes.compressed + EXPANSION_ADDED):
                    what, found = b"bytes", sizes.size
                    break
                if sizes.kind == PAGE_DICTIONARY:
                    # Each of its values takes a byte at least, and 16 in memory.
                    if sizes.values > sizes.size:
                        what, found = b"values", sizes.values
                        break
                    dictionary, dictionary_values = sizes.size, sizes.values
                else:
                    page = max(page, sizes.size)
                    if sizes.values > 0:
                        value_count -= sizes.values
                if sizes.size > 0:      # others are not opened: some stand for pages that were not fetched
                    compressed = max(compressed, sizes.compressed)
                next_position = position + header + sizes.compressed
    finally:
        free(memory)
    return PageSizes(page, compressed, dictionary, dictionary_values, bool(is_complete), position, what.decode(), found)
