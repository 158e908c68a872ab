"""LoopLag: by how much the event loop of a process is late, for metrics.

    run(): sleep 0.1 s ─► woken how much later than that? ─► the longest of this half minute and of the one before

A loop that is late answers heartbeats late: something computes on it, or the machine does not give it a processor.

Held by: tests/rest/test_process_meter.py
"""

from __future__ import annotations

import asyncio
from typing import Final

from engine.clock import Clock, SystemClock

LOOP_LAG: Final = "Status.EventLoop.Lag"
_PAUSE_S = 0.1
_WINDOW_S = 30.0


class LoopLag:
    """The delays of one loop."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._longest_s = 0.0
        self._longest_before_s = 0.0
        self._window_end_s = self._clock.monotonic_s() + _WINDOW_S

    async def run(self) -> None:
        """Look for ever."""
        while True:
            begin_s = self._clock.monotonic_s()
            await asyncio.sleep(_PAUSE_S)
            self.note(self._clock.monotonic_s() - begin_s - _PAUSE_S)

    def note(self, lag_s: float) -> None:
        """Take note of a delay that ended now."""
        self._turn()
        self._longest_s = max(self._longest_s, lag_s)

    def metrics(self) -> dict[str, float]:
        """Return the longest delay of the last half minute to a minute, in seconds."""
        self._turn()
        return {LOOP_LAG: max(self._longest_s, self._longest_before_s)}

    def _turn(self) -> None:
        """Begin a new half minute where it is time."""
        late_s = self._clock.monotonic_s() - self._window_end_s
        if late_s >= 0:
            self._longest_before_s = self._longest_s if late_s < _WINDOW_S else 0.0
            self._longest_s = 0.0
            self._window_end_s += _WINDOW_S * (1 + late_s // _WINDOW_S)
