"""Rows of tasks: one after the other in one thread, unless one waits or is long; what they tell comes in order."""

import asyncio
import threading
import time

import pytest

from engine.exchange.passing import before_wait
from engine.taskexecutor.task_rows import TaskRow
from engine.taskexecutor.task_threads import TaskThreads

WAIT_S = 60.0


class Row:
    """Tasks that note their threads, in a row of a loop of its own."""

    def __init__(self, threads, loop):
        self.row = TaskRow(loop)
        self._threads = threads
        self.seen = []
        self.told = []
        self.tasks = []

    def add(self, name, work=lambda: None):
        def run():
            work()
            self.seen.append((name, threading.get_ident()))
            self.row.tell(self.told.append, name)

        task = self._threads.thread(run, name)
        task.start_in(self.row, self.told.append)
        self.tasks.append(task)

    async def end(self):
        self.row.begin()
        async with asyncio.timeout(WAIT_S):
            while len(self.told) < len(self.tasks):
                await asyncio.sleep(0.001)


def in_row(fill):
    """Run a row that ``fill`` adds tasks to, to its end."""
    before = set(threading.enumerate())

    async def run():
        threads = TaskThreads()
        row = Row(threads, asyncio.get_running_loop())
        fill(row)
        await row.end()
        threads.close()
        return row

    row = asyncio.run(run())
    deadline = time.monotonic() + WAIT_S
    while not set(threading.enumerate()) <= before and time.monotonic() < deadline:
        time.sleep(0.001)  # a thread whose task has raised ends by itself
    assert set(threading.enumerate()) <= before
    return row


def test_short_tasks_run_in_order_in_one_thread_and_are_told_of_in_order():
    row = in_row(lambda row: [row.add(number) for number in range(50)])
    assert row.told == list(range(50))
    names, threads = zip(*row.seen, strict=True)
    assert names == tuple(range(50))
    # a machine that stops for some milliseconds makes any task a long one
    assert len(set(threads)) < 5


def test_a_task_that_is_about_to_wait_has_the_next_one_begin():
    is_there = threading.Event()

    def wait():
        before_wait()
        assert is_there.wait(WAIT_S)
        before_wait()

    row = in_row(lambda row: [row.add("waits", wait), row.add("gives", is_there.set), row.add("is behind")])
    assert {name for name, _ in row.seen} == {"waits", "gives", "is behind"}
    threads = dict(row.seen)
    assert threads["waits"] != threads["gives"]


def test_a_long_task_holds_up_no_other():
    others = threading.Barrier(4)

    def work():
        others.wait(WAIT_S)  # without telling anybody that it waits

    row = in_row(lambda row: [row.add(number, work) for number in range(4)])
    assert sorted(row.told) == [0, 1, 2, 3]
    assert len({thread for _, thread in row.seen}) == 4


def test_tasks_behind_one_that_raises_run(monkeypatch):
    monkeypatch.setattr(threading, "excepthook", lambda _: None)

    def fail():
        raise RuntimeError("a fault of the task's root")

    row = None

    def fill(made):
        nonlocal row
        row = made
        row.add("fails", fail)
        row.tasks.clear()
        row.add("is behind")

    in_row(fill)
    assert row.told == ["is behind"]


def test_a_task_that_gets_no_thread_is_refused(monkeypatch):
    begin = TaskThreads.begin
    count = iter(range(100))

    def begin_first(threads, task):
        if next(count):
            raise RuntimeError("can't start new thread")
        begin(threads, task)

    monkeypatch.setattr(TaskThreads, "begin", begin_first)
    is_over = threading.Event()

    def fill(row):
        row.add("long", lambda: is_over.wait(WAIT_S) and None)
        row.add("gets none")
        tell = row.told.append
        row.tasks[1].refused = lambda error: (tell(str(error)), is_over.set())

    row = in_row(fill)
    assert row.told == ["can't start new thread", "long"]


@pytest.mark.parametrize("count", [1, 2])
def test_a_wait_without_tasks_behind_is_a_wait(count):
    before_wait()
    row = in_row(lambda row: [row.add(number, before_wait) for number in range(count)])
    assert sorted(row.told) == list(range(count))
