"""What is reserved and refused, who waits for whom, and that no wait goes round in a circle."""

import threading
from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import MemoryBudgetError
from engine.memory.budget import LEAST_BYTES, Budget, Kind, Reservation, Role

MIB = 1 << 20


def budget_of(arrow_bytes: int, worker_bytes: int = 0) -> Budget:
    budget = Budget()
    budget.set_limit(Kind.ARROW, arrow_bytes)
    budget.set_limit(Kind.WORKER, worker_bytes)
    return budget


def reader_of(budget: Budget) -> Reservation:
    return budget.reserve(Kind.ARROW, role=Role.READER)


def test_what_is_reserved_is_held_until_it_is_closed() -> None:
    budget = budget_of(100 * MIB)
    with budget.reserve(Kind.ARROW, 30 * MIB) as first:
        second = budget.reserve(Kind.ARROW, 70 * MIB)
        assert (first.size, budget.held(Kind.ARROW), budget.held(Kind.IO)) == (30 * MIB, 100 * MIB, 0)
        second.close()
        second.close()
        assert budget.held(Kind.ARROW) == 30 * MIB
    assert budget.held(Kind.ARROW) == 0


def test_who_wants_more_than_there_is_is_told_which_setting_helps() -> None:
    budget = budget_of(100 * MIB)
    with (
        budget.reserve(Kind.ARROW, 60 * MIB),
        pytest.raises(MemoryBudgetError, match=r"50mb of arrow.*60mb of 100mb are held.*process\.size"),
    ):
        budget.reserve(Kind.ARROW, 50 * MIB)
    assert budget.held(Kind.ARROW) == 0


def test_a_record_larger_than_arrow_and_workers_together_is_refused() -> None:
    budget = budget_of(64 * MIB, 32 * MIB)
    budget.check_record(96 * MIB)
    with pytest.raises(MemoryBudgetError, match=r"a record of 97mb does not fit into the 96mb.*process\.size"):
        budget.check_record(97 * MIB)


def test_a_part_that_is_split_off_ends_by_itself() -> None:
    budget = budget_of(100 * MIB)
    with budget.step(Kind.ARROW, 30 * MIB) as step:
        part = step.split(10 * MIB)
        assert (step.size, part.size, budget.held(Kind.ARROW)) == (20 * MIB, 10 * MIB, 30 * MIB)
    assert budget.held(Kind.ARROW) == 10 * MIB
    part.close()
    assert budget.held(Kind.ARROW) == 0


def test_a_part_may_be_more_than_was_expected() -> None:
    budget = budget_of(100 * MIB)
    with budget.step(Kind.ARROW, 30 * MIB) as step:
        part = step.split(40 * MIB)
        assert (step.size, part.size) == (0, 40 * MIB)
    part.close()
    assert budget.held(Kind.ARROW) == 0


def test_readers_get_what_fits_their_half_or_nothing() -> None:
    budget = budget_of(100 * MIB)
    first, second, third = reader_of(budget), reader_of(budget), reader_of(budget)
    assert [first.resize(30 * MIB), second.resize(21 * MIB), third.resize(20 * MIB)] == [True, False, True]
    assert (second.size, budget.held(Kind.ARROW)) == (0, 50 * MIB)
    assert first.resize(10 * MIB)
    assert second.resize(20 * MIB)
    for reader in (first, second, third):
        reader.close()
    assert budget.held(Kind.ARROW) == 0


def test_the_first_reader_gets_the_least_in_any_case() -> None:
    budget = budget_of(1 * MIB)
    with reader_of(budget) as first, reader_of(budget) as second:
        assert first.resize(LEAST_BYTES)
        assert not second.resize(LEAST_BYTES)
        assert first.resize(0)
        assert not second.resize(LEAST_BYTES + 1)


def test_readers_and_writers_divide_the_half_of_their_role() -> None:
    budget = budget_of(64 * MIB)
    first, second = (budget.reserve(Kind.ARROW, role=Role.WRITER) for _ in range(2))
    readers = [reader_of(budget) for _ in range(4)]
    assert first.part_bytes == second.part_bytes == 8 * MIB
    assert [reader.part_bytes for reader in readers] == [MIB] * 4
    second.close()
    second.close()
    assert (first.part_bytes, second.part_bytes) == (16 * MIB, 0)
    budget.set_limit(Kind.ARROW, 32 * MIB)
    assert first.part_bytes == 8 * MIB
    first.close()


def test_a_step_waits_until_it_fits_beside_those_that_came_before_it() -> None:
    budget = budget_of(100 * MIB)
    first, second = budget.step(Kind.ARROW, 40 * MIB), budget.queue(Kind.ARROW, 60 * MIB, thread=2)
    assert budget.begun(second) is not None
    third, fourth = (budget.queue(Kind.ARROW, size, thread=size) for size in (1 * MIB, 0))
    assert budget.begun(third) is None
    assert budget.begun(fourth) is None, "it would fit, and others came first"
    first.close()
    assert budget.begun(third) is not None
    assert budget.begun(fourth) is not None


def test_a_step_that_fits_never_runs_alone_and_what_travels_is_waited_for_by_nobody() -> None:
    budget = budget_of(10 * MIB)
    travelling = budget.reserve(Kind.ARROW, 10 * MIB)
    first, second = (budget.queue(Kind.ARROW, 64 * MIB, thread=thread) for thread in (1, 2))
    step = budget.begun(first)
    assert step is not None
    assert budget.begun(second) is None
    step.close()
    step = budget.begun(second)
    assert step is not None
    step.close()
    travelling.close()
    assert budget.held(Kind.ARROW) == 0


