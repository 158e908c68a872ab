"""Threads, processes and clocks of a model: one thing runs at a time, time jumps, and one seed gives one run.

    with model(loop): ...                    what real modules know as threading, queue and time is of the model there
    process = Process(loop, "name")          ─► process.begin(callback) ─► stop, go_on, kill

The real code runs, with its threads. A thread has the machine until it waits: for an event, a lock, a queue, another
thread or for time to pass. Everything else is a callback of the loop, which is the scheduler. What a process does
belongs to it by its context: what is of one that is stopped waits, what is of one that was killed never happens.
"""

from __future__ import annotations

import asyncio
import contextvars
import time as real_time
from collections import deque
from concurrent.futures import Future

from greenlet import getcurrent, greenlet

from tests.jobmaster.virtual_time import VirtualLoop

#: process whose code runs
PROCESS = contextvars.ContextVar("PROCESS", default=None)
#: context of what is of no process
NOWHERE = contextvars.Context()
#: wall clock at the beginning, seconds since 1970
BEGIN_S = 1_800_000_000.0


class KilledError(BaseException):
    """Ends a thread whose process was killed."""


class Process:
    """A process: its callbacks and threads are those that begin in its context."""

    def __init__(self, loop, name):
        self.loop, self.name = loop, name
        self.is_dead = self.is_stopped = self._is_killed = False
        #: seconds by which its wall clock is ahead
        self.clock_ahead_s = 0.0
        #: threads, in the order in which they began
        self.threads = {}
        self._context = contextvars.copy_context()
        self._context.run(PROCESS.set, self)
        #: events that came while the process was stopped
        self._deferred = []
        #: called when it is stopped, goes on, or is killed
        self.watchers = []

    def begin(self, callback, *args):
        """Call something within the process now, and return what it returns."""
        return self._context.copy().run(callback, *args)

    def task(self, work):
        return self.loop.create_task(work, context=self._context.copy())

    def call(self, context, callback, *args):
        """Call what is due; on the loop, within the context."""
        if self.is_stopped:
            self._deferred.append((context, callback, args))
        elif not self.is_dead:
            callback(*args)

    def stop(self):
        self.is_stopped = True
        self._tell()

    def go_on(self):
        if self.is_dead or not self.is_stopped:
            return
        self.is_stopped = False
        self._tell()
        deferred, self._deferred = self._deferred, []
        for context, callback, args in deferred:
            self.loop.call_soon(callback, *args, context=context)

    def kill(self):
        """End it: nothing of it happens any more."""
        if self._is_killed:
            return
        self._is_killed = self.is_dead = True
        self.is_stopped = False
        self._deferred.clear()
        self._tell()
        for thread in tuple(self.threads):
            thread.kill()

    def _tell(self):
        for watcher in tuple(self.watchers):
            watcher()


class _Numbered:
    """Of sets of tasks and futures, which code goes through, the order is the same in each run."""

    def __init__(self, *args, loop, **kwargs):
        loop.count += 1
        self._number = loop.count
        super().__init__(*args, loop=loop, **kwargs)

    def __hash__(self):
        return self._number


class _Task(_Numbered, asyncio.Task):
    pass


class _Future(_Numbered, asyncio.Future):
    pass


class ModelLoop(VirtualLoop):
    """The loop of all processes."""

    def __init__(self):
        super().__init__()
        self.count = 0
        self.set_task_factory(lambda loop, work, **named: _Task(work, loop=loop, **named))
        #: thread of the model that has the machine; None: the loop
        self.running = None
        #: True while what is left at the end is taken apart: that begins nothing
        self.is_over = False

    def create_future(self):
        return _Future(loop=self)

    def call_soon(self, callback, *args, context=None):
        context = contextvars.copy_context() if context is None else context
        if self.is_over:
            return asyncio.Handle(callback, args, self, context)
        process = context.get(PROCESS)
        if process is None:
            return super().call_soon(callback, *args, context=context)
        return super().call_soon(process.call, context, callback, *args, context=context)

    call_soon_threadsafe = call_soon  # there is one thread at a time

    def call_at(self, when, callback, *args, context=None):
        context = contextvars.copy_context() if context is None else context
        if self.is_over:
            return asyncio.TimerHandle(when, callback, args, self, context)
        process = context.get(PROCESS)
        if process is None:
            return super().call_at(when, callback, *args, context=context)
        return super().call_at(when, process.call, context, callback, *args, context=context)

    def run_in_executor(self, executor, work, *args):
        return asyncio.wrap_future((executor or POOL).submit(work, *args), loop=self)


#: loop of the model that runs
_loop: ModelLoop | None = None


def use(loop):
    """Have the primitives below be of a loop; None: of none."""
    global _loop  # noqa: PLW0603  what the real modules use has no other place to find it
    _loop = loop


