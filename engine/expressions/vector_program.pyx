"""A program of native steps: expressions over a batch, a thousand rows at a time, in the cache.

    columns ──load──► vectors ──step──► vectors ──step──► ... ──store──► new columns
                         ▲                                                 for each block of 1024 rows
    constants, once ─────┘

    program = VectorProgram(kinds, inputs, constants, steps, outputs)          (made by program_builder.py)
    program.run(batch)      columns of the outputs; None: the program cannot say, ask Arrow

A *register* holds a vector: its values of one kind (block_vectors.pxd) and the bits of rows that are not null. A *step*
computes one register from others: (operation, target, left, right, third, guard). Registers are written once in a
block, so a value that many expressions need is computed once.

Decimals go as int64 in each block whose values allow it, whatever the digits of their types, and as 128 bits in the
others. A *guard* is a bool register: rows where it is false are not asked for, and whatever they do is no failure
(``when(y != 0).then(x // y)``).

**A program raises nothing.** Where a row overflows, is divided by zero, or has a value that the lanes do not hold, the
program gives up on the batch and says None. Arrow's functions then evaluate the same expressions over the same batch:
they find the result by other means, or the error. So there is one place that errors come from.

Invariants: a run is without the GIL; nothing in it depends on earlier runs. Thread: any; runs of several threads have a
workspace each.
Source: vectors in the cache are MonetDB/X100's (Boncz, Zukowski, Nes 2005).

Held by: tests/expressions/test_vector_program.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

import pyarrow as pa

from engine.expressions cimport block_kernels as kernels
from engine.expressions.block_vectors cimport (
    BITS,
    BLOCK_ROWS,
    BLOCK_WORDS,
    DECIMAL,
    FLOAT,
    INTEGER,
    VALIDITY,
    Vector,
    load,
    store,
)
from engine.records.arrow_batch cimport KIND_BOOL, ArrowBatch, ColumnView, TypeNode, types_of_schema
from engine.records.byte_kernels cimport count_ones

cdef enum Operation:
    ADD, SUBTRACT, MULTIPLY, FLOOR_DIVIDE, MODULO, DIVIDE
    YEAR, MONTH, DAY, TO_FLOAT, TO_INTEGER, SINGLE
    EQUAL, NOT_EQUAL, LESS, LESS_EQUAL
    AND, OR, NOT, IS_NULL, IS_NOT_NULL
    CHOOSE, SPREAD, NARROW_ONLY, REQUIRE

_OPERATIONS = {
    "add": ADD, "subtract": SUBTRACT, "multiply": MULTIPLY, "floor_divide": FLOOR_DIVIDE, "modulo": MODULO,
    "divide": DIVIDE, "year": YEAR, "month": MONTH, "day": DAY, "to_float": TO_FLOAT, "to_integer": TO_INTEGER,
    "single": SINGLE, "equal": EQUAL, "not_equal": NOT_EQUAL, "less": LESS, "less_equal": LESS_EQUAL, "and": AND,
    "or": OR, "not": NOT, "is_null": IS_NULL, "is_not_null": IS_NOT_NULL, "choose": CHOOSE, "spread": SPREAD,
    "narrow": NARROW_ONLY, "require": REQUIRE,
}
_KINDS = {"bits": BITS, "integer": INTEGER, "decimal": DECIMAL, "float": FLOAT, "validity": VALIDITY}
CONSTANT_ROWS = BLOCK_ROWS

#: of each operation that computes numbers: over int64, over 128 bits, over double
cdef kernels.Computing[12] NARROW = [
    kernels.narrow_add, kernels.narrow_subtract, kernels.narrow_multiply, kernels.narrow_floor_divide,
    kernels.narrow_modulo, NULL, kernels.year_of, kernels.month_of, kernels.day_of, kernels.to_real, NULL, NULL,
]
cdef kernels.Computing[4] WIDE = [
    kernels.wide_add, kernels.wide_subtract, kernels.wide_multiply, kernels.wide_floor_divide,
]
cdef kernels.Computing[12] REAL = [
    kernels.real_add, kernels.real_subtract, kernels.real_multiply, NULL, NULL, kernels.real_divide,
    NULL, NULL, NULL, NULL, kernels.to_narrow, kernels.real_single,
]

cdef struct Step:
    int32_t operation
    int32_t target
    int32_t left
    int32_t right       # of operations with one operand: left again
    int32_t third       # CHOOSE: the condition; else -1
    int32_t guard       # -1: all rows count

cdef struct StoredColumn:
    int32_t register
    int32_t kind        # arrow_batch.Kind
    int32_t width
    uint8_t* values
    uint8_t* validity
    int64_t null_count


@cython.final
cdef class Workspace:
    """The registers of one run."""

    cdef Vector* registers
    cdef uint8_t* scratch           # two operands in 128 bits
    cdef void* _memory

    def __cinit__(self, list kinds):
        cdef Py_ssize_t index, count = len(kinds)
        cdef size_t lanes = BLOCK_ROWS * 16
        cdef size_t words = BLOCK_WORDS * 8
        self.registers = <Vector*>calloc(<size_t>count + 1, sizeof(Vector))
        self._memory = calloc((<size_t>count + 2) * (lanes + words), 1)
        if self.registers == NULL or self._memory == NULL:
            raise MemoryError("the vectors of an expression")
        self.scratch = <uint8_t*>self._memory
        for index in range(count):
            self.registers[index].kind = kinds[index]
            self.registers[index].width = 8
            self.registers[index].own_values = self.scratch + lanes * 2 + index * (lanes + words)
            self.registers[index].own_valid = <uint64_t*>(self.registers[index].own_values + lanes)
            self.registers[index].values = self.registers[index].own_values

    def __dealloc__(self):
        free(self.registers)
        free(self._memory)


cdef inline int32_t words_of(int64_t count) noexcept nogil:
    return <int32_t>((count + 63) >> 6)


cdef void meet(Vector* target, const Vector* left, const Vector* right, int64_t count) noexcept nogil:
    """Valid where both are."""
    cdef int32_t word
    if left.valid == NULL or right.valid == NULL:
        target.valid = right.valid if left.valid == NULL else left.valid
        return
    for word in range(words_of(count)):
        target.own_valid[word] = left.valid[word] & right.valid[word]
    target.valid = target.own_valid


cdef uint64_t rows_asked(const Vector* target, const Vector* guard, int32_t word, int64_t count) noexcept nogil:
    """Bits of a word of rows that are asked for and not null."""
    cdef uint64_t bits = <uint64_t>-1
    if 64 * (word + 1) > count:
        bits = (<uint64_t>1 << (count & 63)) - 1
    if target.valid != NULL:
        bits &= target.valid[word]
    if guard != NULL:
        bits &= (<const uint64_t*>guard.values)[word]
    return bits


cdef bint fails(kernels.Computing kernel, const uint8_t* left, const uint8_t* right, Vector* target,
                const Vector* guard, int64_t count) noexcept nogil:
    """Whether a row fails that is asked for: each is computed again, by itself."""
    cdef int64_t row
    cdef int32_t width = target.width
    for row in range(count):
        if (rows_asked(target, guard, <int32_t>(row >> 6), count) >> (row & 63)) & 1:
            if kernel(left + width * row, right + width * row, target.own_values + width * row, 1):
                return True
    return False


cdef const uint8_t* widened(const Vector* vector, uint8_t* scratch, int64_t count) noexcept nogil:
    if vector.width == 16:
        return vector.values
    kernels.widen(vector.values, scratch, count)
    return scratch


cdef bint compute_exactly(int32_t operation, Vector* target, const Vector* left, const Vector* right,
                          const Vector* guard, uint8_t* scratch, int64_t count) noexcept nogil:
    """Integers and decimals; whether a row has no result."""
    cdef const uint8_t* one = left.values
    cdef const uint8_t* other = right.values
    target.width = 8
    if left.width == 8 and right.width == 8:
        if not NARROW[operation](one, other, target.own_values, count):
            return False
        if target.kind != DECIMAL:
            return fails(NARROW[operation], one, other, target, guard, count)
        if operation == MULTIPLY:
            target.width = 16
            kernels.products(one, other, target.own_values, count)
            return False
    if operation > FLOOR_DIVIDE or target.kind != DECIMAL:
        return True
    target.width = 16
    one = widened(left, scratch, count)
    other = widened(right, scratch + 16 * BLOCK_ROWS, count)
    if not WIDE[operation](one, other, target.own_values, count):
        return False
    return fails(WIDE[operation], one, other, target, guard, count)


cdef void compare(int32_t operation, Vector* target, const Vector* left, const Vector* right, uint8_t* scratch,
                  int64_t count) noexcept nogil:
    """EQUAL to LESS_EQUAL, of which two have kernels: a <= b is not b < a."""
    cdef uint64_t* bits = <uint64_t*>target.own_values
    cdef bint is_equality = operation == EQUAL or operation == NOT_EQUAL
    cdef int32_t word, words = words_of(count)
    cdef uint64_t flip = <uint64_t>-1 if operation == NOT_EQUAL or operation == LESS_EQUAL else 0
    cdef const uint8_t* one
    cdef const uint8_t* other
    if operation == LESS_EQUAL:
        left, right = right, left
    if left.kind == BITS:
        for word in range(words):
            bits[word] = ~((<const uint64_t*>left.values)[word] ^ (<const uint64_t*>right.values)[word])
    elif left.kind == FLOAT:
        (kernels.real_equal if is_equality else kernels.real_less)(left.values, right.values, bits, words)
    elif left.width == 8 and right.width == 8:
        (kernels.narrow_equal if is_equality else kernels.narrow_less)(left.values, right.values, bits, words)
    else:
        one = widened(left, scratch, BLOCK_ROWS)
        other = widened(right, scratch + 16 * BLOCK_ROWS, BLOCK_ROWS)
        (kernels.wide_equal if is_equality else kernels.wide_less)(one, other, bits, words)
    for word in range(words):
        bits[word] ^= flip
    settle_bits(target, count)


cdef void settle_bits(Vector* target, int64_t count) noexcept nogil:
    """False under nulls and behind the last row."""
    cdef uint64_t* bits = <uint64_t*>target.own_values
    cdef int32_t word
    for word in range(words_of(count)):
        bits[word] &= rows_asked(target, NULL, word, count)


cdef void combine(int32_t operation, Vector* target, const Vector* left, const Vector* right,
                  int64_t count) noexcept nogil:
    """AND and OR of Kleene: what is known of one side may decide."""
    cdef const uint64_t* ones = <const uint64_t*>left.values
    cdef const uint64_t* others = <const uint64_t*>right.values
    cdef uint64_t* bits = <uint64_t*>target.own_values
    cdef uint64_t all_rows = <uint64_t>-1
    cdef uint64_t false_one, false_other
    cdef int32_t word
    cdef bint is_and = operation == AND
    target.valid = NULL if left.valid == NULL and right.valid == NULL else target.own_valid
    for word in range(words_of(count)):
        bits[word] = ones[word] & others[word] if is_and else ones[word] | others[word]
        if target.valid != NULL:
            false_one = (all_rows if left.valid == NULL else left.valid[word]) & ~ones[word]
            false_other = (all_rows if right.valid == NULL else right.valid[word]) & ~others[word]
            target.own_valid[word] = bits[word] | (
                false_one | false_other if is_and else false_one & false_other
            )


cdef void choose(Vector* target, const Vector* condition, const Vector* left, const Vector* right, uint8_t* scratch,
                 int64_t count) noexcept nogil:
    """left where the condition is true, else right, where it is null, too."""
    cdef const uint64_t* mask = <const uint64_t*>condition.values
    cdef uint64_t all_rows = <uint64_t>-1
    cdef uint64_t valid_one, valid_other
    cdef int32_t word
    target.valid = NULL if left.valid == NULL and right.valid == NULL else target.own_valid
    for word in range(words_of(count)):
        if target.valid != NULL:
            valid_one = all_rows if left.valid == NULL else left.valid[word]
            valid_other = all_rows if right.valid == NULL else right.valid[word]
            target.own_valid[word] = (valid_one & mask[word]) | (valid_other & ~mask[word])
        if target.kind == BITS:
            (<uint64_t*>target.own_values)[word] = (
                ((<const uint64_t*>left.values)[word] & mask[word])
                | ((<const uint64_t*>right.values)[word] & ~mask[word])
            )
    if target.kind == BITS:
        return
    target.width = 16 if left.width == 16 or right.width == 16 else 8
    if target.width == 8:
        kernels.choose_narrow(mask, left.values, right.values, target.own_values, count)
    else:
        kernels.choose_wide(mask, widened(left, scratch, count), widened(right, scratch + 16 * BLOCK_ROWS, count),
                            target.own_values, count)


cdef bint misses(const Vector* condition, const Vector* guard, int64_t count) noexcept nogil:
    """Whether a condition is false in a row that is asked for; null is not."""
    cdef int32_t word
    for word in range(words_of(count)):
        if ~(<const uint64_t*>condition.values)[word] & rows_asked(condition, guard, word, count):
            return True
    return False


cdef void tell_nulls(Vector* target, const Vector* vector, bint valid, int64_t count) noexcept nogil:
    cdef uint64_t* bits = <uint64_t*>target.own_values
    cdef uint64_t all_rows = <uint64_t>-1
    cdef int32_t word
    target.valid = NULL
    for word in range(words_of(count)):
        bits[word] = all_rows if vector.valid == NULL else vector.valid[word]
        if not valid:
            bits[word] = ~bits[word]
    settle_bits(target, count)


cdef bint run_step(const Step* step, Vector* registers, uint8_t* scratch, int64_t count) noexcept nogil:
    """Compute one register; whether a row has no result."""
    cdef int32_t operation = step.operation
    cdef int32_t word
    cdef Vector* target = &registers[step.target]
    cdef const Vector* left = &registers[step.left]
    cdef const Vector* right = &registers[step.right]
    cdef const Vector* guard = NULL if step.guard < 0 else &registers[step.guard]
    if operation == REQUIRE:
        return misses(left, guard, count)
    if operation == AND or operation == OR:
        combine(operation, target, left, right, count)
    elif operation == CHOOSE:
        choose(target, &registers[step.third], left, right, scratch, count)
    elif operation == IS_NULL or operation == IS_NOT_NULL:
        tell_nulls(target, left, operation == IS_NOT_NULL, count)
    else:
        meet(target, left, right, count)
        if operation == NARROW_ONLY:
            target.values = left.values
            return left.width != 8
        elif operation == SPREAD:
            kernels.spread(<const uint64_t*>left.values, target.own_values, count)
        elif operation == NOT:
            for word in range(words_of(count)):
                (<uint64_t*>target.own_values)[word] = ~(<const uint64_t*>left.values)[word]
            settle_bits(target, count)
        elif operation >= EQUAL:
            compare(operation, target, left, right, scratch, count)
        elif left.kind == FLOAT:
            REAL[operation](left.values, right.values, target.own_values, count)
        else:
            return compute_exactly(operation, target, left, right, guard, scratch, count)
    return False


cdef void store_block(StoredColumn* column, const Vector* vector, int64_t start, int64_t count) noexcept nogil:
    """Write a block of a new column."""
    cdef uint64_t* validity = <uint64_t*>(column.validity + (start >> 3))
    cdef uint64_t bits
    cdef int32_t word
    cdef int64_t valid = 0
    store(vector, column.kind, column.values + (start >> 3 if column.kind == KIND_BOOL else start * column.width), count)
    for word in range(words_of(count)):
        bits = rows_asked(vector, NULL, word, count)
        memcpy(&validity[word], &bits, 8)
        valid += count_ones(bits)
    column.null_count += count - valid


@cython.final
cdef class VectorProgram:
    """Expressions as steps. Made by ``program_builder``."""

    cdef list _kinds, _spare, _output_types
    cdef Step* _steps
    cdef int32_t* _inputs
    cdef int32_t _step_count, _input_count
    cdef object _constants, _constant_registers
    cdef StoredColumn* _outputs
    cdef int32_t _output_count

    def __init__(self, list kinds, list inputs, list constants, list steps, list outputs):
        """Args:
            kinds: of each register: ``bits integer decimal float validity``.
            inputs: the register of each column of a batch.
            constants: (register, array of CONSTANT_ROWS alike).
            steps: (operation, target, left, right, third, guard), in an order that computes before it uses.
            outputs: (register, type).
        """
        cdef Py_ssize_t index
        cdef TypeNode* types
        self._kinds = [_KINDS[kind] for kind in kinds]
        self._spare = []
        self._constant_registers = [register for register, _ in constants]
        arrays = [array for _, array in constants]
        self._constants = pa.RecordBatch.from_arrays(arrays, names=[""] * len(arrays)) if arrays else None
        self._step_count, self._input_count, self._output_count = len(steps), len(inputs), len(outputs)
        self._output_types = [data_type for _, data_type in outputs]
        self._steps = <Step*>calloc(<size_t>len(steps) + 1, sizeof(Step))
        self._inputs = <int32_t*>calloc(<size_t>len(inputs) + 1, sizeof(int32_t))
        self._outputs = <StoredColumn*>calloc(<size_t>len(outputs) + 1, sizeof(StoredColumn))
        if self._steps == NULL or self._inputs == NULL or self._outputs == NULL:
            raise MemoryError("the steps of an expression")
        for index, (name, *operands) in enumerate(steps):
            self._steps[index] = Step(_OPERATIONS[name], operands[0], operands[1], operands[2], operands[3],
                                      operands[4])
        for index, register in enumerate(inputs):
            self._inputs[index] = register
        types = types_of_schema(pa.schema([pa.field("", data_type) for data_type in self._output_types]))
        for index, (register, _) in enumerate(outputs):
            self._outputs[index] = StoredColumn(register, types[index].kind, types[index].width, NULL, NULL, 0)
        free(types)

    def __dealloc__(self):
        free(self._steps)
        free(self._inputs)
        free(self._outputs)

    cdef Workspace _workspace(self):
        """A workspace that no other run has, its constants in place."""
        cdef Workspace workspace
        cdef ArrowBatch constants
        cdef int32_t register, index = 0
        try:
            return self._spare.pop()
        except IndexError:
            pass
        workspace = Workspace(self._kinds)
        if self._constants is not None:
            constants = ArrowBatch.open(self._constants)
            for register in self._constant_registers:
                if load(&workspace.registers[register], &constants.columns[index], 0, BLOCK_ROWS):
                    raise ValueError(f"a constant of {self._constants.schema.field(index).type}")
                keep_values(&workspace.registers[register])
                index += 1
        return workspace

    def run(self, batch not None):
        """Return the outputs over a batch of the inputs' columns, or None where a row has no result here."""
        cdef ArrowBatch opened = ArrowBatch.open(batch)
        cdef Workspace workspace = self._workspace()
        cdef int64_t count = opened.row_count
        cdef bint is_done
        cdef StoredColumn* columns
        cdef int32_t index
        if opened.column_count != self._input_count:
            raise ValueError(f"a program over {self._input_count} columns is given {opened.column_count}")
        columns = <StoredColumn*>calloc(<size_t>self._output_count + 1, sizeof(StoredColumn))
        if columns == NULL:
            raise MemoryError("the results of an expression")
        try:
            buffers = []
            for index in range(self._output_count):
                columns[index] = self._outputs[index]
                buffers.append(self._allocate(&columns[index], count))
            with nogil:
                is_done = self._run(opened, workspace, columns)
            self._spare.append(workspace)
            if not is_done:
                return None
            return [
                pa.Array.from_buffers(self._output_types[index], count,
                                      [buffers[index][0] if columns[index].null_count else None, buffers[index][1]],
                                      columns[index].null_count)
                for index in range(self._output_count)
            ]
        finally:
            free(columns)

    cdef tuple _allocate(self, StoredColumn* column, int64_t count):
        """Buffers for the validity and the values of a column; bits in whole words."""
        cdef int64_t bit_bytes = ((count + 63) >> 6) * 8
        validity = pa.allocate_buffer(bit_bytes)
        values = pa.allocate_buffer(bit_bytes if column.kind == KIND_BOOL else count * column.width)
        column.validity = <uint8_t*><size_t>validity.address
        column.values = <uint8_t*><size_t>values.address
        return validity, values

    cdef bint _run(self, ArrowBatch opened, Workspace workspace, StoredColumn* columns) noexcept nogil:
        """Run all steps over block after block; False: a row has no result."""
        cdef Vector* registers = workspace.registers
        cdef int64_t start = 0
        cdef int64_t count
        cdef int32_t index
        while start < opened.row_count:
            count = min(<int64_t>BLOCK_ROWS, opened.row_count - start)
            for index in range(self._input_count):
                if load(&registers[self._inputs[index]], &opened.columns[index], start, count):
                    return False
            for index in range(self._step_count):
                if run_step(&self._steps[index], registers, workspace.scratch, count):
                    return False
            for index in range(self._output_count):
                store_block(&columns[index], &registers[columns[index].register], start, count)
            start += count
        return True


cdef void keep_values(Vector* vector) noexcept nogil:
    """Copy values that lie elsewhere to where the vector keeps its own."""
    if vector.values != vector.own_values and vector.kind != VALIDITY:
        memcpy(vector.own_values, vector.values, 8 * BLOCK_ROWS)
        vector.values = vector.own_values
