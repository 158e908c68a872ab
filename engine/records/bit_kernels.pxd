# The bits of a word at the places of another one's, side by side, and back: one instruction where the processor has it.
# Bits behind other bits.

from libc.stdint cimport int64_t, uint64_t

cdef extern from *:
    """
    #include <stdint.h>

    static uint64_t drey_gather_singly(uint64_t bits, uint64_t wanted) {
        uint64_t found = 0;
        for (int place = 0; wanted; wanted &= wanted - 1, place++)
            found |= ((bits >> __builtin_ctzll(wanted)) & 1) << place;
        return found;
    }

    static uint64_t drey_place_singly(uint64_t bits, uint64_t wanted) {
        uint64_t found = 0;
        for (; wanted; wanted &= wanted - 1, bits >>= 1)
            if (bits & 1) found |= wanted & -wanted;
        return found;
    }

    #if defined(__x86_64__)
    #include <immintrin.h>
    __attribute__((target("bmi2")))
    static uint64_t drey_gather_at_once(uint64_t bits, uint64_t wanted) { return _pext_u64(bits, wanted); }
    static inline uint64_t drey_gather_bits(uint64_t bits, uint64_t wanted) {
        return __builtin_cpu_supports("bmi2") ? drey_gather_at_once(bits, wanted) : drey_gather_singly(bits, wanted);
    }
    __attribute__((target("bmi2")))
    static uint64_t drey_place_at_once(uint64_t bits, uint64_t wanted) { return _pdep_u64(bits, wanted); }
    static inline uint64_t drey_place_bits(uint64_t bits, uint64_t wanted) {
        return __builtin_cpu_supports("bmi2") ? drey_place_at_once(bits, wanted) : drey_place_singly(bits, wanted);
    }
    #else
    static inline uint64_t drey_gather_bits(uint64_t bits, uint64_t wanted) { return drey_gather_singly(bits, wanted); }
    static inline uint64_t drey_place_bits(uint64_t bits, uint64_t wanted) { return drey_place_singly(bits, wanted); }
    #endif

    static void drey_append_bits(uint64_t* target, int64_t at, const uint64_t* words, int64_t count) {
        for (int64_t word = 0; word < (count + 63) / 64; word++) {
            const int64_t size = count - 64 * word < 64 ? count - 64 * word : 64;
            const uint64_t bits = size < 64 ? words[word] & ((1ULL << size) - 1) : words[word];
            const int64_t place = at + 64 * word;
            target[place >> 6] |= bits << (place & 63);
            if ((place & 63) + size > 64) target[(place >> 6) + 1] |= bits >> (64 - (place & 63));
        }
    }
    """
    # Of `bits` those where `wanted` has ones, the lowest first; 0 behind them.
    uint64_t gather_bits "drey_gather_bits" (uint64_t bits, uint64_t wanted) noexcept nogil
    # The same without that instruction.
    uint64_t gather_singly "drey_gather_singly" (uint64_t bits, uint64_t wanted) noexcept nogil
    # The lowest of `bits` at the places where `wanted` has ones; 0 at all others.
    uint64_t place_bits "drey_place_bits" (uint64_t bits, uint64_t wanted) noexcept nogil
    # The same without that instruction.
    uint64_t place_singly "drey_place_singly" (uint64_t bits, uint64_t wanted) noexcept nogil
    # Write the first `count` bits of words behind `at` bits of target, which is 0 behind these.
    void append_bits "drey_append_bits" (uint64_t* target, int64_t at, const uint64_t* words,
                                         int64_t count) noexcept nogil
