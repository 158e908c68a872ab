# Budget: what a process may hold of each kind of memory, and its holders: see budget.pyx.

from libc.stdint cimport int32_t, int64_t

cdef enum:
    KIND_COUNT = 4
    ROLE_COUNT = 2


cdef class Budget:
    cdef object _lock, _changed             # the second is a condition with the first
    # Guarded by _lock: by kind, what may be held and what is; by role, its members.
    cdef int64_t[KIND_COUNT] _limits, _held
    cdef int64_t[ROLE_COUNT] _members
    cdef int64_t[ROLE_COUNT] _parts         # by role, the limit for a batch or a row group of each member
    cdef list _steps                        # of Reservation; guarded by _lock
    cdef object _waiting                    # deque of Waiter; guarded by _lock

    cdef int64_t record_bytes_max(self) noexcept
    cdef Reservation _begun(self, Waiter waiter)
    cdef bint _resize(self, Reservation reservation, int64_t size) except -1
    cdef int _settle_parts(self) except -1
    cdef int _move(self, Reservation source, Reservation target, int64_t size) except -1
    cdef int _end(self, Reservation reservation) except -1
    cdef int _set_size(self, Reservation reservation, int64_t size) except -1


cdef class Waiter:
    cdef object kind, size, thread
    cdef bint is_within


cdef class Reservation:
    cdef Budget _budget                     # None: it is closed
    cdef readonly object kind, role
    cdef readonly object thread             # of the step, which waits for nothing meanwhile
    cdef readonly int64_t size              # bytes reserved
    cdef int32_t _kind, _role               # places in the budget's tables; no role: -1

    cdef int64_t part(self) noexcept
    cpdef bint resize(self, int64_t size) except -1
