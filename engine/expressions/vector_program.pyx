"""A program of native steps: expressions over a batch, a thousand rows at a time, in the cache.

    columns ──load──► vectors ──step──► vectors ──step──► ... ──store──► new columns
                         ▲                                                 for each block of 1024 rows
    constants, once ─────┘

    program = VectorProgram(kinds, inputs, constants, steps, outputs)          (made by program_builder.py)
    program.run(batch)      columns of the outputs; None: the program cannot say, ask Arrow
    program.run(batch, narrow, places)      of columns at these places; decimals of these outputs in 64 bits, where all
                                            of them fit (``narrow_decimals``)
    program.project(...)                    one batch of the outputs and of columns that are passed on
    program.mask(batch, places)             the rows for which the only output is true; None as above

A *register* holds a vector: its values of one kind (block_vectors.pxd) and the bits of rows that are not null. A *step*
computes one register from others: (operation, target, left, right, third, guard). Registers are written once in a
block, so a value that many expressions need is computed once.

Decimals go as int64 in each block whose values allow it, whatever the digits of their types, and as 128 bits in the
others; where one has not fit into an output of 64 bits, that output is as wide as its type from then on. A *guard* is a
bool register: rows where it is false are not asked for, and whatever they do is no failure
(``when(y != 0).then(x // y)``).

**A program raises nothing.** Where a row overflows, is divided by zero, or has a value that the lanes do not hold, the
program gives up on the batch and says None. Arrow's functions then evaluate the same expressions over the same batch:
they find the result by other means, or the error. So there is one place that errors come from.

Invariants: a run is without the GIL; no value depends on earlier runs. Thread: any; runs of several threads have a
workspace each.
Source: vectors in the cache are MonetDB/X100's (Boncz, Zukowski, Nes 2005).

Held by: tests/expressions/test_vector_program.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

import pyarrow as pa

from engine.expressions.block_vectors cimport (
    BITS,
    BLOCK_ROWS,
    DECIMAL,
    FLOAT,
    INTEGER,
    TEXT,
    VALIDITY,
    Vector,
    load,
    store,
)
from engine.expressions.vector_steps cimport (
    ADD,
    AND,
    CHOOSE,
    CONTAINS,
    DAY,
    DIVIDE,
    ENDS_WITH,
    EQUAL,
    FITS,
    FLOOR_DIVIDE,
    IS_NOT_NULL,
    IS_NULL,
    LESS,
    LESS_EQUAL,
    LIKE,
    LINE_LIKE,
    MODULO,
    MONTH,
    MULTIPLY,
    NARROW_ONLY,
    NOT,
    NOT_EQUAL,
    OR,
    REQUIRE,
    SINGLE,
    SPREAD,
    STARTS_WITH,
    SUBTRACT,
    TO_FLOAT,
    TO_INTEGER,
    YEAR,
    Step,
    rows_asked,
    run_step,
    words_of,
)
from engine.expressions.vector_workspace cimport Workspace, drop_workspaces, keep_workspace, take_workspace
from engine.records.arrow_batch cimport KIND_BOOL, KIND_INT64, ArrowBatch, TypeNode, types_of_schema
from engine.records.batch_builder cimport BatchBuilder, padded
from engine.records.byte_kernels cimport count_ones
from engine.records.opened_batch cimport OpenedBatch, opened_batch
from engine.records.row_mask cimport Mask

from engine.records.narrow_decimals import narrow_type

_OPERATIONS = {
    "add": ADD, "subtract": SUBTRACT, "multiply": MULTIPLY, "floor_divide": FLOOR_DIVIDE, "modulo": MODULO,
    "divide": DIVIDE, "year": YEAR, "month": MONTH, "day": DAY, "to_float": TO_FLOAT, "to_integer": TO_INTEGER,
    "single": SINGLE, "narrow": NARROW_ONLY, "equal": EQUAL, "not_equal": NOT_EQUAL, "less": LESS,
    "less_equal": LESS_EQUAL, "starts_with": STARTS_WITH, "ends_with": ENDS_WITH, "contains": CONTAINS,
    "like": LIKE, "line_like": LINE_LIKE, "and": AND, "or": OR, "not": NOT, "is_null": IS_NULL,
    "is_not_null": IS_NOT_NULL, "choose": CHOOSE, "spread": SPREAD, "require": REQUIRE, "fits": FITS,
}
_KINDS = {"bits": BITS, "integer": INTEGER, "decimal": DECIMAL, "float": FLOAT, "validity": VALIDITY, "text": TEXT}
cdef int64_t _program_count = 0

cdef enum RunStatus:
    RUN_DONE
    RUN_WITHOUT_RESULT  # of a row
    RUN_NOT_NARROW      # an output has turned out to be wide

cdef struct StoredColumn:
    int32_t register
    int32_t kind        # arrow_batch.Kind
    int32_t width
    bint is_wide        # a decimal has not fit into 64 bits
    uint8_t* values
    uint8_t* validity
    int64_t null_count


cdef int64_t values_size(const StoredColumn* column, int64_t count) noexcept nogil:
    """Bytes for the values of a new column; bits in whole words."""
    return padded(((count + 63) >> 6) * 8 if column.kind == KIND_BOOL else count * column.width)


cdef bint store_block(StoredColumn* column, const Vector* vector, int64_t start, int64_t count) noexcept nogil:
    """Write a block of a new column; False: a decimal does not fit."""
    cdef uint64_t* validity = <uint64_t*>(column.validity + (start >> 3))
    cdef uint64_t bits
    cdef int32_t word
    cdef int64_t valid = 0
    cdef int64_t first = start >> 3 if column.kind == KIND_BOOL else start * column.width
    if not store(vector, column.kind, column.values + first, count):
        return False
    for word in range(words_of(count)):
        bits = rows_asked(vector, NULL, word, count)
        memcpy(&validity[word], &bits, 8)
        valid += count_ones(bits)
    column.null_count += count - valid
    return True


@cython.final
cdef class VectorProgram:
    """Expressions as steps. Made by ``program_builder``."""

    cdef list _kinds, _output_types
    cdef int64_t _number            # no other program has it
    cdef dict _schemas              # of results, by which of them are narrow
    cdef Step* _steps
    cdef int32_t* _inputs
    cdef int32_t _step_count, _input_count
    cdef list _constants
    cdef StoredColumn* _outputs
    cdef int32_t _output_count

    def __init__(self, list kinds, list inputs, list constants, list steps, list outputs):
        """Args:
            kinds: of each register: ``bits integer decimal float text validity``.
            inputs: the register of each column of a batch.
            constants: (register, pa.Scalar).
            steps: (operation, target, left, right, third, guard), in an order that computes before it uses.
            outputs: (register, type).
        """
        cdef Py_ssize_t index
        cdef TypeNode* types
        self._kinds = [_KINDS[kind] for kind in kinds]
        global _program_count
        _program_count += 1
        self._number, self._schemas = _program_count, {}
        self._constants = constants
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
            self._outputs[index] = StoredColumn(register, types[index].kind, types[index].width, False, NULL, NULL, 0)
        free(types)

    def __dealloc__(self):
        free(self._steps)
        free(self._inputs)
        free(self._outputs)
        drop_workspaces(self._number)

    cdef ArrowBatch _opened(self, object batch, list places):
        """The inputs' columns of a batch."""
        cdef ArrowBatch opened
        opened = ArrowBatch.open(batch) if places is None else ArrowBatch.open_columns(batch, places, False)
        if opened.column_count != self._input_count:
            raise ValueError(f"a program over {self._input_count} columns is given {opened.column_count}")
        return opened

    def mask(self, batch not None, list places=None):
        """Return the Mask of rows for which the only output, a bool, is true; None where a row has no result here."""
        cdef ArrowBatch opened = self._opened(batch, places)
        cdef Workspace workspace = take_workspace(self._number, self._kinds, self._constants)
        cdef Mask found = Mask.unset(opened.row_count)
        cdef Mask valid = Mask.unset(opened.row_count)
        cdef StoredColumn column = self._outputs[0]
        cdef int32_t status
        if self._output_count != 1 or column.kind != KIND_BOOL:
            raise TypeError("a mask is the only output of a program, a bool")
        column.values, column.validity = <uint8_t*>found.words, <uint8_t*>valid.words
        with nogil:
            status = self._run(opened, workspace, &column)
        keep_workspace(self._number, workspace)
        if status != RUN_DONE:
            return None
        if column.null_count:
            valid.count()
            return found.both(valid)
        found.count()
        return found

    def run(self, batch not None, narrow=(), list places=None):
        """Return the outputs over a batch of the inputs' columns, or None where a row has no result here.

        Args:
            narrow: outputs of decimals that may be of 64 bits.
            places: of the columns in the batch; None: they are its columns.
        """
        made = self.project(batch, narrow, places, batch, list(range(self._output_count)), [], self._schema_of)
        return None if made is None else [made.column(index) for index in range(self._output_count)]

    def project(self, batch not None, narrow, list places, passing not None, list targets not None,
                list passed not None, schema_of not None):
        """Return a batch of the outputs and of columns of another one; None where a row has no result here.

        Args:
            batch, narrow, places: as of ``run``.
            passing: has the other columns, and as many rows.
            targets: of the outputs in the result.
            passed: (target, column of ``passing``).
            schema_of: function from flags, which of the outputs are narrow, to the schema of the result.
        """
        cdef ArrowBatch opened = self._opened(batch, places)
        cdef Workspace workspace = take_workspace(self._number, self._kinds, self._constants)
        cdef int32_t status = RUN_NOT_NARROW
        while status == RUN_NOT_NARROW:
            made = self._run_once(opened, workspace, narrow, &status, passing, targets, passed, schema_of)
        keep_workspace(self._number, workspace)
        return made

    cdef object _run_once(self, ArrowBatch opened, Workspace workspace, narrow, int32_t* status, passing,
                          list targets, list passed, schema_of):
        cdef int64_t count = opened.row_count
        cdef int32_t index
        cdef BatchBuilder builder
        cdef OpenedBatch source = opened_batch(passing) if passed else None
        cdef StoredColumn* columns = <StoredColumn*>calloc(<size_t>self._output_count + 1, sizeof(StoredColumn))
        if columns == NULL:
            raise MemoryError("the results of an expression")
        try:
            for index in range(self._output_count):
                columns[index] = self._outputs[index]
                if index in narrow and not columns[index].is_wide:
                    columns[index].kind, columns[index].width = KIND_INT64, 8
            is_narrow = tuple([columns[index].kind != self._outputs[index].kind for index in range(self._output_count)])
            builder = BatchBuilder.begin(schema_of(is_narrow), count)
            self._allocate(builder, columns, count)
            with nogil:
                status[0] = self._run(opened, workspace, columns)
            if status[0] != RUN_DONE:
                return None
            for index in range(self._output_count):
                builder.set_values(targets[index], columns[index].null_count, columns[index].validity, NULL,
                                   columns[index].values)
            for target, place in passed:
                builder.set_child(target, source, place, 0)
            return builder.build_like(passing)
        finally:
            free(columns)

    def _schema_of(self, tuple is_narrow):
        """Return the schema of the outputs alone."""
        schema = self._schemas.get(is_narrow)
        if schema is None:
            types = [narrow_type(one) if narrow else one for one, narrow in zip(self._output_types, is_narrow)]
            schema = self._schemas[is_narrow] = pa.schema([pa.field("", data_type) for data_type in types])
        return schema

    cdef int _allocate(self, BatchBuilder builder, StoredColumn* columns, int64_t count) except -1:
        """Room for the validity and the values of the columns in one block; bits in whole words."""
        cdef int64_t bit_bytes = padded(((count + 63) >> 6) * 8)
        cdef int64_t size = 0
        cdef int32_t index
        cdef uint8_t* unused
        for index in range(self._output_count):
            size += bit_bytes + values_size(&columns[index], count)
        unused = builder.allocate(size)
        for index in range(self._output_count):
            columns[index].validity, columns[index].values = unused, unused + bit_bytes
            unused += bit_bytes + values_size(&columns[index], count)
        return 0

    cdef RunStatus _run(self, ArrowBatch opened, Workspace workspace, StoredColumn* columns) noexcept nogil:
        """Run all steps over block after block."""
        cdef Vector* registers = workspace.registers
        cdef int64_t start = 0
        cdef int64_t count
        cdef int32_t index
        while start < opened.row_count:
            count = min(<int64_t>BLOCK_ROWS, opened.row_count - start)
            for index in range(self._input_count):
                if load(&registers[self._inputs[index]], &opened.columns[index], start, count):
                    return RUN_WITHOUT_RESULT
            for index in range(self._step_count):
                if run_step(&self._steps[index], registers, workspace.scratch, count):
                    return RUN_WITHOUT_RESULT
            for index in range(self._output_count):
                if not store_block(&columns[index], &registers[columns[index].register], start, count):
                    self._outputs[index].is_wide = True
                    return RUN_NOT_NARROW
            start += count
        return RUN_DONE
