# A field's text sixteen bytes at a time: copied and searched in one pass for what would need quotes.
#
#     copy_unquoted(target, text, size, text_end, delimiter)
#         True: text[0..size) is at target and holds no delimiter, quote, \n or \r
#         False: it does; what is at target means nothing
#     put_quoted(target, text, size, text_end)
#         the end of text[0..size) in quotes, its quotes doubled
#
# Both write up to COPY_SLACK bytes past the text: the caller has that room. Reads stay before text_end, the end of the
# memory that text lies in. Up to sixteen bytes cost the same whatever their number, none too: no branch asks for it.

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
    static inline __m128i drey_equals(__m128i bytes, uint8_t byte) {
        return _mm_cmpeq_epi8(bytes, _mm_set1_epi8((char)byte));
    }
    /* Bits of those bytes that lie among the next ``left`` of the text. */
    static inline uint32_t drey_found(__m128i found, int64_t left) {
        return (uint32_t)_mm_movemask_epi8(found) & (left < 16 ? (1u << left) - 1 : 0xFFFF);
    }
    #endif
    static inline int drey_copy_unquoted(uint8_t* target, const uint8_t* text, int64_t size, const uint8_t* text_end,
                                         uint8_t delimiter) {
        int64_t position = 0;
    #if defined(__SSE2__)
        for (; text_end - (text + position) >= 16; position += 16) {
            const __m128i bytes = _mm_loadu_si128((const __m128i*)(text + position));
            const __m128i special = _mm_or_si128(_mm_or_si128(drey_equals(bytes, delimiter), drey_equals(bytes, '"')),
                                                 _mm_or_si128(drey_equals(bytes, 10), drey_equals(bytes, 13)));
            _mm_storeu_si128((__m128i*)(target + position), bytes);
            if (drey_found(special, size - position))
                return 0;
            if (size - position <= 16)
                return 1;
        }
    #endif
        for (; position < size; position++) {
            if (drey_needs_quotes(text[position], delimiter))
                return 0;
            target[position] = text[position];
        }
        return 1;
    }
    static inline uint8_t* drey_put_quoted(uint8_t* target, const uint8_t* text, int64_t size,
                                           const uint8_t* text_end) {
        const uint8_t* const end = text + size;
        *target++ = '"';
    #if defined(__SSE2__)
        while (text < end && text_end - text >= 16) {
            const __m128i bytes = _mm_loadu_si128((const __m128i*)text);
            const int64_t left = end - text < 16 ? end - text : 16;
            const int place = __builtin_ctz(drey_found(drey_equals(bytes, '"'), left) | (1u << left));
            const int is_quote = place < left;
            _mm_storeu_si128((__m128i*)target, bytes);
            target += place + is_quote;
            text += place + is_quote;
            *target = '"';
            target += is_quote;
        }
    #endif
        for (; text < end; text++) {
            if (*text == '"')
                *target++ = '"';
            *target++ = *text;
        }
        *target = '"';
        return target + 1;
    }
    """
    const int64_t COPY_SLACK "DREY_COPY_SLACK"
    bint copy_unquoted "drey_copy_unquoted" (uint8_t* target, const uint8_t* text, int64_t size,
                                             const uint8_t* text_end, uint8_t delimiter)
    uint8_t* put_quoted "drey_put_quoted" (uint8_t* target, const uint8_t* text, int64_t size,
                                           const uint8_t* text_end)