def test_a_step_without_a_size_is_the_only_one_and_gets_half_of_what_readers_have_left() -> None:
    budget = budget_of(100 * MIB)
    reader = reader_of(budget)
    assert reader.resize(10 * MIB)
    first, second = (budget.queue(Kind.ARROW, None, thread=thread) for thread in (1, 2))
    step = budget.begun(first)
    assert step is not None
    assert step.size == 20 * MIB
    assert budget.begun(second) is None
    budget.set_limit(Kind.ARROW, 20 * MIB)
    step.close()
    step = budget.begun(second)
    assert step is not None
    assert step.size == LEAST_BYTES


def test_a_step_within_a_step_of_the_same_thread_waits_for_nobody() -> None:
    budget = budget_of(10 * MIB)
    with budget.step(Kind.ARROW, 10 * MIB) as step:
        waiting = budget.queue(Kind.ARROW, 1, thread=-1)
        with budget.step(Kind.ARROW, 10 * MIB) as inner, budget.step(Kind.ARROW, None) as innermost:
            assert (inner.size, innermost.size) == (10 * MIB, LEAST_BYTES)
            assert budget.begun(waiting) is None
        step.close()
        assert budget.begun(waiting) is not None


def test_threads_wait_for_each_others_steps() -> None:
    budget = budget_of(10 * MIB)
    order: list[str] = []

    def second() -> None:
        with budget.step(Kind.ARROW, 8 * MIB):
            order.append("second")

    with budget.step(Kind.ARROW, 8 * MIB):
        thread = threading.Thread(target=second)
        thread.start()
        order.append("first")
    thread.join(60)
    assert order == ["first", "second"]


def test_who_is_cancelled_while_it_waits_gets_nothing_and_leaves_the_line() -> None:
    budget = budget_of(10 * MIB)
    found: list[int] = []

    def wait() -> None:
        with budget.step(Kind.ARROW, 8 * MIB, lambda: True) as step:
            found.append(step.size)

    with budget.step(Kind.ARROW, 8 * MIB):
        thread = threading.Thread(target=wait)
        thread.start()
        thread.join(60)
    assert found == [0]
    with budget.step(Kind.ARROW, 8 * MIB) as step:
        assert step.size == 8 * MIB
    assert budget.held(Kind.ARROW) == 0


class Task:
    """A task of a pipeline: takes a record, makes another one in a step, sends it on, writes it in a step.

    ``breaks_the_rule``: it holds its step while it sends.
    """

    def __init__(self, number: int, sizes: list[int], breaks_the_rule: bool) -> None:
        self.number = number
        self.sizes = sizes
        self.breaks_the_rule = breaks_the_rule
        self.steps = self.run()
        self.has_ended = False

    def connect(self, budget: Budget, source: deque[int] | None, target: deque[int] | None) -> None:
        self.budget, self.source, self.target = budget, source, target

    def step(self) -> bool:
        """Go on as far as possible; whether anything was done."""
        if self.has_ended:
            return False
        try:
            return next(self.steps)
        except StopIteration:
            self.has_ended = True
            return True

    def run(self):
        for size in self.sizes:
            taken = None
            if self.source is not None:
                while not self.source:
                    yield False
                taken = self.budget.reserve(Kind.IO, size)
            waiter = self.budget.queue(Kind.ARROW, size, thread=self.number)
            while (step := self.budget.begun(waiter)) is None:
                yield False
            yield True
            part = step.split(size // 2)
            if not self.breaks_the_rule:
                step.close()
            while self.target is not None and self.target:  # one record is on its way at most
                yield False
            if self.target is not None:
                self.target.append(size)
            yield True
            step.close()
            part.close()
            if self.source is not None and taken is not None:
                self.source.popleft()  # it makes room when it has been handled
                taken.close()


def runs_to_its_end(limit, chains, schedule, breaks_the_rule=False):
    """Run chains of tasks that share a budget in some order; whether none stands still for ever."""
    budget = budget_of(limit)
    tasks = []
    for length, sizes in chains:
        source = None
        for position in range(length):
            target = None if position == length - 1 else deque()
            task = Task(len(tasks), sizes, breaks_the_rule)
            task.connect(budget, source, target)
            tasks.append(task)
            source = target
    order = deque(schedule)
    while not all(task.has_ended for task in tasks):
        first = order.popleft() % len(tasks) if order else 0
        # Who says that it waits may have let others go on before.
        if not any(task.step() for _ in range(3) for task in tasks[first:] + tasks[:first]):
            return False
    assert all(budget.held(kind) == 0 for kind in Kind)
    return True


chains = st.lists(st.tuples(st.integers(1, 4), st.lists(st.integers(0, 30), max_size=5)), min_size=1, max_size=4)


@given(limit=st.integers(0, 60), chains=chains, schedule=st.lists(st.integers(0, 100), max_size=60))
@settings(max_examples=200)
def test_tasks_that_keep_the_rule_all_end_in_whatever_order_they_run(limit, chains, schedule):
    assert runs_to_its_end(limit, chains, schedule)


def test_a_task_that_holds_its_step_while_it_hands_on_stands_still_with_those_that_wait_for_it():
    chain = [(2, [30, 30, 30])]
    assert runs_to_its_end(10, chain, [0] * 9)
    assert not runs_to_its_end(10, chain, [0] * 9, breaks_the_rule=True)
