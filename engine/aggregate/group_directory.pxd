# GroupDirectory: tagged addresses of groups, by hash. A plain struct for kernels.
#
#     slot     | tag: bits 15..0 of the hash, in bits 63..48 | address of the group in bits 47..0 |      0: empty
#     index    top bits of hash * odd constant; collisions go to the next slot

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from engine.aggregate.group_store cimport GroupStore
from engine.memory.page_pool cimport PagePool

cdef struct GroupDirectory:
    uint64_t* slots         # NULL: none
    int64_t slot_count      # a power of two
    int64_t size            # bytes taken from the pool
    int32_t shift           # 64 - log2(slot_count)

# 2**64 / golden ratio, odd: every bit of the hash reaches the top bits of the product
cdef inline int64_t directory_index(const GroupDirectory* directory, uint64_t hash) noexcept nogil:
    return <int64_t> ((hash * <uint64_t> 0x9E3779B97F4A7C15U) >> directory.shift)

cdef inline uint64_t directory_slot(const uint8_t* group, uint64_t hash) noexcept nogil:
    return <uint64_t> group | (hash & 0xFFFF) << 48

cdef inline uint8_t* directory_group(uint64_t slot) noexcept nogil:
    return <uint8_t*> (slot & ((<uint64_t> 1 << 48) - 1))

# How many groups the directory may hold: 5/8 of its slots.
cdef inline int64_t directory_limit(const GroupDirectory* directory) noexcept nogil:
    return directory.slot_count // 8 * 5

# How many groups a directory of so many slots may hold whose groups are rows of states: 3/4 of them.
cdef inline int64_t slot_limit(int64_t slot_count) noexcept nogil:
    return slot_count // 4 * 3

# A sufficient number of slots for so many of these, from a page of slots on.
cdef inline int64_t slots_for(int64_t groups, int64_t page_size) noexcept nogil:
    cdef int64_t slot_count = page_size // 8
    while slot_limit(slot_count) < groups:
        slot_count *= 2
    return slot_count

# An empty directory of so many slots, in one large page; False: no memory, the directory is as before.
cdef bint directory_take(GroupDirectory* directory, PagePool pool, int64_t slot_count) noexcept nogil
cdef void directory_give(GroupDirectory* directory, PagePool pool) noexcept nogil
# Exchange it for an empty one of so many slots, or of as many as it had; False: there is none any more.
cdef bint directory_exchange(GroupDirectory* directory, PagePool pool, int64_t slot_count) noexcept nogil
# Whether a directory of so many times the slots fits in place of this one, in half of the pool, and leaves a page free.
cdef bint directory_can_grow(const GroupDirectory* directory, PagePool pool, int64_t times) noexcept nogil
# Enter a group that is not in it. Caller guarantees an empty slot.
cdef void directory_insert(GroupDirectory* directory, const uint8_t* group, uint64_t hash) noexcept nogil
# Enter all groups of the stores into an empty directory.
cdef void directory_fill(GroupDirectory* directory, const GroupStore* stores, int32_t store_count) noexcept nogil
# Enlarge it when so many new groups may not find room, it is half of the way there, and it fits.
cdef void directory_grow(GroupDirectory* directory, PagePool pool, const GroupStore* stores, int32_t store_count,
                         int64_t group_count, int64_t new_groups) noexcept nogil
# Exchange an empty directory for a smaller one when that is enough for so many groups: it then stays in the caches.
# False: there is no memory, nor a directory any more.
cdef bint directory_shrink(GroupDirectory* directory, PagePool pool, int64_t groups) noexcept nogil
