# GroupInput: a batch on its way into a group table; StateBinding: which of its columns each state reads.

cimport cython
from libc.stdint cimport int32_t, int64_t

from engine.accumulators.state_kernels cimport StateField
from engine.aggregate.dense_groups cimport DenseGroups
from engine.records.arrow_batch cimport ArrowBatch
from engine.records.row_codec cimport RowCodec

# Which input column each state reads, and by which operation.
@cython.final
cdef class StateBinding:
    cdef StateField* fields
    cdef int32_t field_count

# An Arrow batch opened for the table: key columns, and the columns that states read.
@cython.final
cdef class GroupInput:
    cdef ArrowBatch numbered                # None: its keys have no numbers
    cdef ArrowBatch keys                    # plain; None: they are codes, not asked for yet
    cdef ArrowBatch arguments
    cdef StateBinding binding
    cdef readonly int64_t row_count
    cdef object _batch                      # as it came in
    cdef list _key_places                   # of its key columns
    cdef RowCodec _codec                    # of keys
    cdef bint _is_coded                     # texts are codes of dictionaries in `numbered`

    # Have keys plain.
    cdef int open_keys(self) except -1

cdef StateBinding new_binding(const StateField* fields, int32_t field_count, list operations, list columns)
# codec, dense: of the keys, None: there are no keys. owner: of wide values, None: they stay where they are.
cdef GroupInput new_input(list key_places, object batch, StateBinding binding, RowCodec codec, DenseGroups dense,
                          object owner)
