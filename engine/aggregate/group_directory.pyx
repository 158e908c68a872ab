"""GroupDirectory: where the groups of a table are, by hash.

    directory_take ──► directory_grow before groups are added
                   ──► look for directory_index(hash), then the next slots, until the tag fits or the slot is empty
                   ──► directory_insert ... directory_fill ... directory_shrink ... directory_give

The tag (16 bits that do not take part in choosing a partition) answers most comparisons without touching the group.
Growing means giving the directory back, taking one of twice the slots, or four times while it is small, and entering
all groups again: no moment needs both.

Source: tags as the "salt" in the tables of DuckDB and Umbra; multiplicative hashing, Knuth 6.4.

Held by: tests/aggregate/test_hash_aggregate.py
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memset

from engine.aggregate.group_store cimport GROUP_HASH, GroupStore, store_next_group
from engine.memory.page_pool cimport PagePool
from engine.records.byte_kernels cimport prefetch

cdef enum:
    FILL_GROUPS = 32            # groups entered together
    SMALL_BYTES = 512 << 10     # up to here a directory becomes four times as large: groups are entered less often
    SMALL_TIMES = 4


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
        pool.give_large(<uint8_t*> directory.slots, directory.size)
    directory.slots = NULL


cdef bint directory_can_grow(const GroupDirectory* directory, PagePool pool, int64_t times) noexcept nogil:
    cdef int64_t held = (directory.size + pool.page_size - 1) // pool.page_size
    cdef int64_t wanted = (times * directory.size + pool.page_size - 1) // pool.page_size
    return wanted <= pool.page_limit // 2 and wanted < pool.pages_free() + held


cdef bint directory_exchange(GroupDirectory* directory, PagePool pool, int64_t slot_count) noexcept nogil:
    cdef int64_t before = directory.slot_count
    directory_give(directory, pool)
    return directory_take(directory, pool, slot_count) or directory_take(directory, pool, before)


cdef void directory_insert(GroupDirectory* directory, const uint8_t* group, uint64_t hash) noexcept nogil:
    cdef int64_t mask = directory.slot_count - 1
    cdef int64_t position = directory_index(directory, hash)
    while directory.slots[position] != 0:
        position = (position + 1) & mask
    directory.slots[position] = directory_slot(group, hash)


cdef void directory_fill(GroupDirectory* directory, const GroupStore* stores, int32_t store_count) noexcept nogil:
    """Some groups at a time, so that their slots are fetched together."""
    cdef uint8_t* groups[FILL_GROUPS]
    cdef int64_t page_index, offset, count, position
    cdef int32_t index
    for index in range(store_count):
        page_index = offset = 0
        count = FILL_GROUPS
        while count == FILL_GROUPS:
            count = 0
            while count < FILL_GROUPS:
                groups[count] = store_next_group(&stores[index], &page_index, &offset)
                if groups[count] == NULL:
                    break
                position = directory_index(directory, (<uint64_t*> (groups[count] + GROUP_HASH))[0])
                prefetch(&directory.slots[position])
                count += 1
            for position in range(count):
                directory_insert(directory, groups[position], (<uint64_t*> (groups[position] + GROUP_HASH))[0])


cdef void directory_grow(GroupDirectory* directory, PagePool pool, const GroupStore* stores, int32_t store_count,
                         int64_t group_count, int64_t new_groups) noexcept nogil:
    cdef int64_t slot_count = directory.slot_count
    cdef int64_t limit = directory_limit(directory)
    cdef int64_t times = SMALL_TIMES if directory.size <= SMALL_BYTES else 2
    if limit - group_count >= new_groups or group_count <= limit // 2:
        return
    if not directory_can_grow(directory, pool, times):
        times = 2
    if directory_can_grow(directory, pool, times) and directory_exchange(directory, pool, times * slot_count):
        directory_fill(directory, stores, store_count)


cdef bint directory_shrink(GroupDirectory* directory, PagePool pool, int64_t groups) noexcept nogil:
    cdef int64_t slot_count = pool.page_size // 8
    while slot_count // 8 * 5 < groups:
        slot_count *= 2
    if slot_count < directory.slot_count:
        directory_give(directory, pool)
        return directory_take(directory, pool, slot_count)
    return True
