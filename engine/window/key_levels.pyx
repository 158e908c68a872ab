"""KeyLevels: in which key each row of sorted batches differs from the row before it.

    levels = KeyLevels(["k", "day"])
    levels.of(batch) -> uint8 array      0 for the first row of all, k + 1: first different key, key count + 1: none

Values are equal as they are for sort and group_by: null equals null, NaN equals NaN, -0.0 equals 0.0, text and bytes by
their bytes. Of a batch its last keys are kept, copied, for the first row of the next one.

Limits: KEYS_MAX keys. Cost: a pass over each key column.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t
from libc.string cimport memcmp, memset

from engine.records.arrow_batch cimport (
    KIND_BOOL,
    KIND_BYTES,
    KIND_FLOAT16,
    KIND_FLOAT32,
    KIND_FLOAT64,
    KIND_INT32,
    KIND_INT64,
    KIND_LARGE_BYTES,
    KIND_NULL,
    ArrowBatch,
    ColumnView,
    column_is_null,
)

import pyarrow as pa

from engine.records.arrow_functions import pc
from engine.records.plain_scalars import array_of

#: a level is a byte
KEYS_MAX = 254


cdef inline bint half_differs(uint16_t left, uint16_t right) noexcept nogil:
    if (left & 0x7FFF) > 0x7C00 and (right & 0x7FFF) > 0x7C00:
        return False
    return left != right and ((left | right) & 0x7FFF) != 0


cdef inline bint real_differs(double left, double right) noexcept nogil:
    return left != right and not (left != left and right != right)


cdef bint text_differs(const ColumnView* left, int64_t a, const ColumnView* right, int64_t b) noexcept nogil:
    cdef int64_t left_begin, left_end, right_begin, right_end
    if left.kind == KIND_BYTES:
        left_begin, left_end = (<const int32_t*> left.offsets)[a], (<const int32_t*> left.offsets)[a + 1]
        right_begin, right_end = (<const int32_t*> right.offsets)[b], (<const int32_t*> right.offsets)[b + 1]
    else:
        left_begin, left_end = (<const int64_t*> left.offsets)[a], (<const int64_t*> left.offsets)[a + 1]
        right_begin, right_end = (<const int64_t*> right.offsets)[b], (<const int64_t*> right.offsets)[b + 1]
    if left_end - left_begin != right_end - right_begin:
        return True
    return memcmp(left.values + left_begin, right.values + right_begin, <size_t> (left_end - left_begin)) != 0


cdef bint differs(const ColumnView* left, int64_t left_row, const ColumnView* right, int64_t right_row) noexcept nogil:
    """Whether two values of one type differ."""
    cdef bint is_null = column_is_null(left, left_row)
    cdef int64_t a = left.offset + left_row
    cdef int64_t b = right.offset + right_row
    if is_null or column_is_null(right, right_row):
        return is_null != column_is_null(right, right_row)
    if left.kind == KIND_INT64:
        return (<const int64_t*> left.values)[a] != (<const int64_t*> right.values)[b]
    if left.kind == KIND_INT32:
        return (<const int32_t*> left.values)[a] != (<const int32_t*> right.values)[b]
    if left.kind == KIND_BYTES or left.kind == KIND_LARGE_BYTES:
        return text_differs(left, a, right, b)
    if left.kind == KIND_FLOAT64:
        return real_differs((<const double*> left.values)[a], (<const double*> right.values)[b])
    if left.kind == KIND_FLOAT32:
        return real_differs((<const float*> left.values)[a], (<const float*> right.values)[b])
    if left.kind == KIND_FLOAT16:
        return half_differs((<const uint16_t*> left.values)[a], (<const uint16_t*> right.values)[b])
    if left.kind == KIND_BOOL:
        return ((left.values[a >> 3] >> (a & 7)) & 1) != ((right.values[b >> 3] >> (b & 7)) & 1)
    return memcmp(left.values + a * left.width, right.values + b * right.width, <size_t> left.width) != 0


cdef void mark(const ColumnView* column, int64_t count, uint8_t level, uint8_t* levels) noexcept nogil:
    """Give rows whose value differs from the one before that level; levels of earlier keys are given later."""
    cdef int64_t row
    cdef const int64_t* numbers
    if column.kind == KIND_NULL:
        return
    if column.kind == KIND_INT64 and column.validity == NULL:
        numbers = <const int64_t*> column.values + column.offset
        for row in range(1, count):
            if numbers[row] != numbers[row - 1]:
                levels[row] = level
        return
    for row in range(1, count):
        if differs(column, row, column, row - 1):
            levels[row] = level


@cython.final
cdef class KeyLevels:
    """Args: keys: names of columns, those of the partition first."""

    cdef list _keys
    cdef ArrowBatch _last       # the keys of the last row; None before the first batch, and without keys
    cdef bint _has_begun

    def __cinit__(self, keys not None):
        self._keys = list(keys)
        if len(self._keys) > KEYS_MAX:
            raise ValueError(f"{len(self._keys)} keys, at most {KEYS_MAX}")

    def of(self, batch not None):
        """Return the levels of a batch's rows (not empty); batches come in order."""
        cdef ArrowBatch opened = None
        cdef int64_t count = batch.num_rows
        cdef int32_t key_count = <int32_t> len(self._keys)
        cdef int32_t key
        cdef uint8_t* levels
        if key_count > 0:
            opened = ArrowBatch.open(batch.select(self._keys))
        buffer = pa.allocate_buffer(count)
        levels = <uint8_t*> <size_t> buffer.address
        with nogil:
            memset(levels, key_count + 1, <size_t> count)
            for key in range(key_count - 1, -1, -1):
                mark(&opened.columns[key], count, <uint8_t> (key + 1), levels)
                if self._has_begun and differs(&opened.columns[key], 0, &self._last.columns[key], 0):
                    levels[0] = <uint8_t> (key + 1)
            if not self._has_begun:
                levels[0] = 0
        self._has_begun = True
        if key_count > 0:
            self._last = ArrowBatch.open(pc.take(batch.select(self._keys), array_of([count - 1])))
        return pa.Array.from_buffers(pa.uint8(), count, [None, buffer], null_count=0)
