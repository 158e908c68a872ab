"""FrameAggregate: an aggregate over the frame of each row, in constant work a row.

    aggregate = FrameAggregate("sum", data_type, slides, most_bytes)     data_type: of the argument in kernel form
    aggregate.begin(block)                                               rows of this block are to get a result
    row = aggregate.run(row, bounds, entering, leaving)                  as far as the two blocks reach
    aggregate.finish() -> Arrow array                                    in kernel form: int64, float64, decimal, text

Frames [start, end) only move forward within a partition. Rows enter the state at ``end`` and leave it at ``start``:
each of them lies in a block, and ``run`` returns the row that needs another one (``entering`` holds the row
``end_row``, ``leaving`` the row ``start_row``) or the block's stop. A row of another partition begins with an empty
state.

    function     state                                              leaving
    count        values that are not null                           exact
    sum, avg     integers and decimals in 128 bits                  exact
                 floats: compensated (Neumaier), no row leaves
                 floats: ExactSum                                   exact: nothing is rounded before the result
    stddev,      ExactSum of the values and of their squares        exact
    variance     (a square is two floats)
    min, max     Extremes                                           by position

So no error adds up, however long a frame slides. Without values sum, avg, min, max are null, of fewer than two stddev
and variance. A sum beyond its type is a DataError.

Held by: tests/window/test_frame_aggregates.py
"""

cimport cython
from libc.math cimport fma, isfinite, sqrt
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

from engine.accumulators.checked_sums cimport add_wrapping, fits_decimal, fits_int64, int128, load_int128
from engine.accumulators.exact_sum cimport ExactSum, sum_add, sum_clear, sum_value
from engine.accumulators.means cimport exact_mean
from engine.records.arrow_batch cimport ColumnView, column_is_null
from engine.window.extremes cimport (
    Extremes,
    extremes_clear,
    extremes_drop,
    extremes_free,
    extremes_push,
)
from engine.window.frame_walk cimport Frames, Stretch, frames_of, stretch_of
from engine.window.row_block cimport Positions, RowBlock
from engine.window.value_words cimport bits_of, word_of

import pyarrow as pa

from engine.errors import DataError, MemoryBudgetError

cdef enum Function:
    COUNT = 0
    SUM = 1
    AVG = 2
    MIN = 3
    MAX = 4
    STDDEV = 5
    VARIANCE = 6

cdef enum Domain:
    INTEGERS = 0        # int64
    REALS = 1           # float64
    DECIMALS = 2        # 128 bits
    TEXTS = 3           # with int64 offsets
    ANYTHING = 4        # only whether it is null

_FUNCTIONS = {"count": COUNT, "sum": SUM, "avg": AVG, "min": MIN, "max": MAX, "stddev": STDDEV, "variance": VARIANCE}

cdef struct State:
    int32_t function
    int32_t domain
    int32_t scale           # digits behind the point of decimals
    bint slides             # rows leave
    bint has_overflown
    int64_t partition       # where the partition of the frame begins, -1: none yet
    int64_t start           # rows [start, end) are in the state
    int64_t end
    int64_t count           # of them, not null
    int128 whole          # sum of integers and decimals, less wraps * 2^128
    int64_t wraps
    double real             # compensated sum: real + rest, or plain where that is not finite
    double rest
    double plain
    ExactSum sum
    ExactSum squares
    Extremes extremes
    # results of the block
    uint8_t* values         # 8 or 16 bytes each
    uint8_t* valid          # a byte each
    int64_t* offsets        # of texts
    uint8_t* text
    int64_t text_size
    int64_t text_capacity


cdef void clear(State* state) noexcept nogil:
    state.count = 0
    state.whole = 0
    state.wraps = 0
    state.real = state.rest = state.plain = 0.0
    if state.domain == REALS and state.function in (SUM, AVG) or state.function >= STDDEV:
        sum_clear(&state.sum)
        sum_clear(&state.squares)
    if state.function == MIN or state.function == MAX:
        extremes_clear(&state.extremes)


cdef inline void add_compensated(State* state, double value) noexcept nogil:
    """Neumaier's sum: what a step loses is kept apart."""
    cdef double total = state.real + value
    if (state.real if state.real >= 0 else -state.real) >= (value if value >= 0 else -value):
        state.rest += (state.real - total) + value
    else:
        state.rest += (value - total) + state.real
    state.real = total
    state.plain += value


