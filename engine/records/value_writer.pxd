# Python values become values of Arrow columns, one at a time.

cimport cython
from cpython.long cimport PyLong_CheckExact
from libc.stdint cimport int32_t, int64_t, uint8_t

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object value, int* overflow) except? -1

cdef enum:
    FROM_OBJECT
    FROM_BOOL
    FROM_INT1
    FROM_INT2
    FROM_INT4
    FROM_INT8
    FROM_FLOAT
    FROM_DOUBLE
    FROM_TEXT
    FROM_LARGE_TEXT
    FROM_BYTES
    FROM_LARGE_BYTES
    FROM_DATE
    FROM_MOMENT
    FROM_TIME4
    FROM_TIME8
    FROM_DURATION


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


@cython.final
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


cdef inline bint add_value(ColumnTarget target, object value, int64_t row) except -1:
    """Add a value as ``target.add`` does, without a call for the most frequent types."""
    cdef int overflow = 0
    cdef int64_t number
    if target.column.kind == FROM_INT8 and target.unfit is None and PyLong_CheckExact(value):
        number = PyLong_AsLongLongAndOverflow(value, &overflow)
        if not overflow and number >= target.column.least:
            (<int64_t*>target.column.values)[row] = number
            return False
    return target.add(value, row)
