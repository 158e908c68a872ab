# Where the texts of an array lie, for loops that write others.

from libc.stdint cimport int64_t

cdef struct PlainTexts:
    bint is_wide                # offsets are int64_t, not int32_t
    int64_t width               # bytes of an offset
    size_t offsets              # address of the first text's; 0: there are none
    size_t values               # address of all bytes; 0: there are none

# The texts of a string or large string array. Raises ValueError for other types.
cdef PlainTexts plain_texts(object texts) except *

# An array of the type and the nulls of others, from new offsets and bytes.
cdef object texts_like(object texts, object offsets, object values)
