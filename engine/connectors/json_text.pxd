# Tokens of JSON text: where each ends. NULL: this is none, or none that is read here.
#
#     behind_space(at)             spaces, tabs and returns passed over; a line end is none of them
#     text_end(at, end, &escaped)  the closing quote of a text, from behind the opening one
#     number_end(at)               behind a number
#     word_end(at)                 behind true, false or null
#     unescape(out, text, size)    a text as UTF-8; returns its bytes, at most size
#
# The text ends with a zero, as that of Python's bytes does, which is no part of any token: only what reads sixteen
# bytes at once asks where the end is. Escapes are checked where a text's end is looked for; \u of half a pair is none.
#
# Source: RFC 8259. Arrow's parser (RapidJSON) takes the same, and some more: NaN, for one.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

from engine.records.utf8 cimport put_utf8

cdef enum:
    QUOTE = 34
    BACKSLASH = 92

cdef extern from * nogil:
    """
    #include <stdint.h>
    #if defined(__SSE2__)
    #include <emmintrin.h>
    #endif
    /* The first quote, backslash or control character; end: none. */
    static inline const uint8_t* drey_json_special(const uint8_t* at, const uint8_t* end) {
    #if defined(__SSE2__)
        const __m128i quotes = _mm_set1_epi8('"'), backslashes = _mm_set1_epi8('\\\\'), controls = _mm_set1_epi8(31);
        for (; end - at >= 16; at += 16) {
            const __m128i bytes = _mm_loadu_si128((const __m128i*)at);
            const __m128i found = _mm_or_si128(
                _mm_or_si128(_mm_cmpeq_epi8(bytes, quotes), _mm_cmpeq_epi8(bytes, backslashes)),
                _mm_cmpeq_epi8(_mm_min_epu8(bytes, controls), bytes));
            const uint32_t mask = (uint32_t)_mm_movemask_epi8(found);
            if (mask)
                return at + __builtin_ctz(mask);
        }
    #endif
        while (at < end && *at != '"' && *at != '\\\\' && *at >= 32)
            at++;
        return at;
    }
    """
    const uint8_t* next_special "drey_json_special" (const uint8_t* at, const uint8_t* end)


cdef inline const uint8_t* behind_space(const uint8_t* at) noexcept nogil:
    while at[0] == 32 or at[0] == 9 or at[0] == 13:
        at += 1
    return at


# Four hexadecimal digits; -1: they are not.
cdef inline int32_t code_unit(const uint8_t* at) noexcept nogil:
    cdef int32_t value = 0
    cdef int32_t index, digit
    for index in range(4):
        digit = at[index]
        if 48 <= digit <= 57:
            digit -= 48
        elif 97 <= digit | 32 <= 102:
            digit = (digit | 32) - 87
        else:
            return -1
        value = value << 4 | digit
    return value


# Behind an escape, or the two of a pair, from its backslash.
cdef inline const uint8_t* escape_end(const uint8_t* at) noexcept nogil:
    cdef uint8_t kind = at[1]
    cdef int32_t unit
    if kind != 117:
        if kind in (QUOTE, BACKSLASH, 47, 98, 102, 110, 114, 116):
            return at + 2
        return NULL
    unit = code_unit(at + 2)
    if unit < 0 or 0xDC00 <= unit < 0xE000:
        return NULL
    if not 0xD800 <= unit < 0xDC00:
        return at + 6
    if at[6] == BACKSLASH and at[7] == 117 and 0xDC00 <= code_unit(at + 8) < 0xE000:
        return at + 12
    return NULL


cdef inline const uint8_t* text_end(const uint8_t* at, const uint8_t* end, bint* escaped) noexcept nogil:
    escaped[0] = False
    while True:
        at = next_special(at, end)
        if at[0] == QUOTE:
            return at
        if at[0] != BACKSLASH:
            return NULL
        escaped[0] = True
        at = escape_end(at)
        if at == NULL:
            return NULL


cdef inline bint is_digit(const uint8_t* at) noexcept nogil:
    return <uint8_t>(at[0] - 48) <= 9


cdef inline const uint8_t* digits_end(const uint8_t* at) noexcept nogil:
    if not is_digit(at):
        return NULL
    while is_digit(at):
        at += 1
    return at


cdef inline const uint8_t* number_end(const uint8_t* at) noexcept nogil:
    if at[0] == 45:
        at += 1
    at = at + 1 if at[0] == 48 else digits_end(at)
    if at != NULL and at[0] == 46:
        at = digits_end(at + 1)
    if at != NULL and at[0] | 32 == 101:
        at += 1
        if at[0] == 43 or at[0] == 45:
            at += 1
        at = digits_end(at)
    return at


cdef inline const uint8_t* word_end(const uint8_t* at) noexcept nogil:
    if at[0] == 116 and at[1] == 114 and at[2] == 117 and at[3] == 101:
        return at + 4
    if at[0] == 102 and at[1] == 97 and at[2] == 108 and at[3] == 115 and at[4] == 101:
        return at + 5
    if at[0] == 110 and at[1] == 117 and at[2] == 108 and at[3] == 108:
        return at + 4
    return NULL


# The escape at a backslash; returns the bytes that are out.
cdef inline int64_t put_escaped(uint8_t* out, const uint8_t* at) noexcept nogil:
    cdef uint8_t kind = at[1]
    cdef uint32_t point
    if kind == 117:
        point = <uint32_t>code_unit(at + 2)
        if 0xD800 <= point < 0xDC00:
            point = 0x10000 + (point - 0xD800 << 10) + <uint32_t>code_unit(at + 8) - 0xDC00
        return put_utf8(out, point)
    if kind == 98:
        kind = 8
    elif kind == 102:
        kind = 12
    elif kind == 110:
        kind = 10
    elif kind == 114:
        kind = 13
    elif kind == 116:
        kind = 9
    out[0] = kind
    return 1


# The caller has found the text's end by text_end.
cdef inline int64_t unescape(uint8_t* out, const uint8_t* text, int64_t size) noexcept nogil:
    cdef const uint8_t* at = text
    cdef const uint8_t* end = text + size
    cdef const uint8_t* special
    cdef int64_t used = 0
    while True:
        special = next_special(at, end)
        memcpy(out + used, at, special - at)
        used += special - at
        if special == end:
            return used
        used += put_escaped(out + used, special)
        at = escape_end(special)
