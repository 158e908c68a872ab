# MemorySegment: a piece of native memory with a bounds-checked face for Python and raw fields for kernels.
#
# A kernel reads `data` and `size`; the pointer is valid while the segment is alive and not released. Only the
# manager and the buffer pools calls wrap_memory, require_no_views and forget.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t


@cython.final
cdef class MemorySegment:
    cdef uint8_t* data          # NULL after the memory went back to its owner
    cdef int32_t size           # bytes, 0 after the memory went back
    cdef object _keeper         # keeps the memory alive (a PagePool, a buffer pool); None when the segment owns it
    cdef bint _owned            # free(data) at the end
    cdef int32_t _views         # exported buffers; the memory cannot go back while there are any

    # Raise BufferError while a memoryview is alive.
    cdef int require_no_views(self) except -1
    # The memory has gone back to its owner: bounds are empty from now on. Call require_no_views first.
    cdef void forget(self) noexcept
    cdef int _check(self, int64_t offset, int64_t count) except -1

# A segment of memory with another owner; `keeper` is held until `forget` or the segment's end.
cdef MemorySegment wrap_memory(uint8_t* data, int32_t size, object keeper)
# A segment with memory of its own (aligned to 64, not zeroed), outside of any budget. Raises MemoryError.
cdef MemorySegment allocate_segment(int32_t size)
