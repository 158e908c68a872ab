# Values of Arrow columns as Python's, one at a time.

from libc.stdint cimport int32_t, int64_t, uint8_t


# A column that is read. It borrows its buffers, and its list of values, from the ColumnValues that has it.
cdef struct ValueColumn:
    int32_t kind
    # microseconds of one unit of a time; bytes of a value of fixed size
    int64_t unit
    int64_t offset
    const uint8_t* validity     # NULL: no value is null
    const uint8_t* values
    const uint8_t* texts
    void* objects               # list of the values, of types that pyarrow reads


cdef class ColumnValues:
    cdef ValueColumn column
    cdef object owners          # what the column borrows from
    cdef readonly str name
    cdef readonly object array
    cdef object value(self, int64_t row)
    cdef int leave_to_arrow(self) except -1


cdef object value_at(const ValueColumn* column, int64_t row)
