"""Work of a task in several threads: all have ended when it goes on, with the first error of theirs."""

import threading
from types import SimpleNamespace

import pytest

from engine.errors import DataError
from engine.operators.helper_threads import HelperThreads


@pytest.fixture
def context():
    def new_thread(work, name):
        return threading.Thread(target=work, name=name)

    return SimpleNamespace(task_name="groups", helpers=[], services=SimpleNamespace(new_thread=new_thread))


def test_each_thread_works_once_beside_the_task(context):
    meeting, seen = threading.Barrier(3, timeout=30), []

    def work():
        meeting.wait()
        seen.append(threading.current_thread())

    HelperThreads(context, 3).run(work)
    assert len({thread.ident for thread in seen}) == 3
    assert threading.current_thread() in seen
    assert not any(thread.is_alive() for thread in seen if thread is not threading.current_thread())


@pytest.mark.parametrize("failing", ["task", "helper"])
def test_an_error_comes_when_all_have_ended(context, failing):
    task, meeting, ended = threading.current_thread(), threading.Barrier(2, timeout=30), []

    def work():
        meeting.wait()
        if (threading.current_thread() is task) == (failing == "task"):
            raise DataError("sum overflows")
        ended.append(True)

    with pytest.raises(DataError, match="sum overflows"):
        HelperThreads(context, 2).run(work)
    assert ended == [True]


def test_a_thread_that_cannot_begin_leaves_none_behind(context):
    begun = []

    def new_thread(work, name):
        if begun:
            raise RuntimeError("can't start new thread")
        begun.append(threading.Thread(target=work, name=name))
        return begun[0]

    context.services.new_thread = new_thread
    with pytest.raises(RuntimeError, match="new thread"):
        HelperThreads(context, 3).run(lambda: None)
    assert not any(thread.is_alive() for thread in threading.enumerate() if thread in begun)


def test_processor_time_of_helpers_is_of_the_task(context):
    task = threading.current_thread()

    def work():
        if threading.current_thread() is not task:
            sum(range(2_000_000))

    helpers, times = HelperThreads(context, 2), []
    for _ in range(2):
        helpers.run(work)
        times.append(context.helpers[0].times_us()[0])
    assert len(context.helpers) == 1
    assert 0 < times[0] < times[1]
