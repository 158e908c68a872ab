"""Results of groups whose states are columns of a batch: what a sort that combines states gives out in the end.

    results_of_states(batch, key_count, columns, schema)        columns: as AggregateLayout.results

    keys, sums, counts, extremes ──────────────────────────────► the columns as they are
    (sum, count) of an average ──► the mean of each ───────────► float64
    moments ─────────────────────► addresses of their bytes ───► variance, correlation and the like

Invariants: a state that is null is one of no value; an average of it is null, as is a statistic of too few.

Held by: tests/sort/test_row_combiner.py
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

from engine.accumulators.means cimport mean_of
from engine.accumulators.moment_kernels cimport VARIANCE, CoMoments, gather_statistics
from engine.records.arrow_batch cimport ArrowBatch, ColumnView, column_is_null

import pyarrow as pa

from engine.records.arrow_functions import pc

cdef enum:
    CHUNK_ROWS = 256


cdef uint8_t* buffer_address(object buffer) except? NULL:
    """Return the address of an Arrow buffer made by pa.allocate_buffer."""
    return <uint8_t*> <size_t> buffer.address


def results_of_states(batch not None, int64_t key_count, list columns not None, schema not None):
    """Return a batch of keys and states as keys and results.

    Args: columns: for each result the state that it is (state, -1), or what it is made of; schema: of the results.
    """
    cdef ArrowBatch opened
    if all([counted == -1 for _, counted in columns]):
        return pa.RecordBatch.from_arrays(batch.columns, schema=schema)
    opened = ArrowBatch.open(batch)
    arrays = batch.columns[:key_count]
    for state, counted in columns:
        column = key_count + state
        if counted == -1:
            arrays.append(batch.column(column))
        elif counted <= VARIANCE:
            arrays.append(_statistics(&opened.columns[column], opened.row_count, counted))
        else:
            means = _means(&opened.columns[column], &opened.columns[key_count + counted], opened.row_count,
                           batch.schema.field(column).type)
            states = batch.column(column)
            arrays.append(means if states.null_count == 0 else pc.if_else(pc.is_valid(states), means, None))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


cdef object _means(const ColumnView* total, const ColumnView* counted, int64_t count, total_type):
    cdef const uint8_t* totals = total.values + total.offset * total.width
    cdef const int64_t* counts = <const int64_t*> counted.values + counted.offset
    cdef int32_t scale = total_type.scale if pa.types.is_decimal(total_type) else 0
    cdef int64_t row
    cdef double* values
    buffer = pa.allocate_buffer(count * sizeof(double))
    values = <double*> buffer_address(buffer)
    with nogil:
        for row in range(count):
            values[row] = mean_of(totals + row * total.width, total.kind, max(counts[row], <int64_t> 1), scale)
    return pa.Array.from_buffers(pa.float64(), count, [None, buffer], null_count=0)


cdef object _statistics(const ColumnView* moments, int64_t count, int32_t statistic):
    cdef uint8_t* groups[CHUNK_ROWS]
    cdef CoMoments none         # the widest
    cdef int64_t start = 0
    cdef int64_t nulls = 0
    cdef int64_t size, index, row
    cdef uint8_t* bits
    cdef double* values
    none.count = 0
    validity = pa.allocate_buffer((count + 7) >> 3)
    buffer = pa.allocate_buffer(count * sizeof(double))
    bits = buffer_address(validity)
    values = <double*> buffer_address(buffer)
    with nogil:
        while start < count:
            size = min(<int64_t> CHUNK_ROWS, count - start)
            for index in range(size):
                row = moments.offset + start + index
                groups[index] = (<uint8_t*> &none if column_is_null(moments, start + index)
                                 else <uint8_t*> moments.values + row * moments.width)
            nulls += gather_statistics(groups, size, 0, statistic, bits + (start >> 3), values + start)
            start += size
    return pa.Array.from_buffers(pa.float64(), count, [validity, buffer], null_count=nulls)
