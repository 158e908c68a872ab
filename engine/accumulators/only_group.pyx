"""States of one group that all rows belong to, an aggregate without keys: sums and counts of columns without nulls.

    update_only_group(field, column, start, group, count)

The sum lies in a register meanwhile: through the group's memory each addition waits for the one before to be written.
A thousand integers of up to 32 bits are added up without a look at each sum; they fit. So do those of 64 bits in 128:
integers under an average, and decimals that come in 64 bits. All others are added in the order of rows, as
``state_kernels`` does, and with the same check; floats give the same sum bit for bit.

Held by: tests/aggregate/test_only_group.py
"""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy

from engine.accumulators.checked_sums cimport add_int64, add_int128, add_int128_to_int256, int128, load_int128, sum_int64
from engine.accumulators.state_kernels cimport (
    FLAG_VALUE,
    OP_ADD_DOUBLE,
    OP_ADD_INT64,
    OP_ADD_INT128,
    OP_ADD_INT256,
    OP_COUNT_ROWS,
    OP_COUNT_VALID,
    StateField,
)
from engine.records.arrow_batch cimport (
    KIND_DECIMAL128,
    KIND_FLOAT32,
    KIND_FLOAT64,
    KIND_INT8,
    KIND_INT16,
    KIND_INT32,
    KIND_INT64,
    KIND_NULL,
    KIND_UINT8,
    KIND_UINT16,
    KIND_UINT32,
    ColumnView,
)

ctypedef fused Narrow:
    int8_t
    int16_t
    int32_t
    uint8_t
    uint16_t
    uint32_t

ctypedef fused Real:
    float
    double


cdef int64_t sum_of(const Narrow* values, int64_t count) noexcept nogil:
    """Fits: blocks are of some thousand rows."""
    cdef int64_t total = 0
    cdef int64_t row
    for row in range(count):
        total += values[row]
    return total


cdef int add_wide(int64_t* target, const int64_t* values, int64_t count) noexcept nogil:
    cdef int64_t total = target[0]
    cdef int64_t row
    cdef bint over = False
    for row in range(count):
        over |= add_int64(&total, values[row])
    target[0] = total
    return over


cdef int add_integers(int64_t* target, const ColumnView* column, const uint8_t* values, int64_t count) noexcept nogil:
    if column.kind == KIND_INT64:
        return add_wide(target, <const int64_t*> values, count)
    if column.kind == KIND_INT32:
        return add_int64(target, sum_of(<const int32_t*> values, count))
    if column.kind == KIND_INT16:
        return add_int64(target, sum_of(<const int16_t*> values, count))
    if column.kind == KIND_INT8:
        return add_int64(target, sum_of(<const int8_t*> values, count))
    if column.kind == KIND_UINT32:
        return add_int64(target, sum_of(<const uint32_t*> values, count))
    if column.kind == KIND_UINT16:
        return add_int64(target, sum_of(<const uint16_t*> values, count))
    if column.kind == KIND_UINT8:
        return add_int64(target, sum_of(values, count))
    return NOT_DONE


cdef void add_reals(double* target, const Real* values, int64_t count) noexcept nogil:
    cdef double total = target[0]
    cdef int64_t row
    for row in range(count):
        total += values[row]
    target[0] = total


cdef int add_decimals(uint8_t* target, const uint8_t* values, int64_t count) noexcept nogil:
    cdef int128 total = load_int128(target)
    cdef int64_t row
    cdef bint over = False
    for row in range(count):
        over |= add_int128(&total, load_int128(values + 16 * row))
    memcpy(target, &total, 16)
    return over


cdef int update_only_group(const StateField* field, const ColumnView* column, int64_t start, uint8_t* group,
                           int64_t count) noexcept nogil:
    cdef const uint8_t* values
    cdef int done = 0
    if field.operation == OP_COUNT_ROWS:
        (<int64_t*> (group + field.offset))[0] += count
        return 0
    if column.validity != NULL or column.kind == KIND_NULL:
        return NOT_DONE
    if field.operation == OP_COUNT_VALID:
        (<int64_t*> (group + field.offset))[0] += count
        return 0
    values = column.values + (column.offset + start) * column.width
    if field.operation == OP_ADD_INT64:
        done = add_integers(<int64_t*> (group + field.offset), column, values, count)
    elif field.operation == OP_ADD_INT128 and column.kind == KIND_DECIMAL128:
        done = add_decimals(group + field.offset, values, count)
    elif field.operation == OP_ADD_INT128 and column.kind == KIND_INT64:
        done = add_int128(group + field.offset, sum_int64(<const int64_t*> values, count))
    elif field.operation == OP_ADD_INT256 and column.kind == KIND_INT64:
        done = add_int128_to_int256(group + field.offset, sum_int64(<const int64_t*> values, count))
    elif field.operation == OP_ADD_DOUBLE and column.kind == KIND_FLOAT64:
        add_reals(<double*> (group + field.offset), <const double*> values, count)
    elif field.operation == OP_ADD_DOUBLE and column.kind == KIND_FLOAT32:
        add_reals(<double*> (group + field.offset), <const float*> values, count)
    else:
        return NOT_DONE
    if done != NOT_DONE:
        group[field.flag] = FLAG_VALUE
    return done
