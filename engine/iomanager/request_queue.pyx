"""RequestQueue: requests to one disk in one direction and the thread that executes them.

    queue = RequestQueue("drey-spill-write-0", depth=8)
    queue.start(); queue.submit(request, &pending); queue.wait_pending(&pending, 0)      from kernels
    queue.close()                                                                        from Python, joins the thread

The queue is bounded: a submitter that is faster than the disk waits. A request is a C structure whose first member is
an IoRequest; its handler runs on the thread, without the GIL. So a block is checksummed, compressed and written while
the task's thread, or any thread that keeps the GIL, goes on.

Callers that hold the GIL lose it while they wait (``submit`` and ``wait_pending`` look), because a handler may need it
for a rare thing such as opening a continuation file.

The thread is started by the first user, is a daemon (a program that forgot ``close`` still ends) and is joined by
``close``, after it has executed what was queued. There is never a second one: what a writer or a
reader knows of its place in a file is used by this thread alone, request by request.

Source: Flink's IOManagerAsync (a reader and a writer thread per disk); the bound and the native queue are ours.

Held by: tests/iomanager/test_spill_round_trip.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t

from engine.memory.page_slabs cimport pthread_mutex_lock, pthread_mutex_t, pthread_mutex_unlock

import threading

cdef extern from "<pthread.h>" nogil:
    int pthread_mutex_init(pthread_mutex_t* mutex, void* attributes)
    int pthread_mutex_destroy(pthread_mutex_t* mutex)
    int pthread_cond_init(pthread_cond_t* condition, void* attributes)
    int pthread_cond_destroy(pthread_cond_t* condition)
    int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex)
    int pthread_cond_signal(pthread_cond_t* condition)
    int pthread_cond_broadcast(pthread_cond_t* condition)

cdef extern from "Python.h" nogil:
    int PyGILState_Check()


@cython.final
cdef class RequestQueue:

    def __cinit__(self, str name not None, int32_t depth=8):
        if depth < 1:
            raise ValueError(f"a queue of depth {depth}")
        self.name = name
        self.depth = depth
        self.starting = threading.Lock()
        pthread_mutex_init(&self.mutex, NULL)
        pthread_cond_init(&self.arrived, NULL)
        pthread_cond_init(&self.progressed, NULL)

    def __dealloc__(self):
        pthread_cond_destroy(&self.progressed)
        pthread_cond_destroy(&self.arrived)
        pthread_mutex_destroy(&self.mutex)

    cdef int start(self) except -1:
        with self.starting:
            if self.ended:
                raise ValueError(f"the I/O queue {self.name} is closed")
            if self.thread is None:
                thread = threading.Thread(target=self._run, name=self.name, daemon=True)
                thread.start()
                self.thread = thread        # only now: one that could not be started would serve no request
        return 0

    cdef void submit(self, IoRequest* request, int32_t* pending) noexcept nogil:
        if PyGILState_Check():
            with gil:
                with nogil:
                    self._submit(request, pending)
        else:
            self._submit(request, pending)

    cdef void _submit(self, IoRequest* request, int32_t* pending) noexcept nogil:
        request.next = NULL
        request.pending = pending
        pthread_mutex_lock(&self.mutex)
        while self.count >= self.depth:
            pthread_cond_wait(&self.progressed, &self.mutex)
        if self.last != NULL:
            self.last.next = request
        else:
            self.first = request
        self.last = request
        self.count += 1
        pending[0] += 1
        pthread_cond_signal(&self.arrived)
        pthread_mutex_unlock(&self.mutex)

    cdef void wait_pending(self, int32_t* pending, int32_t limit) noexcept nogil:
        if PyGILState_Check():
            with gil:
                with nogil:
                    self._wait_pending(pending, limit)
        else:
            self._wait_pending(pending, limit)

    cdef void _wait_pending(self, int32_t* pending, int32_t limit) noexcept nogil:
        pthread_mutex_lock(&self.mutex)
        while pending[0] > limit:
            pthread_cond_wait(&self.progressed, &self.mutex)
        pthread_mutex_unlock(&self.mutex)

    def _run(self):
        """Execute requests until close. The thread's target."""
        with nogil:
            self._execute()

    cdef void _execute(self) noexcept nogil:
        cdef IoRequest* request
        cdef int32_t* pending
        pthread_mutex_lock(&self.mutex)
        while True:
            while self.first == NULL and not self.ended:
                pthread_cond_wait(&self.arrived, &self.mutex)
            if self.first == NULL:
                break
            request = self.first
            self.first = request.next
            if self.first == NULL:
                self.last = NULL
            pthread_mutex_unlock(&self.mutex)
            pending = request.pending           # the handler may free the request, never what pending points to
            request.handler(request)
            pthread_mutex_lock(&self.mutex)
            self.count -= 1
            pending[0] -= 1
            pthread_cond_broadcast(&self.progressed)
        pthread_mutex_unlock(&self.mutex)

    def close(self):
        """Execute what is queued, end the thread and join it; idempotent."""
        with self.starting:
            pthread_mutex_lock(&self.mutex)
            self.ended = True
            pthread_cond_broadcast(&self.arrived)
            pthread_mutex_unlock(&self.mutex)
            if self.thread is not None:
                self.thread.join()
                self.thread = None
