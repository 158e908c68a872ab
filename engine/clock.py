"""The one place that reads clocks.

``Clock`` is what components are given; ``SystemClock`` reads the machine's, ``ManualClock`` is moved by tests,
``StoppedClock`` shows the ``Moment`` that a pure part was told of.
Durations come from the monotonic clock; the wall clock is only for showing times to people.

Held by: tests/rpc/test_heartbeat.py
"""

from __future__ import annotations

import time
from typing import Protocol, Self

import msgspec


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
        """Return the wall-clock time in milliseconds."""
        return int(self._now_s * 1000)

    def advance(self, seconds: float) -> None:
        """Move the clock forward."""
        if seconds < 0:
            raise ValueError("a clock does not go back")
        self._now_s += seconds


class Moment(msgspec.Struct, frozen=True, gc=False):
    """A moment, as both clocks show it."""

    monotonic_s: float
    wall_ms: int

    @classmethod
    def of(cls, clock: Clock) -> Self:
        """Return the present moment of a clock."""
        return cls(clock.monotonic_s(), clock.wall_ms())


class StoppedClock:
    """A clock that shows the moment it was last set to: for pure parts, which are told the time."""

    def __init__(self, now: Moment) -> None:
        self.now = now

    def monotonic_s(self) -> float:
        """Return the seconds of that moment."""
        return self.now.monotonic_s

    def wall_ms(self) -> int:
        """Return the milliseconds of that moment."""
        return self.now.wall_ms
