"""Blocks: memory for the columns of batches, taken and given without the GIL; what was given back lately is taken next.

    take_block(size) ──► spare blocks, the last one given first ──► none that fits: from the operating system
    give_block(block) ─► spare blocks ──► more than SPARE_BYTES_MAX: the oldest go back to the operating system

    block_bytes(), block_bytes_peak()       that batches have now, and the most that they had
    spare_block_bytes()                     that are kept for the next ones
    keep_spare_blocks(bytes_max) -> before  how much is kept from now on, in this process
    drop_spare_blocks()                     keep none, now

Batches come and go by the thousand in a question, each with a few blocks of a megabyte. Arrow's allocator is asked
through pyarrow, which releases the GIL and takes it again twice for each block, so two threads that make batches pass
it to and fro; and it lets go of pages after a while, which the kernel then clears again. Here a block that was given
back is still in the processor's cache when it is taken.

A spare block is taken for a size of two thirds of it or more. Small blocks are the C library's.

Limits: POSIX. Thread: any. Source: the caches of jemalloc's threads, with one for the process.
Held by: tests/memory/test_blocks.py
"""

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free
from libc.string cimport memmove

cdef extern from *:
    """
    #include <pthread.h>
    #include <stdint.h>
    #include <stdlib.h>
    #include <sys/mman.h>

    static pthread_mutex_t drey_spare_mutex = PTHREAD_MUTEX_INITIALIZER;
    static void drey_spare_lock(void) { pthread_mutex_lock(&drey_spare_mutex); }
    static void drey_spare_unlock(void) { pthread_mutex_unlock(&drey_spare_mutex); }

    static void* drey_map(int64_t size)
    {
        void* found = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return found == MAP_FAILED ? NULL : found;
    }
    static void drey_unmap(void* block, int64_t size) { munmap(block, (size_t)size); }

    static void* drey_aligned(int64_t size)
    {
        void* found;
        return posix_memalign(&found, 64, (size_t)size) ? NULL : found;
    }

    static int64_t drey_block_bytes, drey_block_bytes_peak;
    static void drey_count_blocks(int64_t size)
    {
        int64_t held = __atomic_add_fetch(&drey_block_bytes, size, __ATOMIC_RELAXED);
        int64_t peak = __atomic_load_n(&drey_block_bytes_peak, __ATOMIC_RELAXED);
        while (held > peak && !__atomic_compare_exchange_n(&drey_block_bytes_peak, &peak, held, 1, __ATOMIC_RELAXED,
                                                           __ATOMIC_RELAXED)) { }
    }
    static int64_t drey_blocks_now(void) { return __atomic_load_n(&drey_block_bytes, __ATOMIC_RELAXED); }
    static int64_t drey_blocks_peak(void) { return __atomic_load_n(&drey_block_bytes_peak, __ATOMIC_RELAXED); }
    """
    void drey_spare_lock() noexcept nogil
    void drey_spare_unlock() noexcept nogil
    void* drey_map(int64_t size) noexcept nogil
    void drey_unmap(void* block, int64_t size) noexcept nogil
    void* drey_aligned(int64_t size) noexcept nogil
    void drey_count_blocks(int64_t size) noexcept nogil
    int64_t drey_blocks_now() noexcept nogil
    int64_t drey_blocks_peak() noexcept nogil

cdef enum:
    HEADER = 64                 # in front of a block: its size, and at its end the owner's word
    MAPPED_BYTES = 1 << 16      # from here on a block is mapped, and kept
    STEPS = 8                   # sizes to a power of two
    SPARE_BLOCKS_MAX = 64
    SPARE_BYTES_MAX = 4 << 20   # unless the process says otherwise: workers are many

# A spare block, with its header.
cdef struct Spare:
    void* memory
    int64_t size

cdef Spare[SPARE_BLOCKS_MAX] spare              # in the order in which they were given back; guarded by the mutex
cdef int spare_count = 0                        # guarded by the mutex
cdef int64_t spare_bytes = 0                    # guarded by the mutex
cdef int64_t spare_bytes_max = SPARE_BYTES_MAX  # guarded by the mutex


