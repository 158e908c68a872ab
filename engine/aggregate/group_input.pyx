"""GroupInput: a batch on its way into a group table; StateBinding: which of its columns each state reads, and how.

    binding = new_binding(fields, count, operations, columns)
    opened = new_input(keys, arguments, binding, codec, dense, owner)
    opened.numbered     keys as numbers, where they may have few values (``dense_groups``)
    opened.keys         plain keys; of codes of dictionaries they are made when a row asks for them: open_keys()

Keys that come as codes are no arguments (``HashAggregate.compact_columns``), so nothing of them is decoded where their
groups are known.

Held by: tests/aggregate/test_dense_groups.py
Held by: tests/aggregate/test_hash_aggregate.py
"""

cimport cython
from libc.stdint cimport int32_t
from libc.stdlib cimport calloc, free

from engine.accumulators.state_kernels cimport StateField
from engine.aggregate.dense_groups cimport DenseGroups
from engine.aggregate.outside_states cimport move_values
from engine.records.arrow_batch cimport ArrowBatch
from engine.records.row_codec cimport RowCodec



@cython.final
cdef class StateBinding:
    """Made by ``GroupTable.bind``."""

    def __dealloc__(self):
        free(self.fields)


@cython.final
cdef class GroupInput:
    """Made by ``GroupTable.open``."""

    cdef int open_keys(self) except -1:
        if self.numbered is None or self._is_coded:
            self.keys = ArrowBatch.open_columns(self._batch, self._key_places, False)
        else:
            self.keys = self.numbered
        self._codec.accept(self.keys)
        self._codec.move_outside(self.keys)
        return 0


cdef StateBinding new_binding(const StateField* fields, int32_t field_count, list operations, list columns):
    cdef StateBinding binding = StateBinding()
    cdef int32_t index
    binding.field_count = field_count
    binding.fields = <StateField*> calloc(field_count + 1, sizeof(StateField))
    if binding.fields == NULL:
        raise MemoryError("columns that states read")
    for index in range(field_count):
        binding.fields[index] = fields[index]
        binding.fields[index].operation = operations[index]
        binding.fields[index].column = columns[index]
    return binding


cdef GroupInput new_input(list key_places, object batch, StateBinding binding, RowCodec codec, DenseGroups dense,
                          object owner):
    cdef GroupInput opened = GroupInput()
    opened.arguments = ArrowBatch.open_columns(batch, None, True)  # no state reads what comes as codes
    if codec is not None:
        opened._batch, opened._key_places, opened._codec = batch, key_places, codec
        opened.numbered, opened._is_coded = dense.open(batch, key_places), dense.has_texts
        if opened.numbered is None or not opened._is_coded:
            opened.open_keys()
    if owner is not None:
        move_values(opened.arguments, binding.fields, binding.field_count, owner)
    opened.binding = binding
    opened.row_count = opened.arguments.row_count
    return opened
