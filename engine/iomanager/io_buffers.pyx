"""IoBuffers: memory for blocks on their way to and from disk, recycled so that it stays warm.

    buffer = buffers.take(size) ... buffers.give(buffer, size)      any thread, without the GIL

Sizes are rounded up to a power of two from 4 KiB to 2 MiB; of those, up to ``keep_bytes`` wait on free lists for the
next taker. A larger block (one huge record) is allocated and freed. How much is out at one time is bounded by the
users: one block per open writer, ``queue depth`` blocks per disk, ``prefetch + 1`` blocks per open reader.

What many readers hold is more than the room for I/O. Their operator has reserved pages for as much and does not
touch it; but its free pages may be warm from what it did before. So the manager is told of what is held beyond the
room, in steps, and lets as much of its free memory go. Blocks of 16 KiB and more are mapped one by one: what hundreds
of readers held goes back to the system when they end, where the heap would keep it between what lives on.

Held by: tests/iomanager/test_block_memory.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from engine.memory.manager cimport MemoryManager
from engine.memory.page_slabs cimport pthread_mutex_lock, pthread_mutex_t, pthread_mutex_unlock

cdef extern from "<pthread.h>" nogil:
    int pthread_mutex_init(pthread_mutex_t* mutex, void* attributes)
    int pthread_mutex_destroy(pthread_mutex_t* mutex)

cdef extern from *:
    """
    #include <stdlib.h>
    #include <sys/mman.h>

    #ifdef NDEBUG
    #define DREY_MAPPED_MIN (16 << 10)
    #else
    #define DREY_MAPPED_MIN INT64_MAX       /* the address sanitizer watches the heap */
    #endif

    static void* drey_block_memory(int64_t size)
    {
        void* memory = NULL;
        if (size >= DREY_MAPPED_MIN) {
            memory = mmap(NULL, (size_t) size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            return memory == MAP_FAILED ? NULL : memory;
        }
        return posix_memalign(&memory, 64, (size_t) size) == 0 ? memory : NULL;
    }

    static void drey_block_free(void* memory, int64_t size)
    {
        if (size >= DREY_MAPPED_MIN)
            munmap(memory, (size_t) size);
        else
            free(memory);
    }
    """
    void* drey_block_memory(int64_t size) noexcept nogil
    void drey_block_free(void* memory, int64_t size) noexcept nogil

cdef int64_t SIZE_SMALLEST = 4 << 10
cdef int64_t ROOM_BYTES = 8 << 20           # that a process has for blocks beside its pages
cdef int64_t STEP_BYTES = 1 << 20           # the manager hears of so much more, or of four times as much less


cdef inline int32_t size_class(int64_t size) noexcept nogil:
    """Return the class of a size, SIZE_CLASSES when it is too large for any."""
    cdef int32_t number = 0
    while number < SIZE_CLASSES and SIZE_SMALLEST << number < size:
        number += 1
    return number


@cython.final
cdef class IoBuffers:

    def __cinit__(self, int64_t keep_bytes=ROOM_BYTES, MemoryManager manager=None):
        self.keep_bytes = keep_bytes
        self._manager = manager
        pthread_mutex_init(&self.mutex, NULL)

    def __dealloc__(self):
        cdef void* memory
        cdef int32_t number
        for number in range(SIZE_CLASSES):
            while self.free_lists[number] != NULL:
                memory = self.free_lists[number]
                self.free_lists[number] = (<void**> memory)[0]
                drey_block_free(memory, SIZE_SMALLEST << number)
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
        self._tell()
        pthread_mutex_unlock(&self.mutex)
        if memory == NULL:
            memory = drey_block_memory(capacity)
        if memory == NULL:
            pthread_mutex_lock(&self.mutex)
            self.bytes_out -= capacity
            pthread_mutex_unlock(&self.mutex)
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
        self._tell()
        pthread_mutex_unlock(&self.mutex)
        if not keep:
            drey_block_free(memory, capacity)

    cdef void _tell(self) noexcept nogil:
        cdef int64_t held = self.bytes_out + self.free_bytes - ROOM_BYTES
        if held <= self._told_bytes and held >= self._told_bytes - 4 * STEP_BYTES:
            return
        held = (max(held, 0) + STEP_BYTES - 1) // STEP_BYTES * STEP_BYTES
        if held != self._told_bytes and self._manager is not None:
            self._told_bytes = held
            self._manager.hold_outside(held)
