"""IoBuffers: memory for blocks on their way to and from disk, recycled so that it stays warm.

    buffer = buffers.take(size) ... buffers.give(buffer, size)      any thread, without the GIL

Sizes are rounded up to a power of two from 4 KiB to 2 MiB; of those, up to ``keep_bytes`` wait on free lists for the
next taker. A larger block (one huge record) is allocated and freed. How much is out at one time is bounded by the
users: one block per open writer, ``queue depth`` blocks per disk, ``prefetch + 1`` blocks per open reader.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free

from engine.memory.page_slabs cimport pthread_mutex_lock, pthread_mutex_t, pthread_mutex_unlock

cdef extern from "<pthread.h>" nogil:
    int pthread_mutex_init(pthread_mutex_t* mutex, void* attributes)
    int pthread_mutex_destroy(pthread_mutex_t* mutex)

cdef extern from "<stdlib.h>" nogil:
    int posix_memalign(void** memory, size_t alignment, size_t size)

cdef int64_t SIZE_SMALLEST = 4 << 10


cdef inline int32_t size_class(int64_t size) noexcept nogil:
    """Return the class of a size, SIZE_CLASSES when it is too large for any."""
    cdef int32_t number = 0
    while number < SIZE_CLASSES and SIZE_SMALLEST << number < size:
        number += 1
    return number


@cython.final
cdef class IoBuffers:

    def __cinit__(self, int64_t keep_bytes=16 << 20):
        self.keep_bytes = keep_bytes
        pthread_mutex_init(&self.mutex, NULL)

    def __dealloc__(self):
        cdef void* memory
        cdef int32_t number
        for number in range(SIZE_CLASSES):
            while self.free_lists[number] != NULL:
                memory = self.free_lists[number]
                self.free_lists[number] = (<void**> memory)[0]
                free(memory)
        pthread_mutex_destroy(&self.mutex)

    cdef uint8_t* take(self, int64_t size) noexcept nogil:
        cdef int32_t number = size_class(size)
        cdef void* memory = NULL
        cdef int64_t capacity = size if number == SIZE_CLASSES else SIZE_SMALLEST << number
        pthread_mutex_lock(&self.mutex)
        if number < SIZE_CLASSES and self.free_lists[number] != NULL:
            memory = self.free_lists[number]
            self.free_lists[number] = (<void**> memory)[0]
            self.free_bytes -= capacity
        self.bytes_out += capacity
        pthread_mutex_unlock(&self.mutex)
        if memory == NULL and posix_memalign(&memory, 64, <size_t> capacity) != 0:
            pthread_mutex_lock(&self.mutex)
            self.bytes_out -= capacity
            pthread_mutex_unlock(&self.mutex)
            return NULL
        return <uint8_t*> memory

    cdef void give(self, uint8_t* memory, int64_t size) noexcept nogil:
        cdef int32_t number = size_class(size)
        cdef int64_t capacity = size if number == SIZE_CLASSES else SIZE_SMALLEST << number
        cdef bint keep
        pthread_mutex_lock(&self.mutex)
        self.bytes_out -= capacity
        keep = number < SIZE_CLASSES and self.free_bytes + capacity <= self.keep_bytes
        if keep:
            (<void**> memory)[0] = self.free_lists[number]
            self.free_lists[number] = memory
            self.free_bytes += capacity
        pthread_mutex_unlock(&self.mutex)
        if not keep:
            free(memory)
