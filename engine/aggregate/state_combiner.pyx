"""StateCombiner: merges the partial states of two binary rows of one group, in place.

    combiner = StateCombiner(schema, key_count, operations, overflow_texts)     as AggregateLayout has them for merging
    sorter = ExternalSorter(..., combiner=combiner)                             rows of that schema, sorted by the keys

    target  │ size │ null bits │ key │ sum 7 │ count 2 │ min 3 │
    source  │ size │ null bits │ key │ sum 5 │ count 1 │ null  │     ──►  target  │ ... │ key │ sum 12 │ count 3 │ min 3 │

States are merged by the kernels of the group table: a value of the target is copied to a scratch of the form of a group
(value and flag), the value of the source is a column of one row. Sums and counts of int64 and sums of float64, which
are most states, are added where they lie. A null is a state without any value; ``first`` keeps the null of its first
row and ``last`` takes that of its last one.

Limits: states of a fixed size. Those of strings and binaries would change the size of their row.

Thread: read-only after its making.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy

from engine.aggregate.state_kernels cimport (
    OP_ADD_DOUBLE,
    OP_ADD_INT64,
    OP_FIRST,
    OP_LAST,
    OP_MAX,
    OP_MIN,
    StateField,
    update_state,
)
from engine.records.arrow_batch cimport KIND_BYTES, KIND_FIXED_BYTES, KIND_FLOAT64, KIND_INT64, ColumnView
from engine.records.row_codec cimport RowCodec, row_is_null
from engine.records.row_combiner cimport RowCombiner

from engine.errors import DataError, NotYetSupportedError

cdef extern from *:
    bint add_overflows "__builtin_add_overflow" (int64_t left, int64_t right, int64_t* total) noexcept nogil

cdef enum:
    SCRATCH_FLAG = 32       # behind the widest number

cdef struct RowState:
    int32_t column
    int32_t slot            # offset of the value in a row
    StateField field        # of the scratch
    ColumnView view         # of one value; its address is set for each


@cython.final
cdef class StateCombiner(RowCombiner):
    """Args: schema: keys, then states; operations: how each state merges; overflow_texts: what to say of each.

    Raises: NotYetSupportedError: a state of variable size.
    """

    cdef RowState* _states
    cdef int32_t _count
    cdef list _overflow_texts

    def __cinit__(self, schema, int32_t key_count, list operations not None, list overflow_texts not None):
        cdef RowCodec codec = RowCodec(schema)
        cdef RowState* state
        cdef int32_t index
        self._overflow_texts = overflow_texts
        self._count = codec.column_count - key_count
        self._states = <RowState*> calloc(<size_t> self._count + 1, sizeof(RowState))
        if self._states == NULL:
            raise MemoryError()
        for index in range(self._count):
            state = &self._states[index]
            state.column = key_count + index
            state.slot = codec.slots[state.column]
            state.field.operation = operations[index]
            state.field.kind = state.view.kind = codec.kinds[state.column]
            state.field.width = state.view.width = codec.widths[state.column]
            state.field.flag = SCRATCH_FLAG
            if state.field.kind >= KIND_BYTES:
                raise NotYetSupportedError(f"states of {schema.field(state.column).type} in a sort")

    def __dealloc__(self):
        free(self._states)

    cdef int combine(self, uint8_t* target, const uint8_t* source) noexcept nogil:
        cdef RowState* state
        cdef int32_t index
        cdef int failed = 0
        for index in range(self._count):
            state = &self._states[index]
            if row_is_null(source, state.column):
                if state.field.operation == OP_LAST:
                    _set_null(target, state, True)
            elif row_is_null(target, state.column):
                if state.field.operation != OP_FIRST:
                    memcpy(target + state.slot, source + state.slot, <size_t> state.field.width)
                    _set_null(target, state, False)
            elif _merge(target + state.slot, source + state.slot, state) != 0:
                failed = index + 1
        return failed

    cdef int raise_failure(self, int failure) except -1:
        raise DataError(self._overflow_texts[failure - 1])


cdef inline void _set_null(uint8_t* row, const RowState* state, bint is_null) noexcept nogil:
    """Mark a value as null, which zeroes its slot, or as one that is not."""
    cdef uint8_t bit = <uint8_t> (1 << (state.column & 7))
    cdef int32_t index
    if is_null:
        row[4 + (state.column >> 3)] |= bit
        for index in range(state.field.width):
            row[state.slot + index] = 0
    else:
        row[4 + (state.column >> 3)] &= <uint8_t> ~bit


cdef inline int _merge(uint8_t* target, const uint8_t* source, const RowState* state) noexcept nogil:
    """Merge two values; returns whether a sum overflows."""
    cdef int order
    if state.field.operation == OP_ADD_INT64 and state.field.kind == KIND_INT64:
        return add_overflows((<int64_t*> target)[0], (<const int64_t*> source)[0], <int64_t*> target)
    if state.field.operation == OP_ADD_DOUBLE and state.field.kind == KIND_FLOAT64:
        (<double*> target)[0] += (<const double*> source)[0]
        return 0
    if state.field.operation == OP_FIRST:
        return 0
    if state.field.operation == OP_LAST:
        memcpy(target, source, <size_t> state.field.width)
        return 0
    if state.field.operation in (OP_MIN, OP_MAX) and state.field.kind == KIND_FIXED_BYTES:
        order = memcmp(target, source, <size_t> state.field.width)
        if order != 0 and (order < 0) == (state.field.operation == OP_MAX):
            memcpy(target, source, <size_t> state.field.width)
        return 0
    return _merge_as_group(target, source, state)


cdef int _merge_as_group(uint8_t* target, const uint8_t* source, const RowState* state) noexcept nogil:
    cdef double[6] scratch          # as aligned as a group
    cdef uint8_t* group = <uint8_t*> scratch
    cdef ColumnView view = state.view
    cdef int failed
    memcpy(group, target, <size_t> state.field.width)
    group[SCRATCH_FLAG] = 1
    view.values = source
    failed = update_state(&state.field, &view, 0, &group, 1)
    memcpy(target, group, <size_t> state.field.width)
    return failed
