"""PairColumns: chosen columns of pairs of rows, decoded as Arrow arrays; of a row without a partner, nulls beside it.

    columns = PairColumns(left, right, [(side, column), ...])
    columns.of_pairs(left_rows, right_rows, count)          one array for each (side, column)
    columns.of_rows(side, rows, count)                      the other side's are null

    left rows   ● ● ●  ──► decode: the left columns of those that are chosen, each once ──┐
    right rows  ● ● ●  ──► decode: the right ones ────────────────────────────────────────┴──► in the order asked for

Only what is chosen is decoded: a wide key that is not given out is never read. Thread: one.

Held by: tests/join/test_outside_merge.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc

import pyarrow as pa

from engine.join.join_side cimport JoinSide


cdef int32_t* _numbers(list values) except NULL:
    cdef int32_t* numbers = <int32_t*> malloc((<size_t> len(values) + 1) * sizeof(int32_t))
    cdef Py_ssize_t position
    if numbers == NULL:
        raise MemoryError("columns of pairs")
    for position in range(len(values)):
        numbers[position] = values[position]
    return numbers


@cython.final
cdef class PairColumns:
    """Args: columns: (side, column index), in the order of the arrays; side 0 is left, 1 right."""

    def __cinit__(self, JoinSide left not None, JoinSide right not None, columns):
        lefts = sorted({column for side, column in columns if not side})
        rights = sorted({column for side, column in columns if side})
        self._left = left
        self._right = right
        self._left_columns = _numbers(lefts)
        self._left_count = len(lefts)
        self._right_columns = _numbers(rights)
        self._right_count = len(rights)
        self._places = [(side, (rights if side else lefts).index(column)) for side, column in columns]
        self._nulls = [(right if side else left).schema.field(column).type for side, column in columns]

    def __dealloc__(self):
        free(self._left_columns)
        free(self._right_columns)

    cdef list of_pairs(self, uint8_t** left_rows, uint8_t** right_rows, int64_t count):
        cdef list lefts = []
        cdef list rights = []
        if self._left_count:
            lefts = self._left.codec.decode(left_rows, count, self._left_columns, self._left_count).columns
        if self._right_count:
            rights = self._right.codec.decode(right_rows, count, self._right_columns, self._right_count).columns
        return [(rights if side else lefts)[position] for side, position in self._places]

    cdef list of_rows(self, int side, uint8_t** rows, int64_t count):
        cdef list found = []
        if side and self._right_count:
            found = self._right.codec.decode(rows, count, self._right_columns, self._right_count).columns
        elif not side and self._left_count:
            found = self._left.codec.decode(rows, count, self._left_columns, self._left_count).columns
        return [
            found[position] if own_side == side else pa.nulls(count, self._nulls[index])
            for index, (own_side, position) in enumerate(self._places)
        ]
