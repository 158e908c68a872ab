"""Test-only door to the kernels of SpillWriter and SpillReader."""

from libc.stdint cimport int64_t, uint8_t

from engine.iomanager.crc32c cimport crc32c_update
from engine.iomanager.spill_reader cimport SpillReader
from engine.iomanager.spill_writer cimport SpillWriter


def write_rows(SpillWriter writer not None, const uint8_t[::1] data not None, int64_t row_size, bint keep_gil=False):
    """Write the buffer in rows of row_size bytes, one call of the kernel for each."""
    cdef int64_t offset = 0
    cdef int64_t size = data.shape[0]
    if keep_gil:
        while offset < size:
            writer.write(&data[offset], min(row_size, size - offset))
            offset += row_size
        return
    with nogil:
        while offset < size:
            writer.write(&data[offset], min(row_size, size - offset))
            offset += row_size


def drain(SpillReader reader not None, bint checksum=False):
    """Read to the end; return (blocks, bytes, CRC32C of all rows when asked for, whether all memory was aligned)."""
    cdef const uint8_t* data
    cdef int64_t size
    cdef int64_t blocks = 0
    cdef int64_t total = 0
    cdef bint aligned = True
    cdef unsigned int running = 0
    with nogil:
        while reader.next_block(&data, &size):
            blocks += 1
            total += size
            aligned = aligned and (<int64_t> data & 63) == 0
            if checksum:
                running = crc32c_update(running, data, size)
    return blocks, total, running, aligned
