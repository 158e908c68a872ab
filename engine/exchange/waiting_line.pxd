# Waiter: the threads that wait for network buffers, each on its own condition, in the order in which they came.
#
#     first ─► Waiter ─► Waiter ─► NULL           each lies on the stack of its thread
#
# A buffer that comes back is one that one of them can have: to wake them all costs as much as there are threads. All of
# it happens with the pool's monitor held.
#
# Held by: tests/exchange/test_buffer_pool.py

from libc.stdint cimport int32_t

from engine.exchange.monitor cimport Condition, condition_destroy, condition_init, condition_notify


cdef struct Waiter:
    Condition condition
    const int32_t* in_use           # of its pool
    const int32_t* size
    bint is_woken
    Waiter* next


cdef inline void join_line(Waiter** first, Waiter* waiter, const int32_t* in_use, const int32_t* size) noexcept nogil:
    condition_init(&waiter.condition)
    waiter.in_use = in_use
    waiter.size = size
    waiter.is_woken = False
    waiter.next = NULL
    while first[0] != NULL:
        first = &first[0].next
    first[0] = waiter


cdef inline void leave_line(Waiter** first, Waiter* waiter) noexcept nogil:
    while first[0] != waiter:
        first = &first[0].next
    first[0] = waiter.next
    condition_destroy(&waiter.condition)


# Have every thread look.
cdef inline void wake_all(Waiter* waiter) noexcept nogil:
    while waiter != NULL:
        condition_notify(&waiter.condition)
        waiter = waiter.next


# Wake the first thread whose pool may hold more and that has not been woken; of the pool `own` only if own_may.
cdef inline void wake_first(Waiter* waiter, const int32_t* own, bint own_may) noexcept nogil:
    while waiter != NULL:
        if not waiter.is_woken and waiter.in_use[0] < waiter.size[0] and (own_may or waiter.in_use != own):
            waiter.is_woken = True
            condition_notify(&waiter.condition)
            return
        waiter = waiter.next
