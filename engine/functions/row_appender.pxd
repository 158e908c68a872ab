# Rows that a function returns, taken apart into columns.

cimport cython
from libc.stdint cimport int32_t, int64_t


@cython.final
cdef class RowAppender:
    cdef readonly list targets          # ColumnTarget
    cdef int32_t column_count
    cdef readonly tuple names
    cdef readonly int64_t rows
    cdef public int64_t limit, taken_bytes
    cdef bint has_begun, values_only
    cdef object plain_type, field_type  # classes seen last: of a scalar; of an object with the schema's attributes
    cdef readonly list places           # (row, where its input is) of rows with unfit values
    cdef object schema
    cdef bint is_full(self)
    cdef bint has_fields(self, object value)
    cdef int add(self, object value, object source) except -1
    cdef bint add_items(self, object value) except -1
    cdef bint add_named(self, object value, bint is_dict) except -1
