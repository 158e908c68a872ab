# RequestQueue: requests to one disk in one direction, executed in order by one thread, all of it without the GIL.
#
#     submitters ── submit (waits while depth requests are there) ──► first ─► ... ─► last ──► thread: handler(request)
#                                                                                              pending[0] -= 1, signal

cimport cython
from libc.stdint cimport int32_t, int64_t

from engine.memory.page_slabs cimport pthread_mutex_t

cdef extern from "<pthread.h>" nogil:
    ctypedef struct pthread_cond_t:
        pass

cdef struct IoRequest                                   # declared before its handler's type
ctypedef void (*IoHandler)(IoRequest* request) noexcept nogil

cdef struct IoRequest:                                  # the first member of what a submitter queues
    IoRequest* next
    IoHandler handler                                   # runs on the queue's thread; everything else is its business
    int32_t* pending                                    # submitted and not done; guarded by the queue's mutex


@cython.final
cdef class RequestQueue:
    cdef pthread_mutex_t mutex
    cdef pthread_cond_t arrived                         # a request, or the end
    cdef pthread_cond_t progressed                      # one request less
    cdef IoRequest* first
    cdef IoRequest* last
    cdef int32_t count                                  # waiting or running
    cdef readonly int32_t depth                         # most requests at one time
    cdef readonly str name                              # of the thread
    cdef bint ended
    cdef object starting                                # threading.Lock around the two below
    cdef object thread                                  # threading.Thread, None before the first request

    # Start the thread if it is not there. With the GIL, before the first submit.
    cdef int start(self) except -1
    # Queue a request; waits while the queue is full. pending[0] is one more until the handler has run.
    cdef void submit(self, IoRequest* request, int32_t* pending) noexcept nogil
    # Wait until at most `limit` of the submitter's requests are pending.
    cdef void wait_pending(self, int32_t* pending, int32_t limit) noexcept nogil
    cdef void _submit(self, IoRequest* request, int32_t* pending) noexcept nogil
    cdef void _wait_pending(self, int32_t* pending, int32_t limit) noexcept nogil
    cdef void _execute(self) noexcept nogil
