"""DirectPages: cells by the number that is a row's key, in pages of a pool, of which those exist that have keys.

    key ── with its sign bit turned over ──► number ─┬─ upper bits ──► pages[upper - first] ─► page of cells, or NULL
                                                     └─ lower bits ──► cell in it

For one key that is an integer, date, time or the like, of the same type on both sides. What a cell is, its owners say
(``dense_table``, ``dictionary_table``); 0 is an empty one.

Invariants: a page comes empty and goes back with clear(). Reading writes nothing: any number of threads.

Held by: tests/join/test_dense_table.py
"""

cimport cython
from libc.stdint cimport int32_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from engine.join.join_side cimport JoinSide
from engine.memory.page_pool cimport PagePool
from engine.records.arrow_batch cimport KIND_INT8, KIND_INT64, KIND_UINT64

cdef enum:
    TABLE_PAGES = 1 << 15           # from the first to the last, while rows come


@cython.final
cdef class DirectPages:
    """Pages of cells of cell_bytes; the methods are kernels (see the .pxd)."""

    def __cinit__(self, PagePool pool not None, JoinSide build not None, JoinSide probe not None, int32_t cell_bytes):
        cdef int32_t kind
        self._pool = pool
        if build.key_count == 1 and probe.key_count == 1:
            kind = build.codec.kinds[build.keys[0]]
            self.slot = build.codec.slots[build.keys[0]]
            self.column = probe.keys[0]
            if KIND_INT8 <= kind <= KIND_UINT64 and probe.codec.kinds[self.column] == kind:
                self.width = build.codec.widths[build.keys[0]]
                self.sign = <uint64_t>1 << (8 * self.width - 1) if kind <= KIND_INT64 else 0
        while (cell_bytes << (self.shift + 1)) <= pool.page_size:
            self.shift += 1
        self._page_bytes = cell_bytes << self.shift
        self.mask = (<uint64_t>1 << self.shift) - 1

    def __dealloc__(self):
        if not self._is_borrowed:
            free(self.pages)

    cdef bint reach(self, uint64_t first, uint64_t last, bint all_known) noexcept nogil:
        cdef bint is_below = self.size > 0 and first < self.first
        cdef uint64_t spare
        cdef uint8_t** pages
        if self.size:
            first = min(first, self.first)
            last = max(last, self.first + self.size - 1)
        if not all_known:
            if last - first >= TABLE_PAGES:
                return False
            spare = min((last - first) // 2, TABLE_PAGES - 1 - (last - first))      # not for every page anew
            if is_below:
                first -= min(first, spare)
            else:
                last += spare
        pages = <uint8_t**>calloc(last - first + 1, sizeof(uint8_t*))
        if pages == NULL:
            return False
        if self.size:
            memcpy(pages + (self.first - first), self.pages, self.size * sizeof(uint8_t*))
        free(self.pages)
        self.pages = pages
        self.first = first
        self.size = last - first + 1
        return True

    cdef uint8_t* add(self, uint64_t number) noexcept nogil:
        cdef uint8_t* page = self._pool.take()
        if page != NULL:
            memset(page, 0, self._page_bytes)
            self.pages[number - self.first] = page
            self.count += 1
        return page

    cdef void drop(self, uint64_t index) noexcept nogil:
        self._pool.give(self.pages[index])
        self.pages[index] = NULL
        self.count -= 1

    cdef void borrow(self, DirectPages owner) noexcept nogil:
        self.clear()
        self._is_borrowed = True
        self.pages = owner.pages
        self.first = owner.first
        self.size = owner.size

    cdef void clear(self) noexcept nogil:
        cdef uint64_t index
        if not self._is_borrowed:
            for index in range(self.size):
                if self.pages[index] != NULL:
                    self.drop(index)
            free(self.pages)
        self._is_borrowed = False
        self.pages = NULL
        self.first = 0
        self.size = 0