cdef inline double real_at(const ColumnView* column, int64_t row, int32_t domain, int32_t scale) noexcept nogil:
    cdef int128 number
    if domain == REALS:
        return (<const double*> column.values)[column.offset + row]
    if domain == INTEGERS:
        return <double> (<const int64_t*> column.values)[column.offset + row]
    number = load_int128(column.values + (column.offset + row) * 16)
    return exact_mean(&number, 2, 1, scale)


cdef inline void add_moments(State* state, double value, int times) noexcept nogil:
    cdef double square = value * value
    sum_add(&state.sum, value, times)
    sum_add(&state.squares, square, times)
    if isfinite(square):
        sum_add(&state.squares, fma(value, value, -square), times)


cdef void push(State* state, const ColumnView* column, int64_t row, int64_t position) noexcept nogil:
    cdef const int64_t* offsets
    if state.domain == TEXTS:
        offsets = <const int64_t*> column.offsets + column.offset + row
        extremes_push(&state.extremes, position, 0, column.values + offsets[0], offsets[1] - offsets[0])
    elif state.domain == REALS:
        extremes_push(&state.extremes, position, <int128> word_of((<const uint64_t*> column.values)[column.offset +
        row], True), NULL, 0)
    elif state.domain == INTEGERS:
        extremes_push(&state.extremes, position, (<const int64_t*> column.values)[column.offset + row], NULL, 0)
    else:
        extremes_push(&state.extremes, position, load_int128(column.values + (column.offset + row) * 16), NULL, 0)


cdef inline void change(State* state, const ColumnView* column, int64_t row, int times) noexcept nogil:
    """Have a value that is not null enter (times 1) or leave (-1) a state of sums."""
    state.count += times
    if state.function == COUNT:
        return
    if state.function >= STDDEV:
        add_moments(state, real_at(column, row, state.domain, state.scale), times)
    elif state.domain == INTEGERS:
        state.wraps += add_wrapping(&state.whole, (<const int64_t*> column.values)[column.offset + row], times)
    elif state.domain == DECIMALS:
        state.wraps += add_wrapping(&state.whole, load_int128(column.values + (column.offset + row) * 16), times)
    elif state.slides:
        sum_add(&state.sum, (<const double*> column.values)[column.offset + row], times)
    else:
        add_compensated(state, (<const double*> column.values)[column.offset + row])


cdef inline double total_of(State* state) noexcept nogil:
    cdef double total
    if state.slides:
        return sum_value(&state.sum)
    total = state.real + state.rest
    return total if isfinite(total) else state.plain


cdef double variance_of(State* state) noexcept nogil:
    """Return the variance of a sample from exact sums, each as two floats."""
    cdef double mean_sum = sum_value(&state.sum)
    cdef double squares = sum_value(&state.squares)
    cdef double count = <double> state.count
    cdef double low, squares_low, product, scaled, found
    if not isfinite(mean_sum) or not isfinite(squares):
        return mean_sum - mean_sum + (squares - squares)
    sum_add(&state.sum, mean_sum, -1)
    low = sum_value(&state.sum)
    sum_add(&state.sum, mean_sum, 1)
    sum_add(&state.squares, squares, -1)
    squares_low = sum_value(&state.squares)
    sum_add(&state.squares, squares, 1)
    # count * squares - mean_sum ** 2, each product with what it was rounded by
    scaled = count * squares
    product = mean_sum * mean_sum
    found = fma(count, squares, -scaled) - fma(mean_sum, mean_sum, -product)
    found = (scaled - product) + (found + (count * squares_low - 2.0 * mean_sum * low))
    if found < scaled * 7.888609052210118e-31:      # 2^-100: what two floats each can lose; equal values have none
        found = 0.0
    return found / count / (count - 1.0)


cdef void emit_text(State* state, int64_t index) noexcept nogil:
    cdef int64_t size = 0
    cdef int64_t capacity
    cdef uint8_t* larger
    if state.extremes.count > 0:
        size = state.extremes.items[state.extremes.first].size
        if state.text_size + size > state.text_capacity:
            capacity = max(2 * state.text_capacity, state.text_size + size)
            larger = <uint8_t*> realloc(state.text, <size_t> capacity)
            if larger == NULL:
                state.extremes.is_full = True
                return
            state.text, state.text_capacity = larger, capacity
        memcpy(state.text + state.text_size, state.extremes.items[state.extremes.first].text, <size_t> size)
        state.text_size += size
    state.valid[index] = state.extremes.count > 0
    state.offsets[index + 1] = state.text_size


