"""MemorySegment: a page of bytes with an address, a size, and bounds.

    segment = MemorySegment(4096)             memory of its own; pages come from MemoryManager.allocate
    segment.put_bytes(16, b"abc"); segment.get_bytes(16, 3)
    memoryview(segment)                       writable, without a copy; pins the segment until it is released

Every access from Python checks its bounds and raises SegmentBoundsError; kernels use ``data`` and ``size``
(``segment.pxd``) and have checked before.

Limits: at most 2**31 - 1 bytes. Source: Flink's MemorySegment, without its two forms, on and off the heap.
"""

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uintptr_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from engine.errors import SegmentBoundsError

cdef extern from "<stdlib.h>" nogil:
    int posix_memalign(void** memory, size_t alignment, size_t size)


@cython.final
cdef class MemorySegment:

    def __cinit__(self, int32_t size):
        """size: bytes, 1 or more; -1 is for wrap_memory."""
        cdef void* memory = NULL
        if size == -1:
            return
        if size < 1:
            raise ValueError(f"a segment of {size} bytes: at least one is needed")
        if posix_memalign(&memory, 64, <size_t> size) != 0:
            raise MemoryError(f"no memory for a segment of {size} bytes")
        self.data = <uint8_t*> memory
        self.size = size
        self._owned = True

    def __dealloc__(self):
        if self._owned:
            free(self.data)

    # --------------------------------------------------------------------------------------------------- the owner's

    cdef int require_no_views(self) except -1:
        if self._views > 0:
            raise BufferError(f"{self._views} memoryviews of {self!r} are still alive; release them first")
        return 0

    cdef void forget(self) noexcept:
        self.data = NULL
        self.size = 0
        self._owned = False
        self._keeper = None

    # ---------------------------------------------------------------------------------------------------- properties

    @property
    def address(self):
        """Address of the first byte; 0 after the memory went back to its owner."""
        return <uintptr_t> self.data

    def __len__(self):
        return self.size

    def __repr__(self):
        if self.data == NULL:
            return "<MemorySegment released>"
        return f"<MemorySegment {self.size} bytes at {<uintptr_t> self.data:#x}>"

    # -------------------------------------------------------------------------------------------------- get and put

    cdef int _check(self, int64_t offset, int64_t count) except -1:
        """Raise SegmentBoundsError unless 0 <= offset and offset + count <= size."""
        if offset < 0 or count < 0 or offset > self.size - count:
            raise SegmentBoundsError(offset, count, self.size)
        return 0

    def get_bytes(self, int64_t offset, int64_t count):
        """Return a copy of `count` bytes at offset."""
        self._check(offset, count)
        return PyBytes_FromStringAndSize(<const char*> self.data + offset, count)

    def put_bytes(self, int64_t offset, const uint8_t[::1] source not None):
        """Copy a contiguous buffer to offset."""
        cdef int64_t count = source.shape[0]
        self._check(offset, count)
        if count > 0:
            memcpy(self.data + offset, &source[0], <size_t> count)

    # ------------------------------------------------------------------------------------------------ buffer protocol

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        if self.data == NULL:
            raise BufferError("the segment's memory went back to its owner")
        PyBuffer_FillInfo(buffer, self, self.data, self.size, False, flags)
        self._views += 1

    def __releasebuffer__(self, Py_buffer* buffer):
        self._views -= 1


cdef MemorySegment wrap_memory(uint8_t* data, int32_t size, object keeper):
    cdef MemorySegment segment = MemorySegment.__new__(MemorySegment, -1)
    segment.data = data
    segment.size = size
    segment._keeper = keeper
    return segment


cdef MemorySegment allocate_segment(int32_t size):
    return MemorySegment.__new__(MemorySegment, size)
