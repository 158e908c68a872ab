# GroupScan: the groups of a store as Arrow batches.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from engine.aggregate.group_table cimport GroupTable
from engine.records.batch_builder cimport BatchBuilder

@cython.final
cdef class GroupScan:
    cdef GroupTable _table
    cdef int32_t _store             # being read
    cdef int32_t _end               # behind the last one
    cdef int32_t _partition         # only groups of this partition, -1: all
    cdef int64_t _page_index
    cdef int64_t _offset
    cdef uint8_t** _groups
    cdef uint8_t** _keys
    cdef int64_t _capacity          # rows
    cdef int64_t _max_bytes
    cdef bint _looks_outside        # some value may lie outside; asked for each batch
    cdef object _schema             # of the batches: keys, then states or results
    cdef list _columns              # per column behind the keys: (state, count state or a Statistic)
    cdef readonly int64_t group_count   # groups given so far

    cdef int64_t _collect(self) noexcept nogil
    cdef int64_t _size_of(self, const uint8_t* group) noexcept nogil
    cdef object _to_batch(self, int64_t count)
    cdef int _set_fixed(self, BatchBuilder builder, int32_t column, int64_t count, int32_t state) except -1
    cdef int _set_texts(self, BatchBuilder builder, int32_t column, int64_t count, int32_t state) except -1
    cdef int _set_statistic(self, BatchBuilder builder, int32_t column, int64_t count, int32_t state,
                            int32_t statistic) except -1
    cdef int _set_mean(self, BatchBuilder builder, int32_t column, int64_t count, int32_t total,
                       int32_t counted) except -1
