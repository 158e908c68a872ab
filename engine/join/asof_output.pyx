"""AsofOutput: takes of a left row's two candidates the right one, and decodes the pairs.

    output = AsofOutput(spec, rule)
    output.lefts = rows; output.before[i] = ...; output.after[i] = ...; output.count = n        kernels fill it in
    for batch in output.batches(): ...                                                          it is empty again

    before  after
      a3     a6  ──► one direction, no tolerance: what there is ──────────────┐
             └─────► else the times of both are decoded ──► AsofRule.choose ──┴──► pairs ──► columns

Invariants: each left row comes out once, in its place; output batches have at most 8192 rows and about 1 MiB of them in
binary form, or a single row.

Held by: tests/join/test_asof_join.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc

from engine.join.join_side cimport JoinSide
from engine.join.key_groups cimport PAIRS_BYTES, PAIRS_MAX
from engine.join.pair_columns cimport PairColumns
from engine.records.arrow_batch cimport KIND_BYTES
from engine.records.outside_values cimport outside_bytes, values_lie_outside
from engine.records.row_codec cimport row_size

import pyarrow as pa

from engine.errors import SchemaError
from engine.graph.plan import AsofDirection


cdef int32_t* _variable_slots(JoinSide side, columns, int32_t* count) except NULL:
    cdef int32_t column
    cdef int32_t* slots = <int32_t*> malloc((<size_t> len(side.schema) + 1) * sizeof(int32_t))
    if slots == NULL:
        raise MemoryError("columns of an as-of join")
    for column in columns:
        if side.codec.kinds[column] >= KIND_BYTES:
            slots[count[0]] = side.codec.slots[column]
            count[0] += 1
    return slots


@cython.final
cdef class AsofOutput:
    """Args: spec: JoinSpec of a left join, the last key is the time; rule: AsofRule."""

    def __cinit__(self, spec not None, rule not None):
        if not spec.left.keys:
            raise SchemaError("an as-of join has no column to compare by")
        self.left = JoinSide(spec.left)
        self.right = JoinSide(spec.right)
        columns = [(int(side), int(column)) for side, column in spec.output]
        self._columns = PairColumns(self.left, self.right, columns)
        self._schema = spec.output_schema
        self._rule = rule
        self.looks_back = rule.direction is not AsofDirection.FORWARD
        self.looks_ahead = rule.direction is not AsofDirection.BACKWARD
        *_, self._left_time = spec.left.keys
        *_, self._right_time = spec.right.keys
        self._left_slots = _variable_slots(
            self.left, {column for side, column in columns if not side}, &self._left_slot_count)
        self._right_slots = _variable_slots(
            self.right, {column for side, column in columns if side}, &self._right_slot_count)
        self.before = <uint8_t**> calloc(PAIRS_MAX, sizeof(uint8_t*))
        self.after = <uint8_t**> calloc(PAIRS_MAX, sizeof(uint8_t*))
        if self.before == NULL or self.after == NULL:
            raise MemoryError("candidates of an as-of join")

    def __dealloc__(self):
        free(self._left_slots)
        free(self._right_slots)
        free(self.before)
        free(self.after)

    def batches(self):
        """Yield the output of the left rows that are there, and forget them."""
        cdef int64_t count = self.count
        cdef int64_t begin = 0
        cdef int64_t end
        cdef uint8_t** chosen = self.before if self.looks_back else self.after
        self.count = 0
        if count and self._rule.measures:
            self._choose(count)
            chosen = self.before
        while begin < count:
            with nogil:
                end = self._end_of_batch(chosen, begin, count)
            arrays = self._columns.of_pairs(self.lefts + begin, chosen + begin, end - begin)
            yield pa.RecordBatch.from_arrays(arrays, schema=self._schema)
            del arrays
            begin = end

    cdef int64_t _end_of_batch(self, uint8_t** rights, int64_t begin, int64_t count) noexcept nogil:
        """Return the end of the next output batch."""
        cdef bint looks_outside = values_lie_outside()
        cdef int64_t used = 0
        cdef int64_t index
        for index in range(begin, count):
            used += row_size(self.lefts[index]) + (row_size(rights[index]) if rights[index] != NULL else 0)
            if looks_outside:
                used += outside_bytes(self.lefts[index], self._left_slots, self._left_slot_count)
                if rights[index] != NULL:
                    used += outside_bytes(rights[index], self._right_slots, self._right_slot_count)
            if index > begin and used > PAIRS_BYTES:
                return index
        return count

    cdef int _choose(self, int64_t count) except -1:
        """Leave of the candidates before and after the chosen one, as the one before."""
        cdef int64_t index
        cdef const uint8_t* choices
        times = self.left.codec.decode(self.lefts, count, &self._left_time, 1).column(0)
        chosen = self._rule.choose(times, self._times(self.before, count), self._times(self.after, count))
        choices = <const uint8_t*> <uintptr_t> chosen.buffers()[1].address + <int64_t> chosen.offset
        with nogil:
            for index in range(count):
                if choices[index] == 0:
                    self.before[index] = NULL
                elif choices[index] == 2:
                    self.before[index] = self.after[index]
        return 0

    cdef object _times(self, uint8_t** rows, int64_t count):
        return self.right.codec.decode(rows, count, &self._right_time, 1).column(0)
