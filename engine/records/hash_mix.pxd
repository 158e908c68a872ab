# The mixing functions of the 64-bit hash: one value into one running hash. See hashing.pyx.
#
#     hash = HASH_START;  for each key column: hash = mix_*(hash, value)
#
# mix_word is a bijection of value for a given hash: different 8-byte keys of one column never collide.

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from engine.records.byte_kernels cimport fold, load32, load64

cdef inline uint64_t hash_start() noexcept nogil:
    return 0x2D358DCCAA6C78A5U

# A null hashes as if it were this word.
cdef inline uint64_t null_word() noexcept nogil:
    return 0xD6E8FEB86659FD93U

# Every bit of the input reaches every bit of the result (constants of "moremur", Pelle Evensen).
cdef inline uint64_t mix_word(uint64_t hash, uint64_t value) noexcept nogil:
    cdef uint64_t mixed = hash * 0x9E3779B97F4A7C15U + value
    mixed = (mixed ^ (mixed >> 27)) * 0x3C79AC492BA7B653U
    mixed = (mixed ^ (mixed >> 33)) * 0x1C69B3F74AC4AE35U
    return mixed ^ (mixed >> 27)

# The construction of wyhash (final version 4): 16 bytes a step by a 64 x 64 -> 128 bit product, tails by overlapping
# loads.
cdef inline uint64_t mix_bytes(uint64_t hash, const uint8_t* bytes, uint64_t size) noexcept nogil:
    cdef uint64_t low, high
    cdef uint64_t left = size
    cdef uint64_t seed = hash ^ fold(hash ^ 0x2D358DCCAA6C78A5U, 0x8BB84B93962EACC9U)
    if size <= 16:
        if size >= 4:
            low = (<uint64_t>load32(bytes) << 32) | load32(bytes + ((size >> 3) << 2))
            high = (<uint64_t>load32(bytes + size - 4) << 32) | load32(bytes + size - 4 - ((size >> 3) << 2))
        elif size > 0:
            low = (<uint64_t>bytes[0] << 16) | (<uint64_t>bytes[size >> 1] << 8) | bytes[size - 1]
            high = 0
        else:
            low = 0
            high = 0
    else:
        while left > 16:
            seed = fold(load64(bytes) ^ 0x8BB84B93962EACC9U, load64(bytes + 8) ^ seed)
            bytes += 16
            left -= 16
        low = load64(bytes + left - 16)
        high = load64(bytes + left - 8)
    low ^= 0x8BB84B93962EACC9U
    high ^= seed
    seed = fold(low, high)
    # The product's halves once more: fold alone is weak where a factor is small.
    return mix_word(seed, (low + high) ^ size)

# Bytes as a key: long ones by a hash of their own, which can be computed before and elsewhere (outside_values).
cdef enum:
    HASHED_IN_PLACE = 64

cdef inline uint64_t mix_key(uint64_t hash, const uint8_t* bytes, uint64_t size) noexcept nogil:
    if size <= HASHED_IN_PLACE:
        return mix_bytes(hash, bytes, size)
    return mix_word(hash, mix_bytes(hash_start(), bytes, size))

# Numbers that are equal as keys as one word: -0.0 as 0.0, every NaN as one.
cdef inline uint64_t word_of_double(uint64_t bits) noexcept nogil:
    if bits << 1 == 0:
        return 0
    if (bits & 0x7FFFFFFFFFFFFFFFU) > 0x7FF0000000000000U:
        return 0x7FF8000000000000U
    return bits

cdef inline uint32_t word_of_float(uint32_t bits) noexcept nogil:
    if <uint32_t>(bits << 1) == 0:
        return 0
    if (bits & 0x7FFFFFFFU) > 0x7F800000U:
        return 0x7FC00000U
    return bits

cdef inline uint16_t word_of_half(uint16_t bits) noexcept nogil:
    if (bits & 0x7FFF) == 0:
        return 0
    if (bits & 0x7FFF) > 0x7C00:
        return 0x7E00
    return bits
