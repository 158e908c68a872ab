# LZ4 block compression without the GIL (see lz4_codec.pyx for where the functions come from).

from libc.stdint cimport int64_t, uint8_t

# Bytes written to target, or 0 when `size` bytes do not fit into `capacity` after compression (or size is not in
# 1 .. 2**31 - 65536).
cdef int64_t lz4_compress(const uint8_t* source, int64_t size, uint8_t* target, int64_t capacity) noexcept nogil
# 0, or -1 when the stored bytes are not an LZ4 block of exactly raw_size bytes.
cdef int lz4_decompress(const uint8_t* source, int64_t size, uint8_t* target, int64_t raw_size) noexcept nogil