cdef int64_t mapped_size(int64_t size) noexcept nogil:
    """The size of a mapped block: one of eight to a power of two, of whole pages of memory."""
    cdef int64_t step = MAPPED_BYTES // STEPS
    while step * STEPS * 2 <= size:
        step *= 2
    return (size + step - 1) // step * step


cdef void* taken_spare(int64_t size) noexcept nogil:
    """The spare block that fits best, the last one given of these; NULL: none does. The mutex is held."""
    global spare_count, spare_bytes
    cdef int index, best = -1
    cdef void* memory
    for index in range(spare_count - 1, -1, -1):
        if spare[index].size == size:
            best = index
            break
        if size < spare[index].size <= size + size // 2 and (best < 0 or spare[index].size < spare[best].size):
            best = index
    if best < 0:
        return NULL
    memory = spare[best].memory
    spare_bytes -= spare[best].size
    spare_count -= 1
    memmove(&spare[best], &spare[best + 1], <size_t>(spare_count - best) * sizeof(Spare))
    return memory


cdef int oldest_beyond(int64_t bytes_max, int blocks_max, Spare* oldest) noexcept nogil:
    """Take the oldest spare blocks until no more are kept; return their number. The mutex is held."""
    global spare_count, spare_bytes
    cdef int count = 0
    while spare_count - count > blocks_max or spare_bytes > bytes_max:
        oldest[count] = spare[count]
        spare_bytes -= spare[count].size
        count += 1
    spare_count -= count
    memmove(&spare[0], &spare[count], <size_t>spare_count * sizeof(Spare))
    return count


cdef void unmap(Spare* blocks, int count) noexcept nogil:
    cdef int index
    for index in range(count):
        drey_unmap(blocks[index].memory, blocks[index].size)


cdef uint8_t* take_block(int64_t size) noexcept nogil:
    cdef void* memory = NULL
    size += HEADER
    if size < MAPPED_BYTES:
        memory = drey_aligned(size)
    else:
        size = mapped_size(size)
        drey_spare_lock()
        memory = taken_spare(size)
        drey_spare_unlock()
        if memory == NULL:
            memory = drey_map(size)
        else:
            size = (<int64_t*>memory)[0]
    if memory == NULL:
        return NULL
    (<int64_t*>memory)[0] = size
    drey_count_blocks(size)
    return <uint8_t*>memory + HEADER


cdef void give_block(uint8_t* block) noexcept nogil:
    global spare_count, spare_bytes
    cdef void* memory = block - HEADER
    cdef int64_t size = (<int64_t*>memory)[0]
    cdef Spare[SPARE_BLOCKS_MAX] oldest
    cdef int count = 0
    drey_count_blocks(-size)
    if size < MAPPED_BYTES:
        free(memory)
        return
    drey_spare_lock()
    if size > spare_bytes_max:
        oldest[0], count = Spare(memory, size), 1
    else:
        count = oldest_beyond(spare_bytes_max - size, SPARE_BLOCKS_MAX - 1, oldest)
        spare[spare_count] = Spare(memory, size)
        spare_count += 1
        spare_bytes += size
    drey_spare_unlock()
    unmap(oldest, count)


def block_bytes():
    """Return the bytes of all blocks that batches have."""
    return drey_blocks_now()


def block_bytes_peak():
    """Return the most bytes that batches had at one time."""
    return drey_blocks_peak()


def spare_block_bytes():
    """Return the bytes that are kept for the next blocks."""
    return spare_bytes


def keep_spare_blocks(int64_t bytes_max):
    """Keep at most so many bytes for the next blocks from now on; return how many it were before."""
    global spare_bytes_max
    cdef int64_t before
    drey_spare_lock()
    before, spare_bytes_max = spare_bytes_max, bytes_max
    drey_spare_unlock()
    _drop_beyond(bytes_max)
    return before


def drop_spare_blocks():
    """Give all spare blocks back to the operating system."""
    _drop_beyond(0)


cdef int _drop_beyond(int64_t bytes_max) except -1:
    cdef Spare[SPARE_BLOCKS_MAX] oldest
    cdef int count
    with nogil:
        drey_spare_lock()
        count = oldest_beyond(bytes_max, SPARE_BLOCKS_MAX, oldest)
        drey_spare_unlock()
        unmap(oldest, count)
    return 0
