# DirectPages: cells by the number that is a row's key, in pages of a pool.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from engine.join.join_side cimport JoinSide
from engine.memory.page_pool cimport PagePool
from engine.records.arrow_batch cimport ArrowBatch, ColumnView


@cython.final
cdef class DirectPages:
    cdef int32_t width          # bytes of the key on both sides; 0: keys are not one integer
    cdef int32_t slot           # where it lies in a build row
    cdef int32_t column         # of the probe batch
    cdef uint64_t sign          # the sign bit of a key, 0: it has none
    cdef int32_t shift          # cells of a page as a power of two
    cdef uint64_t mask
    cdef uint8_t** pages        # by page of keys; NULL: no row has one of them
    cdef uint64_t first         # the keys of pages[0]
    cdef uint64_t size          # of pages
    cdef uint64_t count         # taken from the pool
    cdef PagePool _pool
    cdef int32_t _page_bytes
    cdef bint _is_borrowed      # the pages are another one's

    # Have room for pages of keys first to last beside those that are there, and, unless all of them are known, for some
    # more. False: no memory, or they lie too far apart to come one by one.
    cdef bint reach(self, uint64_t first, uint64_t last, bint all_known) noexcept nogil
    # The empty cells of a page of keys within reach, taken from the pool; NULL: it has none.
    cdef uint8_t* add(self, uint64_t number) noexcept nogil
    # Give a page back, its cells with it.
    cdef void drop(self, uint64_t index) noexcept nogil
    # Read the pages of another one, which must stay as it is until clear().
    cdef void borrow(self, DirectPages owner) noexcept nogil
    cdef void clear(self) noexcept nogil

# The page of a page number; NULL: there is none. Loops over keys have these fields of their DirectPages in variables.
cdef inline uint8_t* page_of(uint8_t** pages, uint64_t first, uint64_t size, uint64_t number) noexcept nogil:
    number -= first
    return pages[number] if number < size else NULL

# The keys of a probe batch from a row on, width bytes each.
cdef inline const uint8_t* probe_keys(DirectPages cells, ArrowBatch batch, int64_t start) noexcept nogil:
    cdef const ColumnView* column = &batch.columns[cells.column]
    return column.values + (column.offset + start) * cells.width
