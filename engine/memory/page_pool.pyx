"""PagePool: the pages that one owner may hold of a MemoryManager.

    pool = manager.pool("sort of v3-0", pages=256)      reserves 256 pages of the budget
    page = pool.take() ... pool.give(page)              kernels only, from any thread, without the GIL
    memory = pool.take_large(size, beyond_limit) ... pool.give_large(memory, size)
    pool.close()                                        or ``with pool:``

The methods for kernels and what they promise are in ``page_pool.pxd``. ``close`` takes back what is still out, which
is a leak: the manager counts it under the owner's name and reports it. After ``close`` every take gives NULL.

Counters (``pages_used``, ``pages_peak``) are written under the manager's mutex and read without it.

Cost: take and give about 20 ns each when the mutex is free.

Held by: tests/memory/test_manager.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from engine.memory.page_slabs cimport (
    PageSlabs,
    pthread_mutex_lock,
    pthread_mutex_unlock,
    slabs_give_large,
    slabs_pop,
    slabs_push,
    slabs_take_back,
    slabs_take_large,
)
from engine.memory.status cimport ASSERT

from engine.errors import MemoryBudgetError


cdef class PagePool:

    def __init__(self):
        raise TypeError("a PagePool comes from MemoryManager.pool(owner, pages)")

    cdef uint8_t* take(self) noexcept nogil:
        cdef PageSlabs* slabs = <PageSlabs*> self._state
        cdef uint8_t* page = NULL
        if self._closed:
            return NULL
        pthread_mutex_lock(&slabs.mutex)
        if self.pages_used < self.page_limit:
            self._count(1)              # before, for the mutex may be let go
            page = slabs_pop(slabs, self._id)
            if page == NULL:
                self.pages_used -= 1
        pthread_mutex_unlock(&slabs.mutex)
        return page

    cdef void give(self, uint8_t* page) noexcept nogil:
        cdef PageSlabs* slabs = <PageSlabs*> self._state
        ASSERT(page != NULL)
        if self._closed:            # close has taken it back and reported it
            return
        pthread_mutex_lock(&slabs.mutex)
        slabs_push(slabs, page, self._id)
        self.pages_used -= 1
        pthread_mutex_unlock(&slabs.mutex)

    cdef uint8_t* take_large(self, int64_t size, bint beyond_limit) noexcept nogil:
        cdef PageSlabs* slabs = <PageSlabs*> self._state
        cdef int64_t pages = 0
        cdef uint8_t* memory = NULL
        if self._closed or size < 0:
            return NULL
        if not beyond_limit:
            pages = max((size + self.page_size - 1) // self.page_size, 1)
        pthread_mutex_lock(&slabs.mutex)
        if self.pages_used + pages <= self.page_limit:
            memory = slabs_take_large(slabs, size, pages, self._id)
            if memory != NULL:
                self._count(pages)
        pthread_mutex_unlock(&slabs.mutex)
        return memory

    cdef void give_large(self, uint8_t* memory, int64_t size) noexcept nogil:
        cdef PageSlabs* slabs = <PageSlabs*> self._state
        ASSERT(memory != NULL)
        if self._closed:
            return
        pthread_mutex_lock(&slabs.mutex)
        self.pages_used -= slabs_give_large(slabs, memory, size, self._id)
        pthread_mutex_unlock(&slabs.mutex)

    cdef int64_t pages_free(self) noexcept nogil:
        if self._closed:
            return 0
        return self.page_limit - self.pages_used

    cdef void _count(self, int64_t pages) noexcept nogil:
        """Add to the pages in use. The mutex is held."""
        self.pages_used += pages
        if self.pages_used > self.pages_peak:
            self.pages_peak = self.pages_used

    @property
    def closed(self):
        """Whether close() has been called."""
        return self._closed

    def shrink(self):
        """Return the part of the reservation that is not in use; what is returned afterwards stays reserved.

        Thread: the owner's, while no page is taken.
        """
        cdef int64_t spare = self.page_limit - self.pages_used
        if not self._closed and spare > 0:
            self.page_limit -= spare
            self._manager._pool_shrunk(spare)

    def close(self):
        """Return the reservation to the manager; idempotent.

        Pages that are still out are taken back and reported by the manager as a leak of this owner.

        Thread: the owner's, after every other user of the pool has ended.
        """
        cdef PageSlabs* slabs = <PageSlabs*> self._state
        cdef int64_t leaked
        if self._closed:
            return
        with nogil:
            pthread_mutex_lock(&slabs.mutex)
            self._closed = True
            leaked = slabs_take_back(slabs, self._id) if slabs.pages_out > 0 or slabs.large != NULL else 0
            self.pages_used = 0
            pthread_mutex_unlock(&slabs.mutex)
        manager = self._manager
        self._manager = None
        manager._pool_closed(self._id, leaked)

    def __enter__(self):
        return self

    def __exit__(self, error_type, error, traceback):
        self.close()

    def __repr__(self):
        state = "closed" if self._closed else f"{self.pages_used} of {self.page_limit} pages of {self.page_size} bytes"
        return f"<PagePool {self.owner!r}: {state}>"


cdef uint8_t* take_for_row(PagePool pool, int64_t size) except NULL nogil:
    cdef uint8_t* memory = pool.take_large(size, False)
    if memory == NULL:
        memory = pool.take_large(size, True)
    if memory == NULL:
        with gil:
            raise MemoryBudgetError(f"{pool.owner}: the machine has no memory for a row of {size} bytes")
    return memory


cdef PagePool new_pool(object manager, void* state, int32_t pool_id, str owner, int32_t page_size, int64_t page_limit):
    """Return a pool over the manager's native part. Only the manager calls this, after it has reserved the pages."""
    cdef PagePool pool = PagePool.__new__(PagePool)
    pool._manager = manager
    pool._state = state
    pool._id = pool_id
    pool.owner = owner
    pool.page_size = page_size
    pool.page_limit = page_limit
    return pool
