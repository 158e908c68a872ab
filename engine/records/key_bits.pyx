"""Loops of a filter of keys: its bounds, its bits, and which values are among them.

    widen_bounds ─► set_bits ─► find_bits        one bit for each number between the lowest and the highest key
    find_hashes                                  a word of a blocked Bloom filter for each hash; bits_of a hash in it

Numbers are words that compare as they do: ``sign`` is the bit that is turned over.

Thread: any, without the GIL.

Held by: tests/records/test_key_filter.py
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from engine.records.arrow_batch cimport ArrowBatch, ColumnView, column_is_null
from engine.records.byte_kernels cimport count_ones
from engine.records.hashing cimport hash_batch, rehash
from engine.records.number_types cimport Word

cdef enum:
    HASHED_ROWS = 1024
    ROWS_ALIKE = 64         # looked at together for one and the same key


cdef void fill_zero(uint8_t* found, int64_t count) noexcept nogil:
    cdef int64_t index
    for index in range((count + 7) >> 3):
        found[index] = 0


cdef void widen_bounds(const ColumnView* column, int32_t width, uint64_t sign, int64_t count, uint64_t* lowest,
                       uint64_t* highest) noexcept nogil:
    if width == 8:
        _widen(column, <const uint64_t*>column.values, sign, count, lowest, highest)
    elif width == 4:
        _widen(column, <const uint32_t*>column.values, <uint32_t>sign, count, lowest, highest)
    elif width == 2:
        _widen(column, <const uint16_t*>column.values, <uint16_t>sign, count, lowest, highest)
    else:
        _widen(column, column.values, <uint8_t>sign, count, lowest, highest)


cdef void set_bits(const ColumnView* column, int32_t width, uint64_t sign, int64_t count, uint64_t lowest,
                   uint8_t* bits) noexcept nogil:
    if width == 8:
        _set_bits(column, <const uint64_t*>column.values, sign, count, lowest, bits)
    elif width == 4:
        _set_bits(column, <const uint32_t*>column.values, <uint32_t>sign, count, lowest, bits)
    elif width == 2:
        _set_bits(column, <const uint16_t*>column.values, <uint16_t>sign, count, lowest, bits)
    else:
        _set_bits(column, column.values, <uint8_t>sign, count, lowest, bits)


cdef void find_bits(const ColumnView* column, int32_t width, uint64_t sign, int64_t count, const uint8_t* bits,
                    uint64_t lowest, uint64_t highest, uint8_t* found) noexcept nogil:
    if width == 8:
        _find_bits(<const uint64_t*>column.values + column.offset, sign, count, bits, lowest, highest, found)
    elif width == 4:
        _find_bits(<const uint32_t*>column.values + column.offset, <uint32_t>sign, count, bits, lowest, highest, found)
    elif width == 2:
        _find_bits(<const uint16_t*>column.values + column.offset, <uint16_t>sign, count, bits, lowest, highest, found)
    else:
        _find_bits(column.values + column.offset, <uint8_t>sign, count, bits, lowest, highest, found)


cdef void find_bits_within(const ColumnView* column, int32_t width, uint64_t sign, int64_t count, const uint8_t* bits,
                           uint64_t lowest, uint64_t highest, uint64_t* within) noexcept nogil:
    cdef int64_t offset = column.offset
    if width == 8:
        _find_within(<const uint64_t*>column.values + offset, sign, count, bits, lowest, highest, within)
    elif width == 4:
        _find_within(<const uint32_t*>column.values + offset, <uint32_t>sign, count, bits, lowest, highest, within)
    elif width == 2:
        _find_within(<const uint16_t*>column.values + offset, <uint16_t>sign, count, bits, lowest, highest, within)
    else:
        _find_within(column.values + offset, <uint8_t>sign, count, bits, lowest, highest, within)


cdef void _widen(const ColumnView* column, const Word* values, Word sign, int64_t count, uint64_t* lowest,
                 uint64_t* highest) noexcept nogil:
    cdef Word least = <Word>-1
    cdef Word greatest = 0
    cdef Word word
    cdef bint has_nulls = column.validity != NULL
    cdef bint is_any = False
    cdef int64_t index
    values += column.offset
    for index in range(count):
        if has_nulls and column_is_null(column, index):
            continue
        word = values[index] ^ sign
        least = min(least, word)
        greatest = max(greatest, word)
        is_any = True
    if is_any:
        lowest[0] = min(lowest[0], <uint64_t>least)
        highest[0] = max(highest[0], <uint64_t>greatest)


cdef void _set_bits(const ColumnView* column, const Word* values, Word sign, int64_t count, uint64_t lowest,
                    uint8_t* bits) noexcept nogil:
    cdef bint has_nulls = column.validity != NULL
    cdef uint64_t word
    cdef int64_t index
    values += column.offset
    for index in range(count):
        if has_nulls and column_is_null(column, index):
            continue
        word = <uint64_t><Word>(values[index] ^ sign) - lowest
        bits[word >> 3] |= <uint8_t>(1 << (word & 7))


# Whether a word, whose distance from the lowest key is given, is a key. Those beyond the highest one look at the bit
# behind its own, so that there is nothing to guess for the processor.
cdef inline uint8_t _bit_at(const uint8_t* bits, uint64_t distance, uint64_t behind) noexcept nogil:
    distance = distance if distance < behind else behind
    return (bits[distance >> 3] >> (distance & 7)) & 1


# The same word ROWS_ALIKE times, as sorted columns have it.
cdef inline bint _are_alike(const Word* values) noexcept nogil:
    cdef Word difference = values[0] ^ values[ROWS_ALIKE - 1]
    cdef int64_t index
    if difference:
        return False
    for index in range(ROWS_ALIKE):
        difference |= values[0] ^ values[index]
    return difference == 0


# The bits of up to eight words, the first one's the lowest.
cdef inline uint8_t _byte_of(const Word* values, Word sign, int64_t count, const uint8_t* bits, uint64_t lowest,
                             uint64_t behind) noexcept nogil:
    cdef uint8_t byte = 0
    cdef int64_t index
    for index in range(count):
        byte |= _bit_at(bits, <uint64_t><Word>(values[index] ^ sign) - lowest, behind) << index
    return byte


cdef void _find_bits(const Word* values, Word sign, int64_t count, const uint8_t* bits, uint64_t lowest,
                     uint64_t highest, uint8_t* found) noexcept nogil:
    cdef uint64_t behind = highest - lowest + 1
    cdef int64_t row = 0
    while row <= count - 8:
        if row & (ROWS_ALIKE - 1) == 0 and row <= count - ROWS_ALIKE and _are_alike(values + row):
            memset(found + (row >> 3), 0xFF if _byte_of(values + row, sign, 1, bits, lowest, behind) else 0,
                   ROWS_ALIKE // 8)
            row += ROWS_ALIKE
        else:
            found[row >> 3] = _byte_of(values + row, sign, 8, bits, lowest, behind)    # eight, which the compiler knows
            row += 8
    if count & 7:
        found[count >> 3] = _byte_of(values + (count & ~7), sign, count & 7, bits, lowest, behind)


cdef void _find_within(const Word* values, Word sign, int64_t count, const uint8_t* bits, uint64_t lowest,
                       uint64_t highest, uint64_t* within) noexcept nogil:
    cdef uint64_t behind = highest - lowest + 1
    cdef uint64_t left, kept, bit
    cdef int64_t start, row
    for start in range(0, count, 64):
        left, kept = within[start >> 6], 0
        while left:
            bit = left & (0 - left)
            row = start + count_ones(bit - 1)
            kept |= bit * _bit_at(bits, <uint64_t><Word>(values[row] ^ sign) - lowest, behind)
            left ^= bit
        within[start >> 6] = kept


cdef void find_hashes(ArrowBatch batch, int64_t count, uint64_t seed, const uint64_t* words, int32_t word_shift,
                      uint8_t* found) noexcept nogil:
    cdef uint64_t hashes[HASHED_ROWS]
    cdef int32_t shift = 32 - word_shift
    cdef int32_t key = 0
    cdef int64_t start = 0
    cdef int64_t rows, index
    cdef uint64_t mixed, bits
    fill_zero(found, count)
    while start < count:
        rows = min(<int64_t>HASHED_ROWS, count - start)
        hash_batch(batch, &key, 1, start, rows, hashes)
        for index in range(rows):
            mixed = rehash(hashes[index], seed)
            bits = bits_of(mixed)
            found[(start + index) >> 3] |= <uint8_t>(
                <int32_t>(words[(mixed >> 32) >> shift] & bits == bits) << (index & 7))
        start += rows
