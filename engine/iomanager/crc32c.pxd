# CRC32C (Castagnoli), as in iSCSI, ext4 and Kafka: crc32c("123456789") == 0xE3069283.

from libc.stdint cimport int64_t, uint8_t, uint32_t

# The checksum of `size` bytes that follow bytes of checksum `crc` (0 to begin). Caller guarantees the range.
cdef uint32_t crc32c_update(uint32_t crc, const uint8_t* data, int64_t size) noexcept nogil
