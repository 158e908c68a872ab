"""The process that workers are forked from: nobody waits for it who could not be told to end."""

import os
import resource
import select
import signal
import socket
import subprocess
import threading
import time
from contextlib import closing, contextmanager

import psutil
import pyarrow as pa
import pytest

import engine
from engine.config.loader import Configuration
from engine.errors import JobCancelledError
from engine.functions import worker_process
from engine.functions.function_bytes import packed
from engine.functions.function_error import UserFunctionError
from engine.functions.function_runner import FunctionRunner
from engine.functions.function_session import FunctionPlan
from engine.functions.worker_process import WorkerLostError, Zygote
from engine.graph.operator_descriptor import PythonOperator

SCHEMA = pa.schema({"x": pa.int64()})
BATCH = pa.record_batch([[1, 2, 3]], SCHEMA)


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


@pytest.fixture
def stopped_zygotes(monkeypatch):
    """Zygotes stop before their first instruction; returns them."""
    started = []

    class Stopped(subprocess.Popen):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            os.kill(self.pid, signal.SIGSTOP)
            os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOWAIT)
            started.append(self)

    monkeypatch.setattr(worker_process.subprocess, "Popen", Stopped)
    yield started
    for process in started:
        if process.returncode is None:
            process.send_signal(signal.SIGCONT)


def open_session(runner, function):
    operator = PythonOperator("map", packed(function), "function", __file__, 1)
    return runner.open("job", FunctionPlan(operator, SCHEMA, SCHEMA), Configuration())


def results_of(session):
    return [value for batch in (*session.process(BATCH), *session.finish()) for value in batch.column(0).to_pylist()]


def passes(row):
    return (row.x,)


@contextmanager
def in_thread(work):
    """Run work in a thread; yields what it raised, to be read behind the block."""
    raised = []

    def run():
        try:
            work()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield raised
    finally:
        thread.join(60)
        assert not thread.is_alive()


def test_ctrl_c_in_a_terminal_reaches_no_worker():
    """A terminal signals a whole group; a worker that is still loading would show where it was."""
    with closing(Zygote()) as zygote:
        worker = zygote.fork()
        wait_for(lambda: worker.pid)
        assert os.getpgid(worker.pid) != os.getpgid(0)
        worker.kill()
        assert worker.reap() == -9


@pytest.mark.parametrize("size", [0, 4 << 20], ids=["opening fits", "opening waits"])
def test_a_cancel_ends_who_waits_for_a_worker_that_does_not_start(stopped_zygotes, size):
    padding = b"x" * size

    def padded(row):
        return (row.x + len(padding),)

    with closing(FunctionRunner()) as runner:
        session = open_session(runner, padded)
        (zygote,) = stopped_zygotes
        with in_thread(lambda: results_of(session)) as raised:
            session.cancel()
        session.close()
        assert [type(error) for error in raised] == [JobCancelledError]
        assert psutil.Process(zygote.pid).status() == psutil.STATUS_STOPPED
        # What was asked of it meanwhile is a worker that nobody wants; the next one is another.
        zygote.send_signal(signal.SIGCONT)
        with closing(open_session(runner, passes)) as following:
            assert results_of(following) == [1, 2, 3]
        runner.release_job("job")
        wait_for(lambda: not psutil.Process(zygote.pid).children())


def test_a_session_that_is_closed_before_its_worker_starts_waits_for_nobody(stopped_zygotes):
    with closing(FunctionRunner()) as runner:
        session = open_session(runner, passes)
        session.cancel()
        session.close()
        assert psutil.Process(stopped_zygotes[0].pid).status() == psutil.STATUS_STOPPED
        stopped_zygotes[0].send_signal(signal.SIGCONT)


def test_a_zygote_that_stops_later_keeps_nobody_from_ending():
    with closing(FunctionRunner()) as runner:
        first = open_session(runner, passes)
        assert results_of(first) == [1, 2, 3]
        zygote = psutil.Process(psutil.Process(first._worker.pid).ppid())
        zygote.suspend()
        try:
            second = open_session(runner, passes)
            with in_thread(lambda: results_of(second)) as raised:
                second.cancel()
            second.close()
            first.cancel()
            first.close()
            assert [type(error) for error in raised] == [JobCancelledError]
        finally:
            zygote.resume()


def test_workers_of_a_zygote_that_was_killed_are_lost_and_the_next_one_takes_its_place(stopped_zygotes):
    with closing(FunctionRunner()) as runner:
        session = open_session(runner, passes)
        stopped_zygotes[0].kill()
        with pytest.raises(WorkerLostError, match="the process that starts Python workers was ended by signal 9"):
            results_of(session)
        session.close()
        wait_for(lambda: runner._zygote.has_ended)
        with closing(open_session(runner, passes)) as following:
            stopped_zygotes[1].send_signal(signal.SIGCONT)
            assert results_of(following) == [1, 2, 3]


