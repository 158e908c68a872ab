# Flink's key groups: Java's hash code of a key, murmur over it, group, operator index.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from engine.records.arrow_batch cimport ArrowBatch

# MathUtils.murmurHash: a hash code to a number >= 0.
cdef inline int32_t murmur(int32_t code) noexcept nogil:
    cdef uint32_t mixed = <uint32_t>code * 0xCC9E2D51U
    mixed = mixed << 15 | mixed >> 17
    mixed *= 0x1B873593U
    mixed = mixed << 13 | mixed >> 19
    mixed = mixed * 5 + 0xE6546B64U
    mixed ^= 4
    mixed = (mixed ^ mixed >> 16) * 0x85EBCA6BU
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35U
    mixed ^= mixed >> 16
    if <int32_t>mixed >= 0:
        return <int32_t>mixed
    return <int32_t>(0U - mixed) if mixed != 0x80000000U else 0

# KeyGroupRangeAssignment.computeKeyGroupForKeyHash
cdef inline int32_t group_of_hash(int32_t hash, int32_t max_parallelism) noexcept nogil:
    return murmur(hash) % max_parallelism

# KeyGroupRangeAssignment.computeOperatorIndexForKeyGroup
cdef inline int32_t operator_of_group(int32_t key_group, int32_t max_parallelism, int32_t parallelism) noexcept nogil:
    return <int32_t>(<int64_t>key_group * parallelism / max_parallelism)

# Key groups of the rows of batches of one schema.
#     KeyGroupAssigner(schema: pa.Schema, columns: list[int], max_parallelism: int)
cdef class KeyGroupAssigner:
    cdef readonly int32_t max_parallelism
    cdef readonly int32_t column_count
    cdef object _names             # of the key columns
    cdef int32_t* columns
    cdef int32_t* _scales          # of decimal columns
    cdef int32_t* _marks           # bytes of decimal columns, TEXT of strings, else 0
    # codes[i] = Java's hash code of the key of row start + i; no key may be null (look with first_null before).
    cdef void hash_codes(self, ArrowBatch batch, int64_t start, int64_t count, int32_t* codes) noexcept nogil
    # The first row >= start with a null key, or -1.
    cdef int64_t first_null(self, ArrowBatch batch, int64_t start, int64_t count) noexcept nogil
    # groups[i] = key group of row start + i. Raises DataError "Assigned key must not be null!".
    cdef int assign(self, ArrowBatch batch, int64_t start, int64_t count, int32_t* groups) except -1
