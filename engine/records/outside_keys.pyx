"""Rows of another writer: what they say of themselves is checked, and keys that lie outside are taken inside.

    for address in take_keys_outside(codec, rows, &count, whole): add_batch(row_at(codec, address))
    what is left in rows is sound and has its keys inside
    check_rows(codec, rows, count)      the check alone, for who knows that keys are inside

Who decodes rows checks them on the way; who compares, hashes or copies them first would follow an offset anywhere.

A writer keeps inside what it looks at itself, the columns of its partitioning. A sort or a join behind it that takes
pages as they are may look at others. Such a row is decoded and made anew, by the codec that knows its keys; that is
slow, and as rare as keys of a megabyte. A stable sort takes all rows of a page this way, so that they keep their order.

Invariants: of a sound row size, offsets and lengths of all variable values lie within the row; bodies of nested values
are checked by who decodes them. Rows without wide values cost a look at each of these words.
Limits: the rows must stay where they are meanwhile; the caller guarantees that each ends inside its page.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t, uintptr_t

from engine.errors import CorruptBlockError
from engine.records.byte_kernels cimport load64
from engine.records.outside_values cimport true_length, values_lie_outside
from engine.records.row_codec cimport RowCodec, row_size


cdef enum:
    BRIEF_ROWS = 4096       # are looked at in less time than it takes to give the GIL away and get it back


cdef int64_t _first_damaged(RowCodec codec, uint8_t** rows, int64_t count) noexcept nogil:
    """Return the position of the first row that is not sound, -1 when all are."""
    cdef int64_t row
    cdef int32_t index
    cdef uint64_t word
    for row in range(count):
        if row_size(rows[row]) < <uint64_t>codec.fixed_size:
            return row
        for index in range(codec._variable_count):
            word = load64(rows[row] + codec._variable_slots[index])
            if (word & 0xFFFFFFFFU) + (word >> 32) > row_size(rows[row]) and true_length(rows[row], word) < 0:
                return row
    return -1


cdef int check_rows(RowCodec codec, uint8_t** rows, int64_t count) except -1:
    cdef int64_t damaged
    if count <= BRIEF_ROWS:
        damaged = _first_damaged(codec, rows, count)
    else:
        with nogil:
            damaged = _first_damaged(codec, rows, count)
    if damaged >= 0:
        raise CorruptBlockError(f"row {damaged} of {count} of another writer is damaged: a size or an offset in it "
                                "leads outside the row")
    return 0


cdef list take_keys_outside(RowCodec codec, uint8_t** rows, int64_t* count, bint whole):
    cdef int64_t kept = 0
    cdef int64_t index
    cdef bint any_outside = False
    cdef list taken = []
    check_rows(codec, rows, count[0])
    if not values_lie_outside():
        return taken
    with nogil:
        for index in range(count[0]):
            if codec.has_key_outside(rows[index]):
                any_outside = True
                break
    if not any_outside:
        return taken
    for index in range(count[0]):
        if whole or codec.has_key_outside(rows[index]):
            taken.append(<uintptr_t>rows[index])
        else:
            rows[kept] = rows[index]
            kept += 1
    count[0] = kept
    return taken


cdef object row_at(RowCodec codec, object address):
    cdef uint8_t* row = <uint8_t*><uintptr_t>address
    return codec.decode(&row, 1, NULL, 0)
