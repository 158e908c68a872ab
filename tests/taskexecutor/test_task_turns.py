"""Many tasks lengthen the switch interval of the interpreter, the last of them restores it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from engine.taskexecutor.task_turns import FEW, LONGEST_S, TaskTurns


@pytest.fixture(autouse=True)
def interval() -> Iterator[float]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.005)
    yield sys.getswitchinterval()
    sys.setswitchinterval(before)


def run_tasks(turns: TaskTurns, count: int) -> ExitStack:
    running = ExitStack()
    for _ in range(count):
        running.enter_context(turns)
    return running


def test_few_tasks_change_nothing(interval: float) -> None:
    with run_tasks(TaskTurns(), FEW):
        assert sys.getswitchinterval() == interval


@pytest.mark.parametrize(("count", "expected"), [(4 * FEW, 0.02), (1000 * FEW, LONGEST_S)])
def test_the_interval_grows_with_the_tasks_and_is_restored(interval: float, count: int, expected: float) -> None:
    turns = TaskTurns()
    for _ in range(2):
        with run_tasks(turns, count):
            assert sys.getswitchinterval() == pytest.approx(expected)
        assert sys.getswitchinterval() == interval


def test_an_interval_that_is_longer_already_stays() -> None:
    sys.setswitchinterval(0.5)
    with run_tasks(TaskTurns(), 4 * FEW):
        assert sys.getswitchinterval() == pytest.approx(0.5)
    assert sys.getswitchinterval() == pytest.approx(0.5)


def test_what_other_code_sets_meanwhile_stays() -> None:
    with run_tasks(TaskTurns(), 4 * FEW):
        sys.setswitchinterval(0.001)
    assert sys.getswitchinterval() == pytest.approx(0.001)
