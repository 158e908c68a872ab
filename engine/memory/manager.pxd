# MemoryManager: fields for modules that cimport it; behaviour and interface are in manager.pyx.

cimport cython
from libc.stdint cimport int32_t, int64_t

from engine.memory.page_pool cimport PagePool
from engine.memory.page_slabs cimport PageSlabs


@cython.final
cdef class MemoryManager:
    cdef readonly int64_t budget_bytes      # what was asked for; pages_total * page_size <= budget_bytes
    cdef readonly int32_t page_size         # bytes
    cdef PageSlabs* _slabs                  # NULL after close without a leak
    cdef dict _pools                        # pool id -> PagePool, those that are open
    cdef dict _keepers                      # pool id -> callback of on_shortage, the oldest first
    cdef object _reclaiming                 # lock: one thread at a time has memory given back
    cdef list _leaks                        # (owner, pages) of pools that were closed with pages out
    cdef int64_t _pages_reserved            # sum of the open pools' limits
    cdef int64_t _pages_kept_free           # for others: reserved only when no owner has anything left to give back
    cdef int32_t _last_id
    cdef bint _closed
    cdef object __weakref__

    # Say how many bytes owners hold elsewhere, in blocks of files, of what they have reserved here: as much of the free
    # pages' memory goes back to the operating system. Any thread.
    cdef void hold_outside(self, int64_t size) noexcept nogil
