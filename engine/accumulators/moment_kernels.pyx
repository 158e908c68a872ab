"""Kernels of moments: what variance, skewness, kurtosis, covariance and correlation are made of.

    update_moments(operation, offset, flag, column, ...)         values into states, states into states
    gather_statistics(groups, count, offset, statistic, ...)     what is made of them
    states_of_values(values, operation, width)                   each value as the state of a group of one
    pairs_of(structs)                                            two floats of a struct as 16 bytes, null where one is

Differences are those from a running mean, so that a large mean does not cancel the deviations, as it does in sums of
powers. Values follow Welford; states are merged as Chan, Golub and LeVeque (two moments) and Pebay (four, and pairs)
do.

    variance     deviations / (n - 1)                          null below 2 values
    covariance   products / (n - 1), or / n                    null below 2, or 1
    correlation  products / sqrt(deviations of x * of y)       null without values, NaN where one side does not vary
    skewness     sqrt(n) m3 / m2^1.5 * sqrt(n(n-1)) / (n-2)    null below 3, or where all are equal
    kurtosis     of a sample, 0 of a normal distribution       null below 4, or where all are equal

Source: Pebay, "Formulas for robust, one-pass parallel computation of covariances and arbitrary-order statistical
moments" (2008).
Held by: tests/aggregate/test_moments.py
"""

from libc.math cimport sqrt
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy, memset

from engine.records.arrow_batch cimport ArrowBatch, ColumnView, column_is_null

import pyarrow as pa

from engine.records.arrow_functions import pc

cdef enum:
    CHUNK_ROWS = 256
    GROUP_WORDS = 7         # the widest state, and a flag
    FLAG_OFFSET = 48


cdef uint8_t* buffer_address(object buffer) except? NULL:
    """Return the address of an Arrow buffer made by pa.allocate_buffer."""
    return <uint8_t*> <size_t> buffer.address


cdef inline void add_value(Moments* moments, double value) noexcept nogil:
    cdef double difference = value - moments.mean
    moments.count += 1
    moments.mean += difference / <double> moments.count
    moments.deviations += difference * (value - moments.mean)


cdef inline void merge_values(Moments* moments, const Moments* other) noexcept nogil:
    cdef int64_t total = moments.count + other.count
    cdef double difference = other.mean - moments.mean
    moments.mean += difference * (<double> other.count / <double> total)
    moments.deviations += other.deviations + difference * difference * (
        <double> moments.count * (<double> other.count / <double> total))
    moments.count = total


cdef inline void merge_higher(HigherMoments* one, const HigherMoments* other) noexcept nogil:
    """Merge two states, the second of which may be a single value."""
    cdef double left = <double> one.count
    cdef double right = <double> other.count
    cdef double total = left + right
    cdef double difference = other.mean - one.mean
    cdef double step = difference / total
    cdef double product = difference * step * left * right
    one.fourth += (other.fourth + product * step * step * (left * left - left * right + right * right)
                   + 6.0 * step * step * (left * left * other.second + right * right * one.second)
                   + 4.0 * step * (left * other.third - right * one.third))
    one.third += (other.third + product * step * (left - right)
                  + 3.0 * step * (left * other.second - right * one.second))
    one.second += other.second + product
    one.mean += step * right
    one.count += other.count


cdef inline void merge_pairs(CoMoments* one, const CoMoments* other) noexcept nogil:
    """Merge two states, the second of which may be a single pair."""
    cdef double total = <double> (one.count + other.count)
    cdef double share = <double> other.count / total
    cdef double weight = <double> one.count * share
    cdef double x = other.mean_x - one.mean_x
    cdef double y = other.mean_y - one.mean_y
    one.products += other.products + x * y * weight
    one.deviations_x += other.deviations_x + x * x * weight
    one.deviations_y += other.deviations_y + y * y * weight
    one.mean_x += x * share
    one.mean_y += y * share
    one.count += other.count


cdef void update_group(uint8_t* state, int32_t operation, const uint8_t* value) noexcept nogil:
    """Put one value, pair or state into the state of a group; values lie anywhere."""
    cdef Moments moments
    cdef HigherMoments higher
    cdef CoMoments pair
    cdef double[2] numbers
    if operation == OP_ADD_MOMENTS:
        memcpy(numbers, value, 8)
        add_value(<Moments*> state, numbers[0])
    elif operation == OP_ADD_HIGHER_MOMENTS or operation == OP_MERGE_HIGHER_MOMENTS:
        if operation == OP_ADD_HIGHER_MOMENTS:
            memset(&higher, 0, sizeof(HigherMoments))
            higher.count = 1
            memcpy(&higher.mean, value, 8)
            higher.second = higher.third = higher.fourth = higher.mean - higher.mean    # 0, NaN of what is not finite
        else:
            memcpy(&higher, value, sizeof(HigherMoments))
        if (<HigherMoments*> state).count == 0:
            (<HigherMoments*> state)[0] = higher
        else:
            merge_higher(<HigherMoments*> state, &higher)
    elif operation == OP_ADD_COMOMENTS or operation == OP_MERGE_COMOMENTS:
        if operation == OP_ADD_COMOMENTS:
            memcpy(numbers, value, 16)
            pair.count = 1
            pair.mean_x, pair.mean_y = numbers[0], numbers[1]
            pair.deviations_x, pair.deviations_y = numbers[0] - numbers[0], numbers[1] - numbers[1]
            pair.products = pair.deviations_x + pair.deviations_y
        else:
            memcpy(&pair, value, sizeof(CoMoments))
        if (<CoMoments*> state).count == 0:
            (<CoMoments*> state)[0] = pair
        else:
            merge_pairs(<CoMoments*> state, &pair)
    else:
        memcpy(&moments, value, sizeof(Moments))
        if (<Moments*> state).count == 0:
            (<Moments*> state)[0] = moments
        else:
            merge_values(<Moments*> state, &moments)


