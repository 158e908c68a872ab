# Where the fields of a block of CSV end, found 64 bytes at a time.
#
#     index_fields(data, size, delimiter, quote, &index)    0, or -1: a quote stands where none belongs, or none closes
#
#     data    "a,b",7\n"c",8\n        begins with a record and ends with one, its newline included or not
#     ends          5 7    11 13      positions of delimiters and newlines outside quotes
#
# The caller gives room for size + 64 ends. ends[-1] is -1 (the caller's, too), so that field i is
# (ends[i - 1] + 1, ends[i]). A last record without newline gets an end at size, counted as a newline.
#
# Source: the bitmaps of simdjson (Langdale and Lemire, "Parsing gigabytes of JSON per second", 2019) on CSV; the rule
# of stray quotes is that of quote_mask.

from libc.stdint cimport int32_t, int64_t, uint8_t

# Not called from here: the C below does.
from engine.csv.prefix_xor cimport prefix_xor

cdef extern from * nogil:
    """
    #include <stdint.h>
    #include <string.h>
    typedef struct {
        int32_t* ends;
        int64_t count;
        int64_t newlines;          /* of them */
        int64_t returns;           /* carriage returns outside quotes */
        int32_t has_high_bytes;    /* any byte above 127 */
    } DreyFieldIndex;

    #if defined(__SSE2__)
    #include <emmintrin.h>
    #define DREY_INDEXES_FIELDS 1
    typedef struct { uint64_t quotes, delimiters, newlines, returns, high; } DreyFieldMasks;

    static inline void drey_field_masks(const uint8_t* data, int32_t delimiter, int32_t quote, DreyFieldMasks* masks) {
        const __m128i delimiters = _mm_set1_epi8((char)delimiter), quotes = _mm_set1_epi8((char)quote);
        const __m128i newlines = _mm_set1_epi8(10), returns = _mm_set1_epi8(13);
        memset(masks, 0, sizeof(*masks));
        for (int lane = 0; lane < 4; lane++) {
            const __m128i bytes = _mm_loadu_si128((const __m128i*)data + lane);
            const int shift = 16 * lane;
            masks->quotes |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, quotes)) << shift;
            masks->delimiters |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, delimiters)) << shift;
            masks->newlines |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, newlines)) << shift;
            masks->returns |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, returns)) << shift;
            masks->high |= (uint64_t)(uint32_t)_mm_movemask_epi8(bytes) << shift;
        }
        if (quote < 0)
            masks->quotes = 0;
    }

    /* How many there are is as good as random: twelve are written whatever their number, and more are rare. */
    static inline int32_t* drey_note_places(int32_t* out, uint64_t found, int32_t position) {
        int32_t* const end = out + __builtin_popcountll(found);
        do {
            for (int each = 0; each < 12; each++) {
                *out++ = position + __builtin_ctzll(found | (uint64_t)1 << 63);
                found &= found - 1;
            }
        } while (out < end);
        return end;
    }

    static int drey_index_fields(const uint8_t* data, int64_t size, int32_t delimiter, int32_t quote,
                                 DreyFieldIndex* index) {
        uint64_t carry = 0, opens = 1, high = 0;
        int32_t* out = index->ends;
        uint8_t last_block[64];
        index->newlines = index->returns = 0;
        for (int64_t position = 0; position < size; position += 64) {
            const uint8_t* block = data + position;
            DreyFieldMasks masks;
            if (size - position < 64) {
                memset(last_block, 0, sizeof(last_block));
                memcpy(last_block, block, size - position);
                block = last_block;
            }
            drey_field_masks(block, delimiter, quote, &masks);
            const uint64_t inside = drey_prefix_xor(masks.quotes) ^ carry;
            const uint64_t before = masks.delimiters | masks.newlines | masks.returns | masks.quotes;
            if (masks.quotes & inside & ~((before << 1) | opens))
                return -1;
            index->newlines += __builtin_popcountll(masks.newlines & ~inside);
            index->returns += __builtin_popcountll(masks.returns & ~inside);
            out = drey_note_places(out, (masks.delimiters | masks.newlines) & ~inside, (int32_t)position);
            carry = (uint64_t)((int64_t)inside >> 63);
            opens = before >> 63;
            high |= masks.high;
        }
        if (carry)
            return -1;
        index->has_high_bytes = high != 0;
        if (out == index->ends || out[-1] != size - 1 || data[size - 1] != 10) {
            *out++ = (int32_t)size;
            index->newlines++;
        }
        index->count = out - index->ends;
        return 0;
    }
    #else
    #define DREY_INDEXES_FIELDS 0
    static int drey_index_fields(const uint8_t* data, int64_t size, int32_t delimiter, int32_t quote,
                                 DreyFieldIndex* index) {
        (void)data; (void)size; (void)delimiter; (void)quote; (void)index;
        return -1;   /* Arrow's parser does everything */
    }
    #endif

    /* Copy a field sixteen bytes at a time; 0: it holds a quote. Writes up to 16 bytes too many, reads none. */
    static inline int drey_copy_field(uint8_t* target, const uint8_t* text, int64_t size, const uint8_t* text_end,
                                      int32_t quote) {
        int64_t position = 0;
    #if defined(__SSE2__)
        const __m128i quotes = _mm_set1_epi8((char)quote);
        for (; position < size && text_end - (text + position) >= 16; position += 16) {
            const __m128i bytes = _mm_loadu_si128((const __m128i*)(text + position));
            uint32_t mask = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, quotes));
            _mm_storeu_si128((__m128i*)(target + position), bytes);
            if (size - position < 16)
                mask &= (1u << (size - position)) - 1;
            if (mask && quote >= 0)
                return 0;
        }
    #endif
        for (; position < size; position++) {
            if (text[position] == quote)
                return 0;
            target[position] = text[position];
        }
        return 1;
    }
    """
    ctypedef struct FieldIndex "DreyFieldIndex":
        int32_t* ends
        int64_t count
        int64_t newlines
        int64_t returns
        int32_t has_high_bytes

    bint INDEXES_FIELDS "DREY_INDEXES_FIELDS"
    int index_fields "drey_index_fields" (const uint8_t* data, int64_t size, int32_t delimiter, int32_t quote,
                                          FieldIndex* index)
    bint copy_field "drey_copy_field" (uint8_t* target, const uint8_t* text, int64_t size, const uint8_t* text_end,
                                       int32_t quote)
