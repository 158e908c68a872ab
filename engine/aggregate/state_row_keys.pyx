"""RowKeys: which rows of states are merged where they lie, and whether two of them have the same keys.

    may_be_merged(codec, key_count)         numbers, texts and bytes, with keys that are equal when their bytes are
    row_keys_of(codec, key_count)           once for a table
    are_same_keys(...), has_value_outside(...)

Invariants: floats are no such keys (-0.0 and NaN), nested values are none of such rows. Null bits of keys are in the
first word of a row: at most 32 columns. Rows that are compared have no value outside.

Held by: tests/aggregate/test_state_row_table.py
"""

from libc.stdint cimport int32_t, uint64_t

from engine.records.arrow_batch cimport KIND_BYTES, KIND_FLOAT16, KIND_FLOAT64, KIND_LARGE_BYTES
from engine.records.row_codec cimport NULL_COLUMNS, RowCodec


cpdef bint may_be_merged(RowCodec codec, int32_t key_count):
    """Whether groups of such rows, whose first columns are keys, are found among them."""
    cdef int32_t column
    if key_count == 0 or codec.column_count > NULL_COLUMNS:
        return False
    for column in range(codec.column_count):
        if codec.kinds[column] > KIND_LARGE_BYTES:
            return False
        if column < key_count and KIND_FLOAT16 <= codec.kinds[column] <= KIND_FLOAT64:
            return False
    return True


cdef RowKeys row_keys_of(RowCodec codec, int32_t key_count) noexcept:
    cdef RowKeys keys
    keys.kinds, keys.slots, keys.widths = codec.kinds, codec.slots, codec.widths
    keys.key_count, keys.column_count = key_count, codec.column_count
    keys.null_mask = ((<uint64_t> 1 << key_count) - 1) << 32
    keys.word_slot = -1
    if key_count == 1 and codec.kinds[0] < KIND_BYTES and codec.widths[0] == 8:
        keys.word_slot = codec.slots[0]
    return keys
