"""Functions over all rows of a task: input on demand, results meanwhile, early ends, cancels and deaths."""

import itertools
import os
import signal
import threading
import time

import psutil
import pyarrow as pa
import pytest

from engine.config.loader import configuration_from_texts
from engine.errors import JobCancelledError
from engine.functions import worker_process
from engine.functions.function_bytes import packed
from engine.functions.function_error import UserFunctionError
from engine.functions.function_output import ROWS_MAX
from engine.functions.function_runner import FunctionRunner
from engine.functions.function_session import FunctionPlan
from engine.graph.operator_descriptor import PythonOperator

pytestmark = pytest.mark.usefixtures("one_zygote")

ONE = pa.schema([("n", pa.int64())])


@pytest.fixture(scope="module")
def others():
    """Children that tests of other rooms have left on purpose, as the machine of a session of Spark."""
    return set(psutil.Process().children())


@pytest.fixture(scope="module")
def runner(others):
    runner = FunctionRunner()
    yield runner
    runner.close()


@pytest.fixture(autouse=True)
def nothing_is_left_behind(runner, others):
    """The runner starts its processes once, and who listens to them; a test leaves no worker and no other thread."""
    threads = set(threading.enumerate())
    yield
    runner.release_job("job")
    assert {each.name for each in set(threading.enumerate()) - threads} <= {"python zygote"}
    (zygote,) = set(psutil.Process().children()) - others or (None,)
    deadline = time.monotonic() + 30
    while zygote is not None and zygote.children() and time.monotonic() < deadline:
        time.sleep(0.005)
    assert zygote is None or not zygote.children()


@pytest.fixture(params=["process", "thread"])
def open_session(request, runner):
    sessions = []

    def open_one(function, kind="map_partition"):
        operator = PythonOperator(kind, packed(function), "function", __file__, 1)
        configuration = configuration_from_texts({"python.execution-mode": request.param})
        sessions.append(runner.open("job", FunctionPlan(operator, ONE, ONE), configuration))
        return sessions[-1]

    yield open_one
    for session in sessions:
        session.close()


@pytest.fixture
def in_process(runner):
    """Sessions with a worker, for what only a process can do."""

    def open_one(function):
        operator = PythonOperator("map_partition", packed(function), "function", __file__, 1)
        return runner.open("job", FunctionPlan(operator, ONE, ONE), configuration_from_texts({}))

    return open_one


def batch_of(start, count):
    return pa.record_batch([pa.array(range(start, start + count), pa.int64())], schema=ONE)


def numbers(results):
    return [n for batch in results for n in batch.column(0).to_pylist()]


def test_results_come_while_the_input_still_does(open_session):
    def echo(rows):
        for row in rows:
            yield (row.n,)

    session = open_session(echo)
    seen, before_the_end = [], 0
    for start in range(0, 200_000, 1000):
        seen += numbers(session.process(batch_of(start, 1000)))
        # what is held anywhere: two batches of input, less than one of results
        assert len(seen) > start + 1000 - 2 * 1000 - ROWS_MAX
    before_the_end = len(seen)
    seen += numbers(session.finish())
    assert before_the_end > 200_000 - 2 * 1000 - ROWS_MAX
    assert seen == list(range(200_000))


def test_the_function_sets_the_pace_of_its_input(open_session):
    def slow(rows):
        first = next(rows)
        time.sleep(0.3)
        yield (first.n + sum(1 for _ in rows),)

    session = open_session(slow)
    started = time.monotonic()
    seen = [number for n in range(4) for number in numbers(session.process(batch_of(n, 1)))]
    assert time.monotonic() - started >= 0.29
    assert seen + numbers(session.finish()) == [3]


@pytest.mark.parametrize("kept", [0, 1, 5000])
def test_a_function_may_stop_early_and_what_still_comes_is_dropped(open_session, kept):
    session = open_session(lambda rows: [(row.n,) for row in itertools.islice(rows, kept)])
    seen = []
    for start in range(0, 30_000, 1000):
        seen += numbers(session.process(batch_of(start, 1000)))
    assert session.is_satisfied
    assert seen + numbers(session.finish()) == list(range(kept))


def test_rows_stay_as_they_are_when_the_iterator_has_moved_on(open_session):
    def late(rows):
        kept = list(rows)
        yield from reversed(kept)

    session = open_session(late)
    seen = [n for start in range(0, 9000, 500) for n in numbers(session.process(batch_of(start, 500)))]
    assert seen + numbers(session.finish()) == list(range(8999, -1, -1))


def test_batches_stay_as_they_are_when_the_next_one_comes(open_session):
    kept = []

    def late(batch):
        kept.append(batch)
        return kept[0]

    session = open_session(late, "map_batches:arrow")
    seen = [n for start in range(5) for n in numbers(session.process(batch_of(start * 10, 1)))]
    assert seen + numbers(session.finish()) == [0] * 5


def test_a_few_rows_make_many_that_are_large(open_session):
    def grow(rows):
        for row in rows:
            for n in range(2 * ROWS_MAX):
                yield (row.n + n,)

    session = open_session(grow)
    results = [result for start in (0, 1) for result in session.process(batch_of(start, 1))]
    results += session.finish()
    assert sum(result.num_rows for result in results) == 4 * ROWS_MAX
    assert max(result.num_rows for result in results) <= ROWS_MAX


def test_nothing_in_is_one_call_with_nothing(open_session):
    session = open_session(lambda rows: [(len(list(rows)),)])
    assert numbers(session.finish()) == [0]


