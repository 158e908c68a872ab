"""Drain: the end of a TaskExecutor that takes no more slots.

    begin(reason, limit) ─► DRAINING ─► nothing of a job is left here, or the limit is over ─► the process ends

It is a state of the process, not of a leader: each leader hears of it when the TaskExecutor registers. Without a
limit it lasts until the last result that is kept here has been read, which may be as long as a job.

Held by: tests/taskexecutor/test_drain.py
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from engine.clock import Clock
from engine.errors import ResourceError

_log = logging.getLogger(__name__)

#: seconds between two looks whether something is left
_LOOK_S = 0.1


class Drain:
    """The drain of one TaskExecutor.

    Args:
        is_empty: whether nothing of any job is left.
        end_process: begins to end the process; None: the cluster may not end it.
    """

    def __init__(self, is_empty: Callable[[], bool], end_process: Callable[[], None] | None, clock: Clock) -> None:
        self._is_empty = is_empty
        self._end_process = end_process
        self._clock = clock
        self._deadline_s: float | None = None
        #: True from the first request on
        self.is_draining = False

    def begin(self, reason: str, limit_s: float | None) -> bool:
        """Begin, or (False) change the limit; ResourceError where the cluster does not end the process."""
        if self._end_process is None:
            raise ResourceError("this TaskManager is part of another process, which the cluster does not end")
        if limit_s is not None:
            self._deadline_s = self._clock.monotonic_s() + limit_s
        is_new, self.is_draining = not self.is_draining, True
        limit = "" if limit_s is None else f", and within {limit_s:g} s"
        _log.info("this TaskManager ends once nothing of a job is left here%s: %s", limit, reason)
        return is_new

    async def run(self) -> None:
        """End the process when the time has come."""
        while not self._is_empty():
            if self._deadline_s is not None and self._clock.monotonic_s() >= self._deadline_s:
                _log.warning("this TaskManager ends before it is empty: its time to drain is over")
                break
            await asyncio.sleep(_LOOK_S)
        else:
            _log.info("this TaskManager ends: nothing of a job is left here")
        assert self._end_process is not None, "a drain has begun"
        self._end_process()
