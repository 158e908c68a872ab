# A field's text sixteen bytes at a time: copied and searched in one pass for what would need quotes.
#
#     copy_unquoted(target, text, size, text_end, delimiter)
#         True: text[0..size) is at target and holds no delimiter, quote, \n or \r
#         False: it does; what is at target means nothing
#
# Writes up to COPY_SLACK bytes past the text: the caller has that room. Reads stay before text_end, the end of the
# memory that text lies in.

from libc.stdint cimport int64_t, uint8_t

cdef extern from * nogil:
    """
    #include <stdint.h>
    #define DREY_COPY_SLACK 16
    static inline int drey_needs_quotes(uint8_t byte, uint8_t delimiter) {
        return byte == delimiter || byte == '"' || byte == 10 || byte == 13;
    }
    #if defined(__SSE2__)
    #include <emmintrin.h>
    static inline uint32_t drey_special_mask(__m128i bytes, __m128i delimiters) {
        const __m128i found = _mm_or_si128(
            _mm_or_si128(_mm_cmpeq_epi8(bytes, delimiters), _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'))),
            _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(10)), _mm_cmpeq_epi8(bytes, _mm_set1_epi8(13))));
        return (uint32_t)_mm_movemask_epi8(found);
    }
    #endif
    static inline int drey_copy_unquoted(uint8_t* target, const uint8_t* text, int64_t size, const uint8_t* text_end,
                                         uint8_t delimiter) {
        int64_t position = 0;
    #if defined(__SSE2__)
        const __m128i delimiters = _mm_set1_epi8((char)delimiter);
        for (; position < size && text_end - (text + position) >= 16; position += 16) {
            const __m128i bytes = _mm_loadu_si128((const __m128i*)(text + position));
            uint32_t mask = drey_special_mask(bytes, delimiters);
            _mm_storeu_si128((__m128i*)(target + position), bytes);
            if (size - position < 16)
                mask &= (1u << (size - position)) - 1;
            if (mask)
                return 0;
        }
    #endif
        for (; position < size; position++) {
            if (drey_needs_quotes(text[position], delimiter))
                return 0;
            target[position] = text[position];
        }
        return 1;
    }
    """
    const int64_t COPY_SLACK "DREY_COPY_SLACK"
    bint copy_unquoted "drey_copy_unquoted" (uint8_t* target, const uint8_t* text, int64_t size,
                                             const uint8_t* text_end, uint8_t delimiter)
