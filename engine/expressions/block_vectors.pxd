# Vectors: some thousand values of a column in the cache (block_vectors.pyx).
#
# A column of int64 or float64 is not copied: the vector points into it. A decimal comes as 8 bytes where all of a
# block's fit, whatever its declared digits, and goes back as wide as its type says.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from engine.records.arrow_batch cimport ColumnView

cdef enum:
    BLOCK_ROWS = 1024
    BLOCK_WORDS = 16

cdef enum VectorKind:
    BITS = 0        # bools
    INTEGER = 1     # integers, dates, times: int64
    DECIMAL = 2     # unscaled: int64, or __int128 in a block that needs it
    FLOAT = 3       # double
    VALIDITY = 4    # nothing but which rows are null
    TEXT = 5        # strings and binaries, where they lie in their column

cdef struct Vector:
    int32_t kind            # VectorKind
    int32_t width           # bytes of a value in this block, 8 or 16; TEXT: of an offset, 4 or 8
    bint is_constant        # all rows alike
    const uint8_t* values   # BITS: words, 0 under a null
    const uint64_t* valid   # NULL: no nulls in this block
    const uint8_t* offsets  # TEXT: of the first row; int32_t, int64_t where the width is 8
    uint8_t* own_values     # room of the vector's own
    uint64_t* own_valid

# Point a vector at rows [start, start + count) of a column; nonzero: it cannot hold them.
cdef int load(Vector* vector, const ColumnView* column, int64_t start, int64_t count) noexcept nogil
# Write the values of a block at the place of its first row in the buffer of a column of a kind (arrow_batch.Kind).
# False: a decimal does not fit, which goes to a column of 8 bytes.
cdef bint store(const Vector* vector, int32_t kind, uint8_t* target, int64_t count) noexcept nogil