class Thread:
    """``threading.Thread``."""

    def __init__(self, group=None, target=None, name=None, args=(), kwargs=None, daemon=None):
        self.name, self.daemon = name, daemon
        self._work, self._args, self._kwargs = target, args, kwargs or {}
        #: its stack, of which a switch to its parent gives the machine back
        self._stack = None
        self._has_begun = self._is_over = self._is_killed = self._is_ready = False
        self._joining = []
        self._process = None
        self._context = None

    def start(self):
        self._process = PROCESS.get()
        if self._process is not None:
            if self._process.is_dead:
                raise KilledError
            self._process.threads[self] = None
        self._context = contextvars.copy_context()
        self._has_begun = True
        self.ready()

    def is_alive(self):
        return self._has_begun and not self._is_over

    def ready(self):
        """Have it go on, soon."""
        if not self._is_ready and not self._is_over:
            self._is_ready = True
            _loop.call_soon(self._turn, context=self._context)

    def _turn(self):
        """Let it have the machine until it waits; on the loop."""
        if self._is_over or not self._is_ready:
            return
        self._is_ready = False
        if self._stack is None:
            self._stack = greenlet(lambda: self._context.copy().run(self._run))
        self._stack.parent = getcurrent()
        before, _loop.running = _loop.running, self
        loop = asyncio._get_running_loop()
        asyncio._set_running_loop(None)
        self._stack.switch()
        asyncio._set_running_loop(loop)
        _loop.running = before

    def _run(self):
        try:
            if not self._is_killed:
                self._work(*self._args, **self._kwargs)
        except KilledError:
            pass
        finally:
            self._is_over = True
            if self._process is not None:
                self._process.threads.pop(self, None)
            for waiting in self._joining:
                waiting.ready()

    def kill(self):
        self._is_killed = True
        if self._stack is None:
            self._is_over = True
            self._process.threads.pop(self, None)
        elif _loop.running is not self:
            self._is_ready = True
            self._turn()

    def park(self, timeout_s=None):
        """Wait to be made ready, for so long."""
        if self._is_killed:
            raise KilledError
        timer = None if timeout_s is None else _loop.call_later(max(timeout_s, 0.0), self.ready)
        self._stack.parent.switch()
        if timer is not None:
            timer.cancel()
        if self._is_killed:
            raise KilledError

    def join(self, timeout=None):
        if self.is_alive():
            wait_for(lambda: self._is_over, self._joining, timeout, self)


def wait_for(is_done, waiting, timeout_s=None, of=None):
    """Wait until something is done, with those that are ``waiting``; return whether it is."""
    me = _loop.running
    if me is None:
        if of is not None:
            of._turn()  # the loop waits for a thread that has nothing to wait for
        assert is_done(), "the loop would wait for a thread"
        return True
    deadline_s = None if timeout_s is None else _loop.time() + timeout_s
    while not is_done():
        left_s = None if deadline_s is None else deadline_s - _loop.time()
        if left_s is not None and left_s <= 1e-9:
            return False
        waiting.append(me)
        try:
            me.park(left_s)
        finally:
            if me in waiting:
                waiting.remove(me)
    return True


def now_s():
    """Return the seconds since the beginning."""
    return _loop.time()


def is_thread():
    """Whether a thread has the machine, which may wait; the loop may not."""
    return _loop.running is not None


def pause(seconds):
    """Let time pass for the thread that runs; the loop does not wait."""
    wait_for(lambda: False, [], seconds)


class Event:
    """``threading.Event``."""

    def __init__(self):
        self._is_set = False
        self._waiting = []

    def is_set(self):
        return self._is_set

    def set(self):
        self._is_set = True
        for thread in self._waiting:
            thread.ready()

    def clear(self):
        self._is_set = False

    def wait(self, timeout=None):
        return wait_for(self.is_set, self._waiting, timeout)


class RLock:
    """``threading.RLock``, and ``threading.Lock``: no code here takes one twice that may not."""

    def __init__(self):
        self._owner, self._count = None, 0
        self._waiting = []

    def acquire(self):
        me = _loop and (_loop.running or _loop)
        if self._owner is not me:
            wait_for(lambda: self._owner is None, self._waiting)
            self._owner = me
        self._count += 1
        return True

    def release(self):
        self._count -= 1
        if self._count == 0:
            self._owner = None
            if self._waiting:
                self._waiting[0].ready()

    def __enter__(self):
        return self.acquire()

    def __exit__(self, *_):
        self.release()


class Empty(Exception):
    """``queue.Empty``."""


class SimpleQueue:
    """``queue.SimpleQueue``."""

    def __init__(self):
        self._entries = deque()
        self._waiting = []

    def put(self, entry):
        self._entries.append(entry)
        if self._waiting:
            self._waiting[0].ready()

    def get(self, block=True, timeout=None):
        if not self._entries:
            wait_for(lambda: self._entries, self._waiting, timeout)
        return self.get_nowait()

    def get_nowait(self):
        if not self._entries:
            raise Empty
        return self._entries.popleft()


class Pool:
    """``ThreadPoolExecutor``, of which each work has a thread: a Future, as that of the library."""

    def __init__(self, *_, **__):
        pass

    def submit(self, work, /, *args, **kwargs):
        done = Future()

        def run():
            if not done.set_running_or_notify_cancel():
                return
            try:
                value = work(*args, **kwargs)
            except Exception as error:
                done.set_exception(error)
            else:
                done.set_result(value)

        Thread(target=run).start()
        return done

    def map(self, work, *sources):
        return [work(*each) for each in zip(*sources, strict=False)]

    def shutdown(self, wait=True):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.shutdown()


POOL = Pool()


class _Threading:
    """The module ``threading``."""

    Thread, Event, RLock, Lock = Thread, Event, RLock, RLock


class _Queue:
    """The module ``queue``."""

    SimpleQueue, Empty = SimpleQueue, Empty


class _Time:
    """The module ``time``."""

    CLOCK_BOOTTIME = real_time.CLOCK_BOOTTIME

    def monotonic(self):
        return _loop.time()

    def time(self):
        process = PROCESS.get()
        return BEGIN_S + _loop.time() + (0.0 if process is None else process.clock_ahead_s)

    def time_ns(self):
        return int(self.time() * 1e9)

    def clock_gettime(self, _):
        return _loop.time() + 1000.0

    def sleep(self, seconds):
        pause(seconds)


THREADING, QUEUE, TIME = _Threading(), _Queue(), _Time()
