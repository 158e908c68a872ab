# Comparing key columns of rows (and of Arrow batches with rows), reading only the key columns.
#
# Equality is that of keys: -0.0 equals 0.0, NaN equals NaN, null equals null (joins drop null keys beforehand).
# Order is that of the sort keys: NaN is the largest number, strings compare by bytes.

from libc.stdint cimport int32_t, int64_t, uint8_t
from engine.records.arrow_batch cimport ArrowBatch
from engine.records.row_codec cimport RowCodec

# One key column on both sides.
cdef struct KeyColumn:
    int32_t order              # Order (ordered_number.pxd)
    int32_t width              # bytes of a fixed value
    int32_t left_column
    int32_t right_column
    int32_t left_slot
    int32_t right_slot

# Keys of two rows of (possibly) different schemas with the same key types.
#     KeyEquality(left_codec, left_columns: list[int], right_codec, right_columns: list[int])
cdef class KeyEquality:
    cdef RowCodec _left
    cdef RowCodec _right
    cdef int32_t column_count
    cdef int32_t* left_columns
    cdef int32_t* right_columns
    cdef KeyColumn* _keys
    cdef bint rows_equal(self, const uint8_t* left, const uint8_t* right) noexcept nogil
    # flags[i] = 1 when the keys of batch row batch_rows[i] (columns left_columns) equal those of right_rows[i].
    # Column by column over all candidates.
    cdef void batch_equals_rows(self, ArrowBatch batch, const int64_t* batch_rows, uint8_t** right_rows,
                                int64_t count, uint8_t* flags) noexcept nogil
    # < 0, 0, > 0: ascending, nulls first
    cdef int order_of(self, const uint8_t* left, const uint8_t* right) noexcept nogil

cdef struct SortColumn:
    int32_t order
    int32_t width
    int32_t column
    int32_t slot
    bint descending
    bint nulls_last

# Read one sort key of rows. Raises SchemaError: there is no such column, or it cannot be a key.
cdef int read_sort_key(RowCodec codec, object key, SortColumn* column) except -1

# Order of rows of one schema by sort keys.
#     RowComparator(codec, keys: Sequence[SortKey])
cdef class RowComparator:
    cdef RowCodec _codec
    cdef int32_t column_count
    cdef SortColumn* keys
    # < 0, 0, > 0
    cdef int compare(self, const uint8_t* left, const uint8_t* right) noexcept nogil
