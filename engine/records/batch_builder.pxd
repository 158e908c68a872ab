# BatchBuilder: a record batch of buffers and of columns of another batch, passed to pyarrow in one call.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from engine.records.arrow_batch cimport ArrowBatch
from engine.records.arrow_c_data cimport ArrowArray
from engine.records.opened_batch cimport OpenedBatch


@cython.final
cdef class BatchBuilder:
    cdef object _schema
    cdef void* _block               # what the batch will own, until it does
    cdef ArrowArray* _columns
    cdef list _kept                 # what the columns lie in beside its blocks
    cdef dict _dictionaries         # those that set_dictionary has set, by column
    cdef int32_t _column_count
    cdef int64_t _row_count

    # For batches of this schema and so many rows.
    @staticmethod
    cdef BatchBuilder begin(object schema, int64_t row_count)
    # Memory of a block (memory.blocks), 64-byte aligned, as long as the batch lives.
    cdef uint8_t* allocate(self, int64_t size) except NULL
    # Set a column to values that lie in memory of allocate; validity NULL: no nulls. offsets: of variable values, else
    # NULL. values NULL and offsets NULL: a column of nulls without memory.
    cdef int set_values(self, int32_t column, int64_t null_count, uint8_t* validity, uint8_t* offsets,
                        uint8_t* values) except -1
    # Set a column to rows start.. of a column of a batch, by reference.
    cdef int set_column(self, int32_t column, ArrowBatch source, int32_t source_column, int64_t start) except -1
    # The same from a batch that is opened: columns of any type.
    cdef int set_child(self, int32_t column, OpenedBatch source, int32_t source_column, int64_t start) except -1
    cdef int _keep(self, OpenedBatch source) except -1
    # Have a column that set_values has set be codes of a pyarrow.Array.
    cdef int set_dictionary(self, int32_t column, object values) except -1
    # Set a column to a pyarrow.Array of its type.
    cdef int set_array(self, int32_t column, object array) except -1
    # The batch; all columns are set. Once.
    cdef object build(self)
    # A batch like the one that it is made of: opened, where that one is.
    cdef object build_like(self, object batch)
    # The same for kernels alone: Arrow does not know it until it is asked for as Arrow's.
    cdef OpenedBatch build_unshown(self)
    cdef void* _finished(self) except NULL

# The size with what follows on a boundary of 64 bytes.
cdef int64_t padded(int64_t size) noexcept nogil
