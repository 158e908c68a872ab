# Moments of groups: count, mean, and sums of powers of differences from it. They travel as bytes in the machine's order.

from libc.stdint cimport int32_t, int64_t, uint8_t

from engine.aggregate.state_kernels cimport StateField
from engine.records.arrow_batch cimport ColumnView

# count, mean and sum of squared differences from the mean: 24 bytes
cdef struct Moments:
    int64_t count
    double mean
    double deviations

# the same, and sums of the third and fourth powers: 40 bytes
cdef struct HigherMoments:
    int64_t count
    double mean
    double second
    double third
    double fourth

# of pairs: means, sum of the products of both differences, sums of their squares: 48 bytes
cdef struct CoMoments:
    int64_t count
    double mean_x
    double mean_y
    double products
    double deviations_x
    double deviations_y

# What is made of moments; as in aggregate_layout.py.
cdef enum Statistic:
    VARIANCE = -2           # of samples: n - 1
    STDDEV = -3
    COVAR_SAMP = -4
    COVAR_POP = -5
    CORR = -6
    SKEWNESS = -7
    KURTOSIS = -8

# The operations on moments of update_state.
cdef void update_moments(const StateField* field, const ColumnView* column, int64_t start, uint8_t** groups,
                         int64_t count) noexcept nogil
# A statistic of groups; returns the number of nulls (groups of too few values).
cdef int64_t gather_statistics(uint8_t** groups, int64_t count, const StateField* field, int32_t statistic,
                               uint8_t* bits, double* values) noexcept nogil
