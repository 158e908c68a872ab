# RowCodec: Arrow batch <-> binary rows of one schema, column by column, without the GIL.
#
# The three steps of writing rows are apart on purpose: measure() says how large each row will be, the caller decides
# where each row goes (a network buffer, a partition's page, a sorter's page) and encode() writes them all, column by
# column. A row is contiguous, 8-byte aligned, a multiple of 8 bytes long, and begins with its own size in bytes
# (uint32, header included), so a page of rows can be walked.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from engine.records.arrow_batch cimport ArrowBatch, TypeNode
from engine.records.batch_decoder cimport RowShape

cdef enum:
    NULL_COLUMNS = 32           # columns whose null bits are in the first word of a row, behind its size

cdef class RowCodec:
    cdef readonly object schema            # pyarrow.Schema of plain types; decode gives batches of it
    cdef readonly int32_t column_count
    cdef readonly int32_t fixed_size       # bytes of header, null bits and fixed slots: the size of a row without
                                           # variable part
    cdef readonly bint is_fixed            # no variable-size column: every row is fixed_size bytes
    cdef int32_t* kinds                    # Kind of each column
    cdef int32_t* slots                    # byte offset of each column's slot from the row's start
    cdef int32_t* widths                   # bytes of each slot
    cdef void* _nested                     # TypeNode of each column
    cdef RowShape _shape
    cdef uint8_t* _null_row
    cdef dict _projections                 # chosen columns -> their schema
    cdef tuple _required                   # indexes of the columns declared not nullable
    cdef object _owner                     # of wide values (write_value), None: all values lie in their rows
    cdef tuple _movable                    # indexes of the columns whose values may lie outside
    cdef int32_t* _variable_slots          # of all variable columns
    cdef int32_t _variable_count

    cdef void _begin_rows(self, const uint32_t* sizes, uint8_t** targets, int64_t count,
                          uint32_t* cursors) noexcept nogil

    # Raise SchemaError unless the batch has the columns of this codec and no null where none is declared. Call it once
    # per batch before measure(); kernels trust it.
    cdef int accept(self, ArrowBatch batch) except -1
    # Let wide values lie outside of the rows made from now on, in owner (None: nowhere); those of the columns `inside`
    # never do.
    cdef int let_outside(self, object owner, inside) except -1
    # Write the wide values of an accepted batch to the owner. Call it before measure(), once for a batch; keys may be
    # hashed and compared before or after.
    cdef int move_outside(self, ArrowBatch batch) except -1
    # How many of the first rows have at most size_limit bytes outside, together; at least one. NULL rows have none.
    cdef int64_t rows_within(self, uint8_t** rows, int64_t count, int64_t size_limit) noexcept nogil
    # Bytes that a row has outside.
    cdef int64_t bytes_outside(self, const uint8_t* row) noexcept nogil
    # sizes[i] = bytes of row start + i, for i < count.
    cdef void measure(self, ArrowBatch batch, int64_t start, int64_t count, uint32_t* sizes) noexcept nogil
    # Write row start + i at targets[i] (sizes[i] bytes, as measure() said).
    cdef void encode(self, ArrowBatch batch, int64_t start, int64_t count, const uint32_t* sizes,
                     uint8_t** targets) noexcept nogil
    # Rows -> pyarrow.RecordBatch. columns: indexes to decode in this order, or NULL for all. Takes the GIL only to
    # allocate Arrow's buffers. Raises CorruptBlockError where an offset leaves its row. A NULL row pointer decodes to
    # nulls in all columns (the missing side of an outer join).
    cdef object decode(self, uint8_t** rows, int64_t count, const int32_t* columns, int32_t column_count)

# Size in bytes of the row at this address.
cdef inline uint32_t row_size(const uint8_t* row) noexcept nogil:
    return (<const uint32_t*>row)[0]

# Whether the row's column is null.
cdef inline bint row_is_null(const uint8_t* row, int32_t column) noexcept nogil:
    return (row[4 + (column >> 3)] >> (column & 7)) & 1

# Fill rows with the addresses of the rows in a page of used bytes, at most capacity; returns the count, or -1 when
# sizes do not add up to used (corrupt).
cdef int64_t rows_of_page(const uint8_t* page, int64_t used, uint8_t** rows, int64_t capacity) noexcept nogil
