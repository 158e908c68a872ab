"""Records with too few or too many fields, as records that have as many as there are columns.

    fitted_records(data, delimiter, quote, tails, cuts) -> bytes

    1        ->  1,x,y      fields that are missing: a tail is b",x,y" of one field, b",y" of two
    1,2,3,4  ->  1,2,3      cuts: fields beyond the last column

``data`` begins with a record. Quotes mean what they mean to ``scan``; a record that ends within quotes stays as it is,
and so does an empty line, which is no record where there are several columns. Line ends stay. The kernel runs over
``data`` twice, without the GIL: once for the size of the result.

Held by: tests/csv/test_ragged.py
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from engine.csv.field_start cimport NEWLINE, RETURN, opens_field

cdef struct Tail:
    const uint8_t* text
    int64_t size


cdef inline int64_t put(uint8_t* out, int64_t used, const uint8_t* text, int64_t size) noexcept nogil:
    if out != NULL:
        memcpy(out + used, text, size)
    return used + size


# The bytes of all records; they are written where out is not NULL.
cdef int64_t fit(uint8_t* out, const uint8_t* data, int64_t size, int32_t delimiter, int32_t quote,
                 int64_t column_count, const Tail* tails, bint cuts) noexcept nogil:
    cdef int64_t position = 0
    cdef int64_t used = 0
    cdef int64_t begin, end, cut, fields
    cdef uint8_t byte, previous
    cdef bint quoted
    while position < size:
        begin, end, cut, fields = position, -1, -1, 1
        previous, quoted = NEWLINE, False
        while position < size and end < 0:
            byte = data[position]
            position += 1
            if quoted:
                if byte == quote:
                    if position < size and data[position] == quote:
                        position += 1
                    else:
                        quoted = False
            elif byte == NEWLINE:
                end = position - 1
            elif byte == RETURN:
                end = position - 1
                if position < size and data[position] == NEWLINE:
                    position += 1
            elif byte == delimiter:
                if fields == column_count:
                    cut = position - 1
                fields += 1
            elif byte == quote and opens_field(previous, delimiter):
                quoted = True
            previous = byte
        if end < 0:
            end = position
        used = put(out, used, data + begin, (cut if cuts and cut >= 0 else end) - begin)
        if fields < column_count and end > begin and not quoted:
            used = put(out, used, tails[fields - 1].text, tails[fields - 1].size)
        used = put(out, used, data + end, position - end)
    return used


def fitted_records(const uint8_t[::1] data not None, int delimiter, int quote, list tails not None, bint cuts):
    """Return records with as many fields as there are ``tails`` and one; see the module's text."""
    cdef int64_t size = data.shape[0]
    cdef int64_t count = len(tails) + 1
    cdef int64_t index, needed
    cdef bytes text, result
    cdef Tail* ends
    cdef uint8_t* out
    if size == 0:
        return b""
    ends = <Tail*>calloc(count, sizeof(Tail))
    if ends == NULL:
        raise MemoryError("no memory for the columns of a CSV file")
    try:
        for index in range(count - 1):
            text = tails[index]
            ends[index].text = <const uint8_t*>PyBytes_AS_STRING(text)
            ends[index].size = len(text)
        with nogil:
            needed = fit(NULL, &data[0], size, delimiter, quote, count, ends, cuts)
        result = PyBytes_FromStringAndSize(NULL, needed)
        out = <uint8_t*>PyBytes_AS_STRING(result)
        with nogil:
            fit(out, &data[0], size, delimiter, quote, count, ends, cuts)
        return result
    finally:
        free(ends)
