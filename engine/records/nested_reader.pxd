# Nested values read back from rows: builders that grow, one for each type of the tree, and the Arrow arrays of them.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from engine.records.arrow_batch cimport TypeNode

# Memory that grows by doubling.
cdef struct Block:
    uint8_t* bytes
    int64_t size
    int64_t capacity

cdef struct Builder:
    int32_t kind
    int32_t width
    int32_t child_count
    int64_t count              # values so far
    int64_t null_count
    Block nulls                # bits, 1 = null
    Block values               # fixed values, bits of bools, bytes of variable values
    Block ends                 # int64_t for each value: where it ends (bytes, or rows of the child)
    Builder* children

# A builder for a type, or NULL when there is no memory.
cdef Builder* new_builder(const TypeNode* node) noexcept nogil
cdef void free_builder(Builder* builder) noexcept nogil
# Append one null, or one value from its body of size bytes. Status: OK, CORRUPT, or FULL when there is no memory.
cdef int append_null(Builder* builder) noexcept nogil
cdef int append_value(Builder* builder, const uint8_t* body, uint64_t size) noexcept nogil
# The values as a pyarrow.Array of the type. Raises DataError (naming label) when 32-bit offsets do not reach.
cdef object build_array(Builder* builder, object data_type, str label)
