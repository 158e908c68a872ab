"""Threads of tasks: used again, as new for each task, few while they are idle, and gone at the end."""

import gc
import threading
import time
import weakref
from contextvars import ContextVar

import pytest

from engine.taskexecutor import task_threads
from engine.taskexecutor.task_threads import TaskThreads

WAIT_S = 60.0
VALUE = ContextVar("VALUE", default="none")


@pytest.fixture
def threads():
    before = set(threading.enumerate())
    threads = TaskThreads()
    yield threads
    threads.close()
    assert set(threading.enumerate()) <= before


def run(threads, work=lambda: None, name="task"):
    thread = threads.thread(work, name)
    thread.start()
    thread.join()
    return thread


def test_a_thread_runs_one_task_after_the_other_each_with_a_name_and_a_context_of_its_own(threads):
    seen = []

    def work():
        seen.append((threading.current_thread().name, VALUE.get(), threading.get_ident()))
        VALUE.set("of another task")

    idents = [run(threads, work, name).ident for name in ("scan (1/2)", "scan (2/2)")]
    assert [each[:2] for each in seen] == [("scan (1/2)", "none"), ("scan (2/2)", "none")]
    assert idents == [each[2] for each in seen] and len(set(idents)) == 1
    assert not any(thread.name.startswith("scan") for thread in threading.enumerate())


def test_tasks_at_one_time_have_threads_of_their_own_and_few_of_them_stay(threads, monkeypatch):
    monkeypatch.setattr(task_threads, "IDLE_MAX", 2)
    before, together = threading.active_count(), threading.Barrier(5)
    tasks = [threads.thread(lambda: together.wait(WAIT_S) and None, f"task {number}") for number in range(5)]
    for task in tasks:
        task.start()
    for task in tasks:
        task.join()
    deadline = time.monotonic() + WAIT_S
    while threading.active_count() > before + 2 and time.monotonic() < deadline:
        time.sleep(0.001)
    assert threading.active_count() == before + 2


def test_a_thread_without_a_task_ends(threads, monkeypatch):
    monkeypatch.setattr(task_threads, "IDLE_S", 0.01)
    before = threading.active_count()
    run(threads)
    deadline = time.monotonic() + WAIT_S
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.001)
    assert threading.active_count() == before
    for _ in range(200):  # also where the next task comes as the thread is about to end
        run(threads)
        time.sleep(0.01)


def test_a_thread_that_has_a_task_as_soon_as_it_is_idle_is_idle_again_afterwards(threads, monkeypatch):
    keep = TaskThreads.keep
    done, second = [], threads.thread(lambda: done.append("second"), "second")
    given = [second]

    def keep_and_give(threads, worker):
        is_kept = keep(threads, worker)
        if given:
            given.pop().start()
        return is_kept

    monkeypatch.setattr(TaskThreads, "keep", keep_and_give)
    run(threads, lambda: done.append("first"))
    second.join()
    for name in ("third", "fourth"):
        thread = threads.thread(lambda name=name: done.append(name), name)
        thread.start()
        assert thread.runs.acquire(timeout=WAIT_S)
        thread.runs.release()
        time.sleep(0.01)  # until it is idle
    assert done == ["first", "second", "third", "fourth"]


def test_an_idle_thread_keeps_nothing_of_its_last_task(threads):
    class Work:
        def __call__(self):
            pass

    work = Work()
    gone = weakref.ref(work)
    run(threads, work)
    del work
    gc.collect()
    assert gone() is None


def test_a_task_that_raises_is_over_and_the_next_one_begins(threads, monkeypatch):
    monkeypatch.setattr(threading, "excepthook", lambda _: None)

    def fail():
        raise RuntimeError("a fault of the task's root")

    run(threads, fail)
    done = []
    run(threads, lambda: done.append(True))
    assert done == [True]


def test_a_task_that_runs_when_all_are_closed_ends_its_thread(threads):
    begun, may_end = threading.Event(), threading.Event()
    thread = threads.thread(lambda: begun.set() or (may_end.wait(WAIT_S) and None), "long")
    thread.start()
    assert begun.wait(WAIT_S)
    threads.close()
    may_end.set()
    thread.join()
