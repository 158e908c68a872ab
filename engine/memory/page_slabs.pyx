"""Native memory of a MemoryManager: slabs that are mapped once, free list, large pages.

    slabs_create ─► (slabs_pop ─► slabs_push)* ─► slabs_destroy          under the mutex, without the GIL

The drawing and the structures are in ``page_slabs.pxd``.

Invariants
    pages_out + free_count + (pages never mapped) + large_pages fit page_count, because owners reserve their limits;
    owners[n] is 0 exactly when page n is on the free list or never was mapped;
    resident memory stays near the budget: when large pages (which lie beside the range), blocks of files that owners
    read within their reservations, what is kept free for others, and resident pages exceed it together, the coldest
    free pages go back to the operating system.

Huge pages save misses of the TLB (a hash join's table: a millisecond of CPU for each slab) and are cheap where memory
is there. A virtual machine that gave free memory back to its host gets it again with the first touch, and huge pages
are made of just that memory: 6 ms a slab, where small ones, made of remains, take 1. So each slab's time is looked at:
after a dear one the next few are of small pages, more with each time that huge ones are tried again and still dear.

A large page is contiguous memory for a record that no page holds. One that counts as no pages is for a record that the
owner's pool has no room for: memory beyond the budget. It is there at once, like everything here; a thread that may
wait for such memory does so before (``memory.budget``).

Limits: page_count < 2**31. Source: the slabs of Flink's MemoryManager; recycling order after jemalloc's dirty pages.

Held by: tests/memory/test_manager.py
"""

from libc.stdint cimport uintptr_t
from libc.stdlib cimport calloc, free, malloc

from engine.memory.status cimport ASSERT

cdef extern from *:
    """
    #include <pthread.h>
    #include <stdlib.h>
    #include <sys/mman.h>
    #include <time.h>

    #ifndef MADV_POPULATE_WRITE
    #define MADV_POPULATE_WRITE 23
    #endif
    #ifdef NDEBUG
    #define DREY_SINGLE_PAGES 0
    #else
    #define DREY_SINGLE_PAGES 1
    #endif

    static void* drey_reserve(size_t size)
    {
        void* start = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        return start == MAP_FAILED ? NULL : start;
    }

    static int64_t drey_thread_ns(void)
    {
        struct timespec now;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
    }

    /* Memory at a boundary of that alignment, both of whole pages of the system; NULL when there is none. */
    static void* drey_map_aligned(size_t size, size_t alignment)
    {
        uint8_t* mapped = mmap(NULL, size + alignment, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        size_t before;
        if (mapped == MAP_FAILED)
            return NULL;
        before = (alignment - (uintptr_t) mapped % alignment) % alignment;
        if (before > 0)
            munmap(mapped, before);
        munmap(mapped + before + size, alignment - before);
        return mapped + before;
    }

    /* Make part of a reserved range usable and resident; the nanoseconds that took, or -1. */
    static int64_t drey_map_slab(void* start, size_t size, int huge)
    {
        int64_t began = drey_thread_ns();
        if (mprotect(start, size, PROT_READ | PROT_WRITE) != 0)
            return -1;
        madvise(start, size, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
        madvise(start, size, MADV_POPULATE_WRITE);     /* refused before Linux 5.14: then the first touch does it */
        return drey_thread_ns() - began;
    }
    """
    const bint SINGLE_PAGES "DREY_SINGLE_PAGES"
    const int MADV_DONTNEED
    const int MADV_HUGEPAGE
    void* drey_reserve(size_t size) noexcept nogil
    void* drey_map_aligned(size_t size, size_t alignment) noexcept nogil
    int64_t drey_map_slab(void* start, size_t size, int huge) noexcept nogil
    int munmap(void* start, size_t size) noexcept nogil
    int madvise(void* start, size_t size, int advice) noexcept nogil
    int posix_memalign(void** memory, size_t alignment, size_t size) noexcept nogil
    int pthread_mutex_init(pthread_mutex_t* mutex, void* attributes) noexcept nogil
    int pthread_mutex_destroy(pthread_mutex_t* mutex) noexcept nogil
    int pthread_cond_init(pthread_cond_t* condition, void* attributes) noexcept nogil
    int pthread_cond_destroy(pthread_cond_t* condition) noexcept nogil
    int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) noexcept nogil
    int pthread_cond_broadcast(void* condition) noexcept nogil

