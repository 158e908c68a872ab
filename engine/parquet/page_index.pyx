"""Page indexes of a Parquet file: places in the footer, column index, offset index.

    index_places(footer)     for each row group, for each of its leaf columns: IndexPlaces
    column_index(data)       ColumnIndex: for each page whether it is of nulls alone, its bounds, how many nulls it has
    page_places(data)        PagePlaces: for each page its place in the file and the row that it begins with

    FileMetaData  4 row groups ─► 1 columns ─► 3 metadata ─► 14, 15 place and size of the Bloom filter
                                               4, 5 offset index        6, 7 column index
    ColumnIndex   1 of nulls alone   2 lowest   3 highest   5 null counts
    OffsetIndex   1 pages ─► 1 place   2 bytes, with the header   3 first row

pyarrow reads none of this. Numbers and bytes become Python's, a handful for each page.

Raises: ValueError for bytes that are none of this.
Source: parquet-format, "Page Index"; in Thrift's compact protocol (``compact_protocol``).
Held by: tests/parquet/test_page_bounds.py
"""

from typing import NamedTuple

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from engine.parquet.compact_protocol cimport (
    IS_BINARY,
    IS_LIST,
    IS_STRUCT,
    Cursor,
    begin_list,
    is_number,
    next_byte,
    next_field,
    next_list,
    next_number,
    next_varint,
    pass_over,
    skip_field,
)


class IndexPlaces(NamedTuple):
    """The places of a column chunk's indexes in the file, and their sizes; 0: there is none, or it is unknown."""

    column_index: int
    column_index_bytes: int
    offset_index: int
    offset_index_bytes: int
    bloom_filter: int           # 0: there is none
    bloom_filter_bytes: int     # old writers do not say


class ColumnIndex(NamedTuple):
    """The column index; each list has a value for each page."""

    is_null: list               # a page of nulls alone has no bounds
    lowest: list                # bytes, as plain values are stored
    highest: list
    null_counts: list           # empty: they are not known


class PagePlaces(NamedTuple):
    """The offset index; each list has a value for each page."""

    positions: list             # of its header in the file
    sizes: list                 # bytes, with the header
    first_rows: list            # of the row group


cdef Cursor cursor_over(const uint8_t[::1] data) noexcept:
    cdef Cursor cursor
    cursor.data = &data[0] if data.shape[0] else NULL
    cursor.size, cursor.at = data.shape[0], 0
    return cursor


cdef int check(Cursor* cursor, what) except -1:
    if cursor.at > cursor.size:
        raise ValueError(f"{what} of a Parquet file is damaged")
    return 0


cdef void read_numbers(Cursor* cursor, int64_t* numbers, int64_t first, int64_t last) noexcept:
    """Read a struct; fields first to last are numbers that are kept."""
    cdef int64_t field = 0
    cdef int32_t kind = next_field(cursor, &field)
    while kind:
        if is_number(kind) and first <= field <= last:
            numbers[field - first] = next_number(cursor)
        else:
            skip_field(cursor, kind)
        kind = next_field(cursor, &field)


cdef object read_chunk(Cursor* cursor):
    cdef int64_t[4] places
    cdef int64_t[2] bloom
    cdef int64_t field = 0
    cdef int32_t kind
    places[0] = places[1] = places[2] = places[3] = bloom[0] = bloom[1] = 0
    kind = next_field(cursor, &field)
    while kind:
        if kind == IS_STRUCT and field == 3:
            read_numbers(cursor, bloom, 14, 15)
        elif is_number(kind) and 4 <= field <= 7:
            places[field - 4] = next_number(cursor)
        else:
            skip_field(cursor, kind)
        kind = next_field(cursor, &field)
    return IndexPlaces(places[2], places[3], places[0], places[1], bloom[0], bloom[1])


cdef list read_group(Cursor* cursor):
    cdef int64_t field = 0
    cdef int64_t index
    cdef int32_t kind = next_field(cursor, &field)
    cdef list chunks = []
    while kind:
        if field == 1:
            for index in range(begin_list(cursor, kind, IS_STRUCT)):
                chunks.append(read_chunk(cursor))
                check(cursor, "the footer")
        else:
            skip_field(cursor, kind)
        kind = next_field(cursor, &field)
    return chunks


def index_places(const uint8_t[::1] footer not None):
    """Return an IndexPlaces for each leaf column of each row group."""
    cdef Cursor cursor = cursor_over(footer)
    cdef int64_t field = 0
    cdef int64_t index
    cdef int32_t kind = next_field(&cursor, &field)
    cdef list groups = []
    while kind:
        if field == 4:
            for index in range(begin_list(&cursor, kind, IS_STRUCT)):
                groups.append(read_group(&cursor))
        else:
            skip_field(&cursor, kind)
        kind = next_field(&cursor, &field)
    check(&cursor, "the footer")
    return groups


cdef list read_texts(Cursor* cursor, int32_t kind):
    cdef int64_t index
    cdef uint64_t size
    cdef list texts = []
    for index in range(begin_list(cursor, kind, IS_BINARY)):
        size = next_varint(cursor)
        if size > <uint64_t>(cursor.size - min(cursor.at, cursor.size)):
            cursor.at = cursor.size + 1
            break
        texts.append((<const char*>cursor.data)[cursor.at:cursor.at + <int64_t>size])
        pass_over(cursor, size)
    return texts


def column_index(const uint8_t[::1] data not None):
    """Return the ColumnIndex that bytes are."""
    cdef Cursor cursor = cursor_over(data)
    cdef int64_t field = 0
    cdef int64_t index
    cdef int32_t inner = 0
    cdef int32_t kind = next_field(&cursor, &field)
    cdef list is_null = [], null_counts = []
    lowest, highest = [], []
    while kind:
        if field == 1 and kind == IS_LIST:
            for index in range(next_list(&cursor, &inner)):
                is_null.append(next_byte(&cursor) == 1)
        elif field == 2:
            lowest = read_texts(&cursor, kind)
        elif field == 3:
            highest = read_texts(&cursor, kind)
        elif field == 5 and kind == IS_LIST:
            for index in range(next_list(&cursor, &inner)):
                null_counts.append(next_number(&cursor))
        else:
            skip_field(&cursor, kind)
        kind = next_field(&cursor, &field)
    check(&cursor, "a column index")
    if not len(is_null) == len(lowest) == len(highest) or len(null_counts) not in (0, len(is_null)):
        raise ValueError("a column index of a Parquet file has bounds for some of its pages only")
    return ColumnIndex(is_null, lowest, highest, null_counts)


def page_places(const uint8_t[::1] data not None):
    """Return the PagePlaces that an offset index has."""
    cdef Cursor cursor = cursor_over(data)
    cdef int64_t[3] place
    cdef int64_t field = 0
    cdef int64_t index
    cdef int32_t kind = next_field(&cursor, &field)
    cdef list positions = [], sizes = [], rows = []
    while kind:
        if field == 1:
            for index in range(begin_list(&cursor, kind, IS_STRUCT)):
                place[0] = place[1] = place[2] = -1
                read_numbers(&cursor, place, 1, 3)
                positions.append(place[0])
                sizes.append(place[1])
                rows.append(place[2])
        else:
            skip_field(&cursor, kind)
        kind = next_field(&cursor, &field)
    check(&cursor, "an offset index")
    if rows and (rows[0] != 0 or any(one >= other for one, other in zip(rows, rows[1:]))):
        raise ValueError("the pages of an offset index of a Parquet file do not follow each other")
    return PagePlaces(positions, sizes, rows)
