# Wide values beside their rows: references, moving values out of a batch, reading them back.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from engine.records.arrow_batch cimport ArrowBatch

cdef enum:
    REFERENCE_BYTES = 112
    HASH_OFFSET = 40           # of the value's hash, in its reference
    PREFIX_OFFSET = 48         # of the value's first bytes, in its reference
    PREFIX_BYTES = 64          # of the value, in its reference; the rest is zero

# in the word of a slot: what lies in the row is a reference
cdef uint64_t OUTSIDE_BIT
cdef inline bint is_outside(uint64_t word) noexcept nogil:
    return <bint>(word >> 63)

# From how many bytes on values lie outside, where the owner of the rows allows it.
cdef int64_t outside_from() noexcept nogil
# Whether any value of this process lies outside: asked once a batch; single values need not be when none does.
cdef bint values_lie_outside() noexcept nogil
# Forget the values of stores that have been closed: when all are, none lies outside.
cdef int forget_closed_stores() except -1
# Bytes of the value behind a reference.
cdef inline uint64_t referenced_bytes(const uint8_t* reference) noexcept nogil:
    return (<const uint64_t*>reference)[0]
# How many of them are in the reference itself.
cdef inline uint64_t known_bytes(const uint8_t* reference) noexcept nogil:
    return min(referenced_bytes(reference), <uint64_t>PREFIX_BYTES)
# The hash of them all, from hash_start().
cdef inline uint64_t referenced_hash(const uint8_t* reference) noexcept nogil:
    return (<const uint64_t*>(reference + HASH_OFFSET))[0]
# Whether two references lead to one place.
cdef bint same_place(const uint8_t* left, const uint8_t* right) noexcept nogil

# Bytes that the row's values in these slots have outside.
cdef int64_t outside_bytes(const uint8_t* row, const int32_t* slots, int32_t slot_count) noexcept nogil
# Put wide values of a column into the owner (object with write_value), references in their places.
cdef int move_outside(ArrowBatch batch, int32_t column, object owner) except -1
# Read a value into target, which has room for referenced_bytes. Raises: CorruptBlockError, SpillError,
# NotYetSupportedError.
cdef int read_outside(const uint8_t* reference, uint8_t* target) except -1
# The value (engine.memory.value_stores.StoredValue), to be read block by block. Raises: as read_outside.
cdef object open_outside(const uint8_t* reference)
# Write value and fill the reference.
cdef int write_outside(const uint8_t* value, int64_t size, object owner, uint8_t* reference) except -1
# The length of the slot word, taking a value for outside; -1 when word or reference lead outside the row.
cdef int64_t true_length(const uint8_t* row, uint64_t word) noexcept nogil
