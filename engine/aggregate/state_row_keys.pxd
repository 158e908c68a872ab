# RowKeys: keys of rows of states, compared where they lie.

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

from engine.records.arrow_batch cimport KIND_BYTES
from engine.records.byte_kernels cimport equal_bytes, load64
from engine.records.outside_values cimport is_outside
from engine.records.row_codec cimport RowCodec

# Borrows from the codec, which must live as long.
cdef struct RowKeys:
    const int32_t* kinds        # [column_count] of all columns, keys first, as these
    const int32_t* slots
    const int32_t* widths
    int32_t key_count
    int32_t column_count
    int32_t word_slot           # of a single key of 8 bytes, -1: keys are others
    uint64_t null_mask          # of the keys, in the first word of a row

# Whether groups of such rows, whose first columns are keys, are found among them.
cpdef bint may_be_merged(RowCodec codec, int32_t key_count)
cdef RowKeys row_keys_of(RowCodec codec, int32_t key_count) noexcept

# Whether keys are equal: of these kinds, their bytes and null bits are.
cdef inline bint are_same_keys(const RowKeys* keys, const uint8_t* group, const uint8_t* row) noexcept nogil:
    cdef int32_t index, slot
    cdef uint64_t left, right
    if (load64(group) ^ load64(row)) & keys.null_mask:
        return False
    if keys.word_slot >= 0:
        return load64(group + keys.word_slot) == load64(row + keys.word_slot)
    for index in range(keys.key_count):
        slot = keys.slots[index]
        if keys.kinds[index] >= KIND_BYTES:
            left, right = load64(group + slot), load64(row + slot)
            if left >> 32 != right >> 32 or not equal_bytes(group + <uint32_t> left, row + <uint32_t> right,
                                                            left >> 32):
                return False
        elif not equal_bytes(group + slot, row + slot, <uint64_t> keys.widths[index]):
            return False
    return True

# Whether a value of a row lies outside of it.
cdef inline bint has_value_outside(const RowKeys* keys, const uint8_t* row) noexcept nogil:
    cdef int32_t column
    for column in range(keys.column_count):
        if keys.kinds[column] >= KIND_BYTES and is_outside(load64(row + keys.slots[column])):
            return True
    return False
