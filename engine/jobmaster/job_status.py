"""States of a job and the moves between them, as a table.

    INITIALIZING ─► CREATED ─► RUNNING ─► FINISHED
                       │          ├─► FAILING ─► FAILED            (all tasks are cancelled first)
                       │          ├─► RESTARTING ─► RUNNING        (a region is tried again)
                       └──────────┴─► CANCELLING ─► CANCELED
    CREATED ─► RECONCILING ─► RUNNING                              (after a JobManager fail-over)
    any state not terminal ─► SUSPENDED                            (leadership lost: terminal here, not for the job)

Pure. Source: Flink's JobStatus.

Held by: tests/jobmaster/test_states.py
"""

from __future__ import annotations

from enum import StrEnum

from engine.errors import IllegalTransitionError


class JobStatus(StrEnum):
    """State of a job."""

    INITIALIZING = "INITIALIZING"
    CREATED = "CREATED"
    RUNNING = "RUNNING"
    FAILING = "FAILING"
    FAILED = "FAILED"
    CANCELLING = "CANCELLING"
    CANCELED = "CANCELED"
    FINISHED = "FINISHED"
    RESTARTING = "RESTARTING"
    SUSPENDED = "SUSPENDED"
    RECONCILING = "RECONCILING"

    #: True if the job has ended at this JobMaster
    is_terminal: bool


_S = JobStatus
for _status in _S:
    _status.is_terminal = _status in (_S.FINISHED, _S.FAILED, _S.CANCELED, _S.SUSPENDED)

JOB_TRANSITIONS: dict[JobStatus, frozenset[JobStatus]] = {
    _S.INITIALIZING: frozenset({_S.CREATED, _S.FAILING, _S.CANCELLING, _S.SUSPENDED}),
    _S.CREATED: frozenset({_S.RUNNING, _S.FAILING, _S.CANCELLING, _S.RECONCILING, _S.SUSPENDED}),
    _S.RUNNING: frozenset({_S.FINISHED, _S.FAILING, _S.CANCELLING, _S.RESTARTING, _S.SUSPENDED}),
    _S.FAILING: frozenset({_S.FAILED, _S.CANCELLING, _S.SUSPENDED}),
    _S.CANCELLING: frozenset({_S.CANCELED, _S.SUSPENDED}),
    _S.RESTARTING: frozenset({_S.RUNNING, _S.FAILING, _S.CANCELLING, _S.SUSPENDED}),
    _S.RECONCILING: frozenset({_S.RUNNING, _S.FAILING, _S.CANCELLING, _S.SUSPENDED}),
    _S.FINISHED: frozenset(),
    _S.FAILED: frozenset(),
    _S.CANCELED: frozenset(),
    _S.SUSPENDED: frozenset(),
}


def check_job_transition(current: JobStatus, target: JobStatus) -> None:
    """Raise IllegalTransitionError when the table has no such move."""
    if target not in JOB_TRANSITIONS[current]:
        raise IllegalTransitionError(f"a job does not go from {current} to {target}")
