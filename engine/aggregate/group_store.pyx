"""GroupStore: the records of one partition of a group table, in pages of the pool.

Two kinds of record lie side by side: groups, which never move and never grow, and the bytes of variable-size states
(the longest string so far under max), which are replaced by a new record when they grow; the old record stays unused
until the partition is emptied, unless it has a large page of its own. Records carry their size: a page can be walked.

Each partition has pages of its own, so that emptying it gives whole pages back. Addresses that differ by a multiple of
4096 share a set of the first cache, and a load waits for a store to another one of them; a hundred groups in 64
partitions were the first records of 64 pages, and adding to them took five times as long as it should. So the first
page of each partition begins a cache line later than its neighbour's (page coloring).

Limits: the list of pages (48 bytes for each) lies outside the budget.

Held by: tests/aggregate/test_first_last.py
Held by: tests/aggregate/test_hash_aggregate.py
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, realloc
from libc.string cimport memmove

from engine.memory.page_pool cimport PagePool
from engine.records.byte_kernels cimport LINE_BYTES, WALK_AHEAD, prefetch


cdef enum:
    COLOR_BYTES = 4096          # that addresses must differ by to be the same for the first cache
    COLOR_SHARE = 8             # of a page, a part at most is left unused


cdef void store_begin(GroupStore* store, int64_t number, int64_t page_size) noexcept nogil:
    store.open_page = -1
    store.color = number * LINE_BYTES % max(<int64_t> LINE_BYTES, min(<int64_t> COLOR_BYTES, page_size // COLOR_SHARE))


cdef StorePage* next_page(GroupStore* store) noexcept nogil:
    cdef int64_t capacity
    cdef StorePage* pages
    if store.page_count == store.page_capacity:
        capacity = 2 * store.page_capacity + 8
        pages = <StorePage*> realloc(store.pages, <size_t> capacity * sizeof(StorePage))
        if pages == NULL:
            return NULL
        store.pages = pages
        store.page_capacity = capacity
    return &store.pages[store.page_count]


cdef inline uint8_t* write_header(GroupStore* store, uint8_t* record, int64_t size, uint32_t kind) noexcept nogil:
    (<RecordHeader*> record).size = <uint32_t> size
    (<RecordHeader*> record).kind = kind
    store.used_bytes += size
    return record


cdef uint8_t* store_place(GroupStore* store, PagePool pool, int64_t size, uint32_t kind, bint reserved) noexcept nogil:
    cdef StorePage* page
    cdef bint is_large = size > pool.page_size
    cdef uint8_t* memory
    if store.open_page >= 0 and not is_large:
        page = &store.pages[store.open_page]
        if page.used + size <= page.size:
            page.used += size
            return write_header(store, page.memory + page.used - size, size, kind)
    page = next_page(store)
    if page == NULL:
        return NULL
    memory = pool.take_large(size, False) if is_large else pool.take()
    if memory == NULL and reserved:
        is_large = True
        memory = pool.take_large(size, True)
    if memory == NULL:
        return NULL
    page.memory = memory
    page.size = size if is_large else pool.page_size
    page.begin = store.color if store.page_count == 0 and store.color + size <= page.size else 0
    page.used = page.begin + size
    page.is_large = is_large
    if not is_large:
        store.open_page = store.page_count
    store.page_count += 1
    return write_header(store, memory + page.begin, size, kind)


cdef inline void give_page(PagePool pool, const StorePage* page) noexcept nogil:
    if page.is_large:
        pool.give_large(page.memory, page.size)
    else:
        pool.give(page.memory)


cdef void store_drop_large(GroupStore* store, PagePool pool, const uint8_t* record) noexcept nogil:
    cdef int64_t index = store.page_count - 1
    if (<const RecordHeader*> record).size <= <uint32_t> pool.page_size:
        return
    while index >= 0 and store.pages[index].memory != record:
        index -= 1
    if index < 0:
        return
    store.used_bytes -= store.pages[index].used
    give_page(pool, &store.pages[index])
    memmove(&store.pages[index], &store.pages[index + 1],
            <size_t> (store.page_count - index - 1) * sizeof(StorePage))
    store.page_count -= 1
    if store.open_page > index:
        store.open_page -= 1


cdef void store_clear(GroupStore* store, PagePool pool) noexcept nogil:
    cdef int64_t index
    for index in range(store.page_count):
        give_page(pool, &store.pages[index])
    store.page_count = 0
    store.open_page = -1
    store.group_count = 0
    store.used_bytes = 0


cdef void store_destroy(GroupStore* store) noexcept nogil:
    free(store.pages)
    store.pages = NULL
    store.page_capacity = 0


cdef uint8_t* store_next_group(const GroupStore* store, int64_t* page_index, int64_t* offset) noexcept nogil:
    cdef const RecordHeader* header
    cdef const StorePage* page
    while page_index[0] < store.page_count:
        page = &store.pages[page_index[0]]
        offset[0] = max(offset[0], page.begin)
        while offset[0] < page.used:
            header = <const RecordHeader*> (page.memory + offset[0])
            prefetch(page.memory + offset[0] + WALK_AHEAD)
            offset[0] += header.size
            if header.kind == RECORD_GROUP:
                return <uint8_t*> header
        page_index[0] += 1
        offset[0] = 0
    return NULL
