"""Restart strategies: whether, and after how long, a failed region is tried again.

    strategy.next_delay_s(now_s) ─► seconds to wait, or None: no more

    none               never
    fixed-delay        ``attempts`` times, ``delay_s`` apart
    exponential-delay  the delay doubles up to a maximum, and begins anew after a quiet time
    failure-rate       as long as there are not more than ``failures_max`` failures in ``interval_s``

Only failures that a new attempt may mend are asked about; what user code, data or configuration cause ends the job.
Pure: time is given, jitter too.

Source: Flink's RestartBackoffTimeStrategy and its four implementations.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol


class RestartStrategy(Protocol):
    """Decides about each failure of a job."""

    def next_delay_s(self, now_s: float) -> float | None:
        """Count a failure at that moment; return the seconds until the next attempt, None when there is none."""
        ...


class NoRestart:
    """The first failure is the last."""

    def next_delay_s(self, now_s: float) -> float | None:
        """Return None."""
        return None


class FixedDelayRestart:
    """A number of attempts, always the same time apart."""

    def __init__(self, attempts: int, delay_s: float) -> None:
        self._attempts_left = attempts
        self._delay_s = delay_s

    def next_delay_s(self, now_s: float) -> float | None:
        """Return the delay until the attempts are used up."""
        if self._attempts_left == 0:
            return None
        self._attempts_left -= 1
        return self._delay_s


class ExponentialDelayRestart:
    """Longer and longer delays, without end.

    Args:
        initial_s: first delay.
        maximum_s: no delay is longer.
        multiplier: from one delay to the next, > 1.
        reset_s: after so long without a failure the delay is the first one again.
        jitter: returns the factor of each delay, 1 for none: spreads jobs that failed together.
    """

    def __init__(
        self,
        initial_s: float = 1.0,
        maximum_s: float = 60.0,
        multiplier: float = 2.0,
        reset_s: float = 3600.0,
        jitter: Callable[[], float] = lambda: 1.0,
    ) -> None:
        self._initial_s = initial_s
        self._maximum_s = maximum_s
        self._multiplier = multiplier
        self._reset_s = reset_s
        self._jitter = jitter
        self._delay_s = initial_s
        self._last_failure_s: float | None = None

    def next_delay_s(self, now_s: float) -> float | None:
        """Return the present delay and lengthen it."""
        if self._last_failure_s is not None and now_s - self._last_failure_s - self._delay_s >= self._reset_s:
            self._delay_s = self._initial_s
        self._last_failure_s = now_s
        delay_s = self._delay_s
        self._delay_s = min(self._maximum_s, self._delay_s * self._multiplier)
        return min(self._maximum_s, delay_s * self._jitter())


class FailureRateRestart:
    """As often as needed, unless failures come too fast."""

    def __init__(self, failures_max: int, interval_s: float, delay_s: float) -> None:
        self._failures_max = failures_max
        self._interval_s = interval_s
        self._delay_s = delay_s
        self._failures_s: deque[float] = deque()

    def next_delay_s(self, now_s: float) -> float | None:
        """Return the delay, or None when the interval that ends now holds more failures than allowed."""
        self._failures_s.append(now_s)
        while self._failures_s[0] <= now_s - self._interval_s:
            self._failures_s.popleft()
        return self._delay_s if len(self._failures_s) <= self._failures_max else None
