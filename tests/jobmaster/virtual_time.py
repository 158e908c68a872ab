"""An event loop whose time jumps: what sleeps is woken when nothing else is left to do, at once."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor, Future
from heapq import heapify, heappop, heappush


class VirtualLoop(asyncio.BaseEventLoop):
    """Waits for nothing: the time that it was to wait has passed. There is one thread, and no socket."""

    def __init__(self):
        super().__init__()
        self._now_s = 0.0
        self._timer_count = 0

    def time(self):
        return self._now_s

    def call_at(self, when, callback, *args, context=None):
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        timer._scheduled = True
        self._timer_count += 1
        heappush(
            self._scheduled, (when, self._timer_count, timer)
        )  # of one time in the order in which they were asked for
        return timer

    def call_soon(self, callback, *args, context=None):
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_soon_threadsafe(self, callback, *args, context=None):
        return self.call_soon(callback, *args, context=context)

    def _run_once(self):
        ready, timers = self._ready, self._scheduled
        if len(timers) > 100 and self._timer_cancelled_count > len(timers) / 2:
            timers[:] = [each for each in timers if not each[-1].cancelled()]
            heapify(timers)
            self._timer_cancelled_count = 0
        while timers and timers[0][-1].cancelled():
            heappop(timers)
            self._timer_cancelled_count -= 1
        if not ready and not self._stopping:
            if not timers:
                raise RuntimeError("nothing will ever happen")
            self._now_s = max(self._now_s, timers[0][0])
        end_s = self._now_s + self._clock_resolution
        while timers and timers[0][0] < end_s:
            timer = heappop(timers)[-1]
            timer._scheduled = False
            ready.append(timer)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle.cancelled():
                handle._run()


class VirtualClock:
    """The clock of a loop."""

    def __init__(self, loop):
        self._loop = loop

    def monotonic_s(self):
        return self._loop.time()

    def wall_ms(self):
        return int(self._loop.time() * 1000)


class Inline(Executor):
    """Does blocking work at once."""

    def submit(self, work, /, *args, **kwargs):
        done = Future()
        try:
            done.set_result(work(*args, **kwargs))
        except Exception as error:
            done.set_exception(error)
        return done


def run(main):
    """Run a coroutine in virtual time."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(main(loop))
    finally:
        loop.run_until_complete(_settle(asyncio.all_tasks(loop)))
        loop.close()


async def _settle(left):
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
