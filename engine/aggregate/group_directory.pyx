"""GroupDirectory: where the groups of a table are, by hash.

    directory_take ──► look for directory_index(hash), then the next slots, until the tag fits or the slot is empty
                   ──► directory_insert ... directory_give

The tag (16 bits that do not take part in choosing a partition) answers most comparisons without touching the group.
Growing means giving the directory back, taking one of twice the slots and entering all groups again: no moment needs
both.

Source: tags as the "salt" in the tables of DuckDB and Umbra; multiplicative hashing, Knuth 6.4.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memset

from engine.memory.page_pool cimport PagePool


cdef bint directory_take(GroupDirectory* directory, PagePool pool, int64_t slot_count) noexcept nogil:
    cdef int64_t size = 8 * slot_count
    cdef uint64_t* slots
    if size <= pool.page_size:
        slots = <uint64_t*> pool.take()
    else:
        slots = <uint64_t*> pool.take_large(size, False)
    if slots == NULL:
        return False
    memset(slots, 0, <size_t> size)
    directory.slots = slots
    directory.slot_count = slot_count
    directory.size = size
    directory.shift = 64
    while slot_count > 1:
        slot_count >>= 1
        directory.shift -= 1
    return True


cdef void directory_give(GroupDirectory* directory, PagePool pool) noexcept nogil:
    if directory.slots == NULL:
        return
    if directory.size <= pool.page_size:
        pool.give(<uint8_t*> directory.slots)
    else:
        pool.give_large(<uint8_t*> directory.slots, directory.size, False)
    directory.slots = NULL


cdef bint directory_can_double(const GroupDirectory* directory, PagePool pool) noexcept nogil:
    cdef int64_t held = (directory.size + pool.page_size - 1) // pool.page_size
    cdef int64_t wanted = (2 * directory.size + pool.page_size - 1) // pool.page_size
    return wanted <= pool.page_limit // 2 and wanted < pool.pages_free() + held


cdef void directory_insert(GroupDirectory* directory, const uint8_t* group, uint64_t hash) noexcept nogil:
    cdef int64_t mask = directory.slot_count - 1
    cdef int64_t position = directory_index(directory, hash)
    while directory.slots[position] != 0:
        position = (position + 1) & mask
    directory.slots[position] = directory_slot(group, hash)
