# The native part of a MemoryManager: address range, free list, owner of every page.
#
#     range  ├─ slab 0 (2 MiB) ─┼─ slab 1 ─┼─ ... ─┼─ reserved, not yet accessible ─┤     page_count * page_size bytes
#              page 0, 1, 2 ...                    ▲
#                                         pages_mapped: grows by one slab when the free list is empty
#
# The range is reserved once (PROT_NONE: costs nothing) at a 2 MiB boundary, so that a page's number is a subtraction;
# slabs become accessible and resident (on huge pages where those are cheap) one after the other as they are needed, and
# are recycled, last in first out: a page touched twice is warm. In a build with assertions every page is an allocation
# of its own instead, freed when it is given back, so that the address sanitizer sees overruns and late writes.
#
# Functions named slabs_* (apart from create and destroy) are called with the mutex held.

from libc.stdint cimport int32_t, int64_t, uint8_t

cdef extern from "<pthread.h>" nogil:
    ctypedef struct pthread_mutex_t:
        pass
    ctypedef struct pthread_cond_t:
        pass
    int pthread_mutex_lock(pthread_mutex_t* mutex)
    int pthread_mutex_unlock(pthread_mutex_t* mutex)

cdef struct LargePage:              # lies in the 64 bytes before the memory given out
    LargePage* next
    LargePage* previous
    int64_t size                    # bytes given out
    int64_t pages                   # counted for the owner; 0: beyond its limit
    int32_t owner                   # pool id

cdef struct PageSlabs:
    pthread_mutex_t mutex
    pthread_cond_t slab_came        # a slab is there, or was refused
    int32_t slabs_coming            # slabs that threads make resident now, without the mutex; part of pages_mapped
    int32_t page_size               # bytes, a power of two
    int64_t page_count              # the budget
    int64_t pages_mapped            # pages that have been accessible, <= page_count
    int64_t pages_out               # held by owners now, large pages counted in pages
    int64_t pages_peak              # highest pages_out so far
    int64_t pages_resident          # pages_mapped without those given back to the operating system
    int64_t large_pages             # part of pages_out that is large pages
    int64_t outside_pages           # what owners hold elsewhere of what they reserved here, in pages
    int64_t kept_free_pages         # kept free for others, of the budget
    int64_t free_count              # pages on the free list
    int32_t* free_pages             # page numbers, a stack: the top is warmest
    int32_t* owners                 # of every page: pool id, 0 when free
    uint8_t* dropped                # of every page: 1 when its memory went back to the operating system
    uint8_t* base                   # first page (release builds)
    uint8_t* range_start            # what munmap gets
    int64_t range_bytes
    uint8_t** single_pages          # of every page: its own allocation (builds with assertions)
    LargePage* large                # those that are out
    int32_t small_slabs_left        # slabs to be made of small pages before huge ones are tried again
    int32_t small_slabs_run         # how many that were last time, 0 when huge ones were cheap

# A new range, nothing touched; NULL when the operating system refuses. page_size is a power of two >= 4096.
cdef PageSlabs* slabs_create(int64_t page_count, int32_t page_size) noexcept nogil
# Unmap everything, also what is still out.
cdef void slabs_destroy(PageSlabs* slabs) noexcept nogil
# One page for the owner (>= 1), or NULL when none is left. Lets the mutex go while a slab is made resident.
cdef uint8_t* slabs_pop(PageSlabs* slabs, int32_t owner) noexcept nogil
# Put a page back. Caller guarantees that it is out and belongs to the owner.
cdef void slabs_push(PageSlabs* slabs, uint8_t* page, int32_t owner) noexcept nogil
# Contiguous memory beside the pages, aligned to 64, counted as `pages`; NULL when the operating system refuses.
cdef uint8_t* slabs_take_large(PageSlabs* slabs, int64_t size, int64_t pages, int32_t owner) noexcept nogil
# Free it; returns the pages that it counted for.
cdef int64_t slabs_give_large(PageSlabs* slabs, uint8_t* memory, int64_t size, int32_t owner) noexcept nogil
# Say how many pages' worth of memory owners hold elsewhere, within their reservations: as much free memory goes back.
cdef void slabs_hold_outside(PageSlabs* slabs, int64_t pages) noexcept nogil
# Say how many pages are kept free for others: as much free memory goes back, what is out stays out.
cdef void slabs_keep_free(PageSlabs* slabs, int64_t pages) noexcept nogil
# Take back all pages of an owner, large ones too; returns their number (a large one beyond its limit counts as one).
cdef int64_t slabs_take_back(PageSlabs* slabs, int32_t owner) noexcept nogil
# Give the memory of all free pages back to the operating system.
cdef void slabs_drop_free(PageSlabs* slabs) noexcept nogil
