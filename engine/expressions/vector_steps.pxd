# Steps of a vector program (vector_steps.pyx).

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from engine.expressions.block_vectors cimport Vector

cdef enum Operation:
    ADD, SUBTRACT, MULTIPLY, FLOOR_DIVIDE, MODULO, DIVIDE
    YEAR, MONTH, DAY, TO_FLOAT, TO_INTEGER, SINGLE
    EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, STARTS_WITH, ENDS_WITH, CONTAINS, LIKE, LINE_LIKE
    AND, OR, NOT, IS_NULL, IS_NOT_NULL
    CHOOSE, SPREAD, NARROW_ONLY, REQUIRE, FITS

cdef struct Step:
    int32_t operation
    int32_t target
    int32_t left
    int32_t right       # of operations with one operand: left again
    int32_t third       # CHOOSE: the condition; else -1
    int32_t guard       # -1: all rows count

# Bytes of scratch that a step needs: two operands in 128 bits.
cdef enum:
    SCRATCH_BYTES = 32768

cdef inline int32_t words_of(int64_t count) noexcept nogil:
    return <int32_t>((count + 63) >> 6)

# Bits of a word of rows that are asked for and not null. guard: NULL, or a bool register.
cdef uint64_t rows_asked(const Vector* target, const Vector* guard, int32_t word, int64_t count) noexcept nogil

# Compute one register; whether a row has no result.
cdef bint run_step(const Step* step, Vector* registers, uint8_t* scratch, int64_t count) noexcept nogil
