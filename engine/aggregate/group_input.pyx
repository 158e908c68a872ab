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

import pyarrow as pa

cdef object DICTIONARY_TYPE = pa.DictionaryType


@cython.final
cdef class StateBinding:
    """Made by ``GroupTable.bind``."""

    def __dealloc__(self):
        free(self.fields)


@cython.final
cdef class GroupInput:
    """Made by ``GroupTable.open``."""

    cdef int open_keys(self) except -1:
        self.keys = ArrowBatch.open(self._key_batch) if self.numbered is None or self._is_coded else self.numbered
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


cdef GroupInput new_input(object keys, object arguments, StateBinding binding, RowCodec codec, DenseGroups dense,
                          object owner):
    cdef GroupInput opened = GroupInput()
    opened.arguments = ArrowBatch.open(_without_codes(arguments))
    if codec is not None:
        opened._key_batch, opened._codec = keys, codec
        opened.numbered, opened._is_coded = dense.open(keys), dense.has_texts
        if opened.numbered is None or not opened._is_coded:
            opened.open_keys()
    if owner is not None:
        move_values(opened.arguments, binding.fields, binding.field_count, owner)
    opened.binding = binding
    opened.row_count = opened.arguments.row_count
    return opened


cdef object _without_codes(object batch):
    """The codes themselves stand for what comes as codes: no state reads it."""
    for data_type in batch.schema.types:
        if isinstance(data_type, DICTIONARY_TYPE):
            break
    else:
        return batch
    arrays = [array.indices if pa.types.is_dictionary(array.type) else array for array in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)
