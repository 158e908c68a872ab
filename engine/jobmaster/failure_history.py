"""Failures of one job: those that are not mended yet, and the latest of all.

    add(failure) ─► root: why the job fails, if it does ─► mended(): they were overcome by a restart
                                                        └► end_job(): the job fails, what comes later follows from that

A task that fails tears others down with it: their inputs vanish, their buffers are closed. Their reports may come
first. The root is the first failure that ends a job whatever else failed; without one, the first failure that is not
such a consequence.

Held by: tests/client/test_failure_text.py
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from engine.clock import Clock
from engine.errors import JobExecutionError
from engine.graph.deployment import FailureInfo

#: errors that are consequences of others
_CONSEQUENCES = frozenset(
    {
        "TaskCancelledError",
        "ProducerFailedError",
        "PartitionNotFoundError",
        "PartitionReleasedError",
        "PartitionConnectionError",
    }
)
KEPT_MAX = 64


def root_failure(failures: Sequence[FailureInfo]) -> FailureInfo:
    """Return the cause among failures (at least one, in order of arrival)."""
    causes = [failure for failure in failures if not is_consequence(failure)]
    return next((failure for failure in causes if is_final(failure)), causes[0] if causes else failures[0])


def is_consequence(failure: FailureInfo) -> bool:
    """Whether something else failed, somewhere else."""
    return failure.type_name in _CONSEQUENCES


def is_final(failure: FailureInfo) -> bool:
    """Whether a failure ends the job, also where what failed is about to run again.

    A task that hangs while it is being cancelled is no such failure: it is not why the job should fail.
    """
    return not failure.retryable and failure.type_name != JobExecutionError.__name__


class PastFailure(NamedTuple):
    """A failure and when it came, in milliseconds since 1970. ``round``: the same of those that were open together."""

    time_ms: int
    failure: FailureInfo
    round: int = 0


class FailureHistory:
    """Failures in order of arrival; the latest KEPT_MAX are remembered."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open: list[FailureInfo] = []
        self._end: FailureInfo | None = None
        self._kept: deque[PastFailure] = deque(maxlen=KEPT_MAX)
        self._count = 0
        self._round = 0

    def add(self, failure: FailureInfo, time_ms: int | None = None) -> None:
        """Take note of a failure, which came now or at a time."""
        self._open.append(failure)
        self._count += 1
        self._kept.append(PastFailure(self._clock.wall_ms() if time_ms is None else time_ms, failure, self._round))

    def mended(self) -> None:
        """Take note that a restart overcame what was open."""
        self._open.clear()
        self._round += 1

    def end_job(self) -> None:
        """Take note that what is open so far ends the job."""
        if self._open and self._end is None and not is_consequence(self.root):
            self._end = self.root

    @property
    def unmended(self) -> tuple[FailureInfo, ...]:
        """Failures that have not been mended yet."""
        return tuple(self._open)

    @property
    def root(self) -> FailureInfo:
        """The cause among the failures that are open, of which there is at least one."""
        return root_failure(self._open) if self._end is None else self._end

    @property
    def is_truncated(self) -> bool:
        """Whether there were more than are remembered."""
        return self._count > len(self._kept)

    @property
    def latest(self) -> tuple[PastFailure, ...]:
        """The latest failures, mended or not, newest first; of those that were open together the cause comes first."""
        told: list[PastFailure] = []
        for _, together in groupby(reversed(self._kept), key=lambda past: past.round):
            newest_first = list(together)
            root = root_failure([past.failure for past in reversed(newest_first)])
            cause = next(past for past in reversed(newest_first) if past.failure is root)
            told += [cause, *(past for past in newest_first if past is not cause)]
        return tuple(told)
