# DictionaryTable: a dictionary-encoded build side: rows that differ in their key alone, each distinct one kept once.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from engine.join.build_table cimport BuildTable
from engine.join.direct_pages cimport DirectPages
from engine.join.entry_pages cimport EntryPages
from engine.records.arrow_batch cimport ArrowBatch
from engine.records.row_codec cimport RowCodec
from engine.records.short_text cimport ShortText

cdef enum:
    CODE_MAX = 255                  # a cell is a byte; code 0: there is no such key
    DISTINCT_ROW_BYTES_MAX = 256
    DISTINCT_ROW_WORDS = 32
    BLOCK_ROWS = 1024               # taken at one time
    HASH_CELLS = 1024
    TEXT_BITS = 9
    TEXTS = 512

cdef struct RecentText:
    ShortText text
    int64_t code


@cython.final
cdef class DictionaryTable(BuildTable):
    cdef RowCodec _codec                 # of build rows
    cdef DirectPages _cells              # of uint8: codes by key
    cdef int64_t _pages_kept             # of the pool, which are left for others
    cdef bint _one_is_enough             # row of each key
    cdef EntryPages _entries             # the distinct rows, their keys zero, with links
    cdef uint8_t* _rows[CODE_MAX + 1]    # by code; 0 is NULL
    cdef int32_t _distinct_count
    cdef uint8_t _codes[HASH_CELLS]      # of rows, by the hash of their bytes, linear probing
    cdef uint64_t _plain[DISTINCT_ROW_WORDS]           # a row with key zero
    cdef uint8_t* _block                 # scratch: BLOCK_ROWS rows
    cdef uint8_t** _block_rows
    cdef uint32_t* _block_sizes
    cdef int32_t _key_column             # of a build batch
    cdef int32_t _text_column            # the only other one, if it is of texts; else -1
    cdef RecentText _texts[TEXTS]        # those that came before, and their rows
    cdef uint8_t _found[BLOCK_ROWS]      # scratch: codes of a block's rows
    cdef uint64_t _walk_page             # of take_back
    cdef uint64_t _walk_cell

    # Take rows from now on, leaving so many pages of the pool. one_is_enough: of equal keys the first row stands for
    # all. False: not rows of this kind.
    cdef bint open(self, int64_t pages_kept, bint one_is_enough) except -1
    # As insert, with rows start.. of an accepted batch, none of them with a null key. Returns how many were taken: less
    # than count, and those before come back by take_back.
    cdef int64_t insert_batch(self, ArrowBatch batch, int64_t start, int64_t count) noexcept nogil
    # Turn up to BLOCK_ROWS into rows again, which stay until the next call; 0: none is left.
    cdef int64_t take_back(self, uint8_t*** rows) noexcept nogil

    cdef bint _find_texts(self, ArrowBatch batch, int64_t start, int64_t count) noexcept nogil
    cdef void _keep_texts(self, ArrowBatch batch, int64_t start, int64_t count) noexcept nogil
    cdef int64_t _insert_found(self, ArrowBatch batch, int64_t start, int64_t count) noexcept nogil
    cdef int32_t _code_of(self, const uint8_t* row, int64_t size) noexcept nogil
    cdef uint8_t* _page_for(self, uint64_t number) noexcept nogil
