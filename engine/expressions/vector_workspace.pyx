"""Workspace: the registers of one run of a program, kept for the next run of it.

    take_workspace(program, kinds, constants) ─► Workspace ─► a run ─► keep_workspace(program, workspace)
    drop_workspaces(program)                                           the program has ended

A workspace has up to 16 KiB for a register, and its constants in place. Programs are kept by the hundred: when spare
workspaces have more than SPARE_BYTES_MAX, all of them go.

Thread: any, with the GIL.

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
    BLOCK_WORDS,
    DECIMAL,
    TEXT,
    VALIDITY,
    Vector,
    load,
)
from engine.expressions.vector_steps cimport SCRATCH_BYTES
from engine.records.arrow_batch cimport ArrowBatch

cdef size_t SPARE_BYTES_MAX = 16 << 20
# by the number of their program
cdef dict _spare = {}
cdef size_t _spare_bytes = 0


cdef size_t room_of(int32_t kind) noexcept:
    """Bytes for the values of a block."""
    if kind == BITS:
        return BLOCK_WORDS * 8
    if kind == DECIMAL:
        return BLOCK_ROWS * 16
    return 0 if kind == TEXT or kind == VALIDITY else BLOCK_ROWS * 8


@cython.final
cdef class Workspace:
    """The registers of one run."""

    def __cinit__(self, list kinds):
        cdef Py_ssize_t index, registers = len(kinds)
        cdef size_t words = BLOCK_WORDS * 8
        cdef size_t total = SCRATCH_BYTES + sum([room_of(kind) for kind in kinds]) + <size_t>registers * words
        cdef uint8_t* unused
        self.registers = <Vector*>calloc(<size_t>registers + 1, sizeof(Vector))
        self._memory = calloc(total, 1)
        if self.registers == NULL or self._memory == NULL:
            raise MemoryError("the vectors of an expression")
        self.size_bytes = total
        self.scratch = <uint8_t*>self._memory
        unused = self.scratch + SCRATCH_BYTES
        for index in range(registers):
            self.registers[index].kind = kinds[index]
            self.registers[index].width = 8
            self.registers[index].own_values = unused
            self.registers[index].values = unused
            unused += room_of(kinds[index])
            self.registers[index].own_valid = <uint64_t*>unused
            unused += words

    def __dealloc__(self):
        free(self.registers)
        free(self._memory)


def spare_bytes():
    """The bytes of all workspaces that no run has."""
    return _spare_bytes


cdef object block_of(scalar):
    """A block of a constant."""
    return pa.repeat(scalar, BLOCK_ROWS) if scalar.is_valid else pa.nulls(BLOCK_ROWS, scalar.type)


cdef Workspace spare_of(int64_t program):
    """A workspace that a program has left; None: there is none."""
    global _spare_bytes
    cdef list left = _spare.get(program)
    cdef Workspace workspace
    if not left:
        return None
    workspace = left.pop()
    _spare_bytes -= workspace.size_bytes
    return workspace


cdef int keep_workspace(int64_t program, Workspace workspace) except -1:
    """Keep a workspace for the next run of its program."""
    global _spare_bytes
    if _spare_bytes + workspace.size_bytes > SPARE_BYTES_MAX:
        _spare.clear()
        _spare_bytes = 0
    _spare.setdefault(program, []).append(workspace)
    _spare_bytes += workspace.size_bytes
    return 0


cdef int drop_workspaces(int64_t program) except -1:
    """Forget the workspaces of a program that ends."""
    global _spare_bytes
    cdef Workspace workspace
    if _spare is not None:  # the interpreter has not ended
        for workspace in _spare.pop(program, ()):
            _spare_bytes -= workspace.size_bytes
    return 0


cdef void keep_values(Vector* vector) noexcept nogil:
    """Copy values that lie elsewhere to where the vector keeps its own."""
    if vector.values != vector.own_values and vector.kind not in (VALIDITY, TEXT):
        memcpy(vector.own_values, vector.values, 8 * BLOCK_ROWS)
        vector.values = vector.own_values


cdef Workspace take_workspace(int64_t program, list kinds, list constants):
    cdef Workspace workspace = spare_of(program)
    cdef ArrowBatch opened
    cdef int32_t register, index
    if workspace is not None:
        return workspace
    workspace = Workspace(kinds)
    if constants:
        arrays = [block_of(scalar) for _, scalar in constants]
        workspace.constants = pa.RecordBatch.from_arrays(arrays, names=[""] * len(arrays))
        workspace.size_bytes += workspace.constants.nbytes
        opened = ArrowBatch.open(workspace.constants)
        for index, (register, scalar) in enumerate(constants):
            if load(&workspace.registers[register], &opened.columns[index], 0, BLOCK_ROWS):
                raise ValueError(f"a constant of {scalar.type}")
            keep_values(&workspace.registers[register])
            workspace.registers[register].is_constant = True
    return workspace
