"""EntryPages: the pages of one partition and the walk over their entries (layout in ``entry_pages.pxd``).

Kernels only, no Python face. The struct is owned by a HashPartition, which zeroes it, passes it to these kernels and
calls ``release_entries`` at the end. Bounds: a page's ``used`` is what ``place_in_page`` counted, so a walk needs no
checks; bytes that come from a file are checked by ``next_rows_of_block``.

Held by: tests/join/test_hash_join_spill.py
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport realloc
from libc.string cimport memmove, memset

from engine.memory.page_pool cimport PagePool
from engine.partitions.row_page cimport RowPage
from engine.records.byte_kernels cimport LINE_BYTES, WALK_AHEAD, prefetch
from engine.records.row_codec cimport row_size


cdef uint8_t* place_large(EntryPages* entries, PagePool pool, int64_t size, bint beyond_limit) noexcept nogil:
    cdef LargeEntry* entry
    cdef int64_t capacity
    cdef void* grown
    cdef uint8_t* memory
    if entries.large_count == entries.large_capacity:
        capacity = 2 * entries.large_capacity + 4
        grown = realloc(entries.large, capacity * sizeof(LargeEntry))
        if grown == NULL:
            return NULL
        entries.large = <LargeEntry*>grown
        entries.large_capacity = capacity
    memory = pool.take_large(size + LINK_SIZE, beyond_limit)
    if memory == NULL:
        return NULL
    entry = &entries.large[entries.large_count]
    entry.memory = memory
    entry.size = size + LINK_SIZE
    entry.beyond_limit = beyond_limit
    entries.large_count += 1
    entries.large_bytes += entry.size
    entries.row_count += 1
    entries.row_bytes += size
    row_link(memory + LINK_SIZE)[0] = 0
    return memory + LINK_SIZE


cdef int64_t next_entries(const EntryPages* entries, EntryCursor* cursor, uint8_t** rows,
                          int64_t capacity) noexcept nogil:
    cdef int64_t count = 0
    cdef uint8_t* row
    while count < capacity and cursor.page < entries.page_count:
        if cursor.offset >= entries.pages[cursor.page].used:
            cursor.page += 1
            cursor.offset = 0
            continue
        row = entries.pages[cursor.page].memory + cursor.offset + LINK_SIZE
        prefetch(row + WALK_AHEAD)
        cursor.offset += LINK_SIZE + <int64_t>row_size(row)
        rows[count] = row
        count += 1
    while count < capacity and cursor.large < entries.large_count:
        rows[count] = entries.large[cursor.large].memory + LINK_SIZE
        cursor.large += 1
        count += 1
    return count


cdef void clear_links(const EntryPages* entries) noexcept nogil:
    cdef uint8_t* rows[512]
    cdef EntryCursor cursor
    cdef int64_t count, index
    memset(&cursor, 0, sizeof(cursor))
    while True:
        count = next_entries(entries, &cursor, rows, 512)
        if count == 0:
            break
        for index in range(count):
            row_link(rows[index])[0] = 0


cdef void strip_links(RowPage* page) noexcept nogil:
    cdef int64_t source = 0
    cdef int64_t target = 0
    cdef int64_t size
    while source < page.used:
        size = row_size(page.memory + source + LINK_SIZE)
        memmove(page.memory + target, page.memory + source + LINK_SIZE, size)
        source += LINK_SIZE + size
        target += size
    page.used = target


cdef void release_entries(EntryPages* entries, PagePool pool, bint keep_page) noexcept nogil:
    cdef int64_t index
    cdef int64_t kept = 1 if keep_page and entries.page_count > 0 else 0
    for index in range(kept, entries.page_count):
        pool.give(entries.pages[index].memory)
    for index in range(entries.large_count):
        pool.give_large(entries.large[index].memory, entries.large[index].size)
    if kept:
        entries.pages[0].used = 0
    entries.page_count = kept
    entries.large_count = 0
    entries.large_bytes = 0
    entries.row_count = 0
    entries.row_bytes = 0


cdef int64_t next_rows_of_block(const uint8_t* block, int64_t size, int64_t* offset, uint8_t** rows,
                                int64_t capacity, int64_t max_bytes) noexcept nogil:
    cdef int64_t asked = offset[0]
    cdef int64_t count = 0
    cdef int64_t bytes_taken = 0
    cdef int64_t length
    while count < capacity and offset[0] < size:
        while asked < offset[0] + WALK_AHEAD:       # pages of an exchange lie in their writer's cache
            prefetch(block + asked)
            asked += LINE_BYTES
        if size - offset[0] < 8:
            return -1
        length = row_size(block + offset[0])
        if length < 8 or length & 7 or length > size - offset[0]:
            return -1
        if count > 0 and bytes_taken + length > max_bytes:
            break
        rows[count] = <uint8_t*>block + offset[0]
        count += 1
        bytes_taken += length
        offset[0] += length
        asked = max(asked, offset[0])
    return count
