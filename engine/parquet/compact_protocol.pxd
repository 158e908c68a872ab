# A cursor over bytes in Thrift's compact protocol (compact_protocol.pyx).
#
#     field     4 bits step to the next number │ 4 bits kind │ value          0 ends a struct
#     value     integers as zigzag varints, a struct as its fields, a list as 4 bits of its size │ 4 bits kind │ values
#
# Source: Apache Thrift, "Thrift compact protocol encoding".

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

cdef enum FieldKind:
    IS_TRUE = 1                 # a bool's kind is its value
    IS_FALSE = 2
    IS_BYTE = 3
    IS_INT16 = 4
    IS_INT32 = 5
    IS_INT64 = 6
    IS_DOUBLE = 7
    IS_BINARY = 8
    IS_LIST = 9
    IS_SET = 10
    IS_STRUCT = 12

cdef struct Cursor:
    const uint8_t* data
    int64_t size
    int64_t at                  # beyond size: the bytes end before the value does, or it is none

cdef inline uint8_t next_byte(Cursor* cursor) noexcept nogil:
    cursor.at += 1
    return cursor.data[cursor.at - 1] if cursor.at <= cursor.size else 0

cdef inline uint64_t next_varint(Cursor* cursor) noexcept nogil:
    cdef uint64_t value = 0
    cdef int32_t shift = 0
    cdef uint8_t byte = 0x80
    while byte & 0x80 and shift < 64:
        byte = next_byte(cursor)
        value |= <uint64_t>(byte & 0x7F) << shift
        shift += 7
    return value

cdef inline int64_t next_number(Cursor* cursor) noexcept nogil:
    cdef uint64_t value = next_varint(cursor)
    return <int64_t>(value >> 1) ^ -<int64_t>(value & 1)

cdef inline void pass_over(Cursor* cursor, uint64_t size) noexcept nogil:
    cursor.at = cursor.size + 1 if size > <uint64_t>cursor.size else cursor.at + <int64_t>size

cdef inline bint is_number(int32_t kind) noexcept nogil:
    return IS_INT16 <= kind <= IS_INT64

# Go to the next field of a struct, `field` being the number of the one before, 0 at its beginning; returns its kind, 0:
# there is none.
cdef inline int32_t next_field(Cursor* cursor, int64_t* field) noexcept nogil:
    cdef uint8_t head = next_byte(cursor)
    if head == 0 or cursor.at > cursor.size:
        return 0
    field[0] = field[0] + (head >> 4) if head >> 4 else next_number(cursor)
    return head & 15

# Begin with a list: how many values it has, of which kind.
cdef inline int64_t next_list(Cursor* cursor, int32_t* kind) noexcept nogil:
    cdef uint8_t head = next_byte(cursor)
    cdef uint64_t count = head >> 4 if head >> 4 != 15 else next_varint(cursor)
    kind[0] = head & 15
    if count > <uint64_t>cursor.size:           # each value has a byte at least
        cursor.at = cursor.size + 1
        return 0
    return <int64_t>count

# Begin with the list that a field is; none of it where its elements are of another kind than the wanted one.
cdef inline int64_t begin_list(Cursor* cursor, int32_t kind, int32_t wanted) noexcept nogil:
    cdef int32_t inner = 0
    cdef int64_t count = next_list(cursor, &inner) if kind == IS_LIST else 0
    if kind != IS_LIST or (count and inner != wanted):
        cursor.at = cursor.size + 1
        return 0
    return count

# Pass over a value of a field.
cdef void skip_field(Cursor* cursor, int32_t kind) noexcept nogil
