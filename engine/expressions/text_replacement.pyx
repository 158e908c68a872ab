"""Texts of which one part is replaced, at places that a regular expression has found.

    with_replaced(texts, places, pieces) -> array of the same type
    places      of each text: (begin, size) of the part, and of groups within it; null where nothing matched
    pieces      what stands there instead: bytes, or the number of a column of ``places``, of which a null is no text

    "x12y3"   the part: (1, 2)   pieces: "<", 0, ">"   ──►   "x<12>y3"

Texts are string or large string arrays, places those of pyarrow's ``extract_regex_span``. A text without a match is as
it was, and a null stays null.

Invariants: runs without the GIL; the size of all is computed before any byte is written.

Held by: tests/expressions/test_text_replacement.py
"""

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from engine.expressions.text_slices cimport PlainTexts, plain_texts, texts_like
from engine.records.number_types cimport Offset

import pyarrow as pa

# What is written: bytes of its own, or the part of the text that ``places`` gives.
cdef struct Piece:
    const uint8_t* bytes
    int64_t size
    const uint8_t* places       # pairs of Offset; NULL: it is bytes
    const uint8_t* validity     # of places; NULL: all are there


cdef inline bint is_there(const uint8_t* validity, int64_t row) noexcept nogil:
    return validity == NULL or validity[row >> 3] >> (row & 7) & 1


cdef int64_t size_of_all(const Offset* offsets, int64_t count, const Piece* whole, const Piece* pieces,
                         int64_t piece_count) noexcept nogil:
    cdef int64_t size = offsets[count] - offsets[0]
    cdef int64_t own = 0
    cdef int64_t row, index
    for index in range(piece_count):
        own += pieces[index].size
    for row in range(count):
        if is_there(whole.validity, row):
            size += own - (<const Offset*> whole.places)[2 * row + 1]
            for index in range(piece_count):
                if pieces[index].places != NULL and is_there(pieces[index].validity, row):
                    size += (<const Offset*> pieces[index].places)[2 * row + 1]
    return size


cdef inline uint8_t* written(uint8_t* out, const uint8_t* bytes, int64_t size) noexcept nogil:
    memcpy(out, bytes, <size_t> size)
    return out + size


cdef void write_all(const uint8_t* texts, const Offset* offsets, int64_t count, const Piece* whole,
                    const Piece* pieces, int64_t piece_count, uint8_t* out, Offset* ends) noexcept nogil:
    cdef int64_t row, index, begin, end
    cdef const uint8_t* text
    cdef const uint8_t* first = out
    cdef const Offset* place
    ends[0] = 0
    for row in range(count):
        text, begin, end = texts + offsets[row], 0, 0
        if is_there(whole.validity, row):
            place = <const Offset*> whole.places + 2 * row
            begin, end = place[0], place[0] + place[1]
            out = written(out, text, begin)
            for index in range(piece_count):
                if pieces[index].places == NULL:
                    out = written(out, pieces[index].bytes, pieces[index].size)
                elif is_there(pieces[index].validity, row):
                    place = <const Offset*> pieces[index].places + 2 * row
                    out = written(out, text + place[0], place[1])
        out = written(out, text + end, offsets[row + 1] - offsets[row] - end)
        ends[row + 1] = <Offset> (out - first)


cdef Piece places_of(column) except *:
    """Return the pairs of a column of places, which has no offset."""
    cdef Piece piece
    cdef size_t validity = 0
    cdef size_t pairs = column.values.buffers()[1].address
    assert column.offset == 0 and column.values.offset == 0, "places that were just found"
    if column.null_count:
        validity = column.buffers()[0].address
    piece.bytes, piece.size = NULL, 0
    piece.places, piece.validity = <const uint8_t*> pairs, <const uint8_t*> validity
    return piece


cdef Piece bytes_of(bytes given) except *:
    cdef Piece piece
    piece.bytes, piece.size, piece.places, piece.validity = <const uint8_t*> <char*> given, len(given), NULL, NULL
    return piece


def with_replaced(texts not None, places not None, list pieces not None):
    """Return texts with pieces in the place of what was found in each of them; pieces: see the header."""
    cdef int64_t count = len(texts)
    cdef int64_t size
    cdef int64_t piece_count = len(pieces)
    cdef PlainTexts found = plain_texts(texts)
    cdef size_t target, ends
    cdef Piece whole
    cdef Piece* parts
    if count == 0:
        return texts
    columns = places.flatten()
    whole = places_of(columns[0])
    parts = <Piece*> calloc(<size_t> piece_count + 1, sizeof(Piece))
    if parts == NULL:
        raise MemoryError()
    try:
        for index, piece in enumerate(pieces):
            parts[<int64_t> index] = bytes_of(piece) if isinstance(piece, bytes) else places_of(columns[piece])
        with nogil:
            if found.is_wide:
                size = size_of_all(<const int64_t*> found.offsets, count, &whole, parts, piece_count)
            else:
                size = size_of_all(<const int32_t*> found.offsets, count, &whole, parts, piece_count)
        if size > INT32_MAX and not found.is_wide:
            raise pa.ArrowInvalid(f"{count} texts become {size} bytes; cast them to large_string before")
        room, new_offsets = pa.allocate_buffer(size), pa.allocate_buffer(found.width * (count + 1))
        target, ends = room.address, new_offsets.address
        with nogil:
            if found.is_wide:
                write_all(<const uint8_t*> found.values, <const int64_t*> found.offsets, count, &whole, parts,
                          piece_count, <uint8_t*> target, <int64_t*> ends)
            else:
                write_all(<const uint8_t*> found.values, <const int32_t*> found.offsets, count, &whole, parts,
                          piece_count, <uint8_t*> target, <int32_t*> ends)
    finally:
        free(parts)
    return texts_like(texts, new_offsets, room)
