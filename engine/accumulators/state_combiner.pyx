"""StateCombiner: merges the partial states of two binary rows of one group.

    combiner = StateCombiner(schema, key_count, operations, overflow_texts)     as AggregateLayout has them for merging
    sorter = ExternalSorter(..., combiner=combiner)                             rows of that schema, sorted by the keys

    target  │ size │ null bits │ key │ sum 7 │ count 2 │ min 3 │
    source  │ size │ null bits │ key │ sum 5 │ count 1 │ null  │  ──►  target  │ ... │ key │ sum 12 │ count 3 │ min 3 │

States are merged by the kernels of the group table: a value of the target is copied to a scratch of the form of a group
(value and flag), the value of the source is a column of one row. Sums and counts of int64 and sums of float64, which
are most states, are added where they lie. A null is a state without any value; ``first`` keeps the null of its first
row and ``last`` takes that of its last one.

The least and the largest string or binary is that of one of the two rows. While that is the target's, combining stays
in place; else a row is made anew, each variable value copied from the row that has it:

    target  │ size │ null bits │ key │ max │ "dog" │
    source  │ size │ null bits │ key │ max │ "giraffe" │     ──►  row  │ size │ ... │ key │ max │ "giraffe" │

That is rare where it matters: of n rows in random order, about ln n have a new extreme.

Limits: values lie inside the rows, whatever their size.

Thread: read-only after its making.

Held by: tests/sort/test_row_combiner.py
Held by: tests/aggregate/test_state_row_table.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memset

from engine.accumulators.checked_sums cimport add_int64, add_int128, load_int128
from engine.accumulators.state_kernels cimport (
    OP_ADD_DOUBLE,
    OP_ADD_INT64,
    OP_ADD_INT128,
    OP_FIRST,
    OP_LAST,
    OP_MAX,
    OP_MIN,
    update_state,
)
from engine.records.arrow_batch cimport (
    KIND_BYTES,
    KIND_DECIMAL128,
    KIND_FIXED_BYTES,
    KIND_FLOAT64,
    KIND_INT64,
    KIND_LARGE_BYTES,
    ColumnView,
)
from engine.records.byte_kernels cimport copy_bytes, load64, store32, store64
from engine.records.row_codec cimport NULL_COLUMNS, RowCodec, row_is_null
from engine.records.row_combiner cimport RowCombiner

from engine.errors import DataError, NotYetSupportedError

cdef enum:
    SCRATCH_FLAG = 48       # behind the widest state
    SLOT_LENGTH = 0x7FFFFFFF    # length in the upper half of a slot's word; the bit above: the key lies outside the row
    OP_KEY = -1             # a key of variable size: both rows have the same


@cython.final
cdef class StateCombiner(RowCombiner):
    """Args: schema: keys, then states; operations: how each state merges; overflow_texts: what to say of each.

    Raises: NotYetSupportedError: least or largest values of a nested type.
    """

    def __cinit__(self, schema, int32_t key_count, list operations not None, list overflow_texts not None):
        cdef RowCodec codec = RowCodec(schema)
        cdef int32_t column, operation
        self._overflow_texts = overflow_texts
        self._fixed_size = codec.fixed_size
        self._states = <RowState*> calloc(<size_t> codec.column_count + 1, sizeof(RowState))
        self._variable = <VariableColumn*> calloc(<size_t> codec.column_count + 1, sizeof(VariableColumn))
        if self._states == NULL or self._variable == NULL:
            raise MemoryError()
        for column in range(codec.column_count):
            operation = OP_KEY if column < key_count else operations[column - key_count]
            if codec.kinds[column] < KIND_BYTES:
                if operation != OP_KEY:
                    self._add_state(codec, column, operation, column - key_count)
                continue
            if operation != OP_KEY:
                if operation in (OP_MIN, OP_MAX) and codec.kinds[column] not in (KIND_BYTES, KIND_LARGE_BYTES):
                    raise NotYetSupportedError(f"least and largest values of {schema.field(column).type} in a sort")
                self.keeps_size = False
            self._variable[self._variable_count] = VariableColumn(column, codec.slots[column], operation)
            self._variable_count += 1
        self._find_sums(codec)

    cdef int _find_sums(self, RowCodec codec) except -1:
        """Know the slots where every state is a sum, or count, of int64, and nulls are in the first word."""
        cdef int32_t index
        if codec.column_count > NULL_COLUMNS or not self.keeps_size:
            return 0
        for index in range(self._count):
            if self._states[index].field.operation != OP_ADD_INT64 or self._states[index].field.kind != KIND_INT64:
                return 0
        self._sum_count = self._count
        return 0

    def __dealloc__(self):
        free(self._states)
        free(self._variable)

    cdef int _add_state(self, RowCodec codec, int32_t column, int32_t operation, int32_t index) except -1:
        cdef RowState* state = &self._states[self._count]
        state.column = column
        state.slot = codec.slots[column]
        state.index = index
        state.field.operation = operation
        state.field.kind = state.view.kind = codec.kinds[column]
        state.field.width = state.view.width = codec.widths[column]
        state.field.flag = SCRATCH_FLAG
        self._count += 1
        return 0

    cdef int64_t combined_size(self, const uint8_t* target, const uint8_t* source) noexcept nogil:
        cdef int64_t size = self._fixed_size
        cdef bint is_new = False
        cdef int32_t index
        cdef const uint8_t* holder
        if self.keeps_size:
            return 0
        for index in range(self._variable_count):
            holder = _holder(&self._variable[index], target, source)
            is_new |= holder == source
            size += <int64_t> (load64(holder + self._variable[index].slot) >> 32 & SLOT_LENGTH)
        return (size + 7) & ~<int64_t> 7 if is_new else 0

    cdef int combine_into(self, uint8_t* row, const uint8_t* target, const uint8_t* source) noexcept nogil:
        cdef VariableColumn* column
        cdef uint64_t word
        cdef uint64_t end = <uint64_t> self._fixed_size
        cdef uint64_t size
        cdef int32_t index
        cdef int failed
        cdef const uint8_t* holder
        memcpy(row, target, end)
        failed = self.combine(row, source)
        for index in range(self._variable_count):
            column = &self._variable[index]
            holder = _holder(column, target, source)
            if row_is_null(holder, column.column):
                row[4 + (column.column >> 3)] |= <uint8_t> (1 << (column.column & 7))
                store64(row + column.slot, 0)
                continue
            word = load64(holder + column.slot)
            copy_bytes(row + end, holder + <uint32_t> word, word >> 32 & SLOT_LENGTH)
            row[4 + (column.column >> 3)] &= <uint8_t> ~(1 << (column.column & 7))
            store64(row + column.slot, end | word >> 32 << 32)
            end += word >> 32 & SLOT_LENGTH
        size = (end + 7) & ~<uint64_t> 7
        memset(row + end, 0, size - end)
        store32(row, <uint32_t> size)
        return failed

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
                failed = state.index + 1
        return failed

    cdef int raise_failure(self, int failure) except -1:
        raise DataError(self._overflow_texts[failure - 1])


cdef inline const uint8_t* _holder(const VariableColumn* column, const uint8_t* target,
                                   const uint8_t* source) noexcept nogil:
    """Return the row whose value stays."""
    cdef uint64_t left, right
    cdef int order
    if column.operation == OP_KEY or column.operation == OP_FIRST:
        return target
    if column.operation == OP_LAST:
        return source
    if row_is_null(source, column.column):
        return target
    if row_is_null(target, column.column):
        return source
    left = load64(target + column.slot)
    right = load64(source + column.slot)
    order = memcmp(target + <uint32_t> left, source + <uint32_t> right, min(left >> 32, right >> 32))
    if order == 0:
        order = (left >> 32 > right >> 32) - (left >> 32 < right >> 32)
    return source if order != 0 and (order < 0) == (column.operation == OP_MAX) else target


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
        return add_int64(<int64_t*> target, (<const int64_t*> source)[0])
    if state.field.operation == OP_ADD_INT128 and state.field.kind == KIND_DECIMAL128:
        return add_int128(target, load_int128(source))
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
    cdef double[7] scratch          # as aligned as a group
    cdef uint8_t* group = <uint8_t*> scratch
    cdef ColumnView view = state.view
    cdef int failed
    memcpy(group, target, <size_t> state.field.width)
    group[SCRATCH_FLAG] = 1
    view.values = source
    failed = update_state(&state.field, &view, 0, &group, 1)
    memcpy(target, group, <size_t> state.field.width)
    return failed
