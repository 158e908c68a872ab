# StateCombiner: merges the partial states of two binary rows of one group.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from engine.accumulators.checked_sums cimport add_int64
from engine.accumulators.state_kernels cimport StateField
from engine.records.arrow_batch cimport ColumnView
from engine.records.byte_kernels cimport load64
from engine.records.row_codec cimport RowCodec
from engine.records.row_combiner cimport RowCombiner

cdef struct RowState:
    int32_t column
    int32_t slot            # offset of the value in a row
    int32_t index           # of the state, those of variable size counted
    StateField field        # of the scratch
    ColumnView view         # of one value; its address is set for each

cdef struct VariableColumn:
    int32_t column
    int32_t slot            # of the word (offset and length of the value) in a row
    int32_t operation       # OP_KEY, OP_MIN, OP_MAX, OP_FIRST, OP_LAST

@cython.final
cdef class StateCombiner(RowCombiner):
    cdef RowState* _states              # [_count] those of a fixed size
    cdef int32_t _count
    cdef VariableColumn* _variable      # [_variable_count] in column order, keys too
    cdef int32_t _variable_count
    cdef int32_t _fixed_size            # of a row: where its variable values begin
    cdef int32_t _sum_count             # of states, where all are int64 that are added; else 0
    cdef list _overflow_texts

    # Whether all that combine() has to do is add_sums(): all states are sums, and none of the two rows has a null.
    cdef inline bint are_sums(self, const uint8_t* target, const uint8_t* source) noexcept nogil:
        return self._sum_count > 0 and (load64(target) | load64(source)) >> 32 == 0

    # Returns as combine().
    cdef inline int add_sums(self, uint8_t* target, const uint8_t* source) noexcept nogil:
        cdef int32_t index, slot
        cdef int failed = 0
        for index in range(self._sum_count):
            slot = self._states[index].slot
            if add_int64(<int64_t*> (target + slot), (<const int64_t*> (source + slot))[0]):
                failed = self._states[index].index + 1
        return failed

    cdef int _find_sums(self, RowCodec codec) except -1
    cdef int _add_state(self, RowCodec codec, int32_t column, int32_t operation, int32_t index) except -1
