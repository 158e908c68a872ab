# EntryPages: the pages of one partition, as a plain struct that scatter kernels write without the GIL.
#
#     entry = [ 8-byte link ][ row ................ ]       resident build rows (link_size 8)
#             ^ row - 8       ^ the row pointer everywhere
#     entry =                [ row ................ ]       rows on their way to a file (link_size 0)
#
#     link:  63..48 row number (small tables)   47..3 next row with the same key   bit 0 matched by a probe row
#
# The link is zero until the table is built. Entries never cross a page; a row that does not fit one lies in a
# LargeEntry of its own. Rows are multiples of 8 bytes, so the low three bits of a row pointer are free.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from engine.memory.page_pool cimport PagePool
from engine.partitions.row_page cimport RowPage, append_page
from engine.records.row_codec cimport row_size

cdef enum:
    LINK_SIZE = 8

cdef extern from *:
    """
    #define DREY_LINK_POINTER 0x0000FFFFFFFFFFF8ULL
    #define DREY_LINK_MATCHED 1ULL
    #define DREY_LINK_NUMBER_SHIFT 48

    /* Links of rows that several threads probe: bits are set, and rows leave chains, by atomic operations. */
    static inline int drey_mark_link(uint64_t* link, int is_shared) {
        uint64_t old = __atomic_load_n(link, __ATOMIC_RELAXED);
        if (old & DREY_LINK_MATCHED)
            return 0;
        if (!is_shared) {
            *link = old | DREY_LINK_MATCHED;
            return 1;
        }
        return !(__atomic_fetch_or(link, DREY_LINK_MATCHED, __ATOMIC_RELAXED) & DREY_LINK_MATCHED);
    }

    /* A link that another thread has just changed stays as it is: the chain is longer, and holds the same rows. */
    static inline void drey_skip_rows(uint64_t* link, uint64_t next) {
        uint64_t old = __atomic_load_n(link, __ATOMIC_RELAXED);
        __atomic_compare_exchange_n(link, &old, (old & ~DREY_LINK_POINTER) | next, 0, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED);
    }
    """
    # Set the matched bit; whether it was not set before, by any thread.
    bint mark_link "drey_mark_link"(uint64_t* link, bint is_shared) noexcept nogil
    # Lead a chain past rows that are not needed in it.
    void skip_rows "drey_skip_rows"(uint64_t* link, uint64_t next_row) noexcept nogil
    const uint64_t LINK_POINTER "DREY_LINK_POINTER"             # where the next pointer lies in a link
    const uint64_t LINK_MATCHED "DREY_LINK_MATCHED"
    const uint32_t LINK_NUMBER_SHIFT "DREY_LINK_NUMBER_SHIFT"

cdef struct LargeEntry:
    uint8_t* memory            # link, then the row
    int64_t size               # bytes, link included
    bint beyond_limit          # its memory counts as no pages of the pool

cdef struct EntryPages:
    RowPage* pages             # the last one is open
    int64_t page_count
    int64_t page_capacity
    LargeEntry* large
    int64_t large_count
    int64_t large_capacity
    int64_t large_bytes
    int64_t row_count
    int64_t row_bytes          # rows only, without links
    int32_t page_size
    int32_t link_size          # LINK_SIZE, or 0 when rows go to a file
    bint spilled

# Position of a walk over all entries.
cdef struct EntryCursor:
    int64_t page
    int64_t offset
    int64_t large

cdef inline uint64_t* row_link(uint8_t* row) noexcept nogil:
    return <uint64_t*>(row - LINK_SIZE)

cdef inline uint8_t* next_of_key(uint8_t* row) noexcept nogil:
    return <uint8_t*>(row_link(row)[0] & LINK_POINTER)

cdef inline void set_next_of_key(uint8_t* row, uint8_t* next_row) noexcept nogil:
    row_link(row)[0] = (row_link(row)[0] & ~LINK_POINTER) | <uint64_t>next_row

# Append an empty page. False when the pool has none.
cdef inline bint open_page(EntryPages* entries, PagePool pool) noexcept nogil:
    return append_page(&entries.pages, &entries.page_count, &entries.page_capacity, pool)

# Room for a row of size bytes (at most page_size - LINK_SIZE) in the open page; NULL when the page is full.
cdef inline uint8_t* place_in_page(EntryPages* entries, int64_t size) noexcept nogil:
    cdef RowPage* page
    cdef uint8_t* row
    if entries.page_count == 0:
        return NULL
    page = &entries.pages[entries.page_count - 1]
    if page.used + size + entries.link_size > entries.page_size:
        return NULL
    row = page.memory + page.used + entries.link_size
    if entries.link_size:
        row_link(row)[0] = 0
    page.used += size + entries.link_size
    entries.row_count += 1
    entries.row_bytes += size
    return row

# The same, taking a page from the pool when the open one is full. NULL: a page must be written out first (spilled
# partitions keep one page only), or the pool is empty.
cdef inline uint8_t* place_row(EntryPages* entries, PagePool pool, int64_t size) noexcept nogil:
    cdef uint8_t* row = place_in_page(entries, size)
    if row != NULL:
        return row
    if entries.spilled and entries.page_count > 0:
        return NULL
    if not open_page(entries, pool):
        return NULL
    return place_in_page(entries, size)

# Room for a row larger than a page; NULL when the budget has none.
cdef uint8_t* place_large(EntryPages* entries, PagePool pool, int64_t size, bint beyond_limit) noexcept nogil
# All links are zero again.
cdef void clear_links(const EntryPages* entries) noexcept nogil
# Up to capacity row pointers from the cursor on; 0 at the end. Linked entries only.
cdef int64_t next_entries(const EntryPages* entries, EntryCursor* cursor, uint8_t** rows,
                          int64_t capacity) noexcept nogil
# Squeeze the links out of a page in place, so that it holds plain rows.
cdef void strip_links(RowPage* page) noexcept nogil
# Give back everything; with keep_page the first page stays, empty.
cdef void release_entries(EntryPages* entries, PagePool pool, bint keep_page) noexcept nogil

# The next rows of a block of plain rows from offset on: at most capacity rows and about max_bytes (never less than
# one row). Returns the count, or -1 when a size does not add up (corrupt).
cdef int64_t next_rows_of_block(const uint8_t* block, int64_t size, int64_t* offset, uint8_t** rows,
                                int64_t capacity, int64_t max_bytes) noexcept nogil
