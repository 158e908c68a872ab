"""MemoryManager: the budget of pages of a process, reserved in pools by named owners.

    manager = MemoryManager(budget_bytes=256 << 20)              nothing is touched yet
    pool = manager.pool("sort of v3-0", pages=256)               a pool for kernels; reserves, or MemoryBudgetError
    segments = manager.allocate("buffers", 4)                    or pages as MemorySegments, for Python
    manager.release("buffers", segments)
    manager.keep_free(64 << 20)                                  for others: reserved last, not kept warm
    manager.give_back_free()                                     free pages are mapped again when they are needed
    manager.leak_report()                                        [] when every owner has given everything back
    manager.close()                                              MemoryLeakError naming owners otherwise

Reservation, not hope: the limits of all open pools never exceed the budget, so a page inside a pool's limit is always
there, and what one owner does cannot starve another. An owner that keeps pages for later (sorted runs that wait for
their readers) gives ``on_shortage`` to get them back: it is called before a reservation is refused, and forgotten in
the one step in which its pool closes, so that a page is always free, or held by an owner that can be asked.

It is the kind PAGES of the process's ``Budget``, in accounts of its own: pools are kept for a task's whole life, by
kernels without the GIL, and what they count is pages. ``pool`` reserves or refuses at once, like ``Budget.reserve``, so
no thread waits here, and the rule about waiting there is not touched. One record that no pool has room for is there
beyond the limit, also at once; a step of work on a very wide one has waited for its reservation before.

Memory comes from slabs of 2 MiB that are mapped when more is needed and recycled from then on (``page_slabs``); large
pages are counted in the same accounts. Pages that an owner still holds at ``close`` stay mapped
until the manager and its pools are garbage: a late write is a reported leak and not a crash.

Thread: ``pool``, ``allocate``, ``release`` and the counters from any thread.

Source: Flink's MemoryManager (owner to segments, budget, verifyEmpty); reservation per pool instead of per page.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from engine.memory.page_pool cimport PagePool, new_pool
from engine.memory.page_slabs cimport (
    pthread_mutex_lock,
    pthread_mutex_unlock,
    slabs_create,
    slabs_destroy,
    slabs_drop_free,
    slabs_hold_outside,
    slabs_keep_free,
)
from engine.memory.segment cimport MemorySegment, wrap_memory

import threading

from engine.errors import ConfigurationError, MemoryBudgetError, MemoryLeakError

cdef int64_t PAGE_SIZE_MIN = 4096
cdef int64_t PAGE_SIZE_MAX = 1 << 24
cdef int64_t PAGE_COUNT_MAX = (1 << 31) - 1


@cython.final
cdef class MemoryManager:

    def __cinit__(self, int64_t budget_bytes, int64_t page_size=32768):
        if not PAGE_SIZE_MIN <= page_size <= PAGE_SIZE_MAX or page_size & (page_size - 1):
            raise ConfigurationError(
                f"a page of {page_size} bytes: it must be a power of two from {PAGE_SIZE_MIN} to {PAGE_SIZE_MAX}"
            )
        if not page_size <= budget_bytes <= page_size * PAGE_COUNT_MAX:
            raise ConfigurationError(
                f"managed memory of {budget_bytes} bytes: at least one page of {page_size} bytes and at most "
                f"{PAGE_COUNT_MAX} pages are possible; raise taskmanager.memory.managed.size"
            )
        self.budget_bytes = budget_bytes
        self.page_size = <int32_t> page_size
        self._pools = {}
        self._keepers = {}
        self._reclaiming = threading.Lock()
        self._leaks = []
        self._slabs = slabs_create(budget_bytes // page_size, self.page_size)
        if self._slabs == NULL:
            raise MemoryBudgetError(
                f"the operating system refuses to reserve {budget_bytes} bytes of address space for managed memory; "
                "lower taskmanager.memory.process.size or raise the limit (ulimit -v)"
            )

    def __dealloc__(self):
        if self._slabs != NULL:
            slabs_destroy(self._slabs)

    # ------------------------------------------------------------------------------------------------------- owners

    def pool(self, str owner not None, int64_t pages):
        """Reserve pages for an owner and return its PagePool, to be closed by the owner.

        Args: owner: shown in reports, for example "hash join of v3-0"; pages: 1 or more.
        Raises: MemoryBudgetError naming owner, size, what is free and which owners hold the rest.
        """
        cdef PagePool pool
        if pages < 1:
            raise ValueError(f"a pool of {pages} pages for {owner}: at least one is needed")
        if self._closed:
            raise MemoryBudgetError(f"{owner} asks a closed memory manager for {pages} pages")
        if self._pages_reserved + pages > self._slabs.page_count - self._pages_kept_free:
            self._reclaim(pages)
        if self._pages_reserved + pages > self._slabs.page_count:
            raise MemoryBudgetError(self._refusal(owner, pages))
        self._pages_reserved += pages
        self._last_id += 1
        pool = new_pool(self, self._slabs, self._last_id, owner, self.page_size, pages)
        self._pools[pool._id] = pool
        return pool

    def on_shortage(self, PagePool pool not None, give_back):
        """Call give_back() when a new pool does not fit, until `pool` is closed, which it has to do.

        It runs in the thread that needs the memory and may write files; its errors are raised there.
        """
        self._keepers[pool._id] = give_back

    def _reclaim(self, int64_t pages):
        """Ask for memory back, the oldest owner first, until so many pages are free or all have been asked.

        One that is added while another is asked, which may write a file, is asked as well.
        """
        asked = set()
        with self._reclaiming:
            while self._pages_reserved + pages > self._slabs.page_count - self._pages_kept_free:
                unasked = [pool_id for pool_id in list(self._keepers) if pool_id not in asked]
                if not unasked:
                    return
                asked.add(unasked[0])
                give_back = self._keepers.get(unasked[0])
                if give_back is not None:
                    give_back()

    def allocate(self, str owner not None, int64_t count):
        """Return a list of `count` pages as MemorySegments, reserved for the owner until `release`.

        Raises: MemoryBudgetError as `pool` does.
        """
        cdef PagePool pool = self.pool(owner, count)
        cdef uint8_t* page
        segments = []
        for _ in range(count):
            page = pool.take()
            if page == NULL:
                self.release(owner, segments)
                pool.close()
                raise MemoryBudgetError(f"the operating system has no memory for page {len(segments)} of {owner}")
            segments.append(wrap_memory(page, self.page_size, pool))
        return segments

    def release(self, str owner not None, list segments not None):
        """Give segments of `allocate` back; they are unusable afterwards. A segment already released is an error.

        Raises: ValueError for a segment that is not the owner's; BufferError while a memoryview of it is alive.
        """
        cdef MemorySegment segment
        cdef PagePool pool
        for segment in segments:
            if not isinstance(segment._keeper, PagePool) or (<PagePool> segment._keeper).owner != owner:
                raise ValueError(f"{segment!r} was not allocated for {owner}, or has been released")
            segment.require_no_views()
        for segment in segments:
            pool = segment._keeper
            pool.give(segment.data)
            segment.forget()
            if pool.pages_used == 0:
                pool.close()

    def keep_free(self, int64_t size):
        """Keep so many bytes of the budget free for others, as far as owners have not reserved them; 0: none.

        What owners keep for later is given back before a reservation takes any of it, and free pages' memory goes back
        to the operating system. Slots limit what may be reserved, so a reservation is not refused.
        """
        self._pages_kept_free = (size + self.page_size - 1) // self.page_size
        pthread_mutex_lock(&self._slabs.mutex)
        slabs_keep_free(self._slabs, self._pages_kept_free)
        pthread_mutex_unlock(&self._slabs.mutex)

    def give_back_free(self):
        """Give the memory of all free pages back to the operating system; what is out stays out."""
        if self._slabs != NULL:
            pthread_mutex_lock(&self._slabs.mutex)
            slabs_drop_free(self._slabs)
            pthread_mutex_unlock(&self._slabs.mutex)

    cdef void hold_outside(self, int64_t size) noexcept nogil:
        if self._slabs != NULL:
            pthread_mutex_lock(&self._slabs.mutex)
            slabs_hold_outside(self._slabs, (size + self.page_size - 1) // self.page_size)
            pthread_mutex_unlock(&self._slabs.mutex)

    def _pool_closed(self, int32_t pool_id, int64_t leaked):
        """Take a reservation back. Called by PagePool.close."""
        cdef PagePool pool = self._pools.pop(pool_id)
        self._pages_reserved -= pool.page_limit
        self._keepers.pop(pool_id, None)
        if leaked > 0:
            self._leaks.append((pool.owner, leaked))

    def _pool_shrunk(self, int64_t pages):
        """Take a part of a reservation back. Called by PagePool.shrink."""
        self._pages_reserved -= pages

    def _refusal(self, owner, pages):
        holders = {}
        for pool in self._pools.values():
            holders[pool.owner] = holders.get(pool.owner, 0) + pool.page_limit
        held = sorted(holders.items(), key=lambda item: (-item[1], item[0]))
        text = ", ".join(f"{name} {count}" for name, count in held[:8])
        if len(held) > 8:
            text += f", and {len(held) - 8} more"
        return (
            f"{owner} asks for {pages} pages of {self.page_size} bytes, {self.pages_unreserved} of {self.pages_total} "
            f"are free (held by: {text or 'nobody'}); raise taskmanager.memory.process.size or lower the parallelism"
        )

    # ------------------------------------------------------------------------------------------------------- numbers

    @property
    def pages_total(self):
        """The budget in pages."""
        return self.budget_bytes // self.page_size

    @property
    def pages_free(self):
        """Pages that no owner holds at this moment (reserved or not)."""
        return self.pages_total - self.pages_used

    @property
    def pages_used(self):
        """Pages that owners hold at this moment, large ones counted in pages."""
        return self._slabs.pages_out if self._slabs != NULL else 0

    @property
    def pages_unreserved(self):
        """Pages that a new pool can have."""
        return self.pages_total - self._pages_reserved

    @property
    def bytes_reserved(self):
        """Bytes that the open pools may hold."""
        return self._pages_reserved * self.page_size

    @property
    def pages_peak(self):
        """Most pages that were held at one time."""
        return self._slabs.pages_peak if self._slabs != NULL else 0

    @property
    def pages_mapped(self):
        """Pages that have been made accessible so far; they stay warm."""
        return self._slabs.pages_mapped if self._slabs != NULL else 0

    @property
    def pages_resident(self):
        """Pages mapped whose memory has not gone back to the operating system."""
        return self._slabs.pages_resident if self._slabs != NULL else 0

    # ------------------------------------------------------------------------------------------------------- the end

    def leak_report(self):
        """Return one line for each owner that holds pages now or was closed with pages out; [] is good."""
        lines = [f"{owner}: closed with {pages} pages still out" for owner, pages in self._leaks]
        for pool in self._pools.values():
            if pool.pages_used > 0:
                lines.append(f"{pool.owner}: {pool.pages_used} of {pool.page_limit} pages still out")
        return lines

    @property
    def closed(self):
        """Whether close() has been called."""
        return self._closed

    def close(self):
        """Close every pool and unmap the memory; idempotent.

        Raises: MemoryLeakError naming the owners that still hold pages or leaked some before.
        """
        if self._closed:
            return
        self._closed = True
        report = self.leak_report()
        for pool in list(self._pools.values()):
            pool.close()
        if report:
            raise MemoryLeakError(report)
        slabs_destroy(self._slabs)
        self._slabs = NULL

    def __enter__(self):
        return self

    def __exit__(self, error_type, error, traceback):
        try:
            self.close()
        except MemoryLeakError:
            if error is None:       # an error on its way out is the cause and must not be hidden by its consequence
                raise

    def __repr__(self):
        return (
            f"<MemoryManager {self.pages_total} pages of {self.page_size} bytes: {self._pages_reserved} reserved, "
            f"{self.pages_used} used>"
        )
