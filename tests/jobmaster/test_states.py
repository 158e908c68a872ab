"""The tables of execution, job and task states: every legal move is accepted, every other one refused."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.clock import ManualClock
from engine.errors import IllegalTransitionError
from engine.ids import ExecutionAttemptId, JobId, JobVertexId
from engine.jobmaster.execution_state import (
    EXECUTION_TRANSITIONS,
    ExecutionState,
    check_execution_transition,
    state_after_report,
)
from engine.jobmaster.execution_vertex import Execution
from engine.jobmaster.job_status import JOB_TRANSITIONS, JobStatus, check_job_transition
from engine.jobmaster.status_history import StatusHistory
from engine.taskexecutor.task_state import TASK_TRANSITIONS, TaskState, check_task_transition

TABLES = [
    (EXECUTION_TRANSITIONS, ExecutionState, check_execution_transition),
    (JOB_TRANSITIONS, JobStatus, check_job_transition),
    (TASK_TRANSITIONS, TaskState, check_task_transition),
]

#: the moves as Flink has them, written down a second time: a table that is compared with itself is always right
MOVES = {
    ExecutionState: """
        CREATED: SCHEDULED FINISHED CANCELING FAILED RECONCILING
        SCHEDULED: DEPLOYING CANCELING FAILED
        DEPLOYING: INITIALIZING FINISHED CANCELING CANCELED FAILED
        INITIALIZING: RUNNING FINISHED CANCELING CANCELED FAILED
        RUNNING: FINISHED CANCELING CANCELED FAILED
        CANCELING: CANCELED FAILED
        RECONCILING: RUNNING FINISHED CANCELED FAILED
        FINISHED:
        CANCELED:
        FAILED:
    """,
    JobStatus: """
        INITIALIZING: CREATED FAILING CANCELLING SUSPENDED
        CREATED: RUNNING FAILING CANCELLING RECONCILING SUSPENDED
        RUNNING: FINISHED FAILING CANCELLING RESTARTING SUSPENDED
        FAILING: FAILED CANCELLING SUSPENDED
        CANCELLING: CANCELED SUSPENDED
        RESTARTING: RUNNING FAILING CANCELLING SUSPENDED
        RECONCILING: RUNNING FAILING CANCELLING SUSPENDED
        FINISHED:
        FAILED:
        CANCELED:
        SUSPENDED:
    """,
    TaskState: """
        DEPLOYING: INITIALIZING CANCELED FAILED
        INITIALIZING: RUNNING CANCELED FAILED
        RUNNING: FINISHED CANCELED FAILED
        FINISHED:
        CANCELED:
        FAILED:
    """,
}


def moves_of(states):
    """Return the moves that are written down: (from, to)."""
    lines = [line.split(":") for line in MOVES[states].split("\n") if line.strip()]
    assert {current.strip() for current, _ in lines} == {state.value for state in states}
    return {(states(current.strip()), states(target)) for current, targets in lines for target in targets.split()}


@pytest.mark.parametrize(("table", "states", "check"), TABLES, ids=["execution", "job", "task"])
def test_exactly_the_moves_that_are_written_down_are_accepted(table, states, check):
    accepted = set()
    for current, target in itertools.product(states, states):
        try:
            check(current, target)
        except IllegalTransitionError as error:
            assert f"from {current} to {target}" in str(error)
            continue
        accepted.add((current, target))
    assert accepted == moves_of(states)


def test_an_attempt_does_not_move_against_the_table():
    moves = moves_of(ExecutionState)
    for current, target in itertools.product(ExecutionState, ExecutionState):
        attempt = Execution(ExecutionAttemptId.create(JobVertexId(0), 0, 0), state=current)
        if (current, target) in moves:
            attempt.transition(target, ManualClock())
            assert attempt.state is target
            assert set(attempt.timestamps_ms) == {target}
        else:
            with pytest.raises(IllegalTransitionError, match=f"from {current} to {target}"):
                attempt.transition(target, ManualClock())
            assert attempt.state is current
            assert attempt.timestamps_ms == {}


def test_a_job_does_not_move_against_the_table():
    moves = moves_of(JobStatus)
    for current, target in itertools.product(JobStatus, JobStatus):
        history = StatusHistory(JobId.random(), "job", 0, ManualClock(1.0))
        history.status = current
        if (current, target) in moves:
            history.enter(target)
            assert history.status is target and history.timestamps_ms[target.value] == 1000
        else:
            with pytest.raises(IllegalTransitionError, match=f"from {current} to {target}"):
                history.enter(target)
            assert history.status is current


@pytest.mark.parametrize(("table", "states", "check"), TABLES, ids=["execution", "job", "task"])
def test_terminal_states_are_never_left_and_others_reach_one(table, states, check):
    for state in states:
        assert (not table[state]) == state.is_terminal
    reached = {state for state in states if state.is_terminal}
    while grown := {state for state in states if table[state] & reached} - reached:
        reached |= grown
    assert reached == set(states)


@given(st.lists(st.sampled_from(ExecutionState), max_size=30))
def test_a_walk_through_execution_states_changes_only_along_the_facts(targets):
    order = ["CREATED", "SCHEDULED", "DEPLOYING", "INITIALIZING", "RUNNING", "FINISHED"]
    state = ExecutionState.CREATED
    for target in targets:
        try:
            check_execution_transition(state, target)
        except IllegalTransitionError:
            continue
        assert not state.is_terminal
        if state.value in order and target.value in order and target is not ExecutionState.FINISHED:
            assert order.index(target.value) == order.index(state.value) + 1
        if state is ExecutionState.CANCELING:
            assert target in (ExecutionState.CANCELED, ExecutionState.FAILED)
        state = target


def test_every_state_that_is_not_terminal_can_fail():
    assert all(ExecutionState.FAILED in EXECUTION_TRANSITIONS[s] for s in ExecutionState if not s.is_terminal)
    assert all(JobStatus.SUSPENDED in JOB_TRANSITIONS[s] for s in JobStatus if not s.is_terminal)


def test_a_task_that_finished_while_it_was_being_canceled_is_canceled():
    assert state_after_report(ExecutionState.CANCELING, ExecutionState.FINISHED) is ExecutionState.CANCELED
    assert state_after_report(ExecutionState.RUNNING, ExecutionState.FINISHED) is ExecutionState.FINISHED


def test_task_states_are_execution_states():
    assert {state.value for state in TaskState} <= {state.value for state in ExecutionState}
