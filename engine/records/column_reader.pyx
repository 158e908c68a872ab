"""One column of rows into Arrow buffers: gathers, one tight loop per width.

    rows: row0 row1 row2 row3 ...  (pointers, anywhere)       read_fixed: target_i = *(row_i + slot)

Order of calls for a range of rows: scan_rows once, then per column read_fixed or read_bools, or read_offsets and,
when the data buffer exists, read_bytes; read_validity where the union of null bits says so.

Invariants: nothing is read outside [row, row + size); what a row says of itself is checked (scan_rows, read_offsets)
before it is used. Bits past the last row are zero.
Limits: the caller guarantees that a row's size field is true, i.e. that the row ends inside its page.

Held by: tests/records/test_row_codec.py
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from engine.memory.status cimport STATUS_CORRUPT, STATUS_OK
from engine.records.byte_kernels cimport copy_bytes, load64, prefetch
from engine.records.number_types cimport Offset

cdef struct Word16:
    uint64_t[2] words

cdef struct Word32:
    uint64_t[4] words

ctypedef fused Word:
    uint8_t
    uint16_t
    uint32_t
    uint64_t
    Word16
    Word32

cdef enum:
    SHORT = 16                 # bytes of a copy that does not look at the length

# rows ahead whose first cache line is asked for while this one is read
cdef int64_t AHEAD = 24


cdef int scan_rows(uint8_t** rows, int64_t count, int64_t available, int32_t fixed_size, int32_t null_bytes,
                   uint8_t* null_union) noexcept nogil:
    """Check sizes, gather null bits."""
    cdef int64_t row
    cdef int32_t index
    cdef uint32_t size
    cdef uint32_t nulls = 0
    for row in range(count):
        if row + AHEAD < available:
            prefetch(rows[row + AHEAD])
        size = (<const uint32_t*>rows[row])[0]
        if size < <uint32_t>fixed_size or size & 7:
            return STATUS_CORRUPT
        if null_bytes <= 4:
            # Up to 32 columns: one word (bytes behind the null bits are padding or slots, masked below).
            nulls |= (<const uint32_t*>rows[row])[1]
        else:
            for index in range(null_bytes):
                null_union[index] |= rows[row][4 + index]
    if null_bytes <= 4:
        for index in range(null_bytes):
            null_union[index] |= <uint8_t>(nulls >> (8 * index))
    return STATUS_OK


cdef void _read_words(uint8_t** rows, int64_t count, int32_t slot, Word* target) noexcept nogil:
    cdef int64_t row
    for row in range(count):
        memcpy(target + row, rows[row] + slot, sizeof(Word))


cdef void read_fixed(uint8_t** rows, int64_t count, int32_t slot, int32_t width, uint8_t* target) noexcept nogil:
    """Gather fixed values."""
    cdef int64_t row
    if width == 8:
        _read_words[uint64_t](rows, count, slot, <uint64_t*>target)
    elif width == 4:
        _read_words[uint32_t](rows, count, slot, <uint32_t*>target)
    elif width == 1:
        _read_words[uint8_t](rows, count, slot, target)
    elif width == 2:
        _read_words[uint16_t](rows, count, slot, <uint16_t*>target)
    elif width == 16:
        _read_words[Word16](rows, count, slot, <Word16*>target)
    elif width == 32:
        _read_words[Word32](rows, count, slot, <Word32*>target)
    else:
        for row in range(count):
            copy_bytes(target + row * width, rows[row] + slot, <uint64_t>width)


cdef void read_bools(uint8_t** rows, int64_t count, int32_t slot, uint8_t* target) noexcept nogil:
    """Gather bools into bits."""
    cdef int64_t row
    cdef uint32_t bits = 0
    for row in range(count):
        bits |= <uint32_t>(rows[row][slot] & 1) << (row & 7)
        if row & 7 == 7:
            target[row >> 3] = <uint8_t>bits
            bits = 0
    if count & 7:
        target[count >> 3] = <uint8_t>bits


cdef int64_t read_validity(uint8_t** rows, int64_t count, int32_t null_index, uint8_t* target) noexcept nogil:
    """Gather validity bits; return the number of nulls."""
    cdef int32_t byte = 4 + (null_index >> 3)
    cdef int32_t shift = null_index & 7
    cdef int64_t row
    cdef int64_t valid = 0
    cdef uint32_t bits = 0
    cdef uint32_t bit
    for row in range(count):
        bit = ((rows[row][byte] >> shift) & 1) ^ 1
        valid += bit
        bits |= bit << (row & 7)
        if row & 7 == 7:
            target[row >> 3] = <uint8_t>bits
            bits = 0
    if count & 7:
        target[count >> 3] = <uint8_t>bits
    return count - valid


cdef int _read_ends(uint8_t** rows, int64_t count, int32_t slot, Offset* ends, int64_t* total) noexcept nogil:
    cdef int64_t row
    cdef int64_t end = total[0]
    cdef uint64_t value, length
    cdef uint64_t outside = 0
    for row in range(count):
        value = load64(rows[row] + slot)
        length = value >> 32
        outside |= <uint64_t>((value & 0xFFFFFFFFU) + length > <uint64_t>((<const uint32_t*>rows[row])[0]))
        end += <int64_t>length
        ends[row] = <Offset>end
    total[0] = end
    return STATUS_CORRUPT if outside else STATUS_OK


cdef int read_offsets(uint8_t** rows, int64_t count, int32_t slot, bint large, uint8_t* target,
                      int64_t* total) noexcept nogil:
    """Gather lengths into running ends; Status."""
    if large:
        return _read_ends[int64_t](rows, count, slot, <int64_t*>target, total)
    return _read_ends[int32_t](rows, count, slot, <int32_t*>target, total)


cdef uint8_t* read_bytes(uint8_t** rows, int64_t count, int32_t slot, uint8_t* base, uint8_t* end) noexcept nogil:
    """Concatenate variable values backwards, the last one ending at end.

    Short values are copied as the 16 bytes that end with them: in a row so many lie before, and what is written in
    front of a value is written again by the row before it.
    """
    cdef int64_t row
    cdef uint64_t value, length, value_end
    for row in range(count - 1, -1, -1):
        value = load64(rows[row] + slot)
        length = value >> 32
        value_end = (value & 0xFFFFFFFFU) + length
        if length <= SHORT and value_end >= SHORT and end - base >= SHORT:
            memcpy(end - SHORT, rows[row] + value_end - SHORT, SHORT)
        else:
            copy_bytes(end - length, rows[row] + value_end - length, length)
        end -= length
    return end