cdef void update_moments(int32_t operation, int32_t offset, int32_t flag, const ColumnView* column, int64_t start,
                         uint8_t** groups, int64_t count) noexcept nogil:
    cdef const uint8_t* values = column.values + (column.offset + start) * column.width
    cdef int64_t index
    for index in range(count):
        if column.validity != NULL and column_is_null(column, start + index):
            continue
        update_group(groups[index] + offset, operation, values + index * column.width)
        groups[index][flag] = 1


cdef int64_t values_needed(int32_t statistic) noexcept nogil:
    if statistic == SKEWNESS:
        return 3
    if statistic == KURTOSIS:
        return 4
    return 1 if statistic == COVAR_POP or statistic == CORR else 2


cdef double statistic_of(const uint8_t* state, int32_t statistic, bint* is_null) noexcept nogil:
    cdef int64_t number = (<const int64_t*> state)[0]
    cdef const HigherMoments* higher = <const HigherMoments*> state
    cdef const CoMoments* pair = <const CoMoments*> state
    cdef double n = <double> number
    is_null[0] = number < values_needed(statistic)
    if is_null[0]:
        return 0.0
    if statistic == VARIANCE or statistic == STDDEV:
        n = (<const Moments*> state).deviations / (n - 1.0)
        return n if statistic == VARIANCE else sqrt(n)
    if statistic == COVAR_SAMP or statistic == COVAR_POP:
        return pair.products / (n if statistic == COVAR_POP else n - 1.0)
    if statistic == CORR:
        return pair.products / (sqrt(pair.deviations_x) * sqrt(pair.deviations_y))
    is_null[0] = higher.second == 0.0
    if is_null[0]:
        return 0.0
    if statistic == SKEWNESS:
        return sqrt(n) * higher.third / (higher.second * sqrt(higher.second)) * sqrt(n * (n - 1.0)) / (n - 2.0)
    return (n - 1.0) / ((n - 2.0) * (n - 3.0)) * (
        (n + 1.0) * (n * higher.fourth / (higher.second * higher.second)) - 3.0 * (n - 1.0))


cdef int64_t gather_statistics(uint8_t** groups, int64_t count, int32_t offset, int32_t statistic, uint8_t* bits,
                               double* values) noexcept nogil:
    cdef int64_t index
    cdef int64_t nulls = 0
    cdef bint is_null
    memset(bits, 0, <size_t> ((count + 7) >> 3))
    for index in range(count):
        values[index] = statistic_of(groups[index] + offset, statistic, &is_null)
        nulls += is_null
        bits[index >> 3] |= <uint8_t> ((not is_null) << (index & 7))
    return nulls


def states_of_values(values not None, int32_t operation, int32_t width):
    """Return values as states of `width` bytes, null where the value is; operation: that adds one to a state."""
    cdef ArrowBatch opened = ArrowBatch.open(pa.RecordBatch.from_arrays([values], ["0"]))
    cdef int64_t count = opened.row_count
    cdef int64_t[CHUNK_ROWS * GROUP_WORDS] chunk
    cdef uint8_t* groups[CHUNK_ROWS]
    cdef int64_t start = 0
    cdef int64_t index, size
    buffer = pa.allocate_buffer(count * width)
    cdef uint8_t* states = buffer_address(buffer)
    with nogil:
        for index in range(CHUNK_ROWS):
            groups[index] = <uint8_t*> (chunk + index * GROUP_WORDS)
        while start < count:
            size = min(<int64_t> CHUNK_ROWS, count - start)
            memset(chunk, 0, sizeof(chunk))
            update_moments(operation, 0, FLAG_OFFSET, &opened.columns[0], start, groups, size)
            for index in range(size):
                memcpy(states + (start + index) * width, groups[index], <size_t> width)
            start += size
    made = pa.Array.from_buffers(pa.binary(width), count, [None, buffer], null_count=0)
    return made if values.null_count == 0 else pc.if_else(pc.is_valid(values), made, None)


def pairs_of(structs not None):
    """Return structs of two float64 fields as 16 bytes each, null where the struct or a field is."""
    left, right = structs.flatten()
    cdef ArrowBatch opened = ArrowBatch.open(pa.RecordBatch.from_arrays([left, right], ["0", "1"]))
    cdef int64_t count = opened.row_count
    cdef const double* first = <const double*> opened.columns[0].values + opened.columns[0].offset
    cdef const double* second = <const double*> opened.columns[1].values + opened.columns[1].offset
    cdef int64_t index
    buffer = pa.allocate_buffer(count * 16)
    cdef double* pairs = <double*> buffer_address(buffer)
    with nogil:
        for index in range(count):
            pairs[2 * index], pairs[2 * index + 1] = first[index], second[index]
    made = pa.Array.from_buffers(pa.binary(16), count, [None, buffer], null_count=0)
    if left.null_count == 0 and right.null_count == 0:
        return made
    return pc.if_else(pc.and_(pc.is_valid(left), pc.is_valid(right)), made, None)
