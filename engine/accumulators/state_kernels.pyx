"""Kernels of aggregate states of a fixed width: one state of many groups from one Arrow column, column by column.

    update_state(field, column, start, groups, count)

States of variable size are those of ``value_states``.

The same kernels merge: a state column is an argument like any other (sums add, counts add as integers, extremes
compare; moments are another operation). Numbers compare with NaN as the largest.

Moments are those of ``moment_kernels``.

Invariants: a row whose argument is null changes nothing but COUNT_ROWS, FIRST and LAST. Group addresses are multiples
of 8; values of 16 bytes and more are read and written through memcpy.

Held by: tests/aggregate/test_hash_aggregate.py
"""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from engine.accumulators.checked_sums cimport (
    add_int64,
    add_int128,
    add_int128_to_int256,
    add_int256,
    int128,
    load_int128,
)
from engine.accumulators.moment_kernels cimport (
    OP_ADD_HIGHER_MOMENTS,
    OP_ADD_MOMENTS,
    OP_MERGE_MOMENTS,
    update_moments,
)
from engine.records.arrow_batch cimport (
    KIND_BOOL,
    KIND_DECIMAL128,
    KIND_DECIMAL256,
    KIND_FLOAT16,
    KIND_FLOAT32,
    KIND_FLOAT64,
    KIND_INT8,
    KIND_INT16,
    KIND_INT32,
    KIND_INT64,
    KIND_UINT8,
    KIND_UINT16,
    KIND_UINT32,
    KIND_UINT64,
    ColumnView,
    column_is_null,
)
from engine.records.number_types cimport Integer

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    static inline double drey_half_to_double(uint16_t half) {
        int exponent = (half >> 10) & 31;
        double fraction = (double)(half & 1023);
        double value;
        if (exponent == 31) value = fraction != 0 ? __builtin_nan("") : __builtin_inf();
        else if (exponent == 0) value = __builtin_ldexp(fraction, -24);
        else value = __builtin_ldexp(fraction + 1024.0, exponent - 25);
        return half >> 15 ? -value : value;
    }
    static inline int drey_compare_int256(const uint8_t* left, const uint8_t* right) {
        uint64_t a[4], b[4];
        int word;
        memcpy(a, left, 32);
        memcpy(b, right, 32);
        if ((int64_t)a[3] != (int64_t)b[3]) return (int64_t)a[3] < (int64_t)b[3] ? -1 : 1;
        for (word = 2; word >= 0; word--)
            if (a[word] != b[word]) return a[word] < b[word] ? -1 : 1;
        return 0;
    }
    """
    double half_to_double "drey_half_to_double" (uint16_t half) noexcept nogil
    int compare_int256 "drey_compare_int256" (const uint8_t* left, const uint8_t* right) noexcept nogil

ctypedef fused Ordered:
    int8_t
    int16_t
    int32_t
    int64_t
    uint8_t
    uint16_t
    uint32_t
    uint64_t
    float
    double

#: floats, and halves as their bits
ctypedef fused Real:
    uint16_t
    float
    double

cdef inline bint skips(const ColumnView* column, int64_t row) noexcept nogil:
    return column.validity != NULL and column_is_null(column, row)


# ---------------------------------------------------------------------------------------------------------------- sums


cdef inline int add_each(const Integer* values, const StateField* field, const ColumnView* column, int64_t start,
                         uint8_t** groups, int64_t count, bint is_wide) noexcept nogil:
    """Add integers to sums of 64 or 128 bits; the compiler makes a loop of each."""
    cdef int64_t index
    cdef bint over = False
    cdef bint nulls = column.validity != NULL
    cdef int32_t offset = field.offset
    cdef int32_t flag = field.flag
    for index in range(count):
        if nulls and column_is_null(column, start + index):
            continue
        if is_wide:
            over |= add_int128(groups[index] + offset, <int128> values[start + index])
        else:
            if Integer is uint64_t:
                over |= values[start + index] >> 63 != 0
            over |= add_int64(<int64_t*> (groups[index] + offset), <int64_t> values[start + index])
        groups[index][flag] = FLAG_VALUE
    return over


cdef int add_to_sum(const Integer* values, const StateField* field, const ColumnView* column, int64_t start,
                    uint8_t** groups, int64_t count) noexcept nogil:
    if field.operation == OP_ADD_INT128:
        return add_each(values, field, column, start, groups, count, True)
    return add_each(values, field, column, start, groups, count, False)


cdef int add_integers(const StateField* field, const ColumnView* column, int64_t start, uint8_t** groups,
                      int64_t count) noexcept nogil:
    """Choose the loop by the argument's kind."""
    cdef const uint8_t* values = column.values + column.offset * column.width
    if column.kind == KIND_INT64:
        return add_to_sum(<const int64_t*> values, field, column, start, groups, count)
    if column.kind == KIND_INT32:
        return add_to_sum(<const int32_t*> values, field, column, start, groups, count)
    if column.kind == KIND_INT16:
        return add_to_sum(<const int16_t*> values, field, column, start, groups, count)
    if column.kind == KIND_INT8:
        return add_to_sum(<const int8_t*> values, field, column, start, groups, count)
    if column.kind == KIND_UINT64:
        return add_to_sum(<const uint64_t*> values, field, column, start, groups, count)
    if column.kind == KIND_UINT32:
        return add_to_sum(<const uint32_t*> values, field, column, start, groups, count)
    if column.kind == KIND_UINT16:
        return add_to_sum(<const uint16_t*> values, field, column, start, groups, count)
    return add_to_sum(values, field, column, start, groups, count)


