"""States of a task in its TaskExecutor and the moves between them, as a table.

    DEPLOYING ─► INITIALIZING ─► RUNNING ─► FINISHED
        └────────────┴──────────────┴─────► CANCELED | FAILED

Names are those of the JobMaster's ExecutionState: they travel as text. CANCELING is not a state here: a task that was
told to end is what it was until its thread has ended. Pure. Source: Flink's Task and ExecutionState.
Held by: tests/jobmaster/test_states.py
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from engine.errors import IllegalTransitionError


class TaskState(StrEnum):
    """State of a task."""

    DEPLOYING = "DEPLOYING"
    INITIALIZING = "INITIALIZING"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    CANCELED = "CANCELED"
    FAILED = "FAILED"

    #: True if the task has ended
    is_terminal: bool


_S = TaskState
for _state in _S:
    _state.is_terminal = _state in (_S.FINISHED, _S.CANCELED, _S.FAILED)
#: states by the names that travel
TASK_STATES: Final = {str(state): state for state in _S}
_ENDS = frozenset({_S.CANCELED, _S.FAILED})

TASK_TRANSITIONS: dict[TaskState, frozenset[TaskState]] = {
    _S.DEPLOYING: frozenset({_S.INITIALIZING}) | _ENDS,
    _S.INITIALIZING: frozenset({_S.RUNNING}) | _ENDS,
    _S.RUNNING: frozenset({_S.FINISHED}) | _ENDS,
    _S.FINISHED: frozenset(),
    _S.CANCELED: frozenset(),
    _S.FAILED: frozenset(),
}


def check_task_transition(current: TaskState, target: TaskState) -> None:
    """Raise IllegalTransitionError when the table has no such move."""
    if target not in TASK_TRANSITIONS[current]:
        raise IllegalTransitionError(f"a task does not go from {current} to {target}")
