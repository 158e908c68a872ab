"""Values in Thrift's compact protocol that are not needed are skipped.

The other parts of the protocol are in the .pxd: a field, a number, a list at a time, without an object for any.

Limits: structs and lists nested at most DEPTH_MAX deep. Source: Apache Thrift, "Thrift compact protocol encoding".
Held by: tests/parquet/test_pages.py
"""

from libc.stdint cimport int32_t, int64_t

cdef enum:
    DEPTH_MAX = 16


cdef void skip_value(Cursor* cursor, int32_t kind, int32_t depth, bint is_element) noexcept nogil:
    """Pass over a value of a field, or an element of a list, where a bool has a byte."""
    cdef int64_t field = 0
    cdef int64_t count
    cdef int32_t inner = 0
    if kind == IS_TRUE or kind == IS_FALSE:
        if is_element:
            pass_over(cursor, 1)
    elif kind == IS_BYTE:
        pass_over(cursor, 1)
    elif is_number(kind):
        next_varint(cursor)
    elif kind == IS_DOUBLE:
        pass_over(cursor, 8)
    elif kind == IS_BINARY:
        pass_over(cursor, next_varint(cursor))
    elif (kind == IS_LIST or kind == IS_SET) and depth < DEPTH_MAX:
        count = next_list(cursor, &inner)
        while count > 0 and cursor.at <= cursor.size:
            skip_value(cursor, inner, depth + 1, True)
            count -= 1
    elif kind == IS_STRUCT and depth < DEPTH_MAX:
        inner = next_field(cursor, &field)
        while inner:
            skip_value(cursor, inner, depth + 1, False)
            inner = next_field(cursor, &field)
    else:
        cursor.at = cursor.size + 1


cdef void skip_field(Cursor* cursor, int32_t kind) noexcept nogil:
    skip_value(cursor, kind, 0, False)