cdef inline int add_decimal(uint8_t* target, const uint8_t* value, int32_t width, bint is_wide) noexcept nogil:
    if not is_wide:
        return add_int128(target, load_int128(value))
    return add_int256(target, value) if width == 32 else add_int128_to_int256(target, (<const int64_t*> value)[0])


cdef inline int add_each_decimal(const StateField* field, const ColumnView* column, int64_t start, uint8_t** groups,
                                 int64_t count, int32_t width, bint is_wide) noexcept nogil:
    """Add decimals of so many bytes to sums of 128 or 256 bits."""
    cdef const uint8_t* values = column.values + width * (column.offset + start)
    cdef int64_t index
    cdef bint over = False
    cdef bint nulls = column.validity != NULL
    cdef int32_t offset = field.offset
    cdef int32_t flag = field.flag
    for index in range(count):
        if nulls and column_is_null(column, start + index):
            continue
        over |= add_decimal(groups[index] + offset, values + width * index, width, is_wide)
        groups[index][flag] = FLAG_VALUE
    return over


cdef int add_decimals(const StateField* field, const ColumnView* column, int64_t start, uint8_t** groups,
                      int64_t count) noexcept nogil:
    if field.operation == OP_ADD_INT128:
        return add_each_decimal(field, column, start, groups, count, 16, False)
    if column.kind == KIND_INT64:       # narrow decimals
        return add_each_decimal(field, column, start, groups, count, 8, True)
    return add_each_decimal(field, column, start, groups, count, 32, True)


cdef int add_reals(const Real* values, const StateField* field, const ColumnView* column, int64_t start,
                   uint8_t** groups, int64_t count) noexcept nogil:
    cdef int64_t index
    cdef bint nulls = column.validity != NULL
    cdef int32_t offset = field.offset
    cdef int32_t flag = field.flag
    cdef double value
    for index in range(count):
        if nulls and column_is_null(column, start + index):
            continue
        if Real is uint16_t:
            value = half_to_double(values[start + index])
        else:
            value = values[start + index]
        (<double*> (groups[index] + offset))[0] += value
        groups[index][flag] = 1
    return 0


cdef int add_doubles(const StateField* field, const ColumnView* column, int64_t start, uint8_t** groups,
                     int64_t count) noexcept nogil:
    cdef const uint8_t* values = column.values + column.offset * column.width
    if column.kind == KIND_FLOAT64:
        return add_reals(<const double*> values, field, column, start, groups, count)
    if column.kind == KIND_FLOAT32:
        return add_reals(<const float*> values, field, column, start, groups, count)
    return add_reals(<const uint16_t*> values, field, column, start, groups, count)


# --------------------------------------------------------------------------------------------------- products and bits


