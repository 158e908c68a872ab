# Loops of a filter of keys.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from engine.records.arrow_batch cimport ArrowBatch, ColumnView

# A flag of zero for each of so many values.
cdef void fill_zero(uint8_t* found, int64_t count) noexcept nogil
# Widen the bounds, as words, by the values of a column of integers of some bytes.
cdef void widen_bounds(const ColumnView* column, int32_t width, uint64_t sign, int64_t count, uint64_t* lowest,
                       uint64_t* highest) noexcept nogil
# Set the bit of each value, which lies within the bounds.
cdef void set_bits(const ColumnView* column, int32_t width, uint64_t sign, int64_t count, uint64_t lowest,
                   uint8_t* bits) noexcept nogil
# A flag for each value, whether its bit is set; nulls count as any value.
cdef void find_bits(const ColumnView* column, int32_t width, uint64_t sign, int64_t count, const uint8_t* bits,
                    uint64_t lowest, uint64_t highest, uint8_t* found) noexcept nogil
# Of the rows of a mask leave those whose bit is set; nulls count as any value. For a few rows of many.
cdef void find_bits_within(const ColumnView* column, int32_t width, uint64_t sign, int64_t count, const uint8_t* bits,
                           uint64_t lowest, uint64_t highest, uint64_t* within) noexcept nogil
# A flag for each value of the only column of a batch, whether a Bloom filter of 1 << word_shift words has its hash.
cdef void find_hashes(ArrowBatch batch, int64_t count, uint64_t seed, const uint64_t* words, int32_t word_shift,
                      uint8_t* found) noexcept nogil

# The bits of a hash in its word.
cdef inline uint64_t bits_of(uint64_t mixed) noexcept nogil:
    return ((<uint64_t>1 << (mixed & 63)) | (<uint64_t>1 << ((mixed >> 6) & 63))
            | (<uint64_t>1 << ((mixed >> 12) & 63)) | (<uint64_t>1 << ((mixed >> 18) & 63)))
