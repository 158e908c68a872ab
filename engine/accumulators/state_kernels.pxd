# Kernels that update one state of many groups from one Arrow column.
#
#     group   | record header 8 | hash 8 | value 0 | value 1 | ... | flags: 1 byte a state, padded to 8 | key row |
#
# A flag says whether its state has a value. A variable-size value is a ValueSlot (value_states.pxd).

from libc.stdint cimport int32_t, int64_t, uint8_t

from engine.records.arrow_batch cimport ColumnView

# Operations on states; 7, 8 and those from 16 on are those of moment_kernels.pxd.
cdef enum Operation:
    OP_ADD_INT64 = 0        # integers into int64, checked
    OP_ADD_INT128 = 1       # integers and decimals into int128, checked against 38 digits
    OP_ADD_DOUBLE = 2       # floats into float64
    OP_COUNT_VALID = 3      # values that are not null
    OP_COUNT_ROWS = 4       # rows
    OP_MIN = 5
    OP_MAX = 6
    OP_FIRST = 9            # the value of the first row, which may be null
    OP_LAST = 10            # of the last row
    OP_ADD_INT256 = 11      # wide decimals, checked against 76 digits
    OP_MULTIPLY = 12        # float64 into float64
    OP_BIT_AND = 13         # integers of any width
    OP_BIT_OR = 14
    OP_BIT_XOR = 15

# Bits of a state's flag. FIRST and LAST of a group without any row have none.
cdef enum:
    FLAG_VALUE = 1
    FLAG_OUTSIDE = 4        # beside FLAG_VALUE: the value is a reference to one that lies outside
    FLAG_NULL = 2           # FIRST, LAST: a row was seen, its value is null

cdef struct StateField:
    int32_t operation       # Operation
    int32_t kind            # Kind of the state's value
    int32_t width           # bytes of the value in a group; sizeof(ValueSlot) when is_variable
    int32_t offset          # of the value from the group's start
    int32_t flag            # offset of the flag byte from the group's start
    int32_t column          # of the argument in the input, -1: none
    bint is_variable
    int32_t scale           # of decimals, 0: of others

# groups[i] is the group of row start + i. Returns 0, or 1 when a sum overflows. Not for variable-size states.
cdef int update_state(const StateField* field, const ColumnView* column, int64_t start, uint8_t** groups,
                      int64_t count) noexcept nogil
