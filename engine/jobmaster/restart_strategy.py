"""Restart strategies: whether, and after how long, what failed is tried again.

    restart_strategy(default, configuration, random) ─► strategy
    strategy.next_delay_s(now_s) ─► seconds to wait, or None: no more

    none               never
    fixed-delay        ``attempts`` times, ``delay_s`` apart
    exponential-delay  longer and longer delays up to a maximum; the first one again after a quiet time
    failure-rate       as long as there are not more than ``failures_max`` failures in ``interval_s``

Only failures that a new attempt may mend are asked about; what user code, data or configuration cause ends the job.
Pure: time is given, jitter too.

Source: Flink's RestartBackoffTimeStrategy and its four implementations.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from engine.config.loader import Configuration
from engine.config.options import (
    EXPONENTIAL_ATTEMPTS,
    EXPONENTIAL_INITIAL,
    EXPONENTIAL_JITTER,
    EXPONENTIAL_MAX,
    EXPONENTIAL_MULTIPLIER,
    EXPONENTIAL_RESET,
    FAILURE_RATE_DELAY,
    FAILURE_RATE_INTERVAL,
    FAILURE_RATE_MAX,
    FIXED_DELAY,
    FIXED_DELAY_ATTEMPTS,
    RESTART_STRATEGY,
)


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
    """Longer and longer delays.

    Args:
        initial_s, maximum_s: first delay, and the longest.
        multiplier: from one delay to the next, > 1.
        reset_s: after so long without a failure the delay is the first one again, and attempts are counted anew.
        attempts: so many without such a quiet time, 0: any number.
        jitter: returns the factor of each delay, 1 for none: spreads jobs that failed together.
    """

    def __init__(
        self,
        initial_s: float,
        maximum_s: float,
        multiplier: float,
        reset_s: float,
        attempts: int = 0,
        jitter: Callable[[], float] = lambda: 1.0,
    ) -> None:
        self._initial_s = initial_s
        self._maximum_s = maximum_s
        self._multiplier = multiplier
        self._reset_s = reset_s
        self._attempts = attempts
        self._count = 0
        self._jitter = jitter
        self._delay_s = initial_s
        self._quiet_from_s: float | None = None

    def next_delay_s(self, now_s: float) -> float | None:
        """Return the present delay and lengthen it."""
        if self._quiet_from_s is not None and now_s - self._quiet_from_s >= self._reset_s:
            self._delay_s = self._initial_s
            self._count = 0
        self._count += 1
        if self._attempts and self._count > self._attempts:
            return None
        delay_s = min(self._maximum_s, self._delay_s * self._jitter())
        self._quiet_from_s = now_s + delay_s
        self._delay_s = min(self._maximum_s, self._delay_s * self._multiplier)
        return delay_s


class FailureRateRestart:
    """Restart as often as needed, unless failures come too fast."""

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


def is_endless(default: str, configuration: Configuration) -> bool:
    """Whether the strategy that ``restart_strategy`` returns may try again for ever."""
    kind = configuration.get(RESTART_STRATEGY) or default
    return kind == "failure-rate" or (kind == "exponential-delay" and not configuration.get(EXPONENTIAL_ATTEMPTS))


def restart_strategy(default: str, configuration: Configuration, random: Callable[[], float]) -> RestartStrategy:
    """Return a new strategy for a job: the configured one, else ``default``. ``random`` returns 0 <= r < 1."""
    match configuration.get(RESTART_STRATEGY) or default:
        case "fixed-delay":
            delay_s = configuration.get(FIXED_DELAY) / 1000
            return FixedDelayRestart(configuration.get(FIXED_DELAY_ATTEMPTS), delay_s)
        case "failure-rate":
            return FailureRateRestart(
                configuration.get(FAILURE_RATE_MAX),
                configuration.get(FAILURE_RATE_INTERVAL) / 1000,
                configuration.get(FAILURE_RATE_DELAY) / 1000,
            )
        case "exponential-delay":
            spread = configuration.get(EXPONENTIAL_JITTER)
            return ExponentialDelayRestart(
                configuration.get(EXPONENTIAL_INITIAL) / 1000,
                configuration.get(EXPONENTIAL_MAX) / 1000,
                configuration.get(EXPONENTIAL_MULTIPLIER),
                configuration.get(EXPONENTIAL_RESET) / 1000,
                configuration.get(EXPONENTIAL_ATTEMPTS),
                lambda: 1 + spread * (2 * random() - 1),
            )
    return NoRestart()
