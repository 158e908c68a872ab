"""Refusals: the callers that this process has refused, why and how often. One for the process, ``REFUSALS``.

    note(reason, address, what, why) ─► logged, at most once in a while for each caller, and counted
    counts: by reason, for metrics        latest: by reason and address, for people

Any client can cause refusals at will. So the log has a line for the first one of a reason and address and then at most
one in ``TELL_S`` seconds, which says how many there were in between; and the callers that were refused last are
remembered, at most ``CALLERS_MAX`` of them.

Thread: any.

Held by: tests/rpc/test_refusals.py
"""

from __future__ import annotations

import logging
import threading
from enum import StrEnum
from typing import Final

import msgspec

from engine.clock import Clock, SystemClock

CALLERS_MAX: Final = 64
#: seconds between two lines of the log about one reason and address
TELL_S: Final = 60.0

_log = logging.getLogger(__name__)


class Reason(StrEnum):
    """The reasons for which a caller is refused."""

    #: no credential where one is needed
    MISSING_SECRET = "missing-secret"  # noqa: S105
    #: a credential made with another secret, changed, or used before
    WRONG_SECRET = "wrong-secret"  # noqa: S105
    CLOCK = "clock"
    VERSION = "version"
    #: a user whose role is not enough
    ROLE = "role"


class Refusal(msgspec.Struct):
    """A caller that was refused."""

    reason: Reason
    address: str
    count: int = 0
    #: last refusal: when, what was asked, why it was refused
    time_ms: int = 0
    what: str = ""
    why: str = ""
    told_s: float = float("-inf")
    #: refusals since the last line of the log
    untold_count: int = 0


class Refusals:
    """The refusals of one process."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._counts = dict.fromkeys(Reason, 0)  # guarded by: self._lock
        #: refusals by reason and caller, latest last  # guarded by: self._lock
        self._callers: dict[tuple[Reason, str], Refusal] = {}

    def note(self, reason: Reason, address: str, what: str, why: str) -> bool:
        """Count a refusal, and log it unless that was done a moment ago. Returns whether it was.

        Args: what: what was asked, without secrets.
        """
        with self._lock:
            self._counts[reason] += 1
            caller = self._callers.pop((reason, address), None) or Refusal(reason, address)
            self._callers[reason, address] = caller
            if len(self._callers) > CALLERS_MAX:
                del self._callers[next(iter(self._callers))]
            caller.count += 1
            caller.time_ms, caller.what, caller.why = self._clock.wall_ms(), what, why
            now_s = self._clock.monotonic_s()
            is_told = now_s - caller.told_s >= TELL_S
            more = caller.untold_count
            caller.told_s, caller.untold_count = (now_s, 0) if is_told else (caller.told_s, more + 1)
        if is_told:
            others = f" (and {more} more since the last such line)" if more else ""
            # People without a token meet this on their way to being asked for it.
            level = logging.INFO if reason is Reason.MISSING_SECRET else logging.WARNING
            _log.log(level, "%s from %s is refused: %s%s", what, address, why, others)
        return is_told

    @property
    def counts(self) -> dict[Reason, int]:
        """Number of refusals for each reason."""
        with self._lock:
            return dict(self._counts)

    @property
    def latest(self) -> tuple[Refusal, ...]:
        """The callers that were refused last, the latest first."""
        with self._lock:
            return tuple(msgspec.structs.replace(each) for each in reversed(self._callers.values()))


#: refusals of this process
REFUSALS = Refusals()
