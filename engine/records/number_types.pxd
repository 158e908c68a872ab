# Types of numbers for kernels that are compiled once for each of them.

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

# Bits of a value, whatever they mean.
ctypedef fused Word:
    uint8_t
    uint16_t
    uint32_t
    uint64_t

# Places of values of variable length.
ctypedef fused Offset:
    int32_t
    int64_t

# Integers of which a sum of a batch's values fits into 64 bits.
ctypedef fused Narrow:
    int8_t
    int16_t
    int32_t
    uint8_t
    uint16_t
    uint32_t

ctypedef fused Integer:
    int8_t
    int16_t
    int32_t
    int64_t
    uint8_t
    uint16_t
    uint32_t
    uint64_t
