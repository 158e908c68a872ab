"""The tables of execution, job and task states: every legal move is accepted, every other one refused."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import IllegalTransitionError
from engine.jobmaster.execution_state import (
    EXECUTION_TRANSITIONS,
    ExecutionState,
    check_execution_transition,
    state_after_report,
)
from engine.jobmaster.job_status import JOB_TRANSITIONS, JobStatus, check_job_transition
from engine.taskexecutor.task_state import TASK_TRANSITIONS, TaskState, check_task_transition

TABLES = [
    (EXECUTION_TRANSITIONS, ExecutionState, check_execution_transition),
    (JOB_TRANSITIONS, JobStatus, check_job_transition),
    (TASK_TRANSITIONS, TaskState, check_task_transition),
]


@pytest.mark.parametrize(("table", "states", "check"), TABLES, ids=["execution", "job", "task"])
def test_exactly_the_moves_of_the_table_are_accepted(table, states, check):
    assert set(table) == set(states)
    for current, target in itertools.product(states, states):
        if target in table[current]:
            check(current, target)
        else:
            with pytest.raises(IllegalTransitionError):
                check(current, target)


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
