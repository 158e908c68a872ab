# The rows of batches, as functions are given them.

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, int8_t

from engine.records.value_reader cimport ValueColumn


@cython.final
cdef class RowReader:
    cdef readonly int64_t position, size    # of the row that comes next; rows
    cdef readonly bint by_values
    cdef object batch                       # None: what was read last is whole
    cdef list owners                        # ColumnValues
    cdef const ValueColumn** columns
    cdef int32_t column_count
    cdef object row_class
    cdef object row, former                 # made last, and before it
    cdef bint is_narrow                     # a row may be kept for being filled again
    cdef object shown
    cdef int64_t shown_position
    cdef PyObject* value(self, int32_t column, int64_t position) except NULL
    cdef PyObject* unread(self, int32_t column, int64_t position) except NULL
    cdef object row_at(self, int64_t position)
    cdef PyObject* other_row(self) except NULL
    cdef object next_row(self)
    cdef tuple next_values(self)
    cdef int go_on(self) except -1
    cdef object call(self, object function)
    cdef void let_go(self)


@cython.final
cdef class RowStream:
    cdef object batches
    cdef RowReader reader
    cdef readonly object error
    cdef bint load(self) except -1


@cython.final
cdef class GroupedRows:
    cdef object source
    cdef object views
    cdef list readers
    cdef RowReader last_reader
    cdef object batch, start_array, other_array
    cdef tuple start_columns
    cdef const int8_t* starts
    cdef const int8_t* others
    cdef int64_t position, end, size, start
    cdef object other_row
    cdef readonly int64_t number
    cdef readonly bint has_ended
    cdef readonly object error
    cdef object next_row(self, int32_t view)
    cdef bint load(self) except -1
    cdef void find_end(self, int64_t position)