def test_a_function_that_never_ends_is_stopped_and_unwound(open_session, tmp_path):
    note = tmp_path / "unwound"

    def forever(rows):
        try:
            for n in itertools.count():
                yield (n,)
        finally:
            note.write_text("yes")

    session = open_session(forever)
    results = itertools.chain(session.process(batch_of(0, 1)), session.process(batch_of(1, 1)))
    assert numbers([next(results)])[0] == 0
    session.stop()
    session.close()
    assert note.read_text() == "yes"


def test_an_error_while_reading_names_the_row_read_last(open_session):
    def fails(rows):
        for row in rows:
            if row.n == 2500:
                raise ValueError("too many")
            yield (row.n,)

    session = open_session(fails)
    with pytest.raises(UserFunctionError, match="too many") as caught:
        for start in range(0, 9000, 1000):
            numbers(session.process(batch_of(start, 1000)))
        numbers(session.finish())
    assert caught.value.row == "Row(n=2500)"
    assert caught.value.line == fails.__code__.co_firstlineno + 3


def test_next_on_nothing_is_an_error_with_a_name(open_session):
    session = open_session(lambda rows: [next(rows)])
    with pytest.raises(UserFunctionError) as caught:
        numbers(session.finish())
    assert caught.value.type_name == "StopIteration"


def die(how):
    def dies(rows):
        for row in rows:
            if row.n == 1500:
                how()
            yield (row.n,)

    return dies


@pytest.mark.parametrize(
    ("how", "text"),
    [(lambda: os._exit(5), "exited with code 5"), (lambda: os.kill(os.getpid(), signal.SIGKILL), "SIGKILL")],
)
def test_a_worker_that_dies_between_two_rows_is_an_error_that_says_how(in_process, how, text):
    session = in_process(die(how))
    with pytest.raises(UserFunctionError, match=text):
        for start in range(0, 9000, 1000):
            numbers(session.process(batch_of(start, 1000)))
        numbers(session.finish())
    session.close()


def test_cancel_wakes_whoever_waits_for_the_function(in_process):
    def waits(rows):
        next(rows)
        time.sleep(60)

    session = in_process(waits)
    numbers(session.process(batch_of(0, 1)))
    timer = threading.Timer(0.1, session.cancel)
    timer.start()
    with pytest.raises(JobCancelledError):
        numbers(session.process(batch_of(1, 1)))
    timer.join()
    session.close()


def test_a_cancel_during_close_never_kills_a_worker_that_has_moved_on(in_process):
    for _ in range(30):
        session = in_process(lambda rows: rows)
        numbers(session.finish())
        cancel = threading.Thread(target=session.cancel)
        cancel.start()
        session.close()
        following = in_process(lambda rows: rows)
        assert numbers(following.finish()) == []
        following.close()
        cancel.join()
        session.cancel()


def test_a_stop_that_comes_when_the_function_has_just_ended_harms_nobody(in_process):
    for _ in range(5):
        session = in_process(lambda rows: [(os.getpid(),)])
        (pid,) = numbers([next(session.finish())])
        assert wait_until_it_waits(pid)
        session.stop()
        session.close()
        following = in_process(lambda rows: [(os.getpid(),)])
        assert numbers(following.finish()) == [pid], "the worker is still there"
        following.close()


def wait_until_it_waits(pid):
    """Return whether a process is asleep, as it is when it has sent what it had to send."""
    deadline = time.monotonic() + 60
    while psutil.Process(pid).status() != "sleeping" and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.05)
    return time.monotonic() < deadline


def test_an_idle_worker_that_is_killed_is_replaced(in_process):
    session = in_process(lambda rows: [(os.getpid(),)])
    (pid,) = numbers(session.finish())
    session.close()
    os.kill(pid, signal.SIGKILL)
    assert wait_until_gone(pid)
    session = in_process(lambda rows: [(os.getpid(),)])
    assert numbers(session.finish()) != [pid]
    session.close()


def wait_until_gone(pid):
    deadline = time.monotonic() + 60
    while psutil.Process(pid).status() != "zombie" and time.monotonic() < deadline:
        time.sleep(0.01)
    return time.monotonic() < deadline


class NoSchema:
    def serialize(self):
        return pa.py_buffer(b"no schema")


def test_a_failure_of_the_worker_itself_keeps_its_traceback(runner):
    operator = PythonOperator("map", packed(lambda row: row), "function", __file__, 1)
    session = runner.open("job", FunctionPlan(operator, NoSchema(), ONE), configuration_from_texts({}))
    with pytest.raises(UserFunctionError) as caught:
        numbers(session.finish())
    assert "Arrow" in caught.value.type_name or "OSError" in caught.value.type_name
    assert "read_schema" in caught.value.details
    session.close()


def test_a_worker_is_killed_once_and_never_after_it_was_reaped(runner, monkeypatch):
    killed = []
    monkeypatch.setattr(worker_process.os, "kill", lambda pid, number: killed.append(pid) or os_kill(pid, number))
    session = runner.open(
        "job",
        FunctionPlan(PythonOperator("map", packed(len), "len", "", 0), ONE, ONE),
        configuration_from_texts({}),
    )
    worker = session._worker
    deadline = time.monotonic() + 60
    while not worker.pid:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    session.cancel()
    session.close()
    session.cancel()
    session.close()
    assert killed == [worker.pid]


os_kill = os.kill
