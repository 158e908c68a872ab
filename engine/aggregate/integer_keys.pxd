# Keys of a few integers: found and compared as the words of their rows.
#
#     key row of a group   | size: uint32 | null bits 0, padding 0 | numbers, each in its slot (``RowCodec``) |

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from engine.aggregate.group_directory cimport GroupDirectory
from engine.records.arrow_batch cimport ArrowBatch
from engine.records.row_codec cimport RowCodec

cdef enum:
    HEAD_BYTES = 8

# The numbers of key rows of a chunk, row by row.
cdef struct KeyRows:
    uint64_t* words         # NULL: keys are others
    int64_t word_count      # of the numbers of a row
    int64_t key_offset      # of the key row from a group's start

# Take memory for the keys of so many rows, where keys of this codec are a few integers, dates, times or the like (whose
# equal values are equal bytes); else there is none.
cdef int key_rows_begin(KeyRows* keys, RowCodec codec, int64_t row_count) except -1
cdef void key_rows_destroy(KeyRows* keys) noexcept nogil
# Whether the keys of a batch have no nulls.
cdef bint are_all_valid(ArrowBatch batch) noexcept nogil
# The size of a key row.
cdef inline int64_t size_of_key(const KeyRows* keys) noexcept nogil:
    return HEAD_BYTES + 8 * keys.word_count

# Write the numbers of rows start and following. The columns have no nulls.
cdef void write_key_rows(KeyRows* keys, RowCodec codec, ArrowBatch batch, int64_t start, int64_t count) noexcept nogil
# Find the groups of rows from `row` on; returns the first one that has none, whose empty slot is then its position, or
# count. positions: where each row begins to look.
cdef int64_t find_keys(const GroupDirectory* directory, const uint64_t* hashes, const KeyRows* keys, int64_t row,
                       int64_t count, int64_t* positions, uint8_t** groups) noexcept nogil
# Ask for the memory of the groups that rows will probably find.
cdef void prefetch_keys(const GroupDirectory* directory, const uint64_t* hashes, const KeyRows* keys, int64_t row,
                        int64_t count, const int64_t* positions) noexcept nogil
# Give a new group the key of a row.
cdef void put_key(uint8_t* group, const KeyRows* keys, int64_t row) noexcept nogil