cdef int64_t SLAB_BYTES = 2 << 20
cdef int64_t MAPPED_STEP_BYTES = 64 << 10   # a multiple of any system's pages
cdef int64_t PREFIX_BYTES = 64      # before a large page and before a page that is an allocation of its own
cdef int64_t LARGE_MAPPED_MIN = 256 << 10   # large pages are mapped, smaller ones are of the heap
cdef int64_t DEAR_SLAB_NS = 2_000_000       # to make a slab resident: of memory that is there it takes a tenth
cdef int32_t SMALL_SLABS_MIN = 7
cdef int32_t SMALL_SLABS_MAX = 63


# ---------------------------------------------------------------------------------------------------- range and slabs


cdef PageSlabs* slabs_create(int64_t page_count, int32_t page_size) noexcept nogil:
    cdef PageSlabs* slabs = <PageSlabs*> calloc(1, sizeof(PageSlabs))
    if slabs == NULL:
        return NULL
    pthread_mutex_init(&slabs.mutex, NULL)
    pthread_cond_init(&slabs.slab_came, NULL)
    slabs.page_size = page_size
    slabs.page_count = page_count
    slabs.free_pages = <int32_t*> malloc(<size_t> page_count * sizeof(int32_t))
    slabs.owners = <int32_t*> calloc(<size_t> page_count, sizeof(int32_t))
    slabs.dropped = <uint8_t*> calloc(<size_t> page_count, 1)
    if SINGLE_PAGES:
        slabs.single_pages = <uint8_t**> calloc(<size_t> page_count, sizeof(uint8_t*))
    else:
        slabs.range_bytes = page_count * page_size + SLAB_BYTES
        slabs.range_start = <uint8_t*> drey_reserve(<size_t> slabs.range_bytes)
        if slabs.range_start != NULL:
            slabs.base = <uint8_t*> ((<uintptr_t> slabs.range_start + SLAB_BYTES - 1) & ~<uintptr_t> (SLAB_BYTES - 1))
    if (slabs.free_pages == NULL or slabs.owners == NULL or slabs.dropped == NULL
            or (slabs.single_pages == NULL and slabs.base == NULL)):
        slabs_destroy(slabs)
        return NULL
    return slabs


cdef void slabs_destroy(PageSlabs* slabs) noexcept nogil:
    cdef LargePage* large = slabs.large
    cdef LargePage* next_large
    cdef int64_t index
    while large != NULL:
        next_large = large.next
        free_large(large)
        large = next_large
    if slabs.single_pages != NULL:
        for index in range(slabs.page_count):
            free(slabs.single_pages[index])
    if slabs.range_start != NULL:
        munmap(slabs.range_start, <size_t> slabs.range_bytes)
    free(slabs.single_pages)
    free(slabs.free_pages)
    free(slabs.owners)
    free(slabs.dropped)
    pthread_cond_destroy(&slabs.slab_came)
    pthread_mutex_destroy(&slabs.mutex)
    free(slabs)


cdef bint map_slab(PageSlabs* slabs, uint8_t* start, size_t size) noexcept nogil:
    """Make a slab resident, on huge pages as long as those are not dear; false when the system refuses.

    The mutex is let go meanwhile: most of what others take and give back is there.
    """
    cdef bint huge = slabs.small_slabs_left == 0
    cdef int64_t taken_ns
    slabs.slabs_coming += 1
    pthread_mutex_unlock(&slabs.mutex)
    taken_ns = drey_map_slab(start, size, huge)
    pthread_mutex_lock(&slabs.mutex)
    slabs.slabs_coming -= 1
    pthread_cond_broadcast(&slabs.slab_came)
    if taken_ns < 0:
        return False
    if taken_ns <= DEAR_SLAB_NS:
        if huge:
            slabs.small_slabs_run = 0
        elif slabs.small_slabs_left > 0:
            slabs.small_slabs_left -= 1
    elif huge:
        slabs.small_slabs_run = min(2 * slabs.small_slabs_run + SMALL_SLABS_MIN, SMALL_SLABS_MAX)
        slabs.small_slabs_left = slabs.small_slabs_run
    else:               # small ones are as dear
        slabs.small_slabs_left = 0
    return True


