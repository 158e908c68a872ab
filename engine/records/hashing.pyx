"""The 64-bit hash of key columns, the same from Arrow columns and from rows.

    hashes = start, start, start ...
    for each key column:   hashes[i] = mix(hashes[i], value of row i)        one loop per width

A fixed value of up to 8 bytes is one word (for one such column the hash is a bijection: no collisions at all), a
decimal is its words, low first; bytes are hashed as wyhash does (``hash_mix.pxd``), and those of more than 64 by
themselves, mixed in as a word, so that a value outside of its row hashes by its reference. Null is one word, -0.0
hashes as 0.0, every NaN as one. An integer's width belongs to its type: int32 7 and int64 7 hash alike, but -1 does
not, so the planner casts both sides of a join to one type.

Invariants: the hash depends on values and their order of columns only, not on offsets, chunks, or the side (Arrow or
rows). It is no promise between versions: nothing stores it. Nested columns are no keys (``key_types``).

Source: wyhash (Wang Yi) for bytes, the mixer "moremur" (Pelle Evensen) for words.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from engine.records.arrow_batch cimport (
    ArrowBatch,
    ColumnView,
    KIND_BOOL,
    KIND_BYTES,
    KIND_DECIMAL128,
    KIND_DECIMAL256,
    KIND_FIXED_BYTES,
    KIND_LARGE_BYTES,
    KIND_NULL,
    column_is_null,
)
from engine.records.byte_kernels cimport load64, prefetch
from engine.records.hash_mix cimport hash_start, mix_bytes, mix_key, mix_word, null_word
from engine.records.number_types cimport Offset, Word
from engine.records.ordered_number cimport canonical_word, order_of_kind
from engine.records.outside_values cimport (
    PREFIX_OFFSET,
    is_outside,
    known_bytes,
    referenced_bytes,
    referenced_hash,
)
from engine.records.row_codec cimport NULL_COLUMNS, RowCodec, row_is_null

cdef int64_t AHEAD = 12


cdef inline uint64_t _mix_reference(uint64_t hash, const uint8_t* reference) noexcept nogil:
    """Mix the key of an out-of-line value as mix_key does; a short value is complete in its reference."""
    if referenced_bytes(reference) <= known_bytes(reference):
        return mix_key(hash, reference + PREFIX_OFFSET, known_bytes(reference))
    return mix_word(hash, referenced_hash(reference))


# ---------------------------------------------------------------------------------------------------------- Arrow

cdef void _hash_words(const ColumnView* column, const Word* values, int32_t order, int64_t start, int64_t count,
                      uint64_t* hashes) noexcept nogil:
    cdef int64_t row
    values += column.offset + start
    if column.validity == NULL:
        for row in range(count):
            hashes[row] = mix_word(hashes[row], canonical_word(values[row], order))
        return
    for row in range(count):
        if column_is_null(column, start + row):
            hashes[row] = mix_word(hashes[row], null_word())
        else:
            hashes[row] = mix_word(hashes[row], canonical_word(values[row], order))


cdef void _hash_bools(const ColumnView* column, int64_t start, int64_t count, uint64_t* hashes) noexcept nogil:
    cdef int64_t bit = column.offset + start
    cdef int64_t row
    for row in range(count):
        if column_is_null(column, start + row):
            hashes[row] = mix_word(hashes[row], null_word())
        else:
            hashes[row] = mix_word(hashes[row], (column.values[bit >> 3] >> (bit & 7)) & 1)
        bit += 1


cdef void _hash_decimals(const ColumnView* column, int64_t start, int64_t count, uint64_t* hashes) noexcept nogil:
    cdef const uint8_t* value = column.values + (column.offset + start) * column.width
    cdef int32_t position
    cdef int64_t row
    for row in range(count):
        if column_is_null(column, start + row):
            hashes[row] = mix_word(hashes[row], null_word())
        else:
            for position in range(0, column.width, 8):
                hashes[row] = mix_word(hashes[row], load64(value + position))
        value += column.width


cdef void _hash_fixed_bytes(const ColumnView* column, int64_t start, int64_t count, uint64_t* hashes) noexcept nogil:
    cdef const uint8_t* value = column.values + (column.offset + start) * column.width
    cdef int64_t row
    for row in range(count):
        if column_is_null(column, start + row):
            hashes[row] = mix_word(hashes[row], null_word())
        else:
            hashes[row] = mix_bytes(hashes[row], value, <uint64_t>column.width)
        value += column.width


cdef void _hash_strings(const ColumnView* column, const Offset* offsets, int64_t start, int64_t count,
                        uint64_t* hashes) noexcept nogil:
    cdef const uint8_t* values = column.values
    cdef bint nulls = column.validity != NULL
    cdef int64_t row
    offsets += column.offset + start
    for row in range(count):
        if nulls and column_is_null(column, start + row):
            hashes[row] = mix_word(hashes[row], null_word())
        else:
            hashes[row] = mix_key(hashes[row], values + offsets[row], <uint64_t>(offsets[row + 1] - offsets[row]))


cdef void _hash_moved(const ColumnView* column, const uint8_t* outside, int64_t start, int64_t count,
                      uint64_t* hashes) noexcept nogil:
    """A column of strings some of which have been moved outside."""
    cdef const int64_t* offsets = <const int64_t*>column.offsets + column.offset + start
    cdef const uint8_t* value
    cdef int64_t row
    for row in range(count):
        value = column.values + offsets[row]
        if column_is_null(column, start + row):
            hashes[row] = mix_word(hashes[row], null_word())
        elif outside[start + row]:
            hashes[row] = _mix_reference(hashes[row], value)
        else:
            hashes[row] = mix_key(hashes[row], value, <uint64_t>(offsets[row + 1] - offsets[row]))


cdef void _hash_nulls(int64_t count, uint64_t* hashes) noexcept nogil:
    cdef int64_t row
    for row in range(count):
        hashes[row] = mix_word(hashes[row], null_word())


cdef void _hash_column(const ColumnView* column, int64_t start, int64_t count, uint64_t* hashes) noexcept nogil:
    """Mix one column into the hashes."""
    cdef int32_t order = order_of_kind(column.kind)
    if column.kind == KIND_NULL:
        _hash_nulls(count, hashes)
    elif column.kind == KIND_BOOL:
        _hash_bools(column, start, count, hashes)
    elif column.kind == KIND_BYTES:
        _hash_strings[int32_t](column, <const int32_t*>column.offsets, start, count, hashes)
    elif column.kind == KIND_LARGE_BYTES:
        _hash_strings[int64_t](column, <const int64_t*>column.offsets, start, count, hashes)
    elif column.kind == KIND_DECIMAL128 or column.kind == KIND_DECIMAL256:
        _hash_decimals(column, start, count, hashes)
    elif column.kind == KIND_FIXED_BYTES:
        _hash_fixed_bytes(column, start, count, hashes)
    elif column.width == 8:
        _hash_words[uint64_t](column, <const uint64_t*>column.values, order, start, count, hashes)
    elif column.width == 4:
        _hash_words[uint32_t](column, <const uint32_t*>column.values, order, start, count, hashes)
    elif column.width == 2:
        _hash_words[uint16_t](column, <const uint16_t*>column.values, order, start, count, hashes)
    elif column.width == 1:
        _hash_words[uint8_t](column, column.values, order, start, count, hashes)


cdef void hash_batch(ArrowBatch batch, const int32_t* columns, int32_t column_count, int64_t start, int64_t count,
                     uint64_t* hashes) noexcept nogil:
    """Hash the key columns of count rows of a batch from start on."""
    cdef int64_t row
    cdef int32_t index
    for row in range(count):
        hashes[row] = hash_start()
    for index in range(column_count):
        if batch.outside != NULL and batch.outside[columns[index]] != NULL:
            _hash_moved(&batch.columns[columns[index]], batch.outside[columns[index]], start, count, hashes)
        else:
            _hash_column(&batch.columns[columns[index]], start, count, hashes)


# ----------------------------------------------------------------------------------------------------------- rows

cdef void _hash_row_words(Word* tag, uint8_t** rows, int32_t column, int32_t slot, int32_t order, int64_t count,
                          uint64_t* hashes) noexcept nogil:
    cdef int64_t row
    for row in range(count):
        if row_is_null(rows[row], column):
            hashes[row] = mix_word(hashes[row], null_word())
        else:
            hashes[row] = mix_word(hashes[row], canonical_word((<const Word*>(rows[row] + slot))[0], order))


cdef void _hash_row_decimals(uint8_t** rows, int32_t column, int32_t slot, int32_t width, int64_t count,
                             uint64_t* hashes) noexcept nogil:
    cdef int32_t position
    cdef int64_t row
    for row in range(count):
        if row_is_null(rows[row], column):
            hashes[row] = mix_word(hashes[row], null_word())
        else:
            for position in range(0, width, 8):
                hashes[row] = mix_word(hashes[row], load64(rows[row] + slot + position))


cdef void _hash_row_fixed_bytes(uint8_t** rows, int32_t column, int32_t slot, int32_t width, int64_t count,
                                uint64_t* hashes) noexcept nogil:
    cdef int64_t row
    for row in range(count):
        if row_is_null(rows[row], column):
            hashes[row] = mix_word(hashes[row], null_word())
        else:
            hashes[row] = mix_bytes(hashes[row], rows[row] + slot, <uint64_t>width)


cdef void _hash_row_strings(uint8_t** rows, int32_t column, int32_t slot, int64_t count,
                            uint64_t* hashes) noexcept nogil:
    cdef uint64_t value
    cdef int64_t row
    for row in range(count):
        if row_is_null(rows[row], column):
            hashes[row] = mix_word(hashes[row], null_word())
        else:
            value = load64(rows[row] + slot)
            if is_outside(value):
                hashes[row] = _mix_reference(hashes[row], rows[row] + (value & 0xFFFFFFFFU))
            else:
                hashes[row] = mix_key(hashes[row], rows[row] + (value & 0xFFFFFFFFU), value >> 32)


cdef void _hash_row_column(RowCodec codec, int32_t column, uint8_t** rows, int64_t count,
                           uint64_t* hashes) noexcept nogil:
    """Mix one column of rows into the hashes."""
    cdef int32_t kind = codec.kinds[column]
    cdef int32_t slot = codec.slots[column]
    cdef int32_t width = codec.widths[column]
    cdef int32_t order = order_of_kind(kind)
    if kind == KIND_NULL:
        _hash_nulls(count, hashes)
    elif kind == KIND_BYTES or kind == KIND_LARGE_BYTES:
        _hash_row_strings(rows, column, slot, count, hashes)
    elif kind == KIND_DECIMAL128 or kind == KIND_DECIMAL256:
        _hash_row_decimals(rows, column, slot, width, count, hashes)
    elif kind == KIND_FIXED_BYTES:
        _hash_row_fixed_bytes(rows, column, slot, width, count, hashes)
    elif kind > KIND_LARGE_BYTES:
        return
    elif width == 8:
        _hash_row_words[uint64_t](NULL, rows, column, slot, order, count, hashes)
    elif width == 4:
        _hash_row_words[uint32_t](NULL, rows, column, slot, order, count, hashes)
    elif width == 2:
        _hash_row_words[uint16_t](NULL, rows, column, slot, order, count, hashes)
    elif width == 1:
        _hash_row_words[uint8_t](NULL, rows, column, slot, order, count, hashes)


cdef void hash_rows(RowCodec codec, const int32_t* columns, int32_t column_count, uint8_t** rows, int64_t count,
                    uint64_t* hashes) noexcept nogil:
    """Hash the key columns of rows."""
    cdef int64_t row
    cdef int32_t index
    for row in range(count):
        if row + AHEAD < count:
            prefetch(rows[row + AHEAD])
        hashes[row] = hash_start()
    for index in range(column_count):
        _hash_row_column(codec, columns[index], rows, count, hashes)


# ---------------------------------------------------------------------------------------------------------- nulls

cdef int64_t _count_flags(const uint8_t* flags, int64_t count) noexcept nogil:
    cdef int64_t total = 0
    cdef int64_t row
    for row in range(count):
        total += flags[row]
    return total


cdef int64_t null_keys_of_batch(ArrowBatch batch, const int32_t* columns, int32_t column_count, int64_t start,
                                int64_t count, uint8_t* flags) noexcept nogil:
    """Flag the rows of a batch that have a null key."""
    cdef const ColumnView* column
    cdef bint found = False
    cdef int64_t row
    cdef int32_t index
    memset(flags, 0, <size_t>count)
    for index in range(column_count):
        column = &batch.columns[columns[index]]
        if column.null_count == 0:
            continue
        found = True
        for row in range(count):
            flags[row] |= <uint8_t>column_is_null(column, start + row)
    return _count_flags(flags, count) if found else 0


cdef int64_t null_keys_of_rows(RowCodec codec, const int32_t* columns, int32_t column_count, uint8_t** rows,
                               int64_t count, uint8_t* flags) noexcept nogil:
    """Flag the rows that have a null key; one look at each row where all keys are among its first columns."""
    cdef uint32_t first = 0
    cdef int64_t row
    cdef int32_t index
    for index in range(column_count):
        if columns[index] < NULL_COLUMNS:
            first |= <uint32_t>1 << columns[index]
    for row in range(count):
        if row + AHEAD < count:
            prefetch(rows[row + AHEAD])
        flags[row] = ((<const uint32_t*>(rows[row] + 4))[0] & first) != 0
    for index in range(column_count):
        if columns[index] >= NULL_COLUMNS:
            for row in range(count):
                flags[row] |= <uint8_t>row_is_null(rows[row], columns[index])
    return _count_flags(flags, count)
