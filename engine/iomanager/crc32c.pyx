"""CRC32C of block headers and payloads.

    crc32c(data, crc=0)            the checksum of a buffer; pass the last result to go on with more bytes
    crc32c_by_table(data, crc=0)   the same without the instruction, for machines that lack it (and for the test)

The instruction of SSE4.2 takes 8 bytes per cycle but answers after 3 cycles, so three streams run interleaved over
adjacent stretches of equal length:

    | stretch a (n bytes) | stretch b (n bytes) | stretch c (n bytes) |
    crc = shift(shift(crc_a, n) ^ crc_b, n) ^ crc_c

where ``shift(crc, n)`` is the register after n more zero bytes: a linear map, looked up in 4 tables of 256 entries.

Source: the interleaving is Mark Adler's crc32c.c; here the shift tables come from running the 32 single bits.

Held by: tests/iomanager/test_block_format.py
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef extern from *:
    """
    #ifdef __SSE4_2__
    #define DREY_CRC_NATIVE 1
    #define drey_crc_8(crc, word) __builtin_ia32_crc32di((crc), (word))
    #define drey_crc_1(crc, byte) __builtin_ia32_crc32qi((unsigned int)(crc), (byte))
    #else
    #define DREY_CRC_NATIVE 0
    #define drey_crc_8(crc, word) (crc)
    #define drey_crc_1(crc, byte) (crc)
    #endif
    """
    const bint CRC_NATIVE "DREY_CRC_NATIVE"
    uint64_t drey_crc_8(uint64_t crc, uint64_t word) noexcept nogil
    uint64_t drey_crc_1(uint64_t crc, uint8_t byte) noexcept nogil

cdef enum:
    STRETCH_LONG = 8192
    STRETCH_SHORT = 256

cdef uint32_t[8][256] byte_tables           # byte_tables[k][b]: byte b followed by k zero bytes
cdef uint32_t[4][256] shift_long            # shift_long[k][b]: byte k of a register, after STRETCH_LONG zero bytes
cdef uint32_t[4][256] shift_short


cdef void fill_byte_tables() noexcept nogil:
    cdef uint32_t crc
    cdef int byte, bit, table
    for byte in range(256):
        crc = <uint32_t> byte
        for bit in range(8):
            crc = (crc >> 1) ^ (<uint32_t> 0x82F63B78 if crc & 1 else <uint32_t> 0)
        byte_tables[0][byte] = crc
    for table in range(1, 8):
        for byte in range(256):
            crc = byte_tables[table - 1][byte]
            byte_tables[table][byte] = byte_tables[0][crc & 0xFF] ^ (crc >> 8)


cdef void fill_shift_table(uint32_t[256]* tables, int64_t zero_count) noexcept nogil:
    """Fill 4 tables with the registers that every byte of a register becomes after zero_count zero bytes."""
    cdef uint32_t[32] of_bit
    cdef uint32_t crc
    cdef int bit, position, byte
    cdef int64_t step
    for bit in range(32):
        crc = <uint32_t> 1 << bit
        for step in range(zero_count):
            crc = byte_tables[0][crc & 0xFF] ^ (crc >> 8)
        of_bit[bit] = crc
    for position in range(4):
        for byte in range(256):
            crc = 0
            for bit in range(8):
                if byte >> bit & 1:
                    crc ^= of_bit[8 * position + bit]
            tables[position][byte] = crc


cdef inline uint64_t shift(uint32_t[256]* tables, uint64_t crc) noexcept nogil:
    return (tables[0][crc & 0xFF] ^ tables[1][crc >> 8 & 0xFF] ^ tables[2][crc >> 16 & 0xFF]
            ^ tables[3][crc >> 24 & 0xFF])


cdef inline uint64_t load(const uint8_t* data) noexcept nogil:
    cdef uint64_t word
    memcpy(&word, data, 8)
    return word


cdef inline uint64_t three_streams(
    uint64_t first, const uint8_t* data, int64_t stretch, uint32_t[256]* tables
) noexcept nogil:
    """Return the register after 3 * stretch bytes (stretch: a multiple of 8)."""
    cdef uint64_t second = 0
    cdef uint64_t third = 0
    cdef int64_t offset = 0
    while offset < stretch:
        first = drey_crc_8(first, load(data + offset))
        second = drey_crc_8(second, load(data + stretch + offset))
        third = drey_crc_8(third, load(data + 2 * stretch + offset))
        offset += 8
    return shift(tables, shift(tables, first) ^ second) ^ third


cdef uint32_t update_native(uint32_t crc, const uint8_t* data, int64_t size) noexcept nogil:
    cdef uint64_t register = crc ^ <uint32_t> 0xFFFFFFFF
    while size >= 3 * STRETCH_LONG:
        register = three_streams(register, data, STRETCH_LONG, shift_long)
        data += 3 * STRETCH_LONG
        size -= 3 * STRETCH_LONG
    while size >= 3 * STRETCH_SHORT:
        register = three_streams(register, data, STRETCH_SHORT, shift_short)
        data += 3 * STRETCH_SHORT
        size -= 3 * STRETCH_SHORT
    while size >= 8:
        register = drey_crc_8(register, load(data))
        data += 8
        size -= 8
    while size > 0:
        register = drey_crc_1(register, data[0])
        data += 1
        size -= 1
    return <uint32_t> register ^ <uint32_t> 0xFFFFFFFF


cdef uint32_t update_by_table(uint32_t crc, const uint8_t* data, int64_t size) noexcept nogil:
    """The portable way: 8 bytes per step through 8 tables. Little-endian machines."""
    cdef uint64_t register = crc ^ <uint32_t> 0xFFFFFFFF
    while size >= 8:
        register ^= load(data)
        register = (byte_tables[7][register & 0xFF] ^ byte_tables[6][register >> 8 & 0xFF]
                    ^ byte_tables[5][register >> 16 & 0xFF] ^ byte_tables[4][register >> 24 & 0xFF]
                    ^ byte_tables[3][register >> 32 & 0xFF] ^ byte_tables[2][register >> 40 & 0xFF]
                    ^ byte_tables[1][register >> 48 & 0xFF] ^ byte_tables[0][register >> 56])
        data += 8
        size -= 8
    while size > 0:
        register = byte_tables[0][(register ^ data[0]) & 0xFF] ^ (register >> 8)
        data += 1
        size -= 1
    return <uint32_t> register ^ <uint32_t> 0xFFFFFFFF


cdef uint32_t crc32c_update(uint32_t crc, const uint8_t* data, int64_t size) noexcept nogil:
    if CRC_NATIVE:
        return update_native(crc, data, size)
    return update_by_table(crc, data, size)


def crc32c(const uint8_t[::1] data not None, uint32_t crc=0):
    """Return the CRC32C of a contiguous buffer that follows bytes of checksum `crc`."""
    cdef int64_t size = data.shape[0]
    if size == 0:
        return crc
    with nogil:
        crc = crc32c_update(crc, &data[0], size)
    return crc


def crc32c_by_table(const uint8_t[::1] data not None, uint32_t crc=0):
    """Compute crc32c without the processor's instruction."""
    cdef int64_t size = data.shape[0]
    if size == 0:
        return crc
    with nogil:
        crc = update_by_table(crc, &data[0], size)
    return crc


fill_byte_tables()
fill_shift_table(shift_long, STRETCH_LONG)
fill_shift_table(shift_short, STRETCH_SHORT)
