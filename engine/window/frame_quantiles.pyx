"""FrameQuantile: a quantile over the frame of each row; it is walked as ``FrameAggregate`` is.

    quantile = FrameQuantile(share, column, data_type, slides, most_bytes)     data_type: of the argument
    quantile.begin(block); row = quantile.run(...); quantile.finish() -> Arrow array

Values of the frame lie in their order (``OrderedValues``): each enters and leaves it once, and the two beside the share
are read at their places. What lies between them is computed as for groups (``quantiles``).

Held by: tests/window/test_frame_quantiles.py
"""

cimport cython
from libc.math cimport floor
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from engine.accumulators.checked_sums cimport int128, load_int128
from engine.records.arrow_batch cimport ColumnView, column_is_null
from engine.window.frame_walk cimport Frames, Stretch, frames_of, stretch_of
from engine.window.ordered_values cimport (
    OrderedValues,
    ordered_at,
    ordered_clear,
    ordered_drop,
    ordered_free,
    ordered_push,
)
from engine.window.row_block cimport Positions, RowBlock
from engine.window.value_words cimport bits_of, word_of

import pyarrow as pa

from engine.errors import MemoryBudgetError
from engine.window.quantiles import between

cdef struct State:
    bint slides             # rows leave
    bint is_real
    int64_t width           # bytes of a value: 8, of decimals 16
    double share
    int64_t partition       # where the partition of the frame begins, -1: none yet
    int64_t start           # rows [start, end) are in the state
    int64_t end
    OrderedValues ordered
    # results of the block
    uint8_t* low            # the value at or below the share
    uint8_t* high           # ... and above
    double* fraction        # how far between them it lies
    uint8_t* valid          # a bit each


cdef inline int128 value_at(const State* state, const ColumnView* column, int64_t row) noexcept nogil:
    cdef const uint8_t* place = column.values + (column.offset + row) * state.width
    if state.width == 16:
        return load_int128(place)
    if state.is_real:
        return <int128> word_of((<const uint64_t*> place)[0], True)
    return (<const int64_t*> place)[0]


cdef inline void put(const State* state, uint8_t* values, int64_t index, int128 value) noexcept nogil:
    if state.width == 16:
        memcpy(values + 16 * index, &value, 16)
    elif state.is_real:
        (<uint64_t*> values)[index] = bits_of(<uint64_t> value, True)
    else:
        (<int64_t*> values)[index] = <int64_t> value


cdef void emit(State* state, int64_t index) noexcept nogil:
    """Write the result of the state for a row of the block."""
    cdef int64_t count = state.ordered.count
    cdef int64_t whole
    cdef double place
    cdef int128 low, high
    if count == 0:
        low = high = 0
        state.fraction[index] = 0.0
    else:
        place = state.share * <double> (count - 1)
        whole = <int64_t> floor(place)
        low = high = ordered_at(&state.ordered, whole)
        if place > <double> whole:
            high = ordered_at(&state.ordered, whole + 1)
        state.fraction[index] = place - <double> whole
        state.valid[index >> 3] |= <uint8_t> (1 << (index & 7))
    put(state, state.low, index, low)
    put(state, state.high, index, high)


cdef int64_t run_rows(State* state, int64_t row, const Frames* frames, const Stretch* entering,
                      const Stretch* leaving) noexcept nogil:
    """Give rows of a block from one on their results; returns the row that needs another block, or its stop."""
    cdef int64_t index
    while row < frames.stop:
        index = row - frames.first
        if frames.partitions[index] != state.partition:
            ordered_clear(&state.ordered)
            state.partition = state.start = state.end = frames.partitions[index]
        while state.end < frames.ends[index]:
            if not entering.start <= state.end < entering.stop:
                return row
            if not column_is_null(entering.column, state.end - entering.start):
                ordered_push(&state.ordered, value_at(state, entering.column, state.end - entering.start))
                if state.ordered.is_full:
                    return row
            state.end += 1
        while state.slides and state.start < frames.starts[index]:
            if not leaving.start <= state.start < leaving.stop:
                return row
            if not column_is_null(leaving.column, state.start - leaving.start):
                ordered_drop(&state.ordered, value_at(state, leaving.column, state.start - leaving.start))
            state.start += 1
        emit(state, index)
        row += 1
    return row


@cython.final
cdef class FrameQuantile:
    """Args: share: from 0 to 1; column: of its argument in a block; data_type: of the argument; slides: rows leave
    frames; most_bytes: for the values of a frame; name: for errors."""

    cdef State _state
    cdef int64_t _column
    cdef object _type
    cdef str _name
    cdef object _buffers
    cdef int64_t _count

    def __cinit__(self, double share, int64_t column, data_type, bint slides, int64_t most_bytes, str name):
        self._state.share = share
        self._state.slides = slides
        self._state.partition = -1
        self._state.is_real = pa.types.is_floating(data_type)
        self._state.width = 16 if pa.types.is_decimal(data_type) else 8
        self._state.ordered.most = most_bytes
        self._column = column
        self._type = data_type
        self._name = name

    def __dealloc__(self):
        ordered_free(&self._state.ordered)

    @property
    def end_row(self):
        """The row that enters next."""
        return self._state.end

    @property
    def start_row(self):
        """The row that leaves next."""
        return self._state.start

    def enter(self, RowBlock block not None):
        """Have rows that lie before all others enter the frames of the first partition."""
        raise NotImplementedError("a quantile is of one range")

    def begin(self, RowBlock block not None):
        """Make room for the results of a block's rows."""
        cdef int64_t count = block.stop - block.start
        self._count = count
        bitmap, low, high, fraction = (
            pa.allocate_buffer(size)
            for size in ((count + 7) // 8, count * self._state.width, count * self._state.width, count * 8)
        )
        self._buffers = bitmap, low, high, fraction
        self._state.valid = <uint8_t*> <size_t> bitmap.address
        self._state.low = <uint8_t*> <size_t> low.address
        self._state.high = <uint8_t*> <size_t> high.address
        self._state.fraction = <double*> <size_t> fraction.address
        memset(self._state.valid, 0, <size_t> ((count + 7) // 8))

    def run(self, int64_t row, RowBlock block not None, Positions partitions not None, Positions starts not None,
            Positions ends not None, RowBlock entering not None, RowBlock leaving not None):
        """Give results to rows of the block from one on, as far as the blocks reach; return the row that is next."""
        cdef Stretch into = stretch_of(entering, self._column)
        cdef Stretch out = stretch_of(leaving, self._column)
        cdef Frames frames = frames_of(block, partitions, starts, ends)
        with nogil:
            row = run_rows(&self._state, row, &frames, &into, &out)
        if self._state.ordered.is_full:
            raise MemoryBudgetError(
                f"{self._name}: the values of one frame need more than the {self._state.ordered.most} bytes of this "
                "operator; give it more memory, or a smaller frame"
            )
        return row

    def finish(self):
        """Return the results of the block."""
        bitmap, low, high, fraction = self._buffers
        sides = [pa.Array.from_buffers(self._type, self._count, [bitmap, values]) for values in (low, high)]
        return between(*sides, pa.Array.from_buffers(pa.float64(), self._count, [None, fraction]))
