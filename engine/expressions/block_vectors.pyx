"""Vectors: some thousand values of a column in the cache, as the kernels of a program read them.

    load(vector, column, start, count)          an Arrow column's rows as a vector
    store(vector, kind, target, count)          a vector as the rows of a new column; False: a decimal does not fit

    bool                      64 rows a word, 0 under a null      date, time, timestamp, duration    int64
    integers but uint64       int64                               decimals   int64, or 128 bits where one of a block's
    float64, float32          double                                         values needs them
    string, binary            in place

Invariants: runs without the GIL. The bits of rows from ``count`` on are 0, and so is a bool under a null. What lies
under another null is whatever lay there.

Held by: tests/expressions/test_vector_program.py
"""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from engine.records.arrow_batch cimport (
    KIND_BOOL,
    KIND_BYTES,
    KIND_DECIMAL128,
    KIND_DECIMAL256,
    KIND_FLOAT32,
    KIND_FLOAT64,
    KIND_INT8,
    KIND_INT16,
    KIND_INT32,
    KIND_INT64,
    KIND_LARGE_BYTES,
    KIND_UINT8,
    KIND_UINT16,
    KIND_UINT32,
    ColumnView,
)
from engine.records.byte_kernels cimport bits_from
from engine.records.number_types cimport Narrow

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    /* Decimals of two words, or of four, in one; nonzero: some do not fit. */
    static int drey_halve(const uint8_t* source, int64_t* target, int64_t count) {
        int64_t over = 0;
        for (int64_t row = 0; row < count; row++) {
            int64_t words[2];
            memcpy(words, source + 16 * row, 16);
            target[row] = words[0];
            over |= words[1] ^ (words[0] >> 63);
        }
        return over != 0;
    }
    static int drey_quarter(const uint8_t* source, int64_t* target, int64_t count) {
        int64_t over = 0;
        for (int64_t row = 0; row < count; row++) {
            int64_t words[4];
            memcpy(words, source + 32 * row, 32);
            target[row] = words[0];
            over |= (words[1] ^ (words[0] >> 63)) | (words[2] ^ words[1]) | (words[3] ^ words[1]);
        }
        return over != 0;
    }
    static int drey_lower_half(const uint8_t* source, uint8_t* target, int64_t count) {
        int64_t over = 0;
        for (int64_t row = 0; row < count; row++) {
            int64_t words[4];
            memcpy(words, source + 32 * row, 32);
            memcpy(target + 16 * row, words, 16);
            over |= (words[2] ^ (words[1] >> 63)) | (words[3] ^ words[2]);
        }
        return over != 0;
    }
    static void drey_as_two_words(const uint8_t* source, uint8_t* target, int64_t count) {
        for (int64_t row = 0; row < count; row++) {
            int64_t words[2];
            memcpy(words, source + 8 * row, 8);
            words[1] = words[0] >> 63;
            memcpy(target + 16 * row, words, 16);
        }
    }
    static void drey_as_words(const uint8_t* source, int width, uint8_t* target, int words, int64_t count) {
        if (words == 2 && width == 16) { memcpy(target, source, (size_t)(16 * count)); return; }
        if (words == 2) { drey_as_two_words(source, target, count); return; }
        for (int64_t row = 0; row < count; row++) {     /* word by word: they are in registers */
            int64_t low, high, sign;
            memcpy(&low, source + width * row, 8);
            if (width == 16) memcpy(&high, source + 16 * row + 8, 8);
            else high = low >> 63;
            sign = high >> 63;
            memcpy(target + 32 * row, &low, 8);
            memcpy(target + 32 * row + 8, &high, 8);
            memcpy(target + 32 * row + 16, &sign, 8);
            memcpy(target + 32 * row + 24, &sign, 8);
        }
    }
    """
    int halve "drey_halve" (const uint8_t* source, int64_t* target, int64_t count) noexcept nogil
    int quarter "drey_quarter" (const uint8_t* source, int64_t* target, int64_t count) noexcept nogil
    int lower_half "drey_lower_half" (const uint8_t* source, uint8_t* target, int64_t count) noexcept nogil
    void as_words "drey_as_words" (const uint8_t* source, int width, uint8_t* target, int words,
                                   int64_t count) noexcept nogil


cdef inline void spread_integers(const Narrow* source, int64_t* target, int64_t count) noexcept nogil:
    cdef int64_t row
    for row in range(count):
        target[row] = source[row]


cdef inline void gather_integers(const int64_t* source, Narrow* target, int64_t count) noexcept nogil:
    cdef int64_t row
    for row in range(count):
        target[row] = <Narrow>source[row]


cdef void load_bits(const uint8_t* bitmap, int64_t first, int64_t count, uint64_t* words) noexcept nogil:
    cdef int64_t word
    for word in range((count + 63) >> 6):
        words[word] = bits_from(bitmap, first + 64 * word, min(64, count - 64 * word))


cdef void load_validity(Vector* vector, const ColumnView* column, int64_t start, int64_t count) noexcept nogil:
    """Load the validity bits of a block; a block without nulls has none."""
    cdef int64_t word
    vector.valid = NULL
    if column.validity == NULL:
        return
    load_bits(column.validity, column.offset + start, count, vector.own_valid)
    for word in range(count >> 6):
        if ~vector.own_valid[word]:
            vector.valid = vector.own_valid
            return
    if count & 63 and vector.own_valid[count >> 6] != (<uint64_t>1 << (count & 63)) - 1:
        vector.valid = vector.own_valid


cdef int load_numbers(Vector* vector, const ColumnView* column, int64_t start, int64_t count) noexcept nogil:
    cdef const uint8_t* first = column.values + (column.offset + start) * column.width
    cdef int64_t* target = <int64_t*>vector.own_values
    if column.kind == KIND_INT64:
        # kernels work on whole words of rows: the last rows of a column are not read where they lie
        if count == BLOCK_ROWS:
            vector.values = first
        else:
            memcpy(target, first, <size_t>(8 * count))
    elif column.kind == KIND_INT32:
        spread_integers(<const int32_t*>first, target, count)
    elif column.kind == KIND_INT16:
        spread_integers(<const int16_t*>first, target, count)
    elif column.kind == KIND_INT8:
        spread_integers(<const int8_t*>first, target, count)
    elif column.kind == KIND_UINT32:
        spread_integers(<const uint32_t*>first, target, count)
    elif column.kind == KIND_UINT16:
        spread_integers(<const uint16_t*>first, target, count)
    elif column.kind == KIND_UINT8:
        spread_integers(<const uint8_t*>first, target, count)
    else:
        return 1
    return 0


cdef int load_decimals(Vector* vector, const ColumnView* column, int64_t start, int64_t count) noexcept nogil:
    cdef const uint8_t* first = column.values + (column.offset + start) * column.width
    cdef int64_t* target = <int64_t*>vector.own_values
    if column.kind == KIND_DECIMAL128:
        if halve(first, target, count):
            vector.width = 16
            memcpy(vector.own_values, first, <size_t>(16 * count))
        return 0
    if column.kind == KIND_DECIMAL256:
        if quarter(first, target, count):
            vector.width = 16
            return lower_half(first, vector.own_values, count)
        return 0
    return load_numbers(vector, column, start, count)


cdef int load_floats(Vector* vector, const ColumnView* column, int64_t start, int64_t count) noexcept nogil:
    cdef const uint8_t* first = column.values + (column.offset + start) * column.width
    cdef double* target = <double*>vector.own_values
    cdef int64_t row
    if column.kind == KIND_FLOAT64:
        if count == BLOCK_ROWS:
            vector.values = first
        else:
            memcpy(target, first, <size_t>(8 * count))
        return 0
    if column.kind != KIND_FLOAT32:
        return 1
    for row in range(count):
        target[row] = (<const float*>first)[row]
    return 0


cdef int load_text(Vector* vector, const ColumnView* column, int64_t start) noexcept nogil:
    if column.kind != KIND_BYTES and column.kind != KIND_LARGE_BYTES:
        return 1
    vector.width = 4 if column.kind == KIND_BYTES else 8
    vector.values = column.values
    vector.offsets = column.offsets + (column.offset + start) * vector.width
    return 0


cdef int load(Vector* vector, const ColumnView* column, int64_t start, int64_t count) noexcept nogil:
    cdef uint64_t* words = <uint64_t*>vector.own_values
    cdef int64_t word
    load_validity(vector, column, start, count)
    vector.values = vector.own_values
    vector.width = 8
    if vector.kind == VALIDITY:
        return 0
    if vector.kind == INTEGER:
        return load_numbers(vector, column, start, count)
    if vector.kind == DECIMAL:
        return load_decimals(vector, column, start, count)
    if vector.kind == FLOAT:
        return load_floats(vector, column, start, count)
    if vector.kind == TEXT:
        return load_text(vector, column, start)
    if column.kind != KIND_BOOL:
        return 1
    load_bits(column.values, column.offset + start, count, words)
    if vector.valid != NULL:
        for word in range((count + 63) >> 6):
            words[word] &= vector.valid[word]
    return 0


cdef bint store(const Vector* vector, int32_t kind, uint8_t* target, int64_t count) noexcept nogil:
    cdef const int64_t* numbers = <const int64_t*>vector.values
    cdef int64_t row
    if kind == KIND_BOOL:
        memcpy(target, vector.values, <size_t>(((count + 63) >> 6) * 8))
    elif kind == KIND_DECIMAL128 or kind == KIND_DECIMAL256:
        as_words(vector.values, vector.width, target, 2 if kind == KIND_DECIMAL128 else 4, count)
    elif kind == KIND_INT32 or kind == KIND_UINT32:
        gather_integers(numbers, <int32_t*>target, count)
    elif kind == KIND_INT16 or kind == KIND_UINT16:
        gather_integers(numbers, <int16_t*>target, count)
    elif kind == KIND_INT8 or kind == KIND_UINT8:
        gather_integers(numbers, <int8_t*>target, count)
    elif kind == KIND_FLOAT32:
        for row in range(count):
            (<float*>target)[row] = <float>(<const double*>vector.values)[row]
    elif vector.width == 16:
        return False
    else:
        memcpy(target, vector.values, <size_t>(8 * count))
    return True
