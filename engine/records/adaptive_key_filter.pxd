# AdaptiveKeyFilter: a filter of keys, applied to batches as long as it drops enough of their rows.

from libc.stdint cimport int64_t


# Whether so few of the rows of a batch are asked for that these are copied, to be looked at alone.
cdef inline bint is_few(int64_t asked, int64_t rows) noexcept:
    return 4 * asked <= rows
