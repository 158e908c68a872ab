# Keys of one number of up to 8 bytes: found and compared as one word.
#
#     key row of a group   | size 16: uint32 | null bits 0, padding 0 | number, zero-extended: uint64 |

from libc.stdint cimport int64_t, uint8_t, uint64_t

from engine.aggregate.group_directory cimport GroupDirectory
from engine.records.arrow_batch cimport ColumnView
from engine.records.byte_kernels cimport store64
from engine.records.row_codec cimport RowCodec

cdef enum:
    WORD_KEY_HEAD = 16          # the first word of the key row: its size, no null
    WORD_KEY_SIZE = 16

# Whether keys of this codec are one integer, date, time or the like (whose equal values are equal bytes).
cdef bint are_integer_keys(RowCodec codec) noexcept
# The numbers of rows start and following as words. The column has no nulls.
cdef void read_words(const ColumnView* column, int64_t start, int64_t count, uint64_t* words) noexcept nogil
# Find the groups of rows from `row` on; returns the first one that has none, whose empty slot is then its position, or
# count. positions: where each row begins to look. key_offset: of the key row from a group's start.
cdef int64_t find_words(const GroupDirectory* directory, const uint64_t* hashes, const uint64_t* words, int64_t row,
                        int64_t count, int64_t key_offset, int64_t* positions, uint8_t** groups) noexcept nogil
# Ask for the memory of the groups that rows will probably find.
cdef void prefetch_words(const GroupDirectory* directory, const uint64_t* hashes, const int64_t* positions, int64_t row,
                         int64_t count, int64_t key_offset) noexcept nogil

cdef inline void write_word_key(uint8_t* key_row, uint64_t word) noexcept nogil:
    store64(key_row, WORD_KEY_HEAD)
    store64(key_row + 8, word)
