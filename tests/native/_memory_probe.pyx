"""Test-only door to PagePool's kernels: pages as integers (addresses), 0 for NULL."""

from libc.stdint cimport int64_t, uint8_t, uintptr_t
from libc.string cimport memset

from engine.memory.page_pool cimport PagePool

cdef extern from *:
    """
    #ifdef NDEBUG
    #define DREY_PROBE_SLABS 1
    #else
    #define DREY_PROBE_SLABS 0
    #endif
    """
    const bint PROBE_SLABS "DREY_PROBE_SLABS"


def pages_lie_in_slabs():
    """Return whether this build has slabs (release) or an allocation for each page (assertions on)."""
    return PROBE_SLABS


def take(PagePool pool not None):
    cdef uint8_t* page
    with nogil:
        page = pool.take()
    return <uintptr_t> page


def give(PagePool pool not None, uintptr_t page):
    with nogil:
        pool.give(<uint8_t*> page)


def take_large(PagePool pool not None, int64_t size, bint beyond_limit=False):
    cdef uint8_t* memory
    with nogil:
        memory = pool.take_large(size, beyond_limit)
    return <uintptr_t> memory


def give_large(PagePool pool not None, uintptr_t memory, int64_t size):
    with nogil:
        pool.give_large(<uint8_t*> memory, size)


def pages_free(PagePool pool not None):
    return pool.pages_free()


def fill(uintptr_t memory, int64_t size, int value):
    """Write every byte."""
    with nogil:
        memset(<void*> memory, value, <size_t> size)


def count_other(uintptr_t memory, int64_t size, int value):
    """Return how many bytes are not `value`."""
    cdef int64_t count = 0
    cdef int64_t index
    cdef const uint8_t* data = <const uint8_t*> memory
    with nogil:
        for index in range(size):
            count += data[index] != value
    return count


def churn(PagePool pool not None, int64_t rounds, int64_t held):
    """Take `held` pages (at most 64) and give them back, `rounds` times; return how often a page had been changed."""
    cdef uint8_t* pages[64]
    cdef int64_t round_index, index, strange = 0
    cdef int64_t mark
    cdef int64_t stamp = <int64_t> id(pool)
    with nogil:
        for round_index in range(rounds):
            for index in range(held):
                pages[index] = pool.take()
                if pages[index] != NULL:
                    mark = stamp + round_index
                    (<int64_t*> pages[index])[0] = mark
            for index in range(held):
                if pages[index] != NULL:
                    mark = stamp + round_index
                    strange += (<int64_t*> pages[index])[0] != mark
                    pool.give(pages[index])
    return strange
