"""BloomFilter: which keys the spilled build rows of a level have, so that probe rows without match are not spilled.

    grow(rows) ─► add_all(hashes) ... ─► grow(rows) ... ─► expect(hashes), may_contain(hash) ... ─► give_up()

    hash ──remix──► 32 high bits: word      3 * 6 low bits: three bits of that word        one cache line for each key

Its pages are pages of the pool, up to pages_max: one at first, twice as many whenever there would be less than 20 bits
for each row and there are some to have. More would keep out no row that counts, and a page is room for a thousand rows
that need not be spilled. A word of a filter that doubles stands for its two halves from then on, so bits set early are
looser: while it grows a hundredfold it comes to let a twentieth of the other keys pass. At less than 2.5 bits it gives
up: its pages go back, and every key may be there from then on. So it does when it is asked for nothing: a look costs a
cache miss, and of TRIAL_ROWS keys it has to keep out at least one in TRIAL_SHARE.

Invariant: what was added is contained as long as the filter is open. Source: Putze, Sanders, Singler, "Cache-, hash-
and space-efficient Bloom filters" (the blocked filter); Flink's BloomFilter of a spilled partition's buckets.

Held by: tests/join/test_hash_join_spill.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from engine.memory.page_pool cimport PagePool
from engine.records.byte_kernels cimport prefetch
from engine.records.hashing cimport rehash

cdef enum:
    ROWS_PER_WORD = 3           # more of them, and it is to grow
    ROWS_PER_WORD_MAX = 25
    AHEAD = 12                  # rows whose word is on its way
    TRIAL_ROWS = 1 << 18
    TRIAL_SHARE = 16
    # seed of the remix, far from the levels of partitions
    SEED = 0xB100


cdef inline uint64_t _bits(uint64_t mixed) noexcept nogil:
    return (<uint64_t>1 << (mixed & 63)) | (<uint64_t>1 << ((mixed >> 6) & 63)) | (<uint64_t>1 << ((mixed >> 12) & 63))


@cython.final
cdef class BloomFilter:
    """The filter of one level; the methods are kernels (see the .pxd)."""

    def __cinit__(self, PagePool pool not None, int64_t pages_max):
        cdef int32_t shift = 0
        self._pool = pool
        self._pages_max = pages_max
        while (<int64_t>16 << shift) <= pool.page_size:
            shift += 1
        self._page_shift = shift
        self._page_mask = (<uint64_t>1 << shift) - 1

    def __dealloc__(self):
        free(self._pages)

    cdef bint is_given_up(self) noexcept nogil:
        return self._is_given_up

    cdef void grow(self, int64_t rows) noexcept nogil:
        if self._is_given_up or self._pages_max == 0:
            return
        if not self.is_open and not self._begin():
            return
        while (self._rows + rows > <int64_t>self._word_count * ROWS_PER_WORD
                and 2 * self._page_count <= self._pages_max and self._page_count <= self._pool.pages_free()):
            if not self._double():
                break

    cdef bint _begin(self) noexcept nogil:
        cdef uint8_t* page
        if self._pages == NULL:
            self._pages = <uint64_t**>malloc(sizeof(uint64_t*))
            if self._pages == NULL:
                return False
        page = self._pool.take()
        if page == NULL:
            return False
        memset(page, 0, <size_t>8 << self._page_shift)
        self._pages[0] = <uint64_t*>page
        self._page_count = 1
        self._word_count = <uint64_t>1 << self._page_shift
        self.is_open = True
        return True

    # Word w becomes the words 2w and 2w + 1, which is where its keys are looked for from now on.
    cdef bint _double(self) noexcept nogil:
        cdef int64_t half = <int64_t>1 << (self._page_shift - 1)
        cdef int64_t index, word
        cdef uint64_t* lower
        cdef uint64_t* upper
        cdef uint64_t** pages = <uint64_t**>malloc(2 * self._page_count * sizeof(uint64_t*))
        if pages == NULL:
            return False
        for index in range(self._page_count):
            pages[2 * index] = self._pages[index]
            pages[2 * index + 1] = <uint64_t*>self._pool.take()
            if pages[2 * index + 1] == NULL:
                # another taker was faster; the pages so far have nothing in them
                for word in range(index):
                    self._pool.give(<uint8_t*>pages[2 * word + 1])
                free(pages)
                return False
        for index in range(self._page_count):
            lower = pages[2 * index]
            upper = pages[2 * index + 1]
            for word in range(half):
                upper[2 * word] = lower[half + word]
                upper[2 * word + 1] = lower[half + word]
            for word in range(half - 1, -1, -1):
                lower[2 * word + 1] = lower[word]
                lower[2 * word] = lower[word]
        free(self._pages)
        self._pages = pages
        self._page_count *= 2
        self._word_count *= 2
        return True

    cdef inline uint64_t* _word(self, uint64_t mixed) noexcept nogil:
        cdef uint64_t index = ((mixed >> 32) * self._word_count) >> 32
        return &self._pages[index >> self._page_shift][index & self._page_mask]

    cdef void add_all(self, const uint64_t* hashes, int64_t count) noexcept nogil:
        cdef int64_t index
        cdef uint64_t mixed
        self.grow(count)
        self._rows += count
        if self._rows > <int64_t>self._word_count * ROWS_PER_WORD_MAX:
            self.give_up()
            return
        for index in range(count):
            if index + AHEAD < count:
                prefetch(self._word(rehash(hashes[index + AHEAD], SEED)))
            mixed = rehash(hashes[index], SEED)
            self._word(mixed)[0] |= _bits(mixed)

    cdef void expect(self, const uint64_t* hashes, int64_t count) noexcept nogil:
        cdef int64_t index
        if self.is_open:
            for index in range(count):
                prefetch(self._word(rehash(hashes[index], SEED)))

    cdef bint may_contain(self, uint64_t hash) noexcept nogil:
        cdef uint64_t mixed, bits
        cdef bint is_there
        if not self.is_open:
            return True
        mixed = rehash(hash, SEED)
        bits = _bits(mixed)
        is_there = self._word(mixed)[0] & bits == bits
        self._asked_rows += 1
        self._kept_out_rows += not is_there
        if self._asked_rows == TRIAL_ROWS:
            if self._kept_out_rows < TRIAL_ROWS // TRIAL_SHARE:
                self.give_up()
            self._asked_rows = self._kept_out_rows = 0
        return is_there

    cdef void give_up(self) noexcept nogil:
        cdef int64_t index
        for index in range(self._page_count):
            self._pool.give(<uint8_t*>self._pages[index])
        self._page_count = 0
        self.is_open = False
        self._is_given_up = True
