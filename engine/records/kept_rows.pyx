"""Rows that a mask keeps, and masks of codes: what Arrow's ``filter`` and ``take`` do, in a tenth of their time.

    kept_rows(batch, mask) -> batch             rows where the mask is true, null is not; the batch itself if all are
    narrowed_mask(mask, kept) -> mask           the rows of a mask that are true in one of the kept rows
    flags_of_codes(said, codes) -> mask         for each row what is said of its code, of nulls what is said last

    mask      1 1 1 1 1 1 1 1 │ 0 1 0 0 0 0 1 0 │ 0 0 0 0 0 0 0 0      64 rows a word
    values    copied at once    one by one        passed over           kept_kernels.pxd

Values of fixed width, bools and texts are copied here, without the GIL. A dictionary's codes are, beside the dictionary
as it is. Columns of other types go through Arrow's ``filter``.

Held by: tests/records/test_kept_rows.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport free, malloc

import pyarrow as pa

from engine.records.arrow_functions import pc
from engine.records.byte_kernels cimport bits_from, count_ones
from engine.records.kept_kernels cimport (
    flag_codes,
    keep_1,
    keep_2,
    keep_4,
    keep_8,
    keep_16,
    keep_32,
    keep_bits,
    keep_large_texts,
    keep_large_texts_bytes,
    keep_texts,
    keep_texts_bytes,
)

ctypedef void (*Keeping)(const uint8_t* values, int64_t rows, const uint64_t* mask, uint8_t* target) noexcept nogil

cdef enum:
    IS_BOOL = -1
    IS_TEXT = -2
    IS_LARGE_TEXT = -3
    IS_DICTIONARY = -4
    VALUE_BYTES_MAX = 32

cdef object BOOL = pa.bool_()
cdef object INT32 = pa.int32()
#: by id of a type: bytes of a value, or what else it is
cdef dict WIDTHS = {
    **{data_type.id: data_type.bit_width // 8 for data_type in (
        pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
        pa.float16(), pa.float32(), pa.float64(), pa.date32(), pa.date64(), pa.time32("s"), pa.time64("us"),
        pa.timestamp("us"), pa.duration("us"), pa.decimal128(1), pa.decimal256(1),
    )},
    BOOL.id: IS_BOOL, pa.string().id: IS_TEXT, pa.binary().id: IS_TEXT, pa.large_string().id: IS_LARGE_TEXT,
    pa.large_binary().id: IS_LARGE_TEXT, pa.dictionary(INT32, pa.string()).id: IS_DICTIONARY,
}


cdef Keeping keeping_of(int32_t width) noexcept nogil:
    if width == 1:
        return keep_1
    if width == 2:
        return keep_2
    if width == 4:
        return keep_4
    if width == 8:
        return keep_8
    return keep_16 if width == 16 else keep_32


cdef inline uintptr_t address_of(object buffer) except? 0:
    return 0 if buffer is None else <uintptr_t>buffer.address


@cython.final
cdef class Mask:
    """A mask as words of 64 rows."""

    cdef uint64_t* words
    cdef int64_t rows, kept

    def __cinit__(self, mask):
        cdef int64_t word
        cdef int64_t offset = mask.offset
        cdef int64_t size
        cdef const uint8_t* validity
        cdef const uint8_t* values
        buffers = mask.buffers()
        self.rows = len(mask)
        self.words = <uint64_t*>malloc(<size_t>((self.rows + 63) // 64 + 1) * 8)
        if self.words == NULL:
            raise MemoryError("a mask of rows")
        validity = <const uint8_t*>address_of(buffers[0]) if mask.null_count else NULL
        values = <const uint8_t*>address_of(buffers[1])
        with nogil:
            for word in range((self.rows + 63) >> 6):
                size = min(64, self.rows - 64 * word)
                self.words[word] = bits_from(values, offset + 64 * word, size)
                if validity != NULL:
                    self.words[word] &= bits_from(validity, offset + 64 * word, size)
                self.kept += count_ones(self.words[word])

    def __dealloc__(self):
        free(self.words)

    cdef object bits(self, const uint8_t* bitmap, int64_t offset, int64_t* ones):
        """The bits of a bitmap that are kept, and how many are 1."""
        buffer = pa.allocate_buffer((self.kept + 63) // 64 * 8)
        cdef uint64_t* target = <uint64_t*><uintptr_t>buffer.address
        with nogil:
            ones[0] = keep_bits(bitmap, offset, self.rows, self.words, target)
        return buffer

    cdef object values(self, const uint8_t* source, int32_t width):
        """The values that are kept."""
        # the kernel writes one value more
        buffer = pa.allocate_buffer(self.kept * width + VALUE_BYTES_MAX, resizable=True)
        cdef uint8_t* target = <uint8_t*><uintptr_t>buffer.address
        cdef Keeping keeping = keeping_of(width)
        with nogil:
            keeping(source, self.rows, self.words, target)
        buffer.resize(self.kept * width, shrink_to_fit=False)
        return buffer

    cdef tuple texts(self, const uint8_t* offsets, const uint8_t* texts, bint is_large):
        """The offsets and the bytes of the texts that are kept."""
        cdef int64_t total
        cdef uint8_t* target_offsets
        cdef uint8_t* target
        with nogil:
            total = (keep_large_texts_bytes if is_large else keep_texts_bytes)(offsets, self.rows, self.words)
        offset_buffer = pa.allocate_buffer((self.kept + 1) * (8 if is_large else 4))
        # the kernel writes beyond the last one
        text_buffer = pa.allocate_buffer(total + VALUE_BYTES_MAX, resizable=True)
        target_offsets = <uint8_t*><uintptr_t>offset_buffer.address
        target = <uint8_t*><uintptr_t>text_buffer.address
        with nogil:
            (keep_large_texts if is_large else keep_texts)(
                offsets, texts, self.rows, self.words, target_offsets, target)
        text_buffer.resize(total, shrink_to_fit=False)
        return offset_buffer, text_buffer

    cdef object column(self, object array):
        """The rows of a column that are kept."""
        cdef int32_t kind = WIDTHS.get(array.type.id, 0)
        cdef int64_t offset = array.offset
        cdef int64_t null_count = array.null_count
        cdef int64_t ones = 0
        cdef const uint8_t* values
        if kind == IS_DICTIONARY:
            if array.indices.type != INT32:
                return pc.filter(array, self.array())
            return pa.DictionaryArray.from_arrays(
                self.column(array.indices), array.dictionary, ordered=array.type.ordered, safe=False)
        buffers = array.buffers()
        if kind == 0 or buffers[1] is None or isinstance(array.type, pa.BaseExtensionType):
            return pc.filter(array, self.array())
        validity = None
        if null_count:
            validity = self.bits(<const uint8_t*>address_of(buffers[0]), offset, &ones)
            null_count = self.kept - ones
            if not null_count:
                validity = None
        values = <const uint8_t*>address_of(buffers[1])
        if kind == IS_BOOL:
            kept = (self.bits(values, offset, &ones),)
        elif kind == IS_TEXT:
            kept = self.texts(values + 4 * offset, <const uint8_t*>address_of(buffers[2]), False)
        elif kind == IS_LARGE_TEXT:
            kept = self.texts(values + 8 * offset, <const uint8_t*>address_of(buffers[2]), True)
        else:
            kept = (self.values(values + kind * offset, kind),)
        return pa.Array.from_buffers(array.type, self.kept, [validity, *kept], null_count)

    cdef object array(self):
        """The mask as Arrow has it."""
        cdef int64_t ones
        cdef int64_t word
        buffer = pa.allocate_buffer((self.rows + 63) // 64 * 8)
        cdef uint64_t* target = <uint64_t*><uintptr_t>buffer.address
        for word in range((self.rows + 63) >> 6):
            target[word] = self.words[word]
        return pa.Array.from_buffers(BOOL, self.rows, [None, buffer], 0)


def kept_rows(batch not None, mask not None):
    """Return the rows of a pyarrow.RecordBatch for which a BooleanArray of as many rows is true."""
    cdef Mask words = Mask(mask)
    if words.rows != batch.num_rows:
        raise pa.ArrowInvalid(f"a mask of {words.rows} rows for a batch of {batch.num_rows}")
    if words.kept == words.rows:
        return batch
    if words.kept == 0 or batch.num_columns == 0:
        return batch.slice(0, words.kept)
    return pa.RecordBatch.from_arrays([words.column(column) for column in batch.columns], schema=batch.schema)


def narrowed_mask(mask not None, kept not None):
    """Return the rows for which one BooleanArray is true, and another one, which has a value for each such row."""
    cdef Mask words = Mask(mask)
    cdef Mask of_kept = Mask(kept)
    cdef int64_t word
    cdef int64_t position = 0
    cdef uint64_t bits, found
    if of_kept.rows != words.kept:
        raise pa.ArrowInvalid(f"a mask of {of_kept.rows} rows for {words.kept} that are kept")
    for word in range((words.rows + 63) >> 6):
        bits, found = words.words[word], 0
        while bits:
            if (of_kept.words[position >> 6] >> (position & 63)) & 1:
                found |= bits & (~bits + 1)
            bits &= bits - 1
            position += 1
        words.words[word] = found
    return words.array()


def flags_of_codes(said not None, codes not None):
    """Return what a BooleanArray says of each int32 code, and of a null what it says last; null counts as false.

    None: the codes are of another type. Raises: pa.ArrowInvalid (a code of which nothing is said).
    """
    cdef int64_t rows = len(codes)
    cdef int64_t offset = codes.offset
    cdef Mask words = Mask(said)
    cdef uint32_t code_count = <uint32_t>(words.rows - 1)
    cdef int64_t index
    cdef uint8_t* flags
    cdef const uint8_t* validity
    cdef const uint8_t* values
    cdef uint64_t* target
    cdef bint is_sound
    if codes.type != INT32 or words.rows == 0:
        return None
    buffers = codes.buffers()
    buffer = pa.allocate_buffer((rows + 63) // 64 * 8)
    target = <uint64_t*><uintptr_t>buffer.address
    validity = <const uint8_t*>address_of(buffers[0]) if codes.null_count else NULL
    values = <const uint8_t*>address_of(buffers[1])
    flags = <uint8_t*>malloc(<size_t>words.rows)
    if flags == NULL:
        raise MemoryError("what is said of codes")
    with nogil:
        for index in range(words.rows):
            flags[index] = (words.words[index >> 6] >> (index & 63)) & 1
        is_sound = flag_codes(values + 4 * offset, validity, offset, rows, flags, code_count, target)
    free(flags)
    if not is_sound:
        raise pa.ArrowInvalid(f"{rows} numbers of texts in a dictionary of {code_count} go beyond it")
    return pa.Array.from_buffers(BOOL, rows, [None, buffer], 0)
