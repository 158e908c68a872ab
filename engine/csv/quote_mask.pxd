# Sixty-four bytes of CSV at a time: which of them lie inside quotes, as one bit each.
#
#     quotes    bits where the byte is a quote
#     inside    prefix xor of quotes: 1 from an opening quote up to before its closing one
#     openings  quotes & inside; each must follow a field's begin or, as the second of two, another quote
#
# That rule is what makes parity equal to the state machine of scan.pyx: a quote that opens anywhere else is an ordinary
# character, parity is wrong from there on, and the block is left to the state machine. By induction over blocks a quote
# before an opening one is always a closing one.
#
# Source: the bitmaps of simdjson (Langdale and Lemire, "Parsing gigabytes of JSON per second", 2019) on CSV.

from libc.stdint cimport int32_t, int64_t, uint8_t

# Not called from here: the C below does.
from engine.csv.prefix_xor cimport prefix_xor

cdef extern from * nogil:
    """
    #include <stdint.h>
    #if defined(__SSE2__)
    #include <emmintrin.h>
    static inline uint64_t drey_equal_mask(const __m128i* lanes, char byte) {
        const __m128i wanted = _mm_set1_epi8(byte);
        uint64_t mask = 0;
        for (int lane = 0; lane < 4; lane++)
            mask |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(lanes[lane], wanted)) << (16 * lane);
        return mask;
    }
    /* Pass whole blocks of 64 bytes; returns the bytes passed. Stops before a block with a stray quote.
       quoted and previous are the state before and after; last_end: position after the last newline outside quotes,
       left as it is when there is none. */
    static int64_t drey_pass_blocks(const uint8_t* data, int64_t size, int32_t delimiter, int32_t quote,
                                    uint8_t* quoted, uint8_t* previous, int64_t* last_end) {
        int64_t position = 0;
        uint64_t carry = *quoted ? ~(uint64_t)0 : 0;
        uint64_t opens = *previous == delimiter || *previous == 10 || *previous == 13 || *previous == quote;
        for (; position + 64 <= size; position += 64) {
            __m128i lanes[4];
            for (int lane = 0; lane < 4; lane++)
                lanes[lane] = _mm_loadu_si128((const __m128i*)(data + position) + lane);
            const uint64_t quotes = drey_equal_mask(lanes, (char)quote);
            const uint64_t newlines = drey_equal_mask(lanes, 10);
            const uint64_t before = drey_equal_mask(lanes, (char)delimiter) | newlines | drey_equal_mask(lanes, 13)
                                    | quotes;
            const uint64_t inside = drey_prefix_xor(quotes) ^ carry;
            if (quotes & inside & ~((before << 1) | opens))
                break;
            const uint64_t ends = newlines & ~inside;
            if (ends)
                *last_end = position + 64 - __builtin_clzll(ends);
            carry = (uint64_t)((int64_t)inside >> 63);
            opens = before >> 63;
        }
        if (position) {
            *quoted = carry != 0;
            *previous = data[position - 1];
        }
        return position;
    }
    #else
    static int64_t drey_pass_blocks(const uint8_t* data, int64_t size, int32_t delimiter, int32_t quote,
                                    uint8_t* quoted, uint8_t* previous, int64_t* last_end) {
        (void)data; (void)size; (void)delimiter; (void)quote; (void)quoted; (void)previous; (void)last_end;
        return 0;   /* the state machine does everything */
    }
    #endif
    """
    int64_t pass_blocks "drey_pass_blocks" (const uint8_t* data, int64_t size, int32_t delimiter, int32_t quote,
                                            uint8_t* quoted, uint8_t* previous, int64_t* last_end)
