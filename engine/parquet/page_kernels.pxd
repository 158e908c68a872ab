# What lies in the pages of a Parquet column: runs of numbers, snappy, checksums, and values that become Arrow's.
#
# Every buffer that is read here may be read PAGE_SLACK bytes beyond its end, and every one that is written has as much
# room: loops load and store whole words. What is beyond is garbage that is not read.
#
#   runs      head (varint)                            of levels and of numbers in a dictionary, `width` bits each
#             even: head >> 1 times one value          the value in whole bytes
#             odd: head >> 1 groups of eight values    one after the other, the first one in the lowest bits
#
# Source: parquet-format, "Run Length Encoding / Bit-Packing Hybrid"; snappy, format_description.txt.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

# for what the kernels below are written with
from engine.records.byte_kernels cimport bits_from

cdef enum:
    PAGE_SLACK = 64

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    #if defined(__x86_64__)
    #include <immintrin.h>
    #endif

    typedef struct {
        const uint8_t* at;          /* of the next run */
        const uint8_t* end;
        const uint8_t* packed;      /* values of the current run, where they are packed */
        int64_t index;              /* of the next one of these */
        int64_t left;               /* values of the current run */
        uint32_t value;
        int32_t width, is_packed;
    } drey_runs;

    static void drey_runs_begin(drey_runs* runs, const uint8_t* at, const uint8_t* end, int32_t width) {
        memset(runs, 0, sizeof *runs);
        runs->at = at;
        runs->end = end;
        runs->width = width;
    }

    /* Go to the next run that has values. 0: there is none. */
    static int drey_runs_open(drey_runs* runs) {
        while (runs->left == 0) {
            if (runs->at >= runs->end) return 0;
            uint64_t head = *runs->at++;
            uint8_t byte = (uint8_t)head;           /* most heads are one byte */
            head &= 0x7F;
            for (int shift = 7; byte & 0x80; shift += 7) {
                if (runs->at >= runs->end || shift > 56) return 0;
                byte = *runs->at++;
                head |= (uint64_t)(byte & 0x7F) << shift;
            }
            const uint64_t count = head >> 1, room = (uint64_t)(runs->end - runs->at);
            runs->is_packed = (int32_t)(head & 1);
            if (count > (1ULL << 40)) return 0;
            if (runs->is_packed) {
                uint64_t bytes = count * (uint64_t)runs->width;
                runs->left = (int64_t)(count * 8);
                if (bytes > room) {             /* some writers cut the last group short */
                    bytes = room;
                    runs->left = (int64_t)(room * 8 / (uint64_t)runs->width);
                    if (runs->left == 0) return 0;
                }
                runs->packed = runs->at;
                runs->index = 0;
                runs->at += bytes;
            } else {
                const uint64_t bytes = (uint64_t)(runs->width + 7) >> 3;
                if (bytes > room) return 0;
                runs->value = bytes ? drey_load32(runs->at) & (0xFFFFFFFFu >> (32 - 8 * bytes)) : 0;
                runs->at += bytes;
                runs->left = (int64_t)count;
            }
        }
        return 1;
    }

    #if defined(__x86_64__)
    /* Where the values of a group begin, by their width: the bytes of each, and the bits before it in the first one. */
    #define DREY_GROUP_BITS_MAX 25
    static uint8_t drey_group_bytes[DREY_GROUP_BITS_MAX + 1][32];
    static uint32_t drey_group_shifts[DREY_GROUP_BITS_MAX + 1][8];
    static int drey_groups_known;
    __attribute__((constructor)) static void drey_groups_begin(void) {
        for (int width = 0; width <= DREY_GROUP_BITS_MAX; width++)
            for (int value = 0; value < 8; value++) {
                const int bit = (value & 3) * width + (value < 4 ? 0 : (4 * width) & 7);
                for (int byte = 0; byte < 4; byte++)
                    drey_group_bytes[width][4 * value + byte] = (uint8_t)((bit >> 3) + byte);
                drey_group_shifts[width][value] = (uint32_t)(bit & 7);
            }
        drey_groups_known = __builtin_cpu_supports("avx2");
    }
    /* Groups of eight values of up to 25 bits: four begin in each half of a register. */
    __attribute__((target("avx2")))
    static void drey_unpack_groups(const uint8_t* from, int64_t groups, int width, uint32_t* target) {
        const __m256i bytes = _mm256_loadu_si256((const __m256i*)drey_group_bytes[width]);
        const __m256i shift = _mm256_loadu_si256((const __m256i*)drey_group_shifts[width]);
        const __m256i mask = _mm256_set1_epi32((int)((1u << width) - 1));
        const int64_t second = (4 * width) >> 3;
        for (; groups > 0; groups--, from += width, target += 8) {
            const __m256i found = _mm256_inserti128_si256(
                _mm256_castsi128_si256(_mm_loadu_si128((const __m128i*)from)),
                _mm_loadu_si128((const __m128i*)(from + second)), 1);
            _mm256_storeu_si256((__m256i*)target, _mm256_and_si256(
                _mm256_srlv_epi32(_mm256_shuffle_epi8(found, bytes), shift), mask));
        }
    }
    static inline int drey_has_groups(int width) { return width <= DREY_GROUP_BITS_MAX && drey_groups_known; }
    #else
    static void drey_unpack_groups(const uint8_t* from, int64_t groups, int width, uint32_t* target) { }
    static inline int drey_has_groups(int width) { return 0; }
    #endif

    static void drey_unpack_singly(const uint8_t* from, int64_t index, int64_t count, int width, uint32_t* target) {
        const uint64_t mask = (1ULL << width) - 1;
        uint64_t bit = (uint64_t)index * (uint64_t)width;
        for (; count > 0; count--, bit += (uint64_t)width)
            *target++ = (uint32_t)((drey_load64(from + (bit >> 3)) >> (bit & 7)) & mask);
    }

    static void drey_unpack(const uint8_t* from, int64_t index, int64_t count, int width, uint32_t* target) {
        if (drey_has_groups(width)) {
            int64_t first = (8 - (index & 7)) & 7;
            if (first > count) first = count;
            drey_unpack_singly(from, index, first, width, target);
            index += first, count -= first, target += first;
            drey_unpack_groups(from + (index >> 3) * width, count >> 3, width, target);
            index += count & ~7LL, target += count & ~7LL, count &= 7;
        }
        drey_unpack_singly(from, index, count, width, target);
    }

    /* One value `count` times, eight at a time: runs are short, and what is behind them is written next. */
    static inline void drey_repeat_value(uint32_t* target, uint32_t value, int64_t count) {
        uint32_t values[8];
        for (int place = 0; place < 8; place++) values[place] = value;
        for (int64_t place = 0; place < count; place += 8) memcpy(target + place, values, sizeof values);
    }

    /* The next values; target NULL: they are passed over. 0: there are not so many. */
    static int drey_runs_read(drey_runs* runs, int64_t count, uint32_t* target) {
        while (count > 0) {
            if (runs->left == 0 && !drey_runs_open(runs)) return 0;
            const int64_t size = count < runs->left ? count : runs->left;
            if (target && runs->is_packed && runs->width) {
                drey_unpack(runs->packed, runs->index, size, runs->width, target);
            } else if (target) {
                drey_repeat_value(target, runs->is_packed ? 0 : runs->value, size);
            }
            if (target) target += size;
            runs->index += size, runs->left -= size, count -= size;
        }
        return 1;
    }

    /* The next values, where all of them are of one run and the same. 0: they are not, and none is read. */
    static int drey_runs_same(drey_runs* runs, int64_t count, uint32_t* value) {
        if (runs->left == 0 && !drey_runs_open(runs)) return 0;
        if (runs->left < count || (runs->is_packed && runs->width)) return 0;
        *value = runs->is_packed ? 0 : runs->value;
        runs->index += count, runs->left -= count;
        return 1;
    }

    /* Values of one bit as bits of words that were 0; returns how many are 1, -1: there are not so many values. */
    static int64_t drey_runs_bits(drey_runs* runs, int64_t count, uint64_t* words) {
        int64_t ones = 0, at = 0;
        while (at < count) {
            if (runs->left == 0 && !drey_runs_open(runs)) return -1;
            int64_t size = runs->left < 64 ? runs->left : 64;
            if (size > count - at) size = count - at;
            uint64_t bits = ~0ULL >> (64 - size);
            if (runs->is_packed) {
                const uint8_t* const from = runs->packed + (runs->index >> 3);
                const int shift = (int)(runs->index & 7);
                bits &= drey_load64(from) >> shift | (shift ? (uint64_t)from[8] << (64 - shift) : 0);
            } else if (runs->value == 0) bits = 0;
            const int place = (int)(at & 63);
            words[at >> 6] |= bits << place;
            if (place + size > 64) words[(at >> 6) + 1] |= bits >> (64 - place);
            ones += __builtin_popcountll(bits);
            runs->index += size, runs->left -= size, at += size;
        }
        return ones;
    }

    /* Of each tag: how many bytes it stands for (8 bits), the highest bits of the distance where the tag has them (3),
       and whether it is rare: over 16 bytes, or a distance of four. The kind of a tag is how many bytes of the distance
       follow: 0 (bytes as they are, which lie far enough away), 1, 2, and 3 for 4. */
    #define DREY_SNAPPY_RARE 0x8000u
    static uint16_t drey_snappy_tags[256];
    static const uint32_t drey_snappy_masks[4] = {0, 0xFF, 0xFFFF, 0xFFFFFFFFu};
    static void drey_snappy_begin(void) {
        for (unsigned tag = 0; tag < 256; tag++) {
            const unsigned kind = tag & 3, length = kind == 1 ? 4 + ((tag >> 2) & 7) : (tag >> 2) + 1;
            const unsigned distance = kind == 0 ? 1u << 8 : kind == 1 ? (tag >> 5) << 8 : 0;
            drey_snappy_tags[tag] = (uint16_t)(length | distance | (kind == 3 || length > 16 ? DREY_SNAPPY_RARE : 0));
        }
    }
    static inline void drey_copy_word(uint8_t* to, const uint8_t* from) {
        uint64_t word;
        memcpy(&word, from, 8);
        memcpy(to, &word, 8);
    }
    /* Repeat bytes from a distance before `to`, which may be shorter than they are; up to 7 bytes more are written. */
    static inline void drey_repeat(uint8_t* to, uint64_t distance, uint64_t length) {
        if (distance >= 8) for (uint64_t at = 0; at < length; at += 8) drey_copy_word(to + at, to + at - distance);
        else for (uint64_t at = 0; at < length; at++) to[at] = to[at - distance];
    }

    /* The tag before `source`, whatever it stands for, at `to`. 0: there is no such thing. */
    static int drey_snappy_tag(const uint8_t** source, const uint8_t* end, const uint8_t* target, uint8_t** to,
                               const uint8_t* to_end) {
        const uint8_t* at = *source;
        const uint32_t tag = at[-1], kind = tag & 3, known = drey_snappy_tags[tag];
        const uint64_t distance = (known & 0x700) + (drey_load32(at) & drey_snappy_masks[kind]);
        const uint64_t room = (uint64_t)(to_end - *to);
        uint64_t length = known & 0xFF;
        if (kind == 0) {
            if (length > 60) {
                const int bytes = (int)length - 60;
                length = (drey_load32(at) & (0xFFFFFFFFu >> (32 - 8 * bytes))) + 1ULL;
                at += bytes;
            }
            if (at > end || (uint64_t)(end - at) < length || room < length) return 0;
            memcpy(*to, at, length);
            at += length;
        } else {
            if (distance - 1 >= (uint64_t)(*to - target) || room < length) return 0;
            at += kind == 3 ? 4 : kind;
            drey_repeat(*to, distance, length);
        }
        *source = at;
        *to += length;
        return 1;
    }

    /* What snappy has made of target_size bytes. 0: it is none of this.

       Nine tags of ten stand for at most 16 bytes that are at least 8 away, half of them in the source and half in what
       was written. Which it is cannot be foreseen, so they go the same way, and no branch asks for it. Where the next
       tag is depends on this one: it is loaded from both places before this one has been looked up. */
    static int drey_snappy(const uint8_t* source, int64_t size, uint8_t* target, int64_t target_size) {
        const uint8_t* const end = source + size;
        uint8_t* to = target;
        uint8_t* const to_end = target + target_size;
        uint64_t whole = 0;
        uint8_t byte = 0x80;
        for (int shift = 0; byte & 0x80; shift += 7) {
            if (source >= end || shift > 28) return 0;
            byte = *source++;
            whole |= (uint64_t)(byte & 0x7F) << shift;
        }
        if (whole != (uint64_t)target_size) return 0;
        uint64_t tag = *source++;
        while (source < end && to_end - to >= 16) {
            const uint64_t kind = tag & 3, literal = (tag >> 2) + 1, known = drey_snappy_tags[tag];
            const uint64_t behind_copy = source[kind], behind_literal = source[literal];    /* at most at end + 63 */
            const uint64_t distance = (known & 0x700) + (drey_load32(source) & drey_snappy_masks[kind]);
            if (__builtin_expect((known & DREY_SNAPPY_RARE) == 0 && distance >= 8, 1)) {
                const uint8_t* const from = kind ? to - distance : source;
                if (kind && distance > (uint64_t)(to - target)) return 0;
                tag = kind ? behind_copy : behind_literal;
                source += 1 + (kind ? kind : literal);
                drey_copy_word(to, from);
                drey_copy_word(to + 8, from + 8);
                to += known & 0xFF;
            } else {
                if (!drey_snappy_tag(&source, end, target, &to, to_end)) return 0;
                tag = *source++;
            }
        }
        for (; source <= end; source++)
            if (!drey_snappy_tag(&source, end, target, &to, to_end)) return 0;
        return source == end + 1 && to == to_end;
    }

    /* The checksum that pages have: that of zlib, eight bytes at a time. */
    static uint32_t drey_crc_table[8][256];
    static void drey_crc_begin(void) {
        for (uint32_t byte = 0; byte < 256; byte++) {
            uint32_t sum = byte;
            for (int bit = 0; bit < 8; bit++) sum = (sum >> 1) ^ (sum & 1 ? 0xEDB88320u : 0);
            drey_crc_table[0][byte] = sum;
        }
        for (int row = 1; row < 8; row++)
            for (int byte = 0; byte < 256; byte++) {
                const uint32_t last = drey_crc_table[row - 1][byte];
                drey_crc_table[row][byte] = (last >> 8) ^ drey_crc_table[0][last & 0xFF];
            }
    }
    static uint32_t drey_crc(const uint8_t* data, int64_t size) {
        uint32_t sum = 0xFFFFFFFFu;
        for (; size >= 8; size -= 8, data += 8) {
            const uint64_t word = drey_load64(data) ^ sum;
            sum = 0;
            for (int byte = 0; byte < 8; byte++) sum ^= drey_crc_table[7 - byte][(word >> (8 * byte)) & 0xFF];
        }
        for (; size > 0; size--, data++) sum = (sum >> 8) ^ drey_crc_table[0][(sum ^ *data) & 0xFF];
        return ~sum;
    }
    """
    ctypedef struct Runs "drey_runs":
        int64_t left
        int32_t width

    # Begin with runs of values of `width` bits, at most 32.
    void runs_begin "drey_runs_begin" (Runs*, const uint8_t* at, const uint8_t* end, int32_t width) noexcept nogil
    # The next values, at most 2**31 of them; target NULL: they are passed over. False: there are not so many.
    bint runs_read "drey_runs_read" (Runs*, int64_t count, uint32_t* target) noexcept nogil
    # The next values, where all of them are of one run and the same. False: they are not, and none is read.
    bint runs_same "drey_runs_same" (Runs*, int64_t count, uint32_t* value) noexcept nogil
    # Values of one bit as bits of words that were 0; returns how many are 1, -1: there are not so many values.
    int64_t runs_bits "drey_runs_bits" (Runs*, int64_t count, uint64_t* words) noexcept nogil
    # Once, before the first page is opened.
    void snappy_begin "drey_snappy_begin" () noexcept nogil
    # What snappy has made of target_size bytes. False: it is none of this.
    bint snappy "drey_snappy" (const uint8_t* source, int64_t size, uint8_t* target, int64_t target_size) noexcept nogil
    # Once, before the first checksum.
    void crc_begin "drey_crc_begin" () noexcept nogil
    uint32_t crc "drey_crc" (const uint8_t* data, int64_t size) noexcept nogil
