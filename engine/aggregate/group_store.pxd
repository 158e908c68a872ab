# GroupStore: records of one partition of a group table, in pages of the pool. Plain structs for kernels.
#
#     record   | size: uint32 | kind: uint32 | ... size bytes in all, a multiple of 8
#     page     | record | record | ... | unused |          none crosses a page
#     the first page begins with some unused bytes (page coloring)
#     large    | one record larger than a page |

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from engine.memory.page_pool cimport PagePool

cdef enum RecordKind:
    RECORD_GROUP = 1        # a group: header, states, key row
    RECORD_VALUE = 2        # bytes of a variable-size state, pointed to from a group

cdef enum:
    GROUP_HASH = 8          # offset of a group's hash (uint64), behind the header

cdef struct RecordHeader:
    uint32_t size           # bytes, header included
    uint32_t kind           # RecordKind

cdef struct StorePage:
    uint8_t* memory
    int64_t begin           # offset of the first record
    int64_t used            # where the last one ends
    int64_t size            # bytes taken from the pool
    bint is_large           # a large page for one record

cdef struct GroupStore:
    StorePage* pages
    int64_t page_count
    int64_t page_capacity
    int64_t open_page       # index of the page being filled, -1: none
    int64_t group_count
    int64_t used_bytes      # of all records
    int64_t color           # offset of the first record of the first page

# Begin a store of zeros. Its groups lie on other cache lines of a page than those of stores with other numbers.
cdef void store_begin(GroupStore* store, int64_t number, int64_t page_size) noexcept nogil
# Room for a record of `size` bytes (8 * n) of that kind, header written; NULL: full. With reserved, what does not fit
# the pool lies beyond its limit.
cdef uint8_t* store_place(GroupStore* store, PagePool pool, int64_t size, uint32_t kind, bint reserved) noexcept nogil
# Give a record back that has a large page of its own; nothing happens for one in a page.
cdef void store_drop_large(GroupStore* store, PagePool pool, const uint8_t* record) noexcept nogil
# Give every page back.
cdef void store_clear(GroupStore* store, PagePool pool) noexcept nogil
cdef void store_destroy(GroupStore* store) noexcept nogil
# Walk the groups in order of insertion from (page_index, offset), which move on; NULL at the end.
cdef uint8_t* store_next_group(const GroupStore* store, int64_t* page_index, int64_t* offset) noexcept nogil
