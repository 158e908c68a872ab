# Numbers as unsigned words that compare as the numbers do; shared by comparator and normalized key.
#
#     signed      bits ^ sign                      int 0 -> 80000000, -1 -> 7fffffff
#     floating    -0.0 as 0.0, NaN as one; then negative: ~bits, else bits | sign
#                                                  1.5f -> bfc00000, -1.5f -> 403fffff, NaN -> ffc00000

from libc.stdint cimport int32_t, uint16_t, uint32_t, uint64_t
from engine.records.arrow_batch cimport (
    KIND_BYTES,
    KIND_DECIMAL128,
    KIND_DECIMAL256,
    KIND_FIXED_BYTES,
    KIND_FLOAT16,
    KIND_FLOAT64,
    KIND_INT8,
    KIND_INT64,
    KIND_LARGE_BYTES,
    KIND_NULL,
)
from engine.records.hash_mix cimport word_of_double, word_of_float, word_of_half
from engine.records.number_types cimport Word

# How values of a kind compare.
cdef enum Order:
    ORDER_NULL = 0             # no values at all
    ORDER_UNSIGNED = 1         # a word, as it is; bools too
    ORDER_SIGNED = 2
    ORDER_FLOATING = 3
    ORDER_DECIMAL = 4          # little-endian words, the highest one signed
    ORDER_FIXED_BYTES = 5
    ORDER_BYTES = 6            # variable

cdef inline int32_t order_of_kind(int32_t kind) noexcept nogil:
    if kind == KIND_NULL:
        return ORDER_NULL
    if KIND_INT8 <= kind <= KIND_INT64:
        return ORDER_SIGNED
    if KIND_FLOAT16 <= kind <= KIND_FLOAT64:
        return ORDER_FLOATING
    if kind == KIND_DECIMAL128 or kind == KIND_DECIMAL256:
        return ORDER_DECIMAL
    if kind == KIND_FIXED_BYTES:
        return ORDER_FIXED_BYTES
    if kind == KIND_BYTES or kind == KIND_LARGE_BYTES:
        return ORDER_BYTES
    return ORDER_UNSIGNED

# The word of a value such that words equal means keys equal (order UNSIGNED, SIGNED or FLOATING).
cdef inline Word canonical_word(Word bits, int32_t order) noexcept nogil:
    if order != ORDER_FLOATING:
        return bits
    if Word is uint64_t:
        return word_of_double(bits)
    elif Word is uint32_t:
        return word_of_float(bits)
    elif Word is uint16_t:
        return word_of_half(bits)
    else:
        return bits

# The word of a value that compares unsigned as the value does.
cdef inline Word ordered_word(Word bits, int32_t order) noexcept nogil:
    cdef Word sign = <Word>(<uint64_t>1 << (8 * sizeof(Word) - 1))
    if order == ORDER_SIGNED:
        return bits ^ sign
    if order == ORDER_FLOATING:
        bits = canonical_word(bits, order)
        return <Word>~bits if bits & sign else bits | sign
    return bits
