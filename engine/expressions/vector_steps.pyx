"""Steps of a vector program: one register from others, for a block of rows.

    add subtract multiply floor_divide modulo divide      numbers: int64, 128 bits of decimals, double
    year month day to_float to_integer single narrow      of one number
    equal not_equal less less_equal                       numbers, texts; the first two also bools
    starts_with ends_with contains like line_like         texts
    and or not is_null is_not_null                        bools, by words of 64 rows
    choose                                                left where the third is true, else right
    require                                               no result at all where a condition is false
    fits                                                  none where a decimal has more than 38 digits

A step over integers fails where a row overflows; one over decimals goes on in 128 bits, and fails beyond. What a row
does that is null, or outside of the step's guard, is no failure: only where the kernel says that some row has failed,
the rows are looked at one by one.

Invariants: runs without the GIL; a bool is 0 under a null and behind the last row.

Held by: tests/expressions/test_vector_program.py
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from engine.expressions.block_kernels cimport (
    Computing,
    choose_narrow,
    choose_wide,
    day_of,
    divide_by,
    month_of,
    narrow_add,
    narrow_equal,
    narrow_floor_divide,
    narrow_less,
    narrow_modulo,
    narrow_multiply,
    narrow_subtract,
    products,
    real_add,
    real_divide,
    real_equal,
    real_less,
    real_multiply,
    real_single,
    real_subtract,
    spread,
    to_narrow,
    to_real,
    wide_add,
    wide_beyond,
    wide_equal,
    wide_floor_divide,
    wide_less,
    wide_multiply,
    wide_subtract,
    widen,
    year_of,
)
from engine.expressions.block_vectors cimport BITS, BLOCK_ROWS, DECIMAL, FLOAT, TEXT, Vector
from engine.expressions.text_kernels cimport (
    TEXT_CONTAINS,
    TEXT_ENDS,
    TEXT_EQUAL,
    TEXT_LESS,
    TEXT_STARTS,
    test_patterns,
    test_texts,
    test_texts_against,
)

#: kernels of each operation that computes numbers: over int64, over 128 bits, over double
cdef Computing[12] NARROW = [
    narrow_add, narrow_subtract, narrow_multiply, narrow_floor_divide,
    narrow_modulo, NULL, year_of, month_of, day_of, to_real, NULL, NULL,
]
cdef Computing[4] WIDE = [
    wide_add, wide_subtract, wide_multiply, wide_floor_divide,
]
cdef Computing[12] REAL = [
    real_add, real_subtract, real_multiply, NULL, NULL, real_divide,
    NULL, NULL, NULL, NULL, to_narrow, real_single,
]


cdef void meet(Vector* target, const Vector* left, const Vector* right, int64_t count) noexcept nogil:
    """Valid where both are."""
    cdef int32_t word
    if left.valid == NULL or right.valid == NULL:
        target.valid = right.valid if left.valid == NULL else left.valid
        return
    for word in range(words_of(count)):
        target.own_valid[word] = left.valid[word] & right.valid[word]
    target.valid = target.own_valid


cdef uint64_t rows_asked(const Vector* target, const Vector* guard, int32_t word, int64_t count) noexcept nogil:
    """Bits of a word of rows that are asked for and not null."""
    cdef uint64_t bits = <uint64_t>-1
    if 64 * (word + 1) > count:
        bits = (<uint64_t>1 << (count & 63)) - 1
    if target.valid != NULL:
        bits &= target.valid[word]
    if guard != NULL:
        bits &= (<const uint64_t*>guard.values)[word]
    return bits


cdef bint fails(Computing kernel, const uint8_t* left, const uint8_t* right, Vector* target,
                const Vector* guard, int64_t count) noexcept nogil:
    """Whether a row fails that is asked for: each is computed again, by itself."""
    cdef int64_t row
    cdef int32_t width = target.width
    for row in range(count):
        if (rows_asked(target, guard, <int32_t>(row >> 6), count) >> (row & 63)) & 1:
            if kernel(left + width * row, right + width * row, target.own_values + width * row, 1):
                return True
    return False


cdef const uint8_t* widened(const Vector* vector, uint8_t* scratch, int64_t count) noexcept nogil:
    if vector.width == 16:
        return vector.values
    widen(vector.values, scratch, count)
    return scratch


cdef bint compute_exactly(int32_t operation, Vector* target, const Vector* left, const Vector* right,
                          const Vector* guard, uint8_t* scratch, int64_t count) noexcept nogil:
    """Integers and decimals; whether a row has no result."""
    cdef const uint8_t* one = left.values
    cdef const uint8_t* other = right.values
    target.width = 8
    if right.is_constant and left.width == 8 and right.width == 8 and (<const int64_t*>other)[0] > 1:
        if operation == FLOOR_DIVIDE or operation == MODULO:
            divide_by(one, (<const int64_t*>other)[0], target.own_values, count, operation == MODULO)
            return False
    if left.width == 8 and right.width == 8:
        if not NARROW[operation](one, other, target.own_values, count):
            return False
        if target.kind != DECIMAL:
            return fails(NARROW[operation], one, other, target, guard, count)
        if operation == MULTIPLY:
            target.width = 16
            products(one, other, target.own_values, count)
            return False
    if operation > FLOOR_DIVIDE or target.kind != DECIMAL:
        return True
    target.width = 16
    one = widened(left, scratch, count)
    other = widened(right, scratch + 16 * BLOCK_ROWS, count)
    if not WIDE[operation](one, other, target.own_values, count):
        return False
    return fails(WIDE[operation], one, other, target, guard, count)


cdef void compare(int32_t operation, Vector* target, const Vector* left, const Vector* right, uint8_t* scratch,
                  int64_t count) noexcept nogil:
    """EQUAL to LINE_LIKE; of the first four, two have kernels: a <= b is not b < a."""
    cdef uint64_t* bits = <uint64_t*>target.own_values
    cdef bint is_equality = operation == EQUAL or operation == NOT_EQUAL
    cdef int32_t word, words = words_of(count)
    cdef uint64_t flip = <uint64_t>-1 if operation == NOT_EQUAL or operation == LESS_EQUAL else 0
    cdef const uint8_t* one
    cdef const uint8_t* other
    if operation == LESS_EQUAL:
        left, right = right, left
    if left.kind == BITS:
        for word in range(words):
            bits[word] = ~((<const uint64_t*>left.values)[word] ^ (<const uint64_t*>right.values)[word])
    elif left.kind == TEXT:
        compare_texts(operation, left, right, bits, count)
    elif left.kind == FLOAT:
        (real_equal if is_equality else real_less)(left.values, right.values, bits, words)
    elif left.width == 8 and right.width == 8:
        (narrow_equal if is_equality else narrow_less)(left.values, right.values, bits, words)
    else:
        one = widened(left, scratch, BLOCK_ROWS)
        other = widened(right, scratch + 16 * BLOCK_ROWS, BLOCK_ROWS)
        (wide_equal if is_equality else wide_less)(one, other, bits, words)
    for word in range(words):
        bits[word] ^= flip
    settle_bits(target, count)


cdef void compare_texts(int32_t operation, const Vector* left, const Vector* right, uint64_t* bits,
                        int64_t count) noexcept nogil:
    """A loop for each test, so that none is asked for in it."""
    cdef bint is_constant = right.is_constant and not left.is_constant
    if operation == LIKE or operation == LINE_LIKE:
        test_patterns(operation == LINE_LIKE, left, right, bits, count)
    elif operation == CONTAINS:
        test_texts(TEXT_CONTAINS, left, right, bits, count)
    elif operation == LESS or operation == LESS_EQUAL:
        test_texts(TEXT_LESS, left, right, bits, count)
    elif operation == STARTS_WITH:
        (test_texts_against if is_constant else test_texts)(TEXT_STARTS, left, right, bits, count)
    elif operation == ENDS_WITH:
        (test_texts_against if is_constant else test_texts)(TEXT_ENDS, left, right, bits, count)
    else:
        (test_texts_against if is_constant else test_texts)(TEXT_EQUAL, left, right, bits, count)


cdef void settle_bits(Vector* target, int64_t count) noexcept nogil:
    """False under nulls and behind the last row."""
    cdef uint64_t* bits = <uint64_t*>target.own_values
    cdef int32_t word
    for word in range(words_of(count)):
        bits[word] &= rows_asked(target, NULL, word, count)


cdef void combine(int32_t operation, Vector* target, const Vector* left, const Vector* right,
                  int64_t count) noexcept nogil:
    """AND and OR of Kleene: what is known of one side may decide."""
    cdef const uint64_t* ones = <const uint64_t*>left.values
    cdef const uint64_t* others = <const uint64_t*>right.values
    cdef uint64_t* bits = <uint64_t*>target.own_values
    cdef uint64_t all_rows = <uint64_t>-1
    cdef uint64_t false_one, false_other
    cdef int32_t word
    cdef bint is_and = operation == AND
    target.valid = NULL if left.valid == NULL and right.valid == NULL else target.own_valid
    for word in range(words_of(count)):
        bits[word] = ones[word] & others[word] if is_and else ones[word] | others[word]
        if target.valid != NULL:
            false_one = (all_rows if left.valid == NULL else left.valid[word]) & ~ones[word]
            false_other = (all_rows if right.valid == NULL else right.valid[word]) & ~others[word]
            target.own_valid[word] = bits[word] | (
                false_one | false_other if is_and else false_one & false_other
            )


cdef void choose(Vector* target, const Vector* condition, const Vector* left, const Vector* right, uint8_t* scratch,
                 int64_t count) noexcept nogil:
    """left where the condition is true, else right, where it is null, too."""
    cdef const uint64_t* mask = <const uint64_t*>condition.values
    cdef uint64_t all_rows = <uint64_t>-1
    cdef uint64_t valid_one, valid_other
    cdef int32_t word
    target.valid = NULL if left.valid == NULL and right.valid == NULL else target.own_valid
    for word in range(words_of(count)):
        if target.valid != NULL:
            valid_one = all_rows if left.valid == NULL else left.valid[word]
            valid_other = all_rows if right.valid == NULL else right.valid[word]
            target.own_valid[word] = (valid_one & mask[word]) | (valid_other & ~mask[word])
        if target.kind == BITS:
            (<uint64_t*>target.own_values)[word] = (
                ((<const uint64_t*>left.values)[word] & mask[word])
                | ((<const uint64_t*>right.values)[word] & ~mask[word])
            )
    if target.kind == BITS:
        return
    target.width = 16 if left.width == 16 or right.width == 16 else 8
    if target.width == 8:
        choose_narrow(mask, left.values, right.values, target.own_values, count)
    else:
        choose_wide(mask, widened(left, scratch, count), widened(right, scratch + 16 * BLOCK_ROWS, count),
                            target.own_values, count)


cdef bint misses(const Vector* condition, const Vector* guard, int64_t count) noexcept nogil:
    """Whether a condition is false in a row that is asked for; null is not."""
    cdef int32_t word
    for word in range(words_of(count)):
        if ~(<const uint64_t*>condition.values)[word] & rows_asked(condition, guard, word, count):
            return True
    return False


cdef bint exceeds(const Vector* vector, const Vector* guard, int64_t count) noexcept nogil:
    """Whether a decimal that is asked for has more than 38 digits."""
    cdef int64_t row
    if vector.width == 8 or not wide_beyond(vector.values, count):
        return False
    for row in range(count):
        if (rows_asked(vector, guard, <int32_t>(row >> 6), count) >> (row & 63)) & 1:
            if wide_beyond(vector.values + 16 * row, 1):
                return True
    return False


cdef void tell_nulls(Vector* target, const Vector* vector, bint valid, int64_t count) noexcept nogil:
    cdef uint64_t* bits = <uint64_t*>target.own_values
    cdef uint64_t all_rows = <uint64_t>-1
    cdef int32_t word
    target.valid = NULL
    for word in range(words_of(count)):
        bits[word] = all_rows if vector.valid == NULL else vector.valid[word]
        if not valid:
            bits[word] = ~bits[word]
    settle_bits(target, count)


cdef bint run_step(const Step* step, Vector* registers, uint8_t* scratch, int64_t count) noexcept nogil:
    """Compute one register; whether a row has no result."""
    cdef int32_t operation = step.operation
    cdef int32_t word
    cdef Vector* target = &registers[step.target]
    cdef const Vector* left = &registers[step.left]
    cdef const Vector* right = &registers[step.right]
    cdef const Vector* guard = NULL if step.guard < 0 else &registers[step.guard]
    if operation == REQUIRE:
        return misses(left, guard, count)
    if operation == FITS:
        return exceeds(left, guard, count)
    if operation == AND or operation == OR:
        combine(operation, target, left, right, count)
    elif operation == CHOOSE:
        choose(target, &registers[step.third], left, right, scratch, count)
    elif operation == IS_NULL or operation == IS_NOT_NULL:
        tell_nulls(target, left, operation == IS_NOT_NULL, count)
    else:
        meet(target, left, right, count)
        if operation == NARROW_ONLY:
            target.values = left.values
            return left.width != 8
        elif operation == SPREAD:
            spread(<const uint64_t*>left.values, target.own_values, count)
        elif operation == NOT:
            for word in range(words_of(count)):
                (<uint64_t*>target.own_values)[word] = ~(<const uint64_t*>left.values)[word]
            settle_bits(target, count)
        elif operation >= EQUAL:
            compare(operation, target, left, right, scratch, count)
        elif left.kind == FLOAT:
            REAL[operation](left.values, right.values, target.own_values, count)
        else:
            return compute_exactly(operation, target, left, right, guard, scratch, count)
    return False
