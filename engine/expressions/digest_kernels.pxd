# Digests of bytes: MD5, SHA-256 and XXH64. The digest of a value is computed where it lies, and written as hex digits.
#
#     drey_md5(data, size, hex)        32 digits          drey_sha256(data, size, hex)      64 digits
#     drey_xxh64(data, size, seed)     64 bits  
#
# Both digests take blocks of 64 bytes; the last one, or two, hold the rest, a bit that is set, and the length in bits.
# Source: RFC 1321, FIPS 180-4, the specification of xxHash. They are no protection of anything: no secret is compared.

from libc.stdint cimport int64_t, uint8_t, uint64_t

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    static const uint8_t drey_hex_digits[] = "0123456789abcdef";
    static const uint8_t drey_base64_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static const uint32_t drey_md5_constants[64] = {
        0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
        0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
        0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
        0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
        0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
        0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
        0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
        0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391,
    };
    static const uint32_t drey_sha256_constants[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
        0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
        0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
        0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
        0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
        0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
        0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
    };
    static const uint8_t drey_md5_turns[16] = {7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21};

    static inline uint32_t drey_left32(uint32_t x, int n) { return (x << n) | (x >> (32 - n)); }
    static inline uint32_t drey_right32(uint32_t x, int n) { return (x >> n) | (x << (32 - n)); }
    static inline uint64_t drey_left64(uint64_t x, int n) { return (x << n) | (x >> (64 - n)); }

    static void drey_md5_block(uint32_t* state, const uint8_t* block) {
        uint32_t words[16], a = state[0], b = state[1], c = state[2], d = state[3];
        for (int i = 0; i < 16; i++)
            words[i] = (uint32_t)block[4 * i] | (uint32_t)block[4 * i + 1] << 8 | (uint32_t)block[4 * i + 2] << 16
                | (uint32_t)block[4 * i + 3] << 24;
        for (int i = 0; i < 64; i++) {
            uint32_t f, next;
            int g;
            if (i < 16) { f = (b & c) | (~b & d); g = i; }
            else if (i < 32) { f = (d & b) | (~d & c); g = (5 * i + 1) & 15; }
            else if (i < 48) { f = b ^ c ^ d; g = (3 * i + 5) & 15; }
            else { f = c ^ (b | ~d); g = (7 * i) & 15; }
            next = b + drey_left32(a + f + drey_md5_constants[i] + words[g], drey_md5_turns[(i >> 4) * 4 + (i & 3)]);
            a = d; d = c; c = b; b = next;
        }
        state[0] += a; state[1] += b; state[2] += c; state[3] += d;
    }
    static void drey_sha256_block(uint32_t* state, const uint8_t* block) {
        uint32_t words[64], s[8];
        for (int i = 0; i < 16; i++)
            words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16
                | (uint32_t)block[4 * i + 2] << 8 | (uint32_t)block[4 * i + 3];
        for (int i = 16; i < 64; i++) {
            const uint32_t x = words[i - 15], y = words[i - 2];
            words[i] = words[i - 16] + words[i - 7] + (drey_right32(x, 7) ^ drey_right32(x, 18) ^ (x >> 3))
                + (drey_right32(y, 17) ^ drey_right32(y, 19) ^ (y >> 10));
        }
        memcpy(s, state, sizeof s);
        for (int i = 0; i < 64; i++) {
            const uint32_t one = s[7] + (drey_right32(s[4], 6) ^ drey_right32(s[4], 11) ^ drey_right32(s[4], 25))
                + ((s[4] & s[5]) ^ (~s[4] & s[6])) + drey_sha256_constants[i] + words[i];
            const uint32_t two = (drey_right32(s[0], 2) ^ drey_right32(s[0], 13) ^ drey_right32(s[0], 22))
                + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
            s[7] = s[6]; s[6] = s[5]; s[5] = s[4]; s[4] = s[3] + one;
            s[3] = s[2]; s[2] = s[1]; s[1] = s[0]; s[0] = one + two;
        }
        for (int i = 0; i < 8; i++) state[i] += s[i];
    }
    /* Take all blocks of a value: whole ones where they lie, then the rest with its padding. */
    static void drey_digest_blocks(void (*take)(uint32_t*, const uint8_t*), uint32_t* state, const uint8_t* data,
                                   int64_t size, int is_big) {
        uint8_t rest[128] = {0};
        const int64_t whole = size & ~(int64_t)63;
        const int left = (int)(size - whole), padded = left < 56 ? 64 : 128;
        const uint64_t bits = (uint64_t)size * 8;
        for (int64_t at = 0; at < whole; at += 64) take(state, data + at);
        if (left) memcpy(rest, data + whole, (size_t)left);
        rest[left] = 0x80;
        for (int i = 0; i < 8; i++) rest[padded - 8 + i] = (uint8_t)(bits >> (is_big ? 56 - 8 * i : 8 * i));
        for (int at = 0; at < padded; at += 64) take(state, rest + at);
    }
    static void drey_hex_words(const uint32_t* words, int count, int is_big, uint8_t* out) {
        for (int i = 0; i < count * 4; i++) {
            const uint8_t byte = (uint8_t)(words[i >> 2] >> (is_big ? 24 - 8 * (i & 3) : 8 * (i & 3)));
            out[2 * i] = drey_hex_digits[byte >> 4];
            out[2 * i + 1] = drey_hex_digits[byte & 15];
        }
    }
    static void drey_md5(const uint8_t* data, int64_t size, uint8_t* hex) {
        uint32_t state[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
        drey_digest_blocks(drey_md5_block, state, data, size, 0);
        drey_hex_words(state, 4, 0, hex);
    }
    static void drey_sha256(const uint8_t* data, int64_t size, uint8_t* hex) {
        uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                             0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
        drey_digest_blocks(drey_sha256_block, state, data, size, 1);
        drey_hex_words(state, 8, 1, hex);
    }
    #define DREY_P1 0x9E3779B185EBCA87ULL
    #define DREY_P2 0xC2B2AE3D27D4EB4FULL
    #define DREY_P3 0x165667B19E3779F9ULL
    #define DREY_P4 0x85EBCA77C2B2AE63ULL
    #define DREY_P5 0x27D4EB2F165667C5ULL
    static inline uint64_t drey_word(const uint8_t* data, int size) {
        uint64_t found = 0;
        for (int i = 0; i < size; i++) found |= (uint64_t)data[i] << (8 * i);
        return found;
    }
    static inline uint64_t drey_round(uint64_t state, uint64_t word) {
        return drey_left64(state + word * DREY_P2, 31) * DREY_P1;
    }
    static inline uint64_t drey_finish(uint64_t hash) {
        hash = (hash ^ (hash >> 33)) * DREY_P2;
        hash = (hash ^ (hash >> 29)) * DREY_P3;
        return hash ^ (hash >> 32);
    }
    static uint64_t drey_xxh64(const uint8_t* data, int64_t size, uint64_t seed) {
        uint64_t hash = seed + DREY_P5;
        int64_t at = 0;
        if (size >= 32) {
            uint64_t state[4] = {seed + DREY_P1 + DREY_P2, seed + DREY_P2, seed, seed - DREY_P1};
            for (; at + 32 <= size; at += 32)
                for (int i = 0; i < 4; i++) state[i] = drey_round(state[i], drey_word(data + at + 8 * i, 8));
            hash = drey_left64(state[0], 1) + drey_left64(state[1], 7) + drey_left64(state[2], 12)
                + drey_left64(state[3], 18);
            for (int i = 0; i < 4; i++) hash = (hash ^ drey_round(0, state[i])) * DREY_P1 + DREY_P4;
        }
        hash += (uint64_t)size;
        for (; at + 8 <= size; at += 8)
            hash = drey_left64(hash ^ drey_round(0, drey_word(data + at, 8)), 27) * DREY_P1 + DREY_P4;
        for (; at + 4 <= size; at += 4)
            hash = drey_left64(hash ^ drey_word(data + at, 4) * DREY_P1, 23) * DREY_P2 + DREY_P3;
        for (; at < size; at++) hash = drey_left64(hash ^ data[at] * DREY_P5, 11) * DREY_P1;
        return drey_finish(hash);
    }
    """
    const uint8_t drey_hex_digits[]
    const uint8_t drey_base64_digits[]
    void drey_md5(const uint8_t* data, int64_t size, uint8_t* hex) noexcept nogil
    void drey_sha256(const uint8_t* data, int64_t size, uint8_t* hex) noexcept nogil
    uint64_t drey_xxh64(const uint8_t* data, int64_t size, uint64_t seed) noexcept nogil
