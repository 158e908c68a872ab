# Blocks: memory for the columns of a batch, which kernels take and give without the GIL, from any thread.

from libc.stdint cimport int64_t, uint8_t

# A block of at least this many bytes, 64-byte aligned, its values unset; NULL: there is no memory.
cdef uint8_t* take_block(int64_t size) noexcept nogil

# Give back a block of take_block.
cdef void give_block(uint8_t* block) noexcept nogil

# A word in front of a block that belongs to its owner: blocks that are given back together form a chain.
cdef inline uint8_t** next_of(uint8_t* block) noexcept nogil:
    return <uint8_t**>(block - sizeof(void*))