cdef void emit_extreme(State* state, int64_t index) noexcept nogil:
    cdef int128 number
    if state.domain == TEXTS:
        emit_text(state, index)
        return
    state.valid[index] = state.extremes.count > 0
    number = state.extremes.items[state.extremes.first].number if state.extremes.count > 0 else 0
    if state.domain == DECIMALS:
        memcpy(state.values + 16 * index, &number, 16)
    elif state.domain == REALS:
        (<uint64_t*> state.values)[index] = bits_of(<uint64_t> number, True) if state.valid[index] else 0
    else:
        (<int64_t*> state.values)[index] = <int64_t> number


cdef inline void emit(State* state, int64_t index) noexcept nogil:
    """Write the result of the state for a row of the block."""
    cdef double found
    if state.function == COUNT:
        (<int64_t*> state.values)[index] = state.count
        state.valid[index] = True
        return
    if state.function == MIN or state.function == MAX:
        emit_extreme(state, index)
        return
    state.valid[index] = state.count > (1 if state.function >= STDDEV else 0)
    if not state.valid[index]:
        memset(state.values + index * (16 if state.domain == DECIMALS and state.function == SUM else 8), 0,
               16 if state.domain == DECIMALS and state.function == SUM else 8)
    elif state.function >= STDDEV:
        found = variance_of(state)
        (<double*> state.values)[index] = sqrt(found) if state.function == STDDEV else found
    elif state.function == AVG:
        if state.domain == REALS:
            (<double*> state.values)[index] = total_of(state) / <double> state.count
        else:
            state.has_overflown |= state.wraps != 0
            (<double*> state.values)[index] = exact_mean(&state.whole, 2, state.count, state.scale)
    elif state.domain == REALS:
        (<double*> state.values)[index] = total_of(state)
    elif state.domain == INTEGERS:
        state.has_overflown |= not fits_int64(state.whole)
        (<int64_t*> state.values)[index] = <int64_t> state.whole
    else:
        state.has_overflown |= state.wraps != 0 or not fits_decimal(state.whole)
        memcpy(state.values + 16 * index, &state.whole, 16)


cdef int64_t run_rows(State* state, int64_t row, const Frames* frames, const Stretch* entering,
                      const Stretch* leaving) noexcept nogil:
    """Give rows of a block from one on their results; returns the row that needs another block, or its stop."""
    cdef bint is_extreme = state.function == MIN or state.function == MAX
    cdef int64_t index
    while row < frames.stop:
        index = row - frames.first
        if frames.partitions[index] != state.partition:
            clear(state)
            state.partition = state.start = state.end = frames.partitions[index]
        while state.end < frames.ends[index]:
            if not entering.start <= state.end < entering.stop:
                return row
            if not column_is_null(entering.column, state.end - entering.start):
                if is_extreme:
                    push(state, entering.column, state.end - entering.start, state.end)
                else:
                    change(state, entering.column, state.end - entering.start, 1)
            state.end += 1
        if state.slides:
            if is_extreme:
                extremes_drop(&state.extremes, frames.starts[index])
            while state.start < frames.starts[index]:
                if not leaving.start <= state.start < leaving.stop:
                    return row
                if not is_extreme and not column_is_null(leaving.column, state.start - leaving.start):
                    change(state, leaving.column, state.start - leaving.start, -1)
                state.start += 1
        emit(state, index)
        row += 1
    return row


cdef void enter_rows(State* state, const ColumnView* column, int64_t count) noexcept nogil:
    """Have rows enter, whatever their order is."""
    cdef bint is_extreme = state.function == MIN or state.function == MAX
    cdef int64_t row
    for row in range(count):
        if column_is_null(column, row):
            continue
        if is_extreme:
            push(state, column, row, 0)
        else:
            change(state, column, row, 1)


