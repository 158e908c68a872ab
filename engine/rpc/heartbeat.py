"""HeartbeatMonitor: which of the watched targets have been silent for longer than the time-out.

    watch(target) ─► received(target) * ─► poll() -> targets lost since the last poll (no longer watched)

Pure over a Clock; the endpoint calls ``poll`` every interval. A pause of this process (stopped, swapped out, a long
native call) is not the others' silence: when two polls lie further apart than the time-out allows, the pause is added
to the time that all targets have.

Source: Flink's HeartbeatManagerImpl; the added time is ours.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from engine.clock import Clock

T = TypeVar("T", bound=Hashable)


class HeartbeatMonitor(Generic[T]):
    """Last sign of life of each target."""

    def __init__(self, interval_s: float, timeout_s: float, clock: Clock) -> None:
        if not 0 < interval_s < timeout_s:
            raise ValueError(
                f"heartbeat interval {interval_s} s must be positive and less than the time-out {timeout_s} s"
            )
        self.interval_s = interval_s
        self._timeout_s = timeout_s
        self._clock = clock
        self._last_seen_s: dict[T, float] = {}
        self._last_poll_s = clock.monotonic_s()

    @property
    def targets(self) -> tuple[T, ...]:
        """The targets that are watched."""
        return tuple(self._last_seen_s)

    def watch(self, target: T) -> None:
        """Begin to watch a target, as if it had just been heard."""
        self._last_seen_s[target] = self._clock.monotonic_s()

    def unwatch(self, target: T) -> None:
        """Stop watching; unknown targets are ignored."""
        self._last_seen_s.pop(target, None)

    def received(self, target: T) -> None:
        """Record a sign of life; of a target that is not watched it means nothing."""
        if target in self._last_seen_s:
            self._last_seen_s[target] = self._clock.monotonic_s()

    def poll(self) -> tuple[T, ...]:
        """Return the targets that are lost now and stop watching them."""
        now_s = self._clock.monotonic_s()
        pause_s = now_s - self._last_poll_s - self.interval_s
        self._last_poll_s = now_s
        if pause_s > self._timeout_s / 2:
            for target in self._last_seen_s:
                self._last_seen_s[target] += pause_s
        lost = tuple(target for target, seen_s in self._last_seen_s.items() if now_s - seen_s > self._timeout_s)
        for target in lost:
            del self._last_seen_s[target]
        return lost
