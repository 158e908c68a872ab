# PagePool: the pages that one owner may hold of a MemoryManager, usable from kernels without the GIL.
#
#     MemoryManager ── pool("sort of v3-0", pages=256) ──► PagePool ── take() ──► uint8_t* of page_size bytes
#
# A page is page_size bytes at an address aligned to 64 (32 KiB by default). Pages may be taken and given from any
# thread. A pool is closed by its owner after all pages are given back; pages still out at close are a leak, counted
# and reported by the manager, and taken back.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t


@cython.final
cdef class PagePool:
    cdef readonly str owner             # shown in leak reports and budget errors
    cdef readonly int32_t page_size     # bytes
    cdef readonly int64_t page_limit    # pages this owner may hold at one time
    cdef readonly int64_t pages_used    # pages held now, large ones counted in pages (rounded up)
    cdef readonly int64_t pages_peak    # highest pages_used so far
    cdef object _manager
    cdef void* _state                   # the manager's native part (mutex, free list, slabs)
    cdef bint _closed
    cdef int32_t _id                    # what marks this pool's pages in the manager's owner table, >= 1

    # One page, or NULL when page_limit is reached. Content is whatever the last owner left.
    cdef uint8_t* take(self) noexcept nogil
    # Give one page back. Caller guarantees that it came from take() of this pool and is given once.
    cdef void give(self, uint8_t* page) noexcept nogil
    # Contiguous memory for one record larger than a page; counts ceil(size / page_size) pages; NULL when it does not
    # fit the limit. With beyond_limit it counts as none, for the one record that has to be there whatever its size;
    # NULL then only when the machine has no memory.
    cdef uint8_t* take_large(self, int64_t size, bint beyond_limit) noexcept nogil
    cdef void give_large(self, uint8_t* memory, int64_t size) noexcept nogil
    cdef int64_t pages_free(self) noexcept nogil
    cdef void _count(self, int64_t pages) noexcept nogil

# take_large for one row and one step of work, within the limit or beyond it. The caller has waited for the room of a
# very wide one (records.wide_rows). Raises: MemoryBudgetError.
cdef uint8_t* take_for_row(PagePool pool, int64_t size) except NULL nogil

# For the manager, which has reserved the pages.
cdef PagePool new_pool(object manager, void* state, int32_t pool_id, str owner, int32_t page_size, int64_t page_limit)