@cython.final
cdef class FrameAggregate:
    """Args: function: count sum avg min max stddev variance; column: of its argument in a block; data_type: of the
    argument in kernel form, None where only nulls count; slides: rows leave frames; most_bytes: for values of min and
    max that may still be the least; name: for errors."""

    cdef State _state
    cdef int64_t _column
    cdef object _type
    cdef str _name
    cdef object _values
    cdef object _valid
    cdef object _offsets
    cdef int64_t _count

    def __cinit__(self, str function, int64_t column, data_type, bint slides, int64_t most_bytes, str name):
        self._state.function = _FUNCTIONS[function]
        self._state.slides = slides
        self._state.partition = -1
        self._column = column
        self._type = data_type
        self._name = name
        if data_type is None:
            self._state.domain = ANYTHING
        elif pa.types.is_decimal(data_type):
            self._state.domain = DECIMALS
            self._state.scale = data_type.scale
        elif pa.types.is_float64(data_type):
            self._state.domain = REALS
        else:
            self._state.domain = INTEGERS if pa.types.is_int64(data_type) else TEXTS
        self._state.extremes.most = most_bytes
        self._state.extremes.slides = slides
        self._state.extremes.greatest = function == "max"
        self._state.extremes.of_texts = self._state.domain == TEXTS

    def __dealloc__(self):
        extremes_free(&self._state.extremes)
        free(self._state.text)

    @property
    def end_row(self):
        """The row that enters next."""
        return self._state.end

    @property
    def start_row(self):
        """The row that leaves next."""
        return self._state.start

    def enter(self, RowBlock block not None):
        """Have rows that lie before all others enter the frames of the first partition; none of them leaves again."""
        cdef const ColumnView* column = block.column(self._column)
        cdef int64_t count = block.stop - block.start
        if self._state.partition < 0:
            clear(&self._state)
            self._state.partition = 0
        with nogil:
            enter_rows(&self._state, column, count)

    def begin(self, RowBlock block not None):
        """Make room for the results of a block's rows."""
        cdef int64_t width = 16 if self._state.domain == DECIMALS and self._state.function in (SUM, MIN, MAX) else 8
        self._count = block.stop - block.start
        self._valid = pa.allocate_buffer(self._count)
        self._state.valid = <uint8_t*> <size_t> self._valid.address
        if self._state.domain == TEXTS:
            self._offsets = pa.allocate_buffer((self._count + 1) * 8)
            self._state.offsets = <int64_t*> <size_t> self._offsets.address
            self._state.offsets[0] = self._state.text_size = 0
        self._values = pa.allocate_buffer(self._count * width)
        self._state.values = <uint8_t*> <size_t> self._values.address

    def run(self, int64_t row, RowBlock block not None, Positions partitions not None, Positions starts not None,
            Positions ends not None, RowBlock entering not None, RowBlock leaving not None):
        """Give results to rows of the block from one on, as far as the blocks reach; return the row that is next."""
        cdef Stretch into = stretch_of(entering, self._column)
        cdef Stretch out = stretch_of(leaving, self._column)
        cdef Frames frames = frames_of(block, partitions, starts, ends)
        with nogil:
            row = run_rows(&self._state, row, &frames, &into, &out)
        if self._state.extremes.is_full:
            raise MemoryBudgetError(
                f"{self._name}: the values of one frame that may still be the least need more than the "
                f"{self._state.extremes.most} bytes of this operator; give it more memory, or a smaller frame"
            )
        if self._state.has_overflown:
            raise DataError(f"{self._name}: a sum is beyond the range of its type; cast the values to a wider type")
        return row

    def finish(self):
        """Return the results of the block."""
        cdef int64_t index
        cdef int64_t count = self._count
        cdef uint8_t* bits
        bitmap = pa.allocate_buffer((count + 7) // 8)
        bits = <uint8_t*> <size_t> bitmap.address
        with nogil:
            memset(bits, 0, <size_t> ((count + 7) // 8))
            for index in range(count):
                bits[index >> 3] |= <uint8_t> (self._state.valid[index] << (index & 7))
        return self._array(bitmap)

    cdef object _array(self, bitmap):
        cdef int32_t function = self._state.function
        if self._state.domain == TEXTS and function != COUNT:
            data = pa.py_buffer((<const uint8_t*> self._state.text)[:self._state.text_size])
            return pa.Array.from_buffers(self._type, self._count, [bitmap, self._offsets, data])
        if function == COUNT:
            data_type = pa.int64()
        elif function in (AVG, STDDEV, VARIANCE):
            data_type = pa.float64()
        elif function == SUM and self._state.domain == DECIMALS:
            data_type = pa.decimal128(38, self._type.scale)
        else:
            data_type = self._type
        return pa.Array.from_buffers(data_type, self._count, [bitmap, self._values])
