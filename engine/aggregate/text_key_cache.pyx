"""TextKeyCache: the groups of short texts that came before, found without hash and table.

    text of up to 16 bytes ──► three words (``short_text``) ──► WAYS places of a set ──► the same three? its group

Most texts that people group by are short, and few are different: priorities, countries, states of something. First and
last bytes and the size are then all of such a text, so comparing three words compares it, and where a whole block of
rows is found, nothing of it is hashed, looked up, or compared column by column. One row that is not here makes the
table look for all of the block, and keep what it finds.

A set holds four texts, so a few hundred different ones find places beside each other: one text that has none would make
every block of rows go the other way.

Blocks of rows that are not here MISSES_MAX times in a row are followed by REST_BLOCKS which are not looked at: where
texts are long, or many, this costs a few rows of sixty blocks.

Invariant: places hold groups of the table; dropping one calls forget(). A batch with texts outside of their rows has
offsets of another width (``outside_values``), and is not looked at.

Source: the caches of grouping by a dictionary in DuckDB and Velox; texts instead of codes are ours.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from engine.records.arrow_batch cimport ColumnView, KIND_BYTES
from engine.records.short_text cimport ShortText, equal_short_texts, place_of_short_text, read_short_text

cdef enum:
    SET_BITS = 9
    WAYS = 4
    PLACES = 4 * 512
    MISSES_MAX = 4
    REST_BLOCKS = 60


@cython.final
cdef class TextKeyCache:
    """The recent groups of one table whose keys are texts (KIND_BYTES), or nothing; methods: see the .pxd."""

    def __cinit__(self, bint are_texts):
        if not are_texts:
            return
        self._places = <CachedGroup*>calloc(PLACES, sizeof(CachedGroup))
        if self._places == NULL:
            raise MemoryError("recent groups of an aggregate")

    def __dealloc__(self):
        free(self._places)

    cdef bint find(self, const ColumnView* column, int64_t start, int64_t count, uint8_t** groups) noexcept nogil:
        cdef const int32_t* offsets = <const int32_t*>column.offsets + column.offset + start
        cdef ShortText wanted
        cdef uint8_t* group
        cdef int64_t row
        if self._rest:
            self._rest -= 1
            return False
        if self._places == NULL or column.validity != NULL or column.kind != KIND_BYTES:
            return False
        for row in range(count):
            if not read_short_text(column.values + offsets[row], offsets[row + 1] - offsets[row], &wanted):
                break
            group = group_of_text(&self._places[WAYS * place_of_short_text(&wanted, SET_BITS)], &wanted)
            if group == NULL:
                break
            groups[row] = group
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
        cdef CachedGroup found
        cdef int64_t row
        if self._rest or self._places == NULL or column.validity != NULL or column.kind != KIND_BYTES:
            return
        for row in range(count):
            if read_short_text(column.values + offsets[row], offsets[row + 1] - offsets[row], &found.text):
                found.group = groups[row]
                keep_in_set(&self._places[WAYS * place_of_short_text(&found.text, SET_BITS)], &found)

    cdef void forget(self) noexcept nogil:
        if self._places != NULL:
            memset(self._places, 0, PLACES * sizeof(CachedGroup))


cdef inline uint8_t* group_of_text(const CachedGroup* places, const ShortText* wanted) noexcept nogil:
    """Return the group of a text in its set, NULL: it has none there."""
    cdef int32_t way
    for way in range(WAYS):
        if equal_short_texts(&places[way].text, wanted):
            return places[way].group
    return NULL


cdef inline void keep_in_set(CachedGroup* places, const CachedGroup* found) noexcept nogil:
    """Put a text in front of its set, unless it is there; the last one goes where the set is full."""
    cdef int32_t way
    if group_of_text(places, &found.text) != NULL:
        return
    for way in range(WAYS - 1, 0, -1):
        places[way] = places[way - 1]
    places[0] = found[0]
