"""Mask: the rows of a batch that are meant, as words of 64 bits; what filters pass on without an array of Arrow's.

    Mask(array)                                 of a BooleanArray; null is false
    mask.rows, mask.kept                        of how many rows, and how many are meant
    mask.both(other) -> mask                    rows of both
    mask.array() -> pa.BooleanArray             for Arrow's functions
    narrowed_mask(mask, kept) -> mask           the rows of a mask that are meant in another one of its rows alone
    flags_of_codes(batch, column, said, of_null) -> mask    for each row what is said of its code, or of null

A mask of a hundred thousand rows is 13 KB, and its loops take microseconds, so they run with the GIL held: to release
and take it costs more where another thread waits for it. Masks of more rows are narrowed without it.

Thread: one writes it, then any. Held by: tests/records/test_row_mask.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset, strcmp

import pyarrow as pa

from engine.records.arrow_c_data cimport ArrowArray
from engine.records.bit_kernels cimport append_bits, place_bits
from engine.records.byte_kernels cimport bits_from, count_ones
from engine.records.kept_kernels cimport flag_codes
from engine.records.opened_batch cimport OpenedBatch, opened_batch

cdef object BOOL = pa.bool_()
#: rows of a mask up to which it is narrowed with the GIL held
cdef int64_t ROWS_WITH_LOCK_MAX = 1 << 18


cdef inline uintptr_t address_of(object buffer) except? 0:
    return 0 if buffer is None else <uintptr_t>buffer.address


@cython.final
cdef class Mask:
    """See the module's text."""

    def __init__(self, mask not None):
        cdef int64_t word, size
        cdef int64_t offset = mask.offset
        cdef const uint8_t* validity
        cdef const uint8_t* values
        buffers = mask.buffers()
        if mask.type != BOOL:
            raise TypeError(f"a mask is of bools, not of {mask.type}")
        self._take(len(mask))
        validity = <const uint8_t*>address_of(buffers[0]) if mask.null_count else NULL
        values = <const uint8_t*>address_of(buffers[1])
        for word in range((self.rows + 63) >> 6):
            size = min(64, self.rows - 64 * word)
            self.words[word] = bits_from(values, offset + 64 * word, size)
            if validity != NULL:
                self.words[word] &= bits_from(validity, offset + 64 * word, size)
            self.kept += count_ones(self.words[word])

    def __dealloc__(self):
        free(self.words)

    def __len__(self):
        return self.rows

    cdef int _take(self, int64_t rows) except -1:
        self.rows = rows
        self.words = <uint64_t*>malloc(<size_t>((rows + 63) // 64 + 1) * 8)
        if self.words == NULL:
            raise MemoryError("a mask of rows")
        return 0

    @staticmethod
    cdef Mask unset(int64_t rows):
        cdef Mask made = Mask.__new__(Mask)
        made._take(rows)
        return made

    @staticmethod
    cdef Mask whole(int64_t rows):
        cdef Mask made = Mask.unset(rows)
        memset(made.words, 0xFF, <size_t>((rows + 63) // 64) * 8)
        made.count()
        return made

    cdef Mask copy(self):
        cdef Mask made = Mask.unset(self.rows)
        memcpy(made.words, self.words, <size_t>((self.rows + 63) // 64) * 8)
        made.kept = self.kept
        return made

    cdef int count(self) except -1:
        cdef int64_t word
        if self.rows & 63:
            self.words[self.rows >> 6] &= (<uint64_t>1 << (self.rows & 63)) - 1
        self.kept = 0
        for word in range((self.rows + 63) >> 6):
            self.kept += count_ones(self.words[word])
        return 0

    def both(self, Mask other not None):
        """Return the mask of rows that are in both. Raises: pa.ArrowInvalid (they are of different numbers of rows)."""
        cdef Mask made = Mask.unset(self.rows)
        cdef int64_t word
        if other.rows != self.rows:
            raise pa.ArrowInvalid(f"a mask of {other.rows} rows beside one of {self.rows}")
        for word in range((self.rows + 63) >> 6):
            made.words[word] = self.words[word] & other.words[word]
        made.count()
        return made

    def array(self):
        """Return the mask as a BooleanArray."""
        cdef size_t size = <size_t>((self.rows + 63) // 64 * 8)
        buffer = pa.allocate_buffer(size)
        memcpy(<void*><uintptr_t>buffer.address, self.words, size)
        return pa.Array.from_buffers(BOOL, self.rows, [None, buffer], 0)


cdef Mask mask_from(object mask):
    return <Mask>mask if isinstance(mask, Mask) else Mask(mask)


cdef Mask joined_masks(list masks):
    cdef Mask one, made
    cdef int64_t rows = 0
    cdef bint is_aligned = True     # each begins with a word; most row groups are of as many rows
    for one in masks:
        is_aligned = is_aligned and not rows & 63
        rows += one.rows
    made = Mask.unset(rows)
    if not is_aligned:
        memset(made.words, 0, <size_t>((rows + 63) // 64 + 1) * 8)
    rows = 0
    for one in masks:
        if one.rows > ROWS_WITH_LOCK_MAX:
            with nogil:
                append_mask(made.words, rows, one.words, one.rows, is_aligned)
        else:
            append_mask(made.words, rows, one.words, one.rows, is_aligned)
        rows += one.rows
        made.kept += one.kept
    return made


cdef void append_mask(uint64_t* words, int64_t position, const uint64_t* mask, int64_t rows,
                      bint is_aligned) noexcept nogil:
    """Set the bits behind some of a mask, to those of another one."""
    if is_aligned:
        memcpy(&words[position >> 6], mask, <size_t>((rows + 63) >> 6) * 8)
    else:
        append_bits(words, position, mask, rows)


def narrowed_mask(mask not None, kept not None):
    """Return the rows of a mask that are meant in another one, which has a row for each row that the first one means.

    Raises: pa.ArrowInvalid (it has another number of rows).
    """
    cdef Mask words = mask_from(mask)
    cdef Mask of_kept = mask_from(kept)
    cdef Mask made = Mask.unset(words.rows)
    if of_kept.rows != words.kept:
        raise pa.ArrowInvalid(f"a mask of {of_kept.rows} rows for {words.kept} that are kept")
    if words.rows > ROWS_WITH_LOCK_MAX:
        with nogil:
            narrow(words.words, of_kept.words, words.rows, made.words)
    else:
        narrow(words.words, of_kept.words, words.rows, made.words)
    made.kept = of_kept.kept
    return made


cdef void narrow(const uint64_t* mask, const uint64_t* kept, int64_t rows, uint64_t* target) noexcept nogil:
    cdef int64_t word
    cdef int64_t position = 0
    cdef uint64_t bits, wanted
    for word in range((rows + 63) >> 6):
        wanted = mask[word]
        target[word] = 0
        if wanted == 0:
            continue
        # A mask has a word more than its rows take.
        bits = kept[position >> 6] >> (position & 63)
        if position & 63:
            bits |= kept[(position >> 6) + 1] << (64 - (position & 63))
        target[word] = place_bits(bits, wanted)
        position += count_ones(wanted)


def flags_of_codes(batch not None, int32_t column, said not None, bint of_null):
    """Return the mask of a column of int32 codes of which something is said: null is ``of_null``.

    None: the codes are of another type. Raises: pa.ArrowInvalid (a code of which nothing is said).
    """
    cdef OpenedBatch opened = opened_batch(batch)
    cdef const ArrowArray* codes = opened.array.children[column]
    cdef int64_t rows = opened.array.length
    cdef int64_t offset = opened.array.offset + codes.offset
    cdef Mask words = mask_from(said)
    cdef Mask made
    cdef uint32_t code_count = <uint32_t>words.rows
    cdef int64_t index
    cdef uint8_t* flags
    cdef const uint8_t* validity = <const uint8_t*>codes.buffers[0] if codes.null_count else NULL
    cdef const uint8_t* values = <const uint8_t*>codes.buffers[1]
    cdef bint is_sound
    if strcmp(opened.types.children[column].format, b"i") != 0:
        return None
    made = Mask.unset(rows)
    flags = <uint8_t*>malloc(<size_t>words.rows + 1)
    if flags == NULL:
        raise MemoryError("what is said of codes")
    with nogil:
        for index in range(words.rows):
            flags[index] = (words.words[index >> 6] >> (index & 63)) & 1
        flags[words.rows] = of_null
        is_sound = flag_codes(values + 4 * offset, validity, offset, rows, flags, code_count, made.words)
    free(flags)
    if not is_sound:
        raise pa.ArrowInvalid(f"{rows} numbers of texts in a dictionary of {code_count} go beyond it")
    made.count()
    return made
