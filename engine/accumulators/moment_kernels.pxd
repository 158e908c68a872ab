# Moments of groups: count, mean, sums of powers of differences from it. They travel as bytes in machine order.

from libc.stdint cimport int32_t, int64_t, uint8_t

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

# Operations on states, beside those of state_kernels.pxd.
cdef enum MomentOperation:
    OP_ADD_MOMENTS = 7              # float64 values into Moments
    OP_MERGE_MOMENTS = 8            # Moments into Moments
    OP_ADD_HIGHER_MOMENTS = 16
    OP_MERGE_HIGHER_MOMENTS = 17
    OP_ADD_COMOMENTS = 18           # pairs of float64, 16 bytes, into CoMoments
    OP_MERGE_COMOMENTS = 19

# What is made of moments; as in aggregate_layout.py.
cdef enum Statistic:
    VARIANCE = -2           # of samples: n - 1
    STDDEV = -3
    COVAR_SAMP = -4
    COVAR_POP = -5
    CORR = -6
    SKEWNESS = -7
    KURTOSIS = -8

# Values or states into the states of groups, which lie at an offset; the byte at `flag` becomes 1 with a value.
cdef void update_moments(int32_t operation, int32_t offset, int32_t flag, const ColumnView* column, int64_t start,
                         uint8_t** groups, int64_t count) noexcept nogil
# A statistic of groups; returns the number of nulls (groups of too few values).
cdef int64_t gather_statistics(uint8_t** groups, int64_t count, int32_t offset, int32_t statistic, uint8_t* bits,
                               double* values) noexcept nogil
