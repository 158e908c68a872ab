# Wide values beside their rows: references, moving values out of a batch, reading them back.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from engine.records.arrow_batch cimport ArrowBatch

cdef enum:
    REFERENCE_BYTES = 96
    PREFIX_OFFSET = 40         # of the value's first bytes, in its reference
    PREFIX_BYTES = 56          # of the value, in its reference; the rest is zero

# in the word of a slot: what lies in the row is a reference
cdef uint64_t OUTSIDE_BIT

# Whether any value of this process lies outside: rows need not be looked at when none does.
cdef bint values_lie_outside() noexcept nogil
# Forget the values of stores that have been closed: when all are, none lies outside.
cdef int forget_closed_stores() except -1
# Bytes of the value behind a reference.
cdef inline uint64_t referenced_bytes(const uint8_t* reference) noexcept nogil:
    return (<const uint64_t*>reference)[0]

# Bytes that the row's values in these slots have outside.
cdef int64_t outside_bytes(const uint8_t* row, const int32_t* slots, int32_t slot_count) noexcept nogil
# Put wide values of a column into the owner (object with write_value), references in their places.
cdef int move_outside(ArrowBatch batch, int32_t column, object owner) except -1
# Read a value into target, which has room for referenced_bytes. Raises: CorruptBlockError, SpillError,
# NotYetSupportedError.
cdef int read_outside(const uint8_t* reference, uint8_t* target) except -1
# Write value and fill the reference.
cdef int write_outside(const uint8_t* value, int64_t size, object owner, uint8_t* reference) except -1
# The length of the slot word, taking a value for outside; -1 when word or reference lead outside the row.
cdef int64_t true_length(const uint8_t* row, uint64_t word) noexcept nogil
# Order of two values of which one at least lies outside, by the bytes that are here: -1, 0, 1, or UNDECIDED.
cdef enum:
    UNDECIDED = 2
cdef int compare_outside(const uint8_t* left, int64_t left_size, bint left_outside, const uint8_t* right,
                         int64_t right_size, bint right_outside) noexcept nogil
