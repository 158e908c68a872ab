"""Parts of texts by positions of characters: Python's ``text[start:stop]``.

    sliced(texts, start, stop) -> array of the same type         stop None: to the end

    from the front   "abcdefghÄö"   eight bytes at once where none begins with a one, else byte by byte
    from the back    byte by byte

A character is a byte that continues none (10xxxxxx) and those behind it that do, so that bytes which are no UTF-8 have
parts as well: this never fails, and filters and columns that are made of it may be computed earlier than written.
Values are string or large string arrays. Nulls are cut like values, and stay null.

Invariants: runs without the GIL; text that is UTF-8 stays that.

Held by: tests/expressions/test_text_slices.py
"""

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from engine.records.number_types cimport Offset

import pyarrow as pa

from engine.records.arrow_functions import pc


cdef inline bint is_inside(const uint8_t* text, int64_t position, int64_t size) noexcept nogil:
    """Whether a byte continues a character."""
    return position < size and text[position] & 0xC0 == 0x80


cdef inline int64_t forward(const uint8_t* text, int64_t position, int64_t size, int64_t count) noexcept nogil:
    """Return the position some characters further on, at most the end."""
    cdef uint64_t word
    while count > 0 and position < size:
        if count >= 8 and size - position >= 8:
            memcpy(&word, text + position, 8)
            if word & 0x8080808080808080ULL == 0:
                position += 7
                count -= 7
        position += 1
        count -= 1
        while is_inside(text, position, size):
            position += 1
    return position


cdef inline int64_t backward(const uint8_t* text, int64_t size, int64_t count) noexcept nogil:
    """Return the position some characters before the end, at least 0."""
    cdef int64_t position = size
    while count > 0 and position > 0:
        position -= 1
        while position > 0 and is_inside(text, position, size):
            position -= 1
        count -= 1
    return position


cdef void cut(
    const uint8_t* texts, const Offset* offsets, int64_t count, int64_t start, int64_t stop, uint8_t* out, Offset* ends
) noexcept nogil:
    """Write the parts of texts one behind the other, and where each ends."""
    cdef int64_t row, size, begin, end
    cdef const uint8_t* text
    ends[0] = 0
    for row in range(count):
        text = texts + offsets[row]
        size = offsets[row + 1] - offsets[row]
        begin = forward(text, 0, size, start) if start >= 0 else backward(text, size, -start)
        if stop < 0:
            end = backward(text, size, -stop)
        elif stop == INT64_MAX:
            end = size
        elif start >= 0:
            end = forward(text, begin, size, stop - start)
        else:
            end = forward(text, 0, size, stop)
        size = end - begin if end > begin else 0
        memcpy(out + ends[row], text + begin, <size_t> size)
        ends[row + 1] = <Offset> (ends[row] + size)


cdef PlainTexts plain_texts(object texts) except *:
    cdef PlainTexts found
    found.is_wide = texts.type == pa.large_string()
    if not found.is_wide and texts.type != pa.string():
        raise ValueError(f"texts as {texts.type}")
    _, offsets, values = texts.buffers()
    found.width = 8 if found.is_wide else 4
    found.offsets = 0 if offsets is None else offsets.address + <int64_t> texts.offset * found.width
    found.values = 0 if values is None else values.address
    return found


cdef object texts_like(object texts, object offsets, object values):
    bitmap = None if texts.null_count == 0 else pc.is_valid(texts).buffers()[1]  # which begins with the first bit
    return pa.Array.from_buffers(texts.type, len(texts), [bitmap, offsets, values], texts.null_count)


def sliced(texts not None, start, stop):
    """Return the characters from ``start`` up to ``stop`` of each text; those below 0 count from the end."""
    cdef int64_t first = max(start, -INT64_MAX)
    cdef int64_t last = INT64_MAX if stop is None else max(stop, -INT64_MAX)
    cdef int64_t count = len(texts)
    cdef PlainTexts found = plain_texts(texts)
    cdef const int32_t* narrow = <const int32_t*> found.offsets
    cdef const int64_t* wide = <const int64_t*> found.offsets
    cdef const uint8_t* values = <const uint8_t*> found.values
    cdef size_t target, ends
    if count == 0:
        return texts
    new_offsets = pa.allocate_buffer(found.width * (count + 1))
    room = pa.allocate_buffer(wide[count] - wide[0] if found.is_wide else narrow[count] - narrow[0])
    target, ends = room.address, new_offsets.address
    with nogil:
        if found.is_wide:
            cut(values, wide, count, first, last, <uint8_t*> target, <int64_t*> ends)
        else:
            cut(values, narrow, count, first, last, <uint8_t*> target, <int32_t*> ends)
    used = (<const int64_t*> ends)[count] if found.is_wide else (<const int32_t*> ends)[count]
    return texts_like(texts, new_offsets, room.slice(0, used))
