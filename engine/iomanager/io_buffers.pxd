# Recycled memory for blocks on their way to and from disk.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from engine.memory.manager cimport MemoryManager
from engine.memory.page_slabs cimport pthread_mutex_t

cdef enum:
    SIZE_CLASSES = 10           # 4 KiB << class: 4 KiB to 2 MiB; larger blocks are not recycled


@cython.final
cdef class IoBuffers:
    cdef pthread_mutex_t mutex
    cdef void* free_lists[SIZE_CLASSES]         # first of each class; a free buffer's first 8 bytes are the next one
    cdef int64_t free_bytes                     # on the free lists, <= keep_bytes
    cdef readonly int64_t keep_bytes
    cdef readonly int64_t bytes_out             # taken and not given back
    cdef MemoryManager _manager                 # hears what is more than ROOM_BYTES; may be None
    cdef int64_t _told_bytes                    # what it has heard, in steps of STEP_BYTES

    # Memory of at least `size` bytes, aligned to 64; NULL when the operating system has none.
    cdef uint8_t* take(self, int64_t size) noexcept nogil
    # Give memory back; `size` as it was taken.
    cdef void give(self, uint8_t* memory, int64_t size) noexcept nogil
    # Tell the manager how much is held now. The mutex is held.
    cdef void _tell(self) noexcept nogil
