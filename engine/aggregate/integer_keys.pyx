"""Keys of a few integers: a group is found in one pass over the rows, its key compared word by word.

    key_rows_begin(keys, codec, row_count)      once for a table
    write_key_rows(keys, ...)           the numbers of a chunk as they lie in groups
    for blocks of rows:
        prefetch_keys(...)              slots are near, their groups are asked for
        find_keys(...)                  up to a row that needs a new group; the caller makes it, and goes on behind it

The general way goes in rounds over all kinds of keys: slots, new keys, comparison, again. Here a row is done before the
next one begins, because a comparison is a few loads, and what is waited for is the memory of the group.

Invariants: equal numbers are equal words and the other way round (no floats: -0.0 and NaN; no bools: bits in Arrow).
A group with nulls has another head than any without, so it is never found here. Bytes behind the last number of a row
are zero: chunks write numbers where those of the last one were.

Limits: numbers of WORDS_MAX words together.

Source: prefetching groups of probes, Chen et al., "Improving hash join performance through prefetching" (2004).

Held by: tests/aggregate/test_integer_keys.py
Held by: tests/aggregate/test_hash_aggregate.py
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from engine.aggregate.group_directory cimport GroupDirectory, directory_group
from engine.records.arrow_batch cimport KIND_BOOL, ArrowBatch, ColumnView
from engine.records.byte_kernels cimport load64, prefetch, store64
from engine.records.number_types cimport Word
from engine.records.ordered_number cimport ORDER_SIGNED, ORDER_UNSIGNED, order_of_kind
from engine.records.row_codec cimport RowCodec

cdef enum:
    WORDS_MAX = 4


cdef bint are_integers(RowCodec codec) noexcept:
    cdef int32_t column
    if not codec.is_fixed or not 0 < codec.fixed_size - HEAD_BYTES <= 8 * WORDS_MAX:
        return False
    for column in range(codec.column_count):
        if (codec.kinds[column] == KIND_BOOL or codec.widths[column] not in (1, 2, 4, 8)
                or order_of_kind(codec.kinds[column]) not in (ORDER_SIGNED, ORDER_UNSIGNED)):
            return False
    return True


cdef int key_rows_begin(KeyRows* keys, RowCodec codec, int64_t row_count) except -1:
    if not are_integers(codec):
        return 0
    keys.word_count = (codec.fixed_size - HEAD_BYTES) // 8
    keys.words = <uint64_t*> calloc(<size_t> (row_count * keys.word_count), 8)
    if keys.words == NULL:
        raise MemoryError("keys of a chunk of rows")
    return 0


cdef void key_rows_destroy(KeyRows* keys) noexcept nogil:
    free(keys.words)
    keys.words = NULL


cdef bint are_all_valid(ArrowBatch batch) noexcept nogil:
    cdef int32_t column
    for column in range(batch.column_count):
        if batch.columns[column].validity != NULL:
            return False
    return True


cdef void _write(const Word* values, int64_t count, uint8_t* slot, int64_t row_size) noexcept nogil:
    cdef int64_t row
    for row in range(count):
        (<Word*> (slot + row * row_size))[0] = values[row]


cdef void write_key_rows(KeyRows* keys, RowCodec codec, ArrowBatch batch, int64_t start, int64_t count) noexcept nogil:
    cdef int64_t size = 8 * keys.word_count
    cdef const ColumnView* column
    cdef const uint8_t* values
    cdef uint8_t* slot
    cdef int32_t index
    for index in range(codec.column_count):
        column = &batch.columns[index]
        values = column.values + (column.offset + start) * column.width
        slot = <uint8_t*> keys.words + codec.slots[index] - HEAD_BYTES
        if column.width == 8:
            _write[uint64_t](<const uint64_t*> values, count, slot, size)
        elif column.width == 4:
            _write[uint32_t](<const uint32_t*> values, count, slot, size)
        elif column.width == 2:
            _write[uint16_t](<const uint16_t*> values, count, slot, size)
        else:
            _write[uint8_t](values, count, slot, size)


cdef inline bint _has_key(const uint8_t* key_row, const uint64_t* words, int64_t word_count) noexcept nogil:
    cdef uint64_t difference = load64(key_row) ^ <uint64_t> (HEAD_BYTES + 8 * word_count)
    cdef int64_t word
    for word in range(word_count):
        difference |= load64(key_row + HEAD_BYTES + 8 * word) ^ words[word]
    return difference == 0


cdef inline int64_t _find(const GroupDirectory* directory, const uint64_t* hashes, const KeyRows* keys, int64_t row,
                          int64_t count, int64_t word_count, int64_t* positions, uint8_t** groups) noexcept nogil:
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
                if _has_key(group + keys.key_offset, keys.words + row * word_count, word_count):
                    break
            position = (position + 1) & mask
        groups[row] = group
        row += 1
    return row


cdef int64_t find_keys(const GroupDirectory* directory, const uint64_t* hashes, const KeyRows* keys, int64_t row,
                       int64_t count, int64_t* positions, uint8_t** groups) noexcept nogil:
    # a loop of its own for the rows that are most frequent
    if keys.word_count == 1:
        return _find(directory, hashes, keys, row, count, 1, positions, groups)
    if keys.word_count == 2:
        return _find(directory, hashes, keys, row, count, 2, positions, groups)
    return _find(directory, hashes, keys, row, count, keys.word_count, positions, groups)


cdef void prefetch_keys(const GroupDirectory* directory, const uint64_t* hashes, const KeyRows* keys, int64_t row,
                        int64_t count, const int64_t* positions) noexcept nogil:
    cdef uint64_t slot
    while row < count:
        slot = directory.slots[positions[row]]
        if slot >> 48 == hashes[row] & 0xFFFF and slot != 0:
            prefetch(directory_group(slot) + 8)
            prefetch(directory_group(slot) + keys.key_offset + 8)
        row += 1


cdef void put_key(uint8_t* group, const KeyRows* keys, int64_t row) noexcept nogil:
    cdef uint8_t* key_row = group + keys.key_offset
    store64(key_row, <uint64_t> size_of_key(keys))
    memcpy(key_row + HEAD_BYTES, keys.words + row * keys.word_count, <size_t> (8 * keys.word_count))
