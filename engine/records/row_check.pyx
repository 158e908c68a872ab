"""Rows of another writer: what they say of themselves is checked.

    check_rows(codec, rows, count)      what is in rows is sound, or CorruptBlockError

Decoding checks rows on the way. Code that compares, hashes or copies them before that would follow an offset anywhere.

Invariants: in a sound row, size, offsets and lengths of all variable values lie within the row. Bodies of nested values
are checked when they are decoded, references when they are followed. Rows without wide values cost a look at each of
these words.
Limits: the caller guarantees that each row ends inside its page.

Held by: tests/records/test_whole_rows.py
Held by: tests/property/test_strangers_rows.py
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from engine.errors import CorruptBlockError
from engine.records.byte_kernels cimport load64
from engine.records.outside_values cimport true_length
from engine.records.row_codec cimport RowCodec, row_size


cdef enum:
    BRIEF_ROWS = 4096       # are looked at in less time than it takes to give the GIL away and get it back


cdef int64_t _first_damaged(RowCodec codec, uint8_t** rows, int64_t count) noexcept nogil:
    """Return the position of the first row that is not sound, -1 when all are."""
    cdef int64_t row
    cdef int32_t index
    cdef uint64_t word
    for row in range(count):
        if row_size(rows[row]) < <uint64_t>codec.fixed_size:
            return row
        for index in range(codec._variable_count):
            word = load64(rows[row] + codec._variable_slots[index])
            if (word & 0xFFFFFFFFU) + (word >> 32) > row_size(rows[row]) and true_length(rows[row], word) < 0:
                return row
    return -1


cdef int check_rows(RowCodec codec, uint8_t** rows, int64_t count) except -1:
    cdef int64_t damaged
    if count <= BRIEF_ROWS:
        damaged = _first_damaged(codec, rows, count)
    else:
        with nogil:
            damaged = _first_damaged(codec, rows, count)
    if damaged >= 0:
        raise CorruptBlockError(f"row {damaged} of {count} of another writer is damaged: a size or an offset in it "
                                "leads outside the row")
    return 0