cdef bint grow(PageSlabs* slabs) noexcept nogil:
    """Put the pages of the next slab on the free list; false when there is none or the system refuses.

    The mutex may be let go meanwhile, so that others may have taken those pages.
    """
    cdef int64_t count = max(SLAB_BYTES // slabs.page_size, 1)
    cdef int64_t first = slabs.pages_mapped
    cdef int64_t index
    if count > slabs.page_count - first:
        count = slabs.page_count - first
    if count == 0:
        if slabs.slabs_coming == 0:
            return False
        pthread_cond_wait(&slabs.slab_came, &slabs.mutex)
        return True
    slabs.pages_mapped += count
    slabs.pages_resident += count
    if not SINGLE_PAGES:
        if not map_slab(slabs, slabs.base + first * slabs.page_size, <size_t> (count * slabs.page_size)):
            slabs.pages_resident -= count
            if slabs.pages_mapped == first + count:     # else another slab lies behind it: it is lost
                slabs.pages_mapped = first
            return False
    for index in range(count):              # the lowest address ends on top
        slabs.free_pages[slabs.free_count + index] = <int32_t> (first + count - 1 - index)
    slabs.free_count += count
    return True


cdef void drop_cold_pages(PageSlabs* slabs, int64_t pages_wanted) noexcept nogil:
    """Give memory of free pages back to the operating system until that many more pages fit the budget."""
    cdef int64_t index
    cdef int64_t budget = slabs.page_count - slabs.kept_free_pages
    cdef int32_t page_index
    for index in range(slabs.free_count):
        if slabs.pages_resident + slabs.large_pages + slabs.outside_pages + pages_wanted <= budget:
            return
        page_index = slabs.free_pages[index]
        if slabs.dropped[page_index] == 0:
            if not SINGLE_PAGES:
                madvise(slabs.base + <int64_t> page_index * slabs.page_size, <size_t> slabs.page_size, MADV_DONTNEED)
            slabs.dropped[page_index] = 1
            slabs.pages_resident -= 1


cdef inline void count_out(PageSlabs* slabs, int64_t pages) noexcept nogil:
    slabs.pages_out += pages
    if slabs.pages_out > slabs.pages_peak:
        slabs.pages_peak = slabs.pages_out


# -------------------------------------------------------------------------------------------------------------- pages


cdef uint8_t* slabs_pop(PageSlabs* slabs, int32_t owner) noexcept nogil:
    cdef int32_t index
    cdef void* memory = NULL
    while slabs.free_count == 0:
        if not grow(slabs):
            return NULL
    index = slabs.free_pages[slabs.free_count - 1]
    ASSERT(slabs.owners[index] == 0)
    if SINGLE_PAGES:
        if posix_memalign(&memory, 64, <size_t> (PREFIX_BYTES + slabs.page_size)) != 0:
            return NULL
        (<int64_t*> memory)[0] = index
        slabs.single_pages[index] = <uint8_t*> memory
        memory = <uint8_t*> memory + PREFIX_BYTES
    else:
        memory = slabs.base + <int64_t> index * slabs.page_size
    if slabs.dropped[index]:
        slabs.dropped[index] = 0
        slabs.pages_resident += 1
    slabs.free_count -= 1
    slabs.owners[index] = owner
    count_out(slabs, 1)
    return <uint8_t*> memory


cdef void slabs_push(PageSlabs* slabs, uint8_t* page, int32_t owner) noexcept nogil:
    cdef int64_t index
    if SINGLE_PAGES:
        index = (<int64_t*> (page - PREFIX_BYTES))[0]
    else:
        index = (page - slabs.base) // slabs.page_size
    ASSERT(0 <= index and index < slabs.page_count)
    ASSERT(slabs.owners[index] == owner)
    if SINGLE_PAGES:
        free(slabs.single_pages[index])
        slabs.single_pages[index] = NULL
    slabs.owners[index] = 0
    slabs.free_pages[slabs.free_count] = <int32_t> index
    slabs.free_count += 1
    slabs.pages_out -= 1


cdef int64_t slabs_take_back(PageSlabs* slabs, int32_t owner) noexcept nogil:
    cdef int64_t count = 0
    cdef int64_t index
    cdef LargePage* large = slabs.large
    cdef LargePage* next_large
    for index in range(slabs.pages_mapped):
        if slabs.owners[index] == owner:
            if SINGLE_PAGES:
                slabs_push(slabs, slabs.single_pages[index] + PREFIX_BYTES, owner)
            else:
                slabs_push(slabs, slabs.base + index * slabs.page_size, owner)
            count += 1
    while large != NULL:
        next_large = large.next
        if large.owner == owner:
            count += max(large.pages, 1)
            slabs_give_large(slabs, <uint8_t*> large + PREFIX_BYTES, large.size, owner)
        large = next_large
    return count


# -------------------------------------------------------------------------------------------------------- large pages


# A sorter takes one for each run, aligned for huge pages. The heap would cut it out of something larger, and keep what
# is left on both sides and between those that come and go: up to twice the budget, never used again.


cdef inline size_t mapped_bytes(int64_t size) noexcept nogil:
    """Return the bytes mapped for a large page; 0: it is on the heap."""
    if SINGLE_PAGES or size < LARGE_MAPPED_MIN:
        return 0
    return <size_t> ((PREFIX_BYTES + size + MAPPED_STEP_BYTES - 1) & ~(MAPPED_STEP_BYTES - 1))


cdef uint8_t* slabs_take_large(PageSlabs* slabs, int64_t size, int64_t pages, int32_t owner) noexcept nogil:
    cdef void* memory = NULL
    cdef LargePage* large
    cdef size_t mapped = mapped_bytes(size)
    cdef bint huge = size >= 2 * SLAB_BYTES
    drop_cold_pages(slabs, pages)
    if mapped > 0:
        memory = drey_map_aligned(mapped, <size_t> (SLAB_BYTES if huge else MAPPED_STEP_BYTES))
        if memory != NULL and huge:         # whole ones only: nothing beyond it becomes resident
            madvise(memory, mapped & ~<size_t> (SLAB_BYTES - 1), MADV_HUGEPAGE)
    elif posix_memalign(&memory, 64, <size_t> (PREFIX_BYTES + size)) != 0:
        memory = NULL
    if memory == NULL:
        return NULL
    large = <LargePage*> memory
    large.size = size
    large.pages = pages
    large.owner = owner
    large.previous = NULL
    large.next = slabs.large
    if slabs.large != NULL:
        slabs.large.previous = large
    slabs.large = large
    slabs.large_pages += pages
    count_out(slabs, pages)
    return <uint8_t*> memory + PREFIX_BYTES


cdef int64_t slabs_give_large(PageSlabs* slabs, uint8_t* memory, int64_t size, int32_t owner) noexcept nogil:
    cdef LargePage* large = <LargePage*> (memory - PREFIX_BYTES)
    cdef int64_t pages = large.pages
    ASSERT(large.size == size)
    ASSERT(large.owner == owner)
    if large.previous != NULL:
        large.previous.next = large.next
    else:
        slabs.large = large.next
    if large.next != NULL:
        large.next.previous = large.previous
    slabs.large_pages -= pages
    slabs.pages_out -= pages
    free_large(large)
    return pages


cdef inline void free_large(LargePage* large) noexcept nogil:
    cdef size_t mapped = mapped_bytes(large.size)
    if mapped > 0:
        munmap(large, mapped)
    else:
        free(large)


cdef void slabs_hold_outside(PageSlabs* slabs, int64_t pages) noexcept nogil:
    slabs.outside_pages = pages
    drop_cold_pages(slabs, 0)


cdef void slabs_keep_free(PageSlabs* slabs, int64_t pages) noexcept nogil:
    slabs.kept_free_pages = pages
    drop_cold_pages(slabs, 0)


cdef void slabs_drop_free(PageSlabs* slabs) noexcept nogil:
    drop_cold_pages(slabs, slabs.page_count)
