# RecordSorter: one memory's worth of rows in pages, and the sorted index over them.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from engine.memory.page_pool cimport PagePool
from engine.records.comparator cimport RowComparator
from engine.records.normalized_key cimport NormalizedKey
from engine.records.row_combiner cimport RowCombiner
from engine.sort.group_cut cimport GroupCut
from engine.sort.group_firsts cimport GroupFirsts
from engine.sort.key_tail cimport KeyTail
from engine.sort.radix_sort cimport IndexEntry

cdef enum:
    INLINE_ENTRIES = 32     # so many rows are indexed without a page

cdef struct RowPage:
    uint8_t* memory
    int64_t used            # bytes of rows
    int64_t size            # bytes taken from the pool
    bint is_large           # a large page for one row

cdef struct Scratch:
    uint8_t* memory
    int64_t size

@cython.final
cdef class RecordSorter:
    cdef PagePool _pool
    cdef NormalizedKey _normalized_key
    cdef RowComparator _comparator
    cdef KeyTail _tail
    cdef RowPage* _pages
    cdef int64_t _page_count
    cdef int64_t _page_capacity
    cdef int64_t _open_page             # index of the page being filled, -1: none
    cdef int64_t _row_limit             # full at so many rows
    cdef int64_t _index_limit           # rows that the free pages can index
    cdef int64_t _page_budget           # pages of the pool that this sorter may hold
    cdef int64_t _pages_held
    cdef bint _is_beyond_limit       # of the one row there is
    cdef int64_t _index_size            # bytes of the large page in entries, 0: inline
    cdef IndexEntry _inline[2 * INLINE_ENTRIES]
    cdef IndexEntry* entries            # sorted after sort(), row_count of them
    cdef int64_t row_count
    cdef int64_t used_bytes             # bytes of all rows
    cdef GroupCut cut                   # None, or what sort_rows keeps of each group
    cdef GroupFirsts firsts             # None, or what keeps rows out that are beyond the limit of their group
    cdef bint _has_ended_firsts         # nor are others of this memory
    cdef bint is_judging                # all rows so far were judged by it
    cdef bint is_sorted                 # entries are there and in order

    # Room for the next row, or NULL: full. With beyond_limit an empty sorter takes a row that is larger than
    # all its pages, beside them.
    cdef uint8_t* place(self, int64_t size, bint beyond_limit) noexcept nogil
    # Whether rows may be given to place_firsts: the first one decides for all others of this memory.
    cdef bint begins_firsts(self) noexcept nogil
    # Place copies of those rows that can be among the first of their group; returns how many rows were looked at: the
    # next one found no room, or it is no longer worth it.
    cdef int64_t place_firsts(self, uint8_t** rows, int64_t count) noexcept nogil
    # Place all other rows of this memory, whatever they are.
    cdef void end_firsts(self) noexcept nogil
    # Build and sort the index. STATUS_OK, or STATUS_FULL when the index has no memory (the accounting prevents it).
    cdef int sort(self) noexcept nogil
    # Make one row of neighbours that have the same keys, after sort(); entries, row_count and used_bytes are of what is
    # left, its rows stay where they are. Where the combined row needs more room than each of the two has, both stay.
    # 0, or the combiner's failure.
    cdef int combine(self, RowCombiner combiner) noexcept nogil
    cdef bint _combine_anew(self, RowCombiner combiner, IndexEntry* last, const IndexEntry* entry, int64_t size,
                            Scratch* scratch, int* failure) noexcept nogil
    # Forget the sorted index, after sort() and what has left rows out of it: rows and bytes are as before.
    cdef void forget_order(self, int64_t row_count, int64_t used_bytes) noexcept nogil
    # Forget all rows and give every page back.
    cdef void clear(self) noexcept nogil

    cdef void _give_index(self) noexcept nogil
    cdef void _reserve_groups(self, int64_t count) noexcept nogil
    cdef int64_t _free_pages(self) noexcept nogil
    cdef void _count_index_limit(self, int64_t pages_wanted) noexcept nogil
    cdef uint8_t* _place_in_new_page(self, int64_t size, bint beyond_limit) noexcept nogil
    cdef RowPage* _next_page(self) noexcept nogil
    cdef void _gather(self) noexcept nogil
    cdef IndexEntry* _write_entries(self, uint8_t** rows, uint64_t* prefixes, int64_t count,
                                    IndexEntry* entry) noexcept nogil
