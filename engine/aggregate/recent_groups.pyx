"""RecentGroups: the groups of short texts that came before, found without hash and table.

    text of up to 16 bytes ──► first 8 bytes, last 8 bytes, size ──► place of PLACES ──► the same three? its group
                               (of 4 to 7 bytes the first and last 4, of up to 3 each byte)

Most texts that people group by are short, and few are different: priorities, countries, states of something. First and
last bytes and the size are then all of such a text, so comparing three words compares it, and where a whole block of
rows is found, nothing of it is hashed, looked up, or compared column by column. One row that is not here makes the
table look for all of the block, and keep what it finds.

Blocks of rows that are not here MISSES_MAX times in a row are followed by REST_BLOCKS which are not looked at: where
texts are long, or many, this costs a few rows of sixty blocks.

Invariant: places hold groups of the table; who drops one calls forget(). A batch with texts outside of their rows has
offsets of another width (``outside_values``), and is not looked at.

Source: the caches of grouping by a dictionary in DuckDB and Velox; texts instead of codes are ours.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from engine.records.arrow_batch cimport ColumnView, KIND_BYTES

cdef enum:
    PLACE_BITS = 9
    PLACES = 512
    TEXT_BYTES_MAX = 16
    MISSES_MAX = 4
    REST_BLOCKS = 60


@cython.final
cdef class RecentGroups:
    """The recent groups of one table whose keys are texts (KIND_BYTES), or nothing; methods: see the .pxd."""

    def __cinit__(self, bint are_texts):
        if not are_texts:
            return
        self._places = <RecentGroup*>calloc(PLACES, sizeof(RecentGroup))
        if self._places == NULL:
            raise MemoryError("recent groups of an aggregate")

    def __dealloc__(self):
        free(self._places)

    cdef bint find(self, const ColumnView* column, int64_t start, int64_t count, uint8_t** groups) noexcept nogil:
        cdef const int32_t* offsets = <const int32_t*>column.offsets + column.offset + start
        cdef RecentGroup wanted
        cdef RecentGroup* place
        cdef int64_t row
        if self._rest:
            self._rest -= 1
            return False
        if self._places == NULL or column.validity != NULL or column.kind != KIND_BYTES:
            return False
        for row in range(count):
            if not _read(column.values + offsets[row], offsets[row + 1] - offsets[row], &wanted):
                break
            place = &self._places[_place_of(&wanted)]
            if place.first != wanted.first or place.last != wanted.last or place.size != wanted.size:
                break
            groups[row] = place.group
        else:
            self._misses = 0
            return True
        self._misses += 1
        if self._misses > MISSES_MAX:
            self._misses = 0
            self._rest = REST_BLOCKS
        return False

    cdef void keep(self, const ColumnView* column, int64_t start, int64_t count, uint8_t** groups) noexcept nogil:
        cdef const int32_t* offsets = <const int32_t*>column.offsets + column.offset + start
        cdef RecentGroup found
        cdef int64_t row
        if self._rest or self._places == NULL or column.validity != NULL or column.kind != KIND_BYTES:
            return
        for row in range(count):
            if _read(column.values + offsets[row], offsets[row + 1] - offsets[row], &found):
                found.group = groups[row]
                self._places[_place_of(&found)] = found

    cdef void forget(self) noexcept nogil:
        if self._places != NULL:
            memset(self._places, 0, PLACES * sizeof(RecentGroup))


# The words of a text; False when it is too long.
cdef inline bint _read(const uint8_t* text, int64_t size, RecentGroup* target) noexcept nogil:
    cdef uint32_t part = 0
    target.first = 0
    target.last = 0
    target.size = <uint64_t>size + 1
    if size >= 8:
        if size > TEXT_BYTES_MAX:
            return False
        memcpy(&target.first, text, 8)
        memcpy(&target.last, text + size - 8, 8)
    elif size >= 4:
        memcpy(&part, text, 4)
        target.first = part
        memcpy(&part, text + size - 4, 4)
        target.last = part
    elif size > 0:
        target.first = text[0] | <uint64_t>text[size >> 1] << 8 | <uint64_t>text[size - 1] << 16
    return True


cdef inline int64_t _place_of(const RecentGroup* text) noexcept nogil:
    cdef uint64_t hash = text.first * <uint64_t>0x9E3779B97F4A7C15
    hash ^= (text.last + text.size) * <uint64_t>0xC2B2AE3D27D4EB4F
    return <int64_t>((hash ^ (hash >> 32)) * <uint64_t>0x9E3779B97F4A7C15 >> (64 - PLACE_BITS))
