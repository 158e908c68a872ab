# Kernels of a block of rows that belong to one group or to few.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t

from engine.accumulators.state_kernels cimport StateField
from engine.records.arrow_batch cimport ColumnView

cdef enum:
    NOT_DONE = -1               # left to update_state
    FEW_GROUPS_MAX = 8
    FEW_NUMBERS_MAX = 1024      # numbers that rows may have
    HALF_ROWS_MAX = 512

# The rows of one group in one half of a block, in their order.
cdef struct RowList:
    int64_t count
    uint16_t rows[HALF_ROWS_MAX]

# A block of rows by groups. 8 KiB of it are read for 1024 rows.
cdef struct FewGroups:
    int32_t group_count
    int32_t rest                            # blocks that are not looked at
    uint8_t* groups[FEW_GROUPS_MAX]
    RowList lists[FEW_GROUPS_MAX][2]
    uint8_t places[FEW_NUMBERS_MAX]         # of a number in groups

# List the rows of a block by groups; numbers[i] is the number of row i's group groups[i], below number_count.
# False: they are too many, or were lately.
cdef bint list_rows(FewGroups* few, const uint32_t* numbers, int64_t number_count, uint8_t** groups,
                    int64_t count) noexcept nogil

# Update a state from all rows, which are of one group. Returns what update_state does, or NOT_DONE.
cdef int update_only_group(const StateField* field, const ColumnView* column, int64_t start, uint8_t* group,
                           int64_t count) noexcept nogil
# Update a state of all groups from the rows that are listed; start: the first row of the block.
cdef int update_few_groups(const FewGroups* few, const StateField* field, const ColumnView* column,
                           int64_t start) noexcept nogil