cdef int multiply(const StateField* field, const ColumnView* column, int64_t start, uint8_t** groups,
                  int64_t count) noexcept nogil:
    cdef const double* values = <const double*> column.values + column.offset + start
    cdef int64_t index
    cdef double* slot
    for index in range(count):
        if skips(column, start + index):
            continue
        slot = <double*> (groups[index] + field.offset)
        slot[0] = slot[0] * values[index] if groups[index][field.flag] else values[index]
        groups[index][field.flag] = FLAG_VALUE
    return 0


cdef int combine_bits(const StateField* field, const ColumnView* column, int64_t start, uint8_t** groups,
                      int64_t count) noexcept nogil:
    """AND, OR and XOR, byte by byte: they are the same for every width and order of bytes."""
    cdef const uint8_t* values = column.values + (column.offset + start) * column.width
    cdef int32_t operation = field.operation
    cdef int64_t index
    cdef int32_t place
    cdef uint8_t value
    cdef uint8_t* slot
    for index in range(count):
        if skips(column, start + index):
            continue
        slot = groups[index] + field.offset
        for place in range(column.width):
            value = values[index * column.width + place]
            if not groups[index][field.flag]:
                slot[place] = value
            elif operation == OP_BIT_AND:
                slot[place] &= value
            elif operation == OP_BIT_OR:
                slot[place] |= value
            else:
                slot[place] ^= value
        groups[index][field.flag] = FLAG_VALUE
    return 0


# -------------------------------------------------------------------------------------------------------------- counts


cdef int count_rows(const StateField* field, const ColumnView* column, int64_t start, uint8_t** groups,
                    int64_t count) noexcept nogil:
    """Count rows (column NULL) or values that are not null."""
    cdef int64_t index
    for index in range(count):
        if column != NULL and column_is_null(column, start + index):
            continue
        (<int64_t*> (groups[index] + field.offset))[0] += 1
    return 0


# ------------------------------------------------------------------------------------------------------------ extremes


cdef void extremes(const Ordered* values, const StateField* field, const ColumnView* column, int64_t start,
                   uint8_t** groups, int64_t count) noexcept nogil:
    cdef bint largest = field.operation == OP_MAX
    cdef int64_t index
    cdef Ordered value
    cdef Ordered* slot
    cdef bint better
    for index in range(count):
        if skips(column, start + index):
            continue
        value = values[start + index]
        slot = <Ordered*> (groups[index] + field.offset)
        if not groups[index][field.flag]:
            better = True
        elif Ordered is float or Ordered is double:
            if largest:
                better = slot[0] < value or (value != value and slot[0] == slot[0])
            else:
                better = value < slot[0] or (slot[0] != slot[0] and value == value)
        else:
            better = slot[0] < value if largest else value < slot[0]
        if better:
            slot[0] = value
            groups[index][field.flag] = 1


cdef int compare_values(int32_t kind, const uint8_t* left, const uint8_t* right, int32_t width) noexcept nogil:
    """Order of two values of the kinds that are not machine numbers; both nonnull."""
    cdef double low, high
    cdef int128 first, second
    if kind == KIND_DECIMAL128:
        first = load_int128(left)
        second = load_int128(right)
        return (first > second) - (first < second)
    if kind == KIND_DECIMAL256:
        return compare_int256(left, right)
    if kind == KIND_FLOAT16:
        low = half_to_double((<const uint16_t*> left)[0])
        high = half_to_double((<const uint16_t*> right)[0])
        if low != low or high != high:
            return (low != low) - (high != high)
        return (low > high) - (low < high)
    return memcmp(left, right, <size_t> width)


cdef void extremes_of_bytes(const StateField* field, const ColumnView* column, int64_t start, uint8_t** groups,
                            int64_t count) noexcept nogil:
    """Decimals, halves, fixed-size binaries and bools."""
    cdef int64_t index, position
    cdef const uint8_t* value
    cdef uint8_t truth
    cdef uint8_t* slot
    cdef int order
    for index in range(count):
        if skips(column, start + index):
            continue
        position = column.offset + start + index
        if column.kind == KIND_BOOL:
            truth = (column.values[position >> 3] >> (position & 7)) & 1
            value = &truth
        else:
            value = column.values + position * column.width
        slot = groups[index] + field.offset
        if groups[index][field.flag]:
            order = compare_values(column.kind, slot, value, field.width)
            if order == 0 or (order < 0) != (field.operation == OP_MAX):
                continue
        memcpy(slot, value, <size_t> field.width)
        groups[index][field.flag] = 1


