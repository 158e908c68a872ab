"""LocalLoop: an asyncio loop for components of one process, which hardly ever hears anything from outside.

    call_soon(callback) ─► ready ─► _run_once ─► callback           no Python frame but the callback's own
    call_at(when, callback) ─► scheduled ─► ready, when its time has come

    a turn of the loop ─┬─ nothing to do: wait for the kernel's events, as any loop does
                        └─ work is queued: ask the kernel at one of TURNS turns alone

A message between components of one process is a dozen callbacks, and asyncio's own loop takes twenty calls of Python
functions for each of them, holding the GIL. It also looks for events of the network before each of them. That look
gives the GIL away, to a task that computes and returns it when it likes: calls within one process cost more in this
than in all they do. For the same reason another thread that queues a callback wakes the loop only when it waits.

Loops have no debug mode here. Invariant: an event waits for TURNS - 1 turns of queued callbacks at most; a loop that
has nothing queued waits for it.

Held by: tests/minicluster/test_cluster_loop.py
"""

import asyncio
from asyncio import Future, Task
from heapq import heapify, heappop, heappush
from time import monotonic

cimport cython
from cpython.contextvars cimport PyContext_CopyCurrent, PyContext_Enter, PyContext_Exit

TURNS = 16
#: timers that were stopped beyond which they are looked for behind those that run
cdef Py_ssize_t _STOPPED_MAX = 100
#: seconds for which a selector waits at most
cdef double _WAIT_MAX_S = 24 * 3600


@cython.freelist(64)
cdef class Callback:
    """A call that a loop is to make: what others know as ``asyncio.Handle``."""

    cdef object _call, _args, _context
    cdef bint _is_cancelled

    def __repr__(self):
        return f"<{type(self).__name__} {'cancelled' if self._is_cancelled else self._call}>"

    def cancel(self):
        """Have it not be made."""
        self._is_cancelled = True
        self._call = self._args = None

    def cancelled(self):
        """Whether it was cancelled."""
        return self._is_cancelled

    cdef int run(self, loop) except -1:
        """Make the call; its error goes to the loop's handler of errors."""
        if self._is_cancelled:
            return 0
        try:
            PyContext_Enter(self._context)
            try:
                self._call(*self._args)
            finally:
                PyContext_Exit(self._context)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            loop.call_exception_handler(
                {"message": f"Exception in callback {self._call}", "exception": error, "handle": self}
            )
        return 0


@cython.final
cdef class TimedCallback(Callback):
    """One whose time is to come: what others know as ``asyncio.TimerHandle``."""

    cdef double _when_s
    cdef object _loop
    cdef bint _is_scheduled

    def when(self):
        """Return the time of the loop's clock at which it is made."""
        return self._when_s

    def cancel(self):
        """Have it not be made."""
        if self._is_scheduled and not self._is_cancelled:
            self._loop._timer_cancelled_count += 1
        Callback.cancel(self)

    def __lt__(self, TimedCallback other not None):
        return self._when_s < other._when_s


cdef _fill(Callback made, callback, tuple args, context):
    made._call, made._args = callback, args
    made._context = PyContext_CopyCurrent() if context is None else context


class LocalLoop(asyncio.SelectorEventLoop):
    """See the module's text. Thread: the one that runs it, but for ``call_soon_threadsafe``."""

    def __init__(self):
        super().__init__()
        self._turns_passed = 0
        #: True while the loop's thread waits for events, or is about to
        self._is_waiting = False

    def get_debug(self):
        """Return False: there is no debug mode."""
        return False

    def time(self):
        """Return the seconds of the loop's clock."""
        return monotonic()

    def create_future(self):
        """Return a new Future of this loop."""
        return Future(loop=self)

    def create_task(self, coro, **kwargs):
        """Run a coroutine."""
        if self._task_factory is not None or self._closed:
            return super().create_task(coro, **kwargs)
        return Task(coro, loop=self, **kwargs)

    def call_soon(self, callback, *args, context=None):
        """Make a call in the next turn."""
        if self._closed:
            self._check_closed()
        cdef Callback made = Callback.__new__(Callback)
        _fill(made, callback, args, context)
        self._ready.append(made)
        return made

    def call_soon_threadsafe(self, callback, *args, context=None):
        """Make a call in the next turn; from any thread."""
        made = self.call_soon(callback, *args, context=context)
        # The GIL orders this: what was queued before the loop began to wait was seen by it.
        if self._is_waiting:
            self._write_to_self()
        return made

    def call_later(self, delay, callback, *args, context=None):
        """Make a call after some seconds."""
        return self.call_at(monotonic() + delay, callback, *args, context=context)

    def call_at(self, when, callback, *args, context=None):
        """Make a call at a time of the loop's clock."""
        if self._closed:
            self._check_closed()
        cdef TimedCallback made = TimedCallback.__new__(TimedCallback)
        _fill(made, callback, args, context)
        made._when_s, made._loop, made._is_scheduled = when, self, True
        heappush(self._scheduled, made)
        return made

    def _run_once(self):
        """Take a turn: make the calls that are queued, those whose time has come, and those of events."""
        cdef Py_ssize_t left
        cdef list scheduled = self._scheduled
        ready = self._ready
        if scheduled:
            self._forget_stopped()
        if self._turns_passed < TURNS - 1 and ready:
            self._turns_passed += 1
        else:
            self._turns_passed = 0
            self._hear()
        if scheduled:
            _take_due(scheduled, ready, monotonic() + self._clock_resolution)
        left = len(ready)
        while left > 0:  # those that these queue are for the next turn
            left -= 1
            made = ready.popleft()
            if isinstance(made, Callback):
                (<Callback> made).run(self)
            elif not made._cancelled:  # of an event
                made._run()

    def _hear(self):
        """Look for events, and wait for them where nothing else is to be done."""
        cdef list scheduled = self._scheduled
        self._is_waiting = True  # before the look at what is queued: see call_soon_threadsafe
        timeout_s = None
        if self._ready or self._stopping:
            timeout_s, self._is_waiting = 0, False
        elif scheduled:
            timeout_s = min(max(0.0, (<TimedCallback> scheduled[0])._when_s - monotonic()), _WAIT_MAX_S)
        try:
            events = self._selector.select(timeout_s)
        finally:
            self._is_waiting = False
        if len(events) == 1 and events[0][0].fileobj is self._ssock:  # a wake-up by another thread
            self._clear_wake_up()
        elif events:
            self._process_events(events)

    def _clear_wake_up(self):
        """Read the bytes that woke the loop; one that is no zero is the number of a signal."""
        try:
            data = self._ssock.recv(4096)
        except (BlockingIOError, InterruptedError):
            return
        if data.strip(b"\0"):
            self._process_self_data(data)

    def _forget_stopped(self):
        """Drop timers that were cancelled: the first ones, and all of them when most of many were."""
        cdef list scheduled = self._scheduled
        if self._timer_cancelled_count > _STOPPED_MAX and 2 * self._timer_cancelled_count > len(scheduled):
            running = [each for each in scheduled if not (<TimedCallback> each)._is_cancelled]
            scheduled[:] = running
            heapify(scheduled)
            self._timer_cancelled_count = 0
        while scheduled and (<TimedCallback> scheduled[0])._is_cancelled:
            heappop(scheduled)
            self._timer_cancelled_count -= 1


cdef _take_due(list scheduled, ready, double end_s):
    """Queue timed calls whose time has come."""
    cdef TimedCallback first
    while scheduled:
        first = scheduled[0]
        if first._when_s >= end_s:
            break
        heappop(scheduled)
        first._is_scheduled = False
        ready.append(first)
