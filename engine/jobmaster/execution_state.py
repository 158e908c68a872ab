"""States of one attempt (an Execution) and the moves between them, as a table.

    CREATED ─► SCHEDULED ─► DEPLOYING ─► INITIALIZING ─► RUNNING ─► FINISHED
       │            │            └──────────┴──────────────┴─────► CANCELING ─► CANCELED
       └────────────┴──► CANCELING ─► CANCELED (at once: nothing was sent)      FAILED from every state not terminal
    CREATED ─► RECONCILING ─► RUNNING | FINISHED | CANCELED | FAILED            (after a JobManager fail-over)

A very fast task is FINISHED when the JobMaster still thinks it is DEPLOYING. A FINISHED report that meets CANCELING
means CANCELED. Terminal states are never left. After a fail-over reports may tell of states that were passed unseen,
or come after the one that followed them: ``states_towards`` enters what was skipped and ignores what is behind. Pure.

Source: Flink's ExecutionState and Execution.
Held by: tests/jobmaster/test_execution_graph.py
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from engine.errors import IllegalTransitionError


class ExecutionState(StrEnum):
    """State of an attempt."""

    CREATED = "CREATED"
    SCHEDULED = "SCHEDULED"
    DEPLOYING = "DEPLOYING"
    INITIALIZING = "INITIALIZING"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    CANCELING = "CANCELING"
    CANCELED = "CANCELED"
    FAILED = "FAILED"
    RECONCILING = "RECONCILING"

    #: True if the attempt has ended
    is_terminal: bool
    #: True if a TaskExecutor has been told to run the attempt and it has not ended
    is_deployed: bool


_S = ExecutionState
for _state in _S:
    _state.is_terminal = _state in (_S.FINISHED, _S.CANCELED, _S.FAILED)
    _state.is_deployed = _state in (_S.DEPLOYING, _S.INITIALIZING, _S.RUNNING, _S.CANCELING)

EXECUTION_TRANSITIONS: dict[ExecutionState, frozenset[ExecutionState]] = {
    _S.CREATED: frozenset({_S.SCHEDULED, _S.FINISHED, _S.CANCELING, _S.FAILED, _S.RECONCILING}),
    _S.SCHEDULED: frozenset({_S.DEPLOYING, _S.CANCELING, _S.FAILED}),
    _S.DEPLOYING: frozenset({_S.INITIALIZING, _S.FINISHED, _S.CANCELING, _S.CANCELED, _S.FAILED}),
    _S.INITIALIZING: frozenset({_S.RUNNING, _S.FINISHED, _S.CANCELING, _S.CANCELED, _S.FAILED}),
    _S.RUNNING: frozenset({_S.FINISHED, _S.CANCELING, _S.CANCELED, _S.FAILED}),
    _S.CANCELING: frozenset({_S.CANCELED, _S.FAILED}),
    _S.RECONCILING: frozenset({_S.RUNNING, _S.FINISHED, _S.CANCELED, _S.FAILED}),
    _S.FINISHED: frozenset(),
    _S.CANCELED: frozenset(),
    _S.FAILED: frozenset(),
}


def check_execution_transition(current: ExecutionState, target: ExecutionState) -> None:
    """Raise IllegalTransitionError when the table has no such move."""
    if target not in EXECUTION_TRANSITIONS[current]:
        raise IllegalTransitionError(f"an execution does not go from {current} to {target}")


_WAY = (_S.CREATED, _S.SCHEDULED, _S.DEPLOYING, _S.INITIALIZING, _S.RUNNING)


def states_towards(current: ExecutionState, target: ExecutionState) -> tuple[ExecutionState, ...]:
    """Return the states to enter, in order, from a SCHEDULED attempt on; () when the attempt is there or beyond."""
    if current not in _WAY:
        return (target,) if target.is_terminal else ()
    if target in _WAY:
        return _WAY[_WAY.index(current) + 1 : _WAY.index(target) + 1]
    return (_S.DEPLOYING, target) if current is _S.SCHEDULED else (target,)


def state_after_report(current: ExecutionState, reported: ExecutionState) -> ExecutionState:
    """Return the state that a TaskExecutor's report leads to: FINISHED of a task being canceled is CANCELED."""
    if current is ExecutionState.CANCELING and reported is ExecutionState.FINISHED:
        return ExecutionState.CANCELED
    return reported


#: states to enter, in order, by the state of an attempt and the one that a report, which may be late, tells of
STATES_AFTER_REPORT: Final[dict[tuple[str, str], tuple[ExecutionState, ...]]] = {
    (current, reported): states_towards(current, state_after_report(current, reported))
    for current in _S
    for reported in _S
}
