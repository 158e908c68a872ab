"""Rows of another writer may have a key outside: whoever compares or hashes them needs it inside.

    for address in take_keys_outside(codec, rows, &count, whole): add_batch(row_at(codec, address))
    what is left in rows has its keys inside

A writer keeps inside what it looks at itself, the columns of its partitioning. A sort or a join behind it that takes
pages as they are may look at others. Such a row is decoded and made anew, by the codec that knows its keys; that is
slow, and as rare as keys of a megabyte. A stable sort takes all rows of a page this way, so that they keep their order.

Invariants: rows without wide values cost one look at a flag. Limits: the rows must stay where they are meanwhile.
"""

from libc.stdint cimport int64_t, uint8_t, uintptr_t

from engine.records.outside_values cimport values_lie_outside
from engine.records.row_codec cimport RowCodec


cdef list take_keys_outside(RowCodec codec, uint8_t** rows, int64_t* count, bint whole):
    cdef int64_t kept = 0
    cdef int64_t index
    cdef bint any_outside = False
    cdef list taken = []
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
