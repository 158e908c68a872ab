"""StatusHistory: the status of a job, when it entered each, and the latest attempts to mend a failure.

The status changes by its table only (``job_status``). Pure.

Held by: tests/jobmaster/test_states.py
"""

from __future__ import annotations

import logging
from collections import deque

from engine.clock import Clock
from engine.gateways.job_details import JobRestart
from engine.graph.deployment import FailureInfo
from engine.ids import JobId
from engine.jobmaster.job_status import JobStatus, check_job_transition

_log = logging.getLogger(__name__)

#: restarts kept, so that a client which polls now and then misses none
_RESTARTS_KEPT = 32
_CAUSE_CHARACTERS_MAX = 500


class StatusHistory:
    """Status changes of one job, which began at ``start_ms``."""

    def __init__(self, job_id: JobId, job_name: str, start_ms: int, clock: Clock) -> None:
        self._job = f"{job_id} ({job_name})"
        self._clock = clock
        self.status = JobStatus.INITIALIZING
        self.timestamps_ms = {JobStatus.INITIALIZING.value: start_ms}
        self.restarts: deque[JobRestart] = deque(maxlen=_RESTARTS_KEPT)

    def enter(self, status: JobStatus) -> None:
        """Enter a status, or raise IllegalTransitionError."""
        check_job_transition(self.status, status)
        _log.info("job %s: %s -> %s", self._job, self.status, status)
        self.status = status
        self.timestamps_ms[str(status)] = self._clock.wall_ms()

    def note_restart(self, number: int, root: FailureInfo, pause_s: float) -> None:
        """Record an attempt that failed, and why, for clients."""
        cause = f"{root.type_name}: {root.message}"
        if len(cause) > _CAUSE_CHARACTERS_MAX:
            cause = f"{cause[:_CAUSE_CHARACTERS_MAX]}..."
        self.restarts.append(JobRestart(number, cause, round(pause_s * 1000)))
