# RowPage: a page of the pool that rows lie in, side by side; lists of them grow by a page at a time.

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport realloc
from libc.string cimport memcpy

from engine.memory.page_pool cimport PagePool

# Copy a row, by moves that the compiler knows the size of where it is one of the most frequent.
cdef inline void copy_row(uint8_t* target, const uint8_t* row, size_t size) noexcept nogil:
    if size == 32:
        memcpy(target, row, 32)
    elif size == 24:
        memcpy(target, row, 24)
    elif size == 40:
        memcpy(target, row, 40)
    elif size == 48:
        memcpy(target, row, 48)
    else:
        memcpy(target, row, size)

cdef struct RowPage:
    uint8_t* memory
    int64_t used                # bytes of rows

# Open one more page, which is empty, behind others. False: the pool has none, or there is no memory.
cdef inline bint append_page(RowPage** pages, int64_t* count, int64_t* capacity, PagePool pool) noexcept nogil:
    cdef RowPage* grown
    cdef uint8_t* memory
    if count[0] == capacity[0]:
        grown = <RowPage*> realloc(pages[0], <size_t> (2 * capacity[0] + 2) * sizeof(RowPage))
        if grown == NULL:
            return False
        pages[0] = grown
        capacity[0] = 2 * capacity[0] + 2
    memory = pool.take()
    if memory == NULL:
        return False
    pages[0][count[0]].memory = memory
    pages[0][count[0]].used = 0
    count[0] += 1
    return True