@pytest.fixture
def forking(tmp_path):
    """A function that leaves a process of its own behind, which holds everything open; then it does ``then``."""
    place = tmp_path / "left"

    def make(then):
        def function(row):
            child = os.fork()
            if child == 0:
                time.sleep(600)
                os._exit(0)
            written = tmp_path / "written"  # whole once it has its name: a cancel comes as soon as that is there
            written.write_text(str(child))
            written.replace(place)
            then()

        return function

    yield make
    wait_for(place.exists)
    os.kill(int(place.read_text()), signal.SIGKILL)


def test_who_waits_for_a_worker_that_crashed_hears_of_it_though_a_process_of_its_own_lives_on(forking):
    with closing(FunctionRunner()) as runner:
        session = open_session(runner, forking(lambda: os._exit(3)))
        with closing(session), pytest.raises(UserFunctionError, match="exited with code 3"):
            results_of(session)
        runner.release_job("job")


def test_a_cancel_ends_a_worker_though_a_process_of_its_own_lives_on(forking, tmp_path):
    with closing(FunctionRunner()) as runner:
        with closing(open_session(runner, forking(lambda: time.sleep(600)))) as session:
            with in_thread(lambda: results_of(session)) as raised:
                wait_for((tmp_path / "left").exists)
                session.cancel()
            assert [type(error) for error in raised] == [JobCancelledError]
        runner.release_job("job")


def test_what_a_worker_said_before_it_ended_is_heard_after_the_watch_has_seen_its_end():
    def fails(row):
        raise KeyError("said")

    with closing(FunctionRunner()) as runner:
        with closing(open_session(runner, fails)) as session:
            list(session.process(BATCH))
            worker = session._worker
            wait_for(lambda: psutil.Process(worker.pid).status() == psutil.STATUS_ZOMBIE)
            runner._open_watch().look()
            with pytest.raises(UserFunctionError, match="said"):
                list(session.finish())
        runner.release_job("job")


def test_a_process_with_thousands_of_open_files_has_workers_too():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = 1100
    if hard != resource.RLIM_INFINITY and hard < 2 * count:
        pytest.skip(f"a process may have {hard} open files here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * count), hard))
    descriptors = [os.dup(2) for _ in range(count)]
    try:
        with closing(FunctionRunner()) as runner:
            for _ in range(2):  # the second one is an idle worker's
                with closing(open_session(runner, passes)) as session:
                    assert results_of(session) == [1, 2, 3]
            runner.release_job("job")
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def failing_zygote(monkeypatch, before):
    """Have zygotes run other words of Python before they start."""
    command = worker_process.python_command

    def words(module, *arguments):
        python, *_ = command(module)
        run = f"import sys, runpy; {before}; runpy.run_module({module!r}, run_name='__main__')"
        return [python, "-P", "-c", run, *arguments]

    monkeypatch.setattr(worker_process, "python_command", words)


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize(
    ("before", "told"),
    [
        ("sys.modules['pyarrow'] = None", "exited with code 1: ModuleNotFoundError: import of pyarrow halted"),
        ("import os; os.kill(os.getpid(), 9)", "was ended by signal 9"),
        ("import engine; engine.__version__ = '9.9.9'", "has Drey 9.9.9 (protocol "),
    ],
)
def test_a_process_that_cannot_start_workers_says_why_in_the_error_itself(monkeypatch, caplog, before, told, is_late):
    failing_zygote(monkeypatch, before)
    if is_late:  # the request is sent when nothing reads it
        send, looking = worker_process.send_message, select.poll()

        def send_late(connection, *parts):
            looking.register(connection, select.POLLRDHUP)
            assert looking.poll(20_000)
            send(connection, *parts)

        monkeypatch.setattr(worker_process, "send_message", send_late)
    with closing(Zygote()) as zygote:
        worker = zygote.fork()
        with pytest.raises(WorkerLostError) as lost:
            worker.reap()
    text = str(lost.value)
    assert text.startswith("the process that starts Python workers ") and told in text and "\n" not in text
    if "9.9.9" in told:
        assert f"the task-process on {socket.gethostname()} has Drey {engine.__version__} (" in text
    assert "signal" in told or "did not start:\n" in "".join(caplog.messages)


def test_what_a_zygote_says_while_it_starts_is_not_lost(monkeypatch, capfd):
    failing_zygote(monkeypatch, "print('a warning of some package', file=sys.stderr)")
    with closing(Zygote()) as zygote:
        worker = zygote.fork()
        wait_for(lambda: worker.pid)
        worker.discard()
    assert "a warning of some package" in capfd.readouterr().err
