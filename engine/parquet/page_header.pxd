# PageHeader: what stands before each page of a Parquet column, and how it is parsed.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

cdef enum PageKind:
    PAGE_DATA = 0
    PAGE_INDEX = 1
    PAGE_DICTIONARY = 2
    PAGE_DATA_2 = 3

cdef enum PageEncoding:
    ENCODING_PLAIN = 0
    ENCODING_PLAIN_DICTIONARY = 2   # codes of data pages, plain values of dictionaries: the word of old writers
    ENCODING_RLE = 3
    ENCODING_DELTA_BINARY_PACKED = 5
    ENCODING_RLE_DICTIONARY = 8

cdef enum:
    VALUES_UNKNOWN = -1

cdef struct PageHeader:
    int64_t kind                    # PageKind
    int64_t size                    # bytes of the page, with levels
    int64_t compressed              # bytes that follow the header
    int64_t values                  # nulls too; VALUES_UNKNOWN: it does not say
    int64_t encoding                # PageEncoding, or one of the others
    int64_t level_encoding          # of definition levels, in PAGE_DATA
    int64_t level_bytes             # of definition levels, in PAGE_DATA_2, which are not compressed
    int64_t repeat_bytes            # of repetition levels, in PAGE_DATA_2
    bint is_compressed
    bint has_checksum
    uint32_t checksum               # of what follows the header

# Parse a header; returns how many bytes it has, 0 when it does not end within size, or is none.
cdef int64_t parse_page_header(const uint8_t* data, int64_t size, PageHeader* header) noexcept nogil
