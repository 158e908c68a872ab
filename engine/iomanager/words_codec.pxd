# Compression of rows by the difference of each word to the same word of the row before (format in words_codec.pyx).

from libc.stdint cimport int64_t, uint8_t

# Whether a sample of the block says that this beats a general compression: 2.5 to 1 at least.
cdef bint words_pay(const uint8_t* source, int64_t size) noexcept nogil
# Bytes written to target, or 0 when `size` bytes do not fit into `capacity` after compression (or are not words).
cdef int64_t words_compress(const uint8_t* source, int64_t size, uint8_t* target, int64_t capacity) noexcept nogil
# 0, or -1 when the stored bytes are not those of exactly raw_size bytes.
cdef int words_decompress(const uint8_t* stored, int64_t stored_size, uint8_t* target, int64_t raw_size) noexcept nogil
