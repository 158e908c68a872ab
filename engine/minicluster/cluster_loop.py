"""The event loop of a cluster in one process, which hardly ever hears anything from outside.

    loop = cluster_loop()          run_loop(loop), in a thread of its own, until it is stopped

    a turn of the loop ─┬─ nothing to do: wait for the kernel's events, as any loop does
                        └─ work is queued: ask the kernel at one of TURNS turns alone

A message between components of one process is a dozen callbacks, and asyncio looks for events of the network before
each of them. That look gives the GIL away, to a task that computes and returns it when it likes: calls within one
process cost more in this than in all they do.

Invariant: an event waits for TURNS - 1 turns of queued callbacks at most; a loop that has nothing queued waits for it.

Held by: tests/minicluster/test_cluster_loop.py
"""

from __future__ import annotations

import asyncio
import selectors
import sys
import threading
from typing import Final

TURNS: Final = 16


class SeldomSelector(selectors.DefaultSelector):
    """A selector for one loop. Thread: the loop's."""

    def __init__(self) -> None:
        super().__init__()
        self._turns_passed = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return the events that are there, none at most turns with queued work: asyncio's ``timeout`` is 0 then."""
        has_queued_work = timeout is not None and timeout <= 0
        if has_queued_work and self._turns_passed < TURNS - 1:
            self._turns_passed += 1
            return []
        self._turns_passed = 0
        return super().select(timeout)


def cluster_loop() -> asyncio.AbstractEventLoop:
    """Return a new loop."""
    return asyncio.SelectorEventLoop(SeldomSelector())


def run_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop in this thread until it is stopped, and close it."""
    asyncio.set_event_loop(loop)
    loop.run_forever()
    loop.close()


def place_of(thread: threading.Thread) -> str:
    """Return the place of a thread in its code, for an error about one that does not answer."""
    frame = sys._current_frames().get(thread.ident or 0)
    where = "" if frame is None else f" is at line {frame.f_lineno} of {frame.f_code.co_filename}"
    return f"its thread{where or ' has ended'}"
