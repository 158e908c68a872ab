"""An event loop whose time jumps: what sleeps is woken when nothing else is left to do, at once."""

from __future__ import annotations

import asyncio
import selectors
from concurrent.futures import Executor, Future


class _Jumping(selectors.DefaultSelector):
    """Waits for nobody: the time that it was to wait has passed."""

    def __init__(self):
        super().__init__()
        self.now_s = 0.0

    def select(self, timeout=None):
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("nothing will ever happen")
        if not ready and timeout:
            self.now_s += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self):
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self):
        return self._jumping.now_s


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
