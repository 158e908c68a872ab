# Digests of bytes: MD5, SHA-1, SHA-256, SHA-512, XXH64 and CRC-32. A value is read where it lies, and its digest
# written as hex digits.
#
#     drey_md5(data, size, hex)        32 digits          drey_sha256(data, size, hex)      64 digits
#     drey_sha1(data, size, hex)       40 digits          drey_sha512(data, size, hex)      128 digits
#     drey_xxh64(data, size, seed)     64 bits            drey_crc32(data, size)            32 bits
#
# Digests take blocks of 64 bytes, or 128; the last one, or two, hold the rest, a bit that is set, and the length in
# bits.
# Source: RFC 1321, FIPS 180-4, ISO 3309, the specification of xxHash. They are no protection of anything: no secret is
# compared.

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

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
    static void drey_sha1_block(uint32_t* state, const uint8_t* block) {
        uint32_t words[80], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
        for (int i = 0; i < 16; i++)
            words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16
                | (uint32_t)block[4 * i + 2] << 8 | (uint32_t)block[4 * i + 3];
        for (int i = 16; i < 80; i++)
            words[i] = drey_left32(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
        for (int i = 0; i < 80; i++) {
            uint32_t f, k;
            if (i < 20) { f = (b & c) | (~b & d); k = 0x5a827999; }
            else if (i < 40) { f = b ^ c ^ d; k = 0x6ed9eba1; }
            else if (i < 60) { f = (b & c) | (b & d) | (c & d); k = 0x8f1bbcdc; }
            else { f = b ^ c ^ d; k = 0xca62c1d6; }
            const uint32_t next = drey_left32(a, 5) + f + e + k + words[i];
            e = d; d = c; c = drey_left32(b, 30); b = a; a = next;
        }
        state[0] += a; state[1] += b; state[2] += c; state[3] += d; state[4] += e;
    }
    static void drey_sha1(const uint8_t* data, int64_t size, uint8_t* hex) {
        uint32_t state[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
        drey_digest_blocks(drey_sha1_block, state, data, size, 1);
        drey_hex_words(state, 5, 1, hex);
    }
    static const uint64_t drey_sha512_constants[80] = {
        0x428a2f98d728ae22ULL, 0x7137449123ef65cdULL, 0xb5c0fbcfec4d3b2fULL, 0xe9b5dba58189dbbcULL,
        0x3956c25bf348b538ULL, 0x59f111f1b605d019ULL, 0x923f82a4af194f9bULL, 0xab1c5ed5da6d8118ULL,
        0xd807aa98a3030242ULL, 0x12835b0145706fbeULL, 0x243185be4ee4b28cULL, 0x550c7dc3d5ffb4e2ULL,
        0x72be5d74f27b896fULL, 0x80deb1fe3b1696b1ULL, 0x9bdc06a725c71235ULL, 0xc19bf174cf692694ULL,
        0xe49b69c19ef14ad2ULL, 0xefbe4786384f25e3ULL, 0x0fc19dc68b8cd5b5ULL, 0x240ca1cc77ac9c65ULL,
        0x2de92c6f592b0275ULL, 0x4a7484aa6ea6e483ULL, 0x5cb0a9dcbd41fbd4ULL, 0x76f988da831153b5ULL,
        0x983e5152ee66dfabULL, 0xa831c66d2db43210ULL, 0xb00327c898fb213fULL, 0xbf597fc7beef0ee4ULL,
        0xc6e00bf33da88fc2ULL, 0xd5a79147930aa725ULL, 0x06ca6351e003826fULL, 0x142929670a0e6e70ULL,
        0x27b70a8546d22ffcULL, 0x2e1b21385c26c926ULL, 0x4d2c6dfc5ac42aedULL, 0x53380d139d95b3dfULL,
        0x650a73548baf63deULL, 0x766a0abb3c77b2a8ULL, 0x81c2c92e47edaee6ULL, 0x92722c851482353bULL,
        0xa2bfe8a14cf10364ULL, 0xa81a664bbc423001ULL, 0xc24b8b70d0f89791ULL, 0xc76c51a30654be30ULL,
        0xd192e819d6ef5218ULL, 0xd69906245565a910ULL, 0xf40e35855771202aULL, 0x106aa07032bbd1b8ULL,
        0x19a4c116b8d2d0c8ULL, 0x1e376c085141ab53ULL, 0x2748774cdf8eeb99ULL, 0x34b0bcb5e19b48a8ULL,
        0x391c0cb3c5c95a63ULL, 0x4ed8aa4ae3418acbULL, 0x5b9cca4f7763e373ULL, 0x682e6ff3d6b2b8a3ULL,
        0x748f82ee5defb2fcULL, 0x78a5636f43172f60ULL, 0x84c87814a1f0ab72ULL, 0x8cc702081a6439ecULL,
        0x90befffa23631e28ULL, 0xa4506cebde82bde9ULL, 0xbef9a3f7b2c67915ULL, 0xc67178f2e372532bULL,
        0xca273eceea26619cULL, 0xd186b8c721c0c207ULL, 0xeada7dd6cde0eb1eULL, 0xf57d4f7fee6ed178ULL,
        0x06f067aa72176fbaULL, 0x0a637dc5a2c898a6ULL, 0x113f9804bef90daeULL, 0x1b710b35131c471bULL,
        0x28db77f523047d84ULL, 0x32caab7b40c72493ULL, 0x3c9ebe0a15c9bebcULL, 0x431d67c49c100d4cULL,
        0x4cc5d4becb3e42b6ULL, 0x597f299cfc657e2aULL, 0x5fcb6fab3ad6faecULL, 0x6c44198c4a475817ULL,
    };
    static inline uint64_t drey_right64(uint64_t x, int n) { return (x >> n) | (x << (64 - n)); }
    static void drey_sha512_block(uint64_t* state, const uint8_t* block) {
        uint64_t words[80], s[8];
        for (int i = 0; i < 16; i++) {
            words[i] = 0;
            for (int j = 0; j < 8; j++) words[i] = words[i] << 8 | block[8 * i + j];
        }
        for (int i = 16; i < 80; i++) {
            const uint64_t x = words[i - 15], y = words[i - 2];
            words[i] = words[i - 16] + words[i - 7] + (drey_right64(x, 1) ^ drey_right64(x, 8) ^ (x >> 7))
                + (drey_right64(y, 19) ^ drey_right64(y, 61) ^ (y >> 6));
        }
        memcpy(s, state, sizeof s);
        for (int i = 0; i < 80; i++) {
            const uint64_t one = s[7] + (drey_right64(s[4], 14) ^ drey_right64(s[4], 18) ^ drey_right64(s[4], 41))
                + ((s[4] & s[5]) ^ (~s[4] & s[6])) + drey_sha512_constants[i] + words[i];
            const uint64_t two = (drey_right64(s[0], 28) ^ drey_right64(s[0], 34) ^ drey_right64(s[0], 39))
                + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
            s[7] = s[6]; s[6] = s[5]; s[5] = s[4]; s[4] = s[3] + one;
            s[3] = s[2]; s[2] = s[1]; s[1] = s[0]; s[0] = one + two;
        }
        for (int i = 0; i < 8; i++) state[i] += s[i];
    }
    static void drey_sha512(const uint8_t* data, int64_t size, uint8_t* hex) {
        uint64_t state[8] = {0x6a09e667f3bcc908ULL, 0xbb67ae8584caa73bULL, 0x3c6ef372fe94f82bULL, 0xa54ff53a5f1d36f1ULL,
                             0x510e527fade682d1ULL, 0x9b05688c2b3e6c1fULL,
                             0x1f83d9abfb41bd6bULL, 0x5be0cd19137e2179ULL};
        uint8_t rest[256] = {0};
        const int64_t whole = size & ~(int64_t)127;
        const int left = (int)(size - whole), padded = left < 112 ? 128 : 256;
        for (int64_t at = 0; at < whole; at += 128) drey_sha512_block(state, data + at);
        if (left) memcpy(rest, data + whole, (size_t)left);
        rest[left] = 0x80;
        for (int i = 0; i < 8; i++) rest[padded - 8 + i] = (uint8_t)((uint64_t)size * 8 >> (56 - 8 * i));
        for (int at = 0; at < padded; at += 128) drey_sha512_block(state, rest + at);
        for (int i = 0; i < 64; i++) {
            const uint8_t byte = (uint8_t)(state[i >> 3] >> (56 - 8 * (i & 7)));
            hex[2 * i] = drey_hex_digits[byte >> 4];
            hex[2 * i + 1] = drey_hex_digits[byte & 15];
        }
    }
    static uint32_t drey_crc32(const uint8_t* data, int64_t size) {
        /* two steps of four bits a byte: what each value of four bits adds */
        static const uint32_t steps[16] = {
            0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
            0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
        };
        uint32_t found = 0xffffffff;
        for (int64_t at = 0; at < size; at++) {
            found ^= data[at];
            found = found >> 4 ^ steps[found & 15];
            found = found >> 4 ^ steps[found & 15];
        }
        return ~found;
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
    void drey_sha1(const uint8_t* data, int64_t size, uint8_t* hex) noexcept nogil
    void drey_sha256(const uint8_t* data, int64_t size, uint8_t* hex) noexcept nogil
    void drey_sha512(const uint8_t* data, int64_t size, uint8_t* hex) noexcept nogil
    uint32_t drey_crc32(const uint8_t* data, int64_t size) noexcept nogil
    uint64_t drey_xxh64(const uint8_t* data, int64_t size, uint64_t seed) noexcept nogil
