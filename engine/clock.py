"""The one place that reads clocks.

``Clock`` is what components are given; ``SystemClock`` reads the machine's, ``ManualClock`` is moved by tests.
Durations come from the monotonic clock; the wall clock is only for showing times to people.

Held by: tests/rpc/test_heartbeat.py
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Source of time for components."""

    def monotonic_s(self) -> float:
        """Return seconds of a clock that never goes back."""
        ...

    def wall_ms(self) -> int:
        """Return milliseconds since the epoch, for display."""
        ...


class SystemClock:
    """The machine's clocks."""

    def monotonic_s(self) -> float:
        """Return ``time.monotonic()``."""
        return time.monotonic()

    def wall_ms(self) -> int:
        """Return ``time.time()`` in whole milliseconds."""
        return int(time.time() * 1000)


class ManualClock:
    """A clock that stands still until ``advance`` is called."""

    def __init__(self, start_s: float = 0.0) -> None:
        self._now_s = start_s

    def monotonic_s(self) -> float:
        """Return the seconds set so far."""
        return self._now_s

    def wall_ms(self) -> int:
        """Return the same moment in milliseconds."""
        return int(self._now_s * 1000)

    def advance(self, seconds: float) -> None:
        """Move the clock forward."""
        if seconds < 0:
            raise ValueError("a clock does not go back")
        self._now_s += seconds
