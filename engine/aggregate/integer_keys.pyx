"""Keys of one number: a group is found in one pass over the rows, its key compared as a word.

    are_integer_keys(codec)                once for a table
    read_words(column, ...)             the numbers of a chunk, whatever their width
    for blocks of rows:
        prefetch_words(...)             slots are near, their groups are asked for
        find_words(...)                 up to a row that needs a new group; the caller makes it, and goes on behind it

The general way goes in rounds over all kinds of keys: slots, new keys, comparison, again. Here a row is done before the
next one begins, because a comparison is two loads, and what is waited for is the memory of the group.

Invariants: equal numbers are equal words and the other way round (no floats: -0.0 and NaN; no bools: bits in Arrow).
The null group has another head than any number, so it is never found here.

Source: prefetching groups of probes, Chen et al., "Improving hash join performance through prefetching" (2004).

Held by: tests/aggregate/test_hash_aggregate.py
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from engine.aggregate.group_directory cimport GroupDirectory, directory_group
from engine.records.arrow_batch cimport KIND_BOOL, ColumnView
from engine.records.byte_kernels cimport load64, prefetch
from engine.records.number_types cimport Word
from engine.records.ordered_number cimport ORDER_SIGNED, ORDER_UNSIGNED, order_of_kind
from engine.records.row_codec cimport RowCodec


cdef bint are_integer_keys(RowCodec codec) noexcept:
    if codec.column_count != 1 or not codec.is_fixed or codec.fixed_size != WORD_KEY_SIZE or codec.slots[0] != 8:
        return False
    return (codec.kinds[0] != KIND_BOOL and codec.widths[0] in (1, 2, 4, 8)
            and order_of_kind(codec.kinds[0]) in (ORDER_SIGNED, ORDER_UNSIGNED))


cdef void _widen(const Word* values, int64_t count, uint64_t* words) noexcept nogil:
    cdef int64_t row
    for row in range(count):
        words[row] = values[row]


cdef void read_words(const ColumnView* column, int64_t start, int64_t count, uint64_t* words) noexcept nogil:
    cdef int64_t first = column.offset + start
    if column.width == 8:
        _widen[uint64_t](<const uint64_t*> column.values + first, count, words)
    elif column.width == 4:
        _widen[uint32_t](<const uint32_t*> column.values + first, count, words)
    elif column.width == 2:
        _widen[uint16_t](<const uint16_t*> column.values + first, count, words)
    else:
        _widen[uint8_t](column.values + first, count, words)


cdef int64_t find_words(const GroupDirectory* directory, const uint64_t* hashes, const uint64_t* words, int64_t row,
                        int64_t count, int64_t key_offset, int64_t* positions, uint8_t** groups) noexcept nogil:
    cdef const uint64_t* slots = directory.slots
    cdef int64_t mask = directory.slot_count - 1
    cdef int64_t position
    cdef uint64_t slot, tag
    cdef uint8_t* group
    while row < count:
        position = positions[row]
        tag = hashes[row] & 0xFFFF
        while True:
            slot = slots[position]
            if slot == 0:
                positions[row] = position
                return row
            if slot >> 48 == tag:
                group = directory_group(slot)
                if load64(group + key_offset + 8) == words[row] and load64(group + key_offset) == WORD_KEY_HEAD:
                    break
            position = (position + 1) & mask
        groups[row] = group
        row += 1
    return row


cdef void prefetch_words(const GroupDirectory* directory, const uint64_t* hashes, const int64_t* positions, int64_t row,
                         int64_t count, int64_t key_offset) noexcept nogil:
    cdef uint64_t slot
    while row < count:
        slot = directory.slots[positions[row]]
        if slot >> 48 == hashes[row] & 0xFFFF and slot != 0:
            prefetch(directory_group(slot) + 8)
            prefetch(directory_group(slot) + key_offset + 8)
        row += 1
