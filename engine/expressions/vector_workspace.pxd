# Workspaces of programs.

cimport cython
from libc.stdint cimport int64_t, uint8_t

from engine.expressions.block_vectors cimport Vector


@cython.final
cdef class Workspace:
    cdef Vector* registers
    cdef uint8_t* scratch           # two operands in 128 bits
    cdef size_t size_bytes
    cdef object constants           # values that are not copied: texts
    cdef void* _memory

# A workspace for a program, by its number, that no other run has: registers of these kinds; constants, which are
# (register, pa.Scalar), are in place.
cdef Workspace take_workspace(int64_t program, list kinds, list constants)
# Keep a workspace for the next run of its program.
cdef int keep_workspace(int64_t program, Workspace workspace) except -1
# Forget the workspaces of a program that ends.
cdef int drop_workspaces(int64_t program) except -1
