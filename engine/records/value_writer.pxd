# Python values become values of Arrow columns, one at a time.

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t


# A column that is written. Its buffers belong to the ColumnTarget that has it.
cdef struct TargetColumn:
    int32_t kind
    bint is_nullable
    int64_t least, most         # of an integer; microseconds of one unit of a time
    int64_t capacity            # rows
    int64_t nulls
    int64_t fit                 # rows in front of the first unfit one, where there is one
    uint8_t* values
    uint8_t* validity           # NULL: no null yet
    uint8_t* texts
    int64_t text_bytes, text_capacity


cdef class ColumnTarget:
    cdef TargetColumn column
    cdef readonly object field
    cdef readonly list unfit    # values from the first unfit one on; None: there is none
    cdef object buffers
    cdef void begin(self, int64_t capacity) except *
    cdef bint add(self, object value, int64_t row) except -1
    cdef int64_t values_bytes(self, int64_t rows)
    cdef bint keep(self, object value, int64_t row) except -1
    cdef void end_text(self, int64_t row) noexcept
    cdef bint add_fraction(self, object value, int64_t row) except -1
    cdef bint add_time(self, object value, int64_t row) except -1
    cdef bint add_text(self, const char* text, int64_t size, int64_t row) except -1
    cdef bint add_null(self, int64_t row) except -1
    cdef object finish(self, int64_t rows)
    cdef void take_back(self, int64_t row) except *