cdef void update_extremes(const StateField* field, const ColumnView* column, int64_t start, uint8_t** groups,
                          int64_t count) noexcept nogil:
    cdef const uint8_t* values = column.values + column.offset * column.width
    if column.kind == KIND_INT64:
        extremes[int64_t](<const int64_t*> values, field, column, start, groups, count)
    elif column.kind == KIND_INT32:
        extremes[int32_t](<const int32_t*> values, field, column, start, groups, count)
    elif column.kind == KIND_FLOAT64:
        extremes[double](<const double*> values, field, column, start, groups, count)
    elif column.kind == KIND_FLOAT32:
        extremes[float](<const float*> values, field, column, start, groups, count)
    elif column.kind == KIND_INT16:
        extremes[int16_t](<const int16_t*> values, field, column, start, groups, count)
    elif column.kind == KIND_INT8:
        extremes[int8_t](<const int8_t*> values, field, column, start, groups, count)
    elif column.kind == KIND_UINT64:
        extremes[uint64_t](<const uint64_t*> values, field, column, start, groups, count)
    elif column.kind == KIND_UINT32:
        extremes[uint32_t](<const uint32_t*> values, field, column, start, groups, count)
    elif column.kind == KIND_UINT16:
        extremes[uint16_t](<const uint16_t*> values, field, column, start, groups, count)
    elif column.kind == KIND_UINT8:
        extremes[uint8_t](values, field, column, start, groups, count)
    else:
        extremes_of_bytes(field, column, start, groups, count)


cdef int keep_in_order(const StateField* field, const ColumnView* column, int64_t start, uint8_t** groups,
                       int64_t count) noexcept nogil:
    """FIRST and LAST of fixed-width values: rows come in their order."""
    cdef bint is_first = field.operation == OP_FIRST
    cdef int64_t index, position
    cdef uint8_t* flag
    for index in range(count):
        flag = groups[index] + field.flag
        if is_first and flag[0] != 0:
            continue
        if skips(column, start + index):
            flag[0] = FLAG_NULL
            continue
        position = column.offset + start + index
        if column.kind == KIND_BOOL:
            groups[index][field.offset] = (column.values[position >> 3] >> (position & 7)) & 1
        else:
            memcpy(groups[index] + field.offset, column.values + position * column.width, <size_t> field.width)
        flag[0] = FLAG_VALUE
    return 0


cdef int update_state(const StateField* field, const ColumnView* column, int64_t start, uint8_t** groups,
                      int64_t count) noexcept nogil:
    if field.operation == OP_COUNT_ROWS:
        return count_rows(field, NULL, start, groups, count)
    if field.operation == OP_COUNT_VALID:
        return count_rows(field, column, start, groups, count)
    if field.operation == OP_ADD_INT256 or (field.operation == OP_ADD_INT128 and column.kind == KIND_DECIMAL128):
        return add_decimals(field, column, start, groups, count)
    if field.operation == OP_ADD_INT64 or field.operation == OP_ADD_INT128:
        return add_integers(field, column, start, groups, count)
    if field.operation == OP_ADD_DOUBLE:
        return add_doubles(field, column, start, groups, count)
    if field.operation == OP_MULTIPLY:
        return multiply(field, column, start, groups, count)
    if OP_BIT_AND <= field.operation <= OP_BIT_XOR:
        return combine_bits(field, column, start, groups, count)
    if field.operation >= OP_ADD_HIGHER_MOMENTS or OP_ADD_MOMENTS <= field.operation <= OP_MERGE_MOMENTS:
        update_moments(field.operation, field.offset, field.flag, column, start, groups, count)
        return 0
    if field.operation == OP_FIRST or field.operation == OP_LAST:
        return keep_in_order(field, column, start, groups, count)
    update_extremes(field, column, start, groups, count)
    return 0
