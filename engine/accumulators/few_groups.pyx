"""States of one group or of few: sums and counts of columns without nulls, a group after the other.

    update_only_group(field, column, start, group, count)           all rows belong to one group
    if list_rows(few, numbers, number_count, groups, count):        once for a block of rows
        update_few_groups(few, field, column, start)                for each state

    groups of rows   a b a a c a ...   ──►   a: 0 2 3 5 ...   b: 1 ...   c: 4 ...

Where four groups share a block, an addition through a group's memory waits for the one before to be written; a sum that
lies in a register does not. Listing costs as much as one state. The halves of a block are listed in one loop, for the
lengths of the lists wait in the same way. Rows of a group keep their order: floats give the same sum bit for bit.

Sums of a block's integers of up to 32 bits fit 64 bits, and those of 64 bits fit 128: they are gathered without a look
at each. So are wide decimals as long as values are short. All others are checked at each row, as in ``state_kernels``.

Source: the perfect hash aggregate of DuckDB has few groups too, and adds through their memory; the lists are those of
a counting sort.

Held by: tests/aggregate/test_only_group.py
Held by: tests/aggregate/test_few_groups.py
"""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy, memset

from engine.accumulators.checked_sums cimport (
    add_int64,
    add_int128,
    add_int128_to_int256,
    add_int256,
    int128,
    load_int128,
)
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
    KIND_DECIMAL256,
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
from engine.records.number_types cimport Narrow

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    /* Add a decimal of 256 bits to a sum of 128 when 64 bits hold it; else 0. */
    static inline int drey_add_short(__int128* total, const uint8_t* value) {
        int64_t words[4];
        memcpy(words, value, 32);
        const int64_t sign = words[0] >> 63;
        if (__builtin_expect(((words[1] ^ sign) | (words[2] ^ sign) | (words[3] ^ sign)) != 0, 0)) return 0;
        *total += words[0];
        return 1;
    }
    """
    bint add_short "drey_add_short" (int128* total, const uint8_t* value) noexcept nogil

cdef enum:
    NO_PLACE = 255
    ROWS_MIN = 128              # below, listing costs more than it saves
    REST = 64                   # blocks that are not looked at after one of too many groups

ctypedef fused Real:
    float
    double


# --------------------------------------------------------------------------------------------------------------- rows


cdef bint list_rows(FewGroups* few, const uint32_t* numbers, int64_t number_count, uint8_t** groups,
                    int64_t count) noexcept nogil:
    cdef int64_t half = (count + 1) // 2
    cdef int64_t row
    cdef int32_t place
    if few.rest > 0:
        few.rest -= 1
        return False
    if number_count > FEW_NUMBERS_MAX or not ROWS_MIN <= count <= 2 * HALF_ROWS_MAX:
        return False
    few.group_count = 0
    memset(few.places, NO_PLACE, <size_t> number_count)
    for place in range(FEW_GROUPS_MAX):
        few.lists[place][0].count = few.lists[place][1].count = 0
    for row in range(half):
        if not list_row(few, 0, numbers[row], groups[row], row):
            return False
        if half + row < count and not list_row(few, 1, numbers[half + row], groups[half + row], half + row):
            return False
    return True


cdef inline bint list_row(FewGroups* few, int32_t half, uint32_t number, uint8_t* group, int64_t row) noexcept nogil:
    cdef RowList* listed
    cdef int32_t place = few.places[number]
    if place == NO_PLACE:
        if few.group_count == FEW_GROUPS_MAX:
            few.rest = REST
            return False
        place = few.places[number] = <uint8_t> few.group_count
        few.groups[place] = group
        few.group_count += 1
    listed = &few.lists[place][half]
    listed.rows[listed.count] = <uint16_t> row
    listed.count += 1
    return True


# --------------------------------------------------------------------------------------------------------------- sums


cdef inline int64_t row_of(const uint16_t* rows, int64_t index) noexcept nogil:
    """Return a row of a list, or of all rows; the compiler makes a loop of each."""
    return index if rows == NULL else <int64_t> rows[index]


cdef int add_narrow(const Narrow* values, const uint16_t* rows, int64_t count, uint8_t* target) noexcept nogil:
    cdef int64_t total = 0
    cdef int64_t index
    for index in range(count):
        total += values[row_of(rows, index)]
    return add_int64(<int64_t*> target, total)


cdef int add_wide(const int64_t* values, const uint16_t* rows, int64_t count, uint8_t* target) noexcept nogil:
    cdef int64_t total = (<int64_t*> target)[0]
    cdef int64_t index
    cdef bint over = False
    for index in range(count):
        over |= add_int64(&total, values[row_of(rows, index)])
    (<int64_t*> target)[0] = total
    return over


cdef int add_integers(int32_t kind, const uint8_t* values, const uint16_t* rows, int64_t count,
                      uint8_t* target) noexcept nogil:
    if kind == KIND_INT64:
        return add_wide(<const int64_t*> values, rows, count, target)
    if kind == KIND_INT32:
        return add_narrow(<const int32_t*> values, rows, count, target)
    if kind == KIND_INT16:
        return add_narrow(<const int16_t*> values, rows, count, target)
    if kind == KIND_INT8:
        return add_narrow(<const int8_t*> values, rows, count, target)
    if kind == KIND_UINT32:
        return add_narrow(<const uint32_t*> values, rows, count, target)
    if kind == KIND_UINT16:
        return add_narrow(<const uint16_t*> values, rows, count, target)
    if kind == KIND_UINT8:
        return add_narrow(values, rows, count, target)
    return NOT_DONE


cdef int add_reals(const Real* values, const uint16_t* rows, int64_t count, uint8_t* target) noexcept nogil:
    cdef double total = (<double*> target)[0]
    cdef int64_t index
    for index in range(count):
        total += values[row_of(rows, index)]
    (<double*> target)[0] = total
    return 0


cdef int add_decimals(const uint8_t* values, const uint16_t* rows, int64_t count, uint8_t* target) noexcept nogil:
    cdef int128 total = load_int128(target)
    cdef int64_t index
    cdef bint over = False
    for index in range(count):
        over |= add_int128(&total, load_int128(values + 16 * row_of(rows, index)))
    memcpy(target, &total, 16)
    return over


cdef int add_wide_decimals(const uint8_t* values, const uint16_t* rows, int64_t count, uint8_t* target) noexcept nogil:
    cdef int128 total = 0
    cdef const uint8_t* value
    cdef int64_t index
    cdef bint over = False
    for index in range(count):
        value = values + 32 * row_of(rows, index)
        if not add_short(&total, value):
            over |= add_int256(target, value)
    return over | add_int128_to_int256(target, total)


cdef int128 sum_of(const int64_t* values, const uint16_t* rows, int64_t count) noexcept nogil:
    cdef int128 total = 0
    cdef int64_t index
    for index in range(count):
        total += values[row_of(rows, index)]
    return total


cdef int add_values(const StateField* field, int32_t kind, const uint8_t* values, const uint16_t* rows, int64_t count,
                    uint8_t* target) noexcept nogil:
    """Add the values of some rows of a block, or of the first ones, to a sum."""
    if field.operation == OP_ADD_INT64:
        return add_integers(kind, values, rows, count, target)
    if field.operation == OP_ADD_INT128 and kind == KIND_DECIMAL128:
        return add_decimals(values, rows, count, target)
    if field.operation == OP_ADD_INT128 and kind == KIND_INT64:
        return add_int128(target, sum_of(<const int64_t*> values, rows, count))
    if field.operation == OP_ADD_INT256 and kind == KIND_DECIMAL256:
        return add_wide_decimals(values, rows, count, target)
    if field.operation == OP_ADD_INT256 and kind == KIND_INT64:
        return add_int128_to_int256(target, sum_of(<const int64_t*> values, rows, count))
    if field.operation == OP_ADD_DOUBLE and kind == KIND_FLOAT64:
        return add_reals(<const double*> values, rows, count, target)
    if field.operation == OP_ADD_DOUBLE and kind == KIND_FLOAT32:
        return add_reals(<const float*> values, rows, count, target)
    return NOT_DONE


# ------------------------------------------------------------------------------------------------------------- groups


cdef inline int update_group(const StateField* field, const ColumnView* column, int64_t start, const uint16_t* rows,
                             int64_t count, uint8_t* group) noexcept nogil:
    cdef int done
    if field.operation != OP_COUNT_ROWS:
        if column.validity != NULL or column.kind == KIND_NULL:
            return NOT_DONE
        if field.operation != OP_COUNT_VALID:
            done = add_values(field, column.kind, column.values + (column.offset + start) * column.width, rows, count,
                              group + field.offset)
            if done != NOT_DONE:
                group[field.flag] = FLAG_VALUE
            return done
    (<int64_t*> (group + field.offset))[0] += count
    return 0


cdef int update_only_group(const StateField* field, const ColumnView* column, int64_t start, uint8_t* group,
                           int64_t count) noexcept nogil:
    return update_group(field, column, start, NULL, count, group)


cdef int update_few_groups(const FewGroups* few, const StateField* field, const ColumnView* column,
                           int64_t start) noexcept nogil:
    cdef const RowList* listed
    cdef int32_t place, half
    cdef int done
    cdef bint over = False
    for place in range(few.group_count):
        for half in range(2):
            listed = &few.lists[place][half]
            if listed.count > 0:
                done = update_group(field, column, start, listed.rows, listed.count, few.groups[place])
                if done == NOT_DONE:
                    return NOT_DONE
                over |= done
    return over
