"""States of few groups: sums and counts of columns without nulls, a group after the other.

    if list_rows(few, numbers, number_count, groups, count):        once for a block of rows
        update_few_groups(few, field, column, start)                for each state

    groups of rows   a b a a c a ...   ──►   a: 0 2 3 5 ...   b: 1 ...   c: 4 ...

Where four groups share a block, an addition through a group's memory waits for the one before to be written; a sum that
lies in a register does not. Listing costs as much as one state. The halves of a block are listed in one loop, for the
lengths of the lists wait in the same way. Rows of a group keep their order: floats give the same sum bit for bit. Sums
of 128 and 64 bits are checked at each row; those of wide decimals are gathered in 128 bits as long as values are
short, which a block of them cannot fill, and so are those of decimals that come in 64 bits.

Source: the perfect hash aggregate of DuckDB has few groups too, and adds through their memory; the lists are those of
a counting sort.
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
from engine.accumulators.only_group cimport NOT_DONE
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

ctypedef fused Integer:
    int8_t
    int16_t
    int32_t
    int64_t
    uint8_t
    uint16_t
    uint32_t

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


cdef int add_to_int64(const Integer* values, const RowList* listed, uint8_t* target) noexcept nogil:
    cdef int64_t total = (<int64_t*> target)[0]
    cdef int64_t index
    cdef bint over = False
    for index in range(listed.count):
        over |= add_int64(&total, <int64_t> values[listed.rows[index]])
    (<int64_t*> target)[0] = total
    return over


cdef int add_integers(const ColumnView* column, const uint8_t* values, const RowList* listed,
                      uint8_t* target) noexcept nogil:
    if column.kind == KIND_INT64:
        return add_to_int64(<const int64_t*> values, listed, target)
    if column.kind == KIND_INT32:
        return add_to_int64(<const int32_t*> values, listed, target)
    if column.kind == KIND_INT16:
        return add_to_int64(<const int16_t*> values, listed, target)
    if column.kind == KIND_INT8:
        return add_to_int64(<const int8_t*> values, listed, target)
    if column.kind == KIND_UINT32:
        return add_to_int64(<const uint32_t*> values, listed, target)
    if column.kind == KIND_UINT16:
        return add_to_int64(<const uint16_t*> values, listed, target)
    if column.kind == KIND_UINT8:
        return add_to_int64(values, listed, target)
    return NOT_DONE


cdef int add_reals(const Real* values, const RowList* listed, uint8_t* target) noexcept nogil:
    cdef double total = (<double*> target)[0]
    cdef int64_t index
    for index in range(listed.count):
        total += values[listed.rows[index]]
    (<double*> target)[0] = total
    return 0


cdef int add_decimals(const uint8_t* values, const RowList* listed, uint8_t* target) noexcept nogil:
    cdef int128 total = load_int128(target)
    cdef int64_t index
    cdef bint over = False
    for index in range(listed.count):
        over |= add_int128(&total, load_int128(values + 16 * <int64_t> listed.rows[index]))
    memcpy(target, &total, 16)
    return over


cdef int add_wide_decimals(const uint8_t* values, const RowList* listed, uint8_t* target) noexcept nogil:
    cdef int128 total = 0
    cdef const uint8_t* value
    cdef int64_t index
    cdef bint over = False
    for index in range(listed.count):
        value = values + 32 * <int64_t> listed.rows[index]
        if not add_short(&total, value):
            over |= add_int256(target, value)
    return over | add_int128_to_int256(target, total)


cdef int128 sum_narrow_decimals(const int64_t* values, const RowList* listed) noexcept nogil:
    """Fits: a block has some thousand rows."""
    cdef int128 total = 0
    cdef int64_t index
    for index in range(listed.count):
        total += values[listed.rows[index]]
    return total


# ------------------------------------------------------------------------------------------------------------- groups


cdef int add_values(const StateField* field, const ColumnView* column, const uint8_t* values, const RowList* listed,
                    uint8_t* target) noexcept nogil:
    if field.operation == OP_ADD_INT64:
        return add_integers(column, values, listed, target)
    if field.operation == OP_ADD_INT128 and column.kind == KIND_DECIMAL128:
        return add_decimals(values, listed, target)
    if field.operation == OP_ADD_INT128 and column.kind == KIND_INT64:
        return add_int128(target, sum_narrow_decimals(<const int64_t*> values, listed))
    if field.operation == OP_ADD_INT256 and column.kind == KIND_DECIMAL256:
        return add_wide_decimals(values, listed, target)
    if field.operation == OP_ADD_INT256 and column.kind == KIND_INT64:
        return add_int128_to_int256(target, sum_narrow_decimals(<const int64_t*> values, listed))
    if field.operation == OP_ADD_DOUBLE and column.kind == KIND_FLOAT64:
        return add_reals(<const double*> values, listed, target)
    if field.operation == OP_ADD_DOUBLE and column.kind == KIND_FLOAT32:
        return add_reals(<const float*> values, listed, target)
    return NOT_DONE


cdef int update_few_groups(const FewGroups* few, const StateField* field, const ColumnView* column,
                           int64_t start) noexcept nogil:
    cdef bint counts = field.operation == OP_COUNT_ROWS
    cdef const uint8_t* values = NULL
    cdef const RowList* listed
    cdef uint8_t* group
    cdef int32_t place, half
    cdef int done
    cdef bint over = False
    if not counts:
        if column.validity != NULL or column.kind == KIND_NULL:
            return NOT_DONE
        counts = field.operation == OP_COUNT_VALID
        values = column.values + (column.offset + start) * column.width
    for place in range(few.group_count):
        group = few.groups[place]
        for half in range(2):
            listed = &few.lists[place][half]
            if listed.count == 0:
                continue
            if counts:
                (<int64_t*> (group + field.offset))[0] += listed.count
                continue
            done = add_values(field, column, values, listed, group + field.offset)
            if done == NOT_DONE:
                return NOT_DONE
            over |= done
            group[field.flag] = FLAG_VALUE
    return over
