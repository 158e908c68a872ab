"""Python functions in worker processes: results, errors with their row, crashes, cancel, nothing left behind."""

import asyncio
import os
import threading
import time

import cloudpickle
import psutil
import pyarrow as pa
import pytest

from engine.config.loader import configuration_from_texts
from engine.errors import JobCancelledError
from engine.functions.function_bytes import packed
from engine.functions.function_error import UserFunctionError
from engine.functions.function_runner import FunctionRunner
from engine.functions.function_session import FunctionPlan
from engine.functions.row import row_class
from engine.functions.worker_process import Worker
from engine.gateways.failure_info import failure_info
from engine.graph.operator_descriptor import PythonOperator

pytestmark = pytest.mark.usefixtures("one_zygote")

IN = pa.schema([("k", pa.int64()), ("name", pa.string())])
OUT = pa.schema([("k2", pa.int64()), ("upper", pa.string())])


@pytest.fixture
def runner():
    before = len(psutil.Process().children(recursive=True)), psutil.Process().num_fds()
    runner = FunctionRunner()
    yield runner
    runner.close()
    deadline = time.monotonic() + 60
    while len(psutil.Process().children(recursive=True)) > before[0] and time.monotonic() < deadline:
        time.sleep(0.01)
    assert (len(psutil.Process().children(recursive=True)), psutil.Process().num_fds()) == before


def open_session(runner, function, kind="map", schema=OUT, mode="process", **fields):
    code = function.__code__
    operator = PythonOperator(kind, packed(function), function.__name__, __file__, code.co_firstlineno, **fields)
    configuration = configuration_from_texts({"python.execution-mode": mode})
    return runner.open("job", FunctionPlan(operator, IN, schema), configuration)


def batch_of(count, start=0):
    return pa.record_batch(
        [pa.array(range(start, start + count), pa.int64()), pa.array([f"n{i}" for i in range(start, start + count)])],
        schema=IN,
    )


def run(session, batches):
    results = []
    for batch in batches:
        results.extend(session.process(batch))
    results.extend(session.finish())
    return pa.Table.from_batches(results).to_pylist() if results else []


@pytest.mark.parametrize("mode", ["process", "thread"])
def test_map_returns_one_row_for_each_from_tuples_dicts_and_rows(runner, mode):
    def double(row):
        k, name = row
        assert (row.k, row["name"], row[1]) == (k, name, name)
        return (k * 2, name.upper()) if k % 2 else {"k2": k * 2, "upper": row.name.upper()}

    session = open_session(runner, double, mode=mode)
    rows = run(session, [batch_of(5), batch_of(7, 5)])
    session.close()
    assert rows == [{"k2": i * 2, "upper": f"N{i}"} for i in range(12)]


@pytest.mark.parametrize("mode", ["process", "thread"])
def test_flat_map_may_return_nothing_or_more_rows_than_a_batch_holds(runner, mode):
    def spread(row):
        for copy in range(row.k * 4000):
            yield copy, row.name

    session = open_session(runner, spread, "flat_map", mode=mode)
    rows = run(session, [batch_of(4)])
    session.close()
    assert len(rows) == 4000 * (0 + 1 + 2 + 3)
    assert rows[-1] == {"k2": 11999, "upper": "n3"}


def test_filter_keeps_rows_for_which_the_function_is_true(runner):
    session = open_session(runner, lambda row: row.k % 3 == 0, "filter", IN)
    assert [row["k"] for row in run(session, [batch_of(10)])] == [0, 3, 6, 9]
    session.close()


def test_an_exception_names_function_file_line_and_row(runner):
    def fails(row):
        return 10 // (row.k - 3), row.name

    session = open_session(runner, fails)
    with pytest.raises(UserFunctionError) as caught:
        run(session, [batch_of(10)])
    session.close()
    error = caught.value
    assert (error.type_name, error.function_name, error.file) == ("ZeroDivisionError", "fails", __file__)
    assert error.line == fails.__code__.co_firstlineno + 1
    assert error.row == "Row(k=3, name='n3')"
    assert "10 // (row.k - 3)" in error.details


@pytest.mark.parametrize("mode", ["process", "thread"])
def test_lone_surrogates_in_an_exception_or_a_row_are_told_as_their_escapes(runner, mode):
    def fails(row):
        raise ValueError("x\ud800y", [*row])

    def returns(row):
        return row.k, "\udfff"

    for function, text in ((fails, r"x\\ud800y"), (returns, r"returned '\\udfff'")):
        session = open_session(runner, function, mode=mode)
        with pytest.raises(UserFunctionError, match=text) as error:
            run(session, [batch_of(1)])
        session.close()
        assert error.value.message.isascii()


def test_an_exception_names_the_one_that_it_comes_from(runner):
    def fails(row):
        try:
            return {}[row.name]
        except KeyError as error:
            try:
                raise LookupError("not known") from error
            except LookupError as again:
                raise ValueError("no price") from again

    session = open_session(runner, fails)
    with pytest.raises(UserFunctionError) as caught:
        run(session, [batch_of(1)])
    session.close()
    assert (caught.value.type_name, caught.value.message) == ("ValueError", "no price (caused by KeyError: 'n0')")


def test_a_group_of_exceptions_names_the_first_one_in_it(runner):
    async def inner(row):
        raise ValueError(f"no price of {row.name}")

    async def fails(row):
        async with asyncio.TaskGroup() as group:
            group.create_task(inner(row))

    def waits(row):
        asyncio.run(fails(row))

    session = open_session(runner, waits)
    with pytest.raises(UserFunctionError, match=r"TaskGroup .*\(caused by ValueError: no price of n0\)$"):
        run(session, [batch_of(1)])
    session.close()


def test_exceptions_that_come_from_each_other_are_an_error(runner):
    def fails(row):
        first, second = ValueError("first"), ValueError("second")
        first.__cause__, second.__cause__ = second, first
        raise first

    session = open_session(runner, fails)
    with pytest.raises(UserFunctionError, match=r"^first \(caused by ValueError: second\)$"):
        run(session, [batch_of(1)])
    session.close()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("result", "text"),
    [
        ((1,), "returned 1 values, the schema has 2: k2, upper"),
        ({"k2": 1}, "returned keys"),
        (7, "returned int; expected a tuple, a dict or a row"),
        (("x", "y"), "returned 'x' (str) for column 'k2' of type int64"),
        ((1.5, "y"), "returned 1.5 (float) for column 'k2' of type int64"),
    ],
)
def test_a_result_that_does_not_fit_the_schema_is_reported_with_its_row(runner, result, text):
    def wrong(row):
        return result if row.k == 2 else (row.k, row.name)

    session = open_session(runner, wrong)
    with pytest.raises(UserFunctionError) as caught:
        run(session, [batch_of(4)])
    session.close()
    assert text in caught.value.message
    assert caught.value.row == "Row(k=2, name='n2')"


def test_a_partition_function_gives_each_row_a_channel_from_its_keys(runner):
    def channel(name, key, count):
        return 0 if key is None else (key + len(name)) % count

    schema = IN.append(pa.field("__channel", pa.int32()))
    for mode in ("process", "thread"):
        session = open_session(runner, channel, "partition", schema, mode, keys=("name", "k"), channel_count=3)
        batch = pa.record_batch([[1, None, 3], ["a", "b", "ccc"]], schema=IN)
        assert [row["__channel"] for row in run(session, [batch, batch])] == [2, 0, 0] * 2
        session.close()
    for wrong in (3, -1, None, "1"):
        session = open_session(
            runner, lambda key, _count, w=wrong: w, "partition", schema, keys=("k",), channel_count=3
        )
        with pytest.raises(UserFunctionError, match=r"returned channel .*; expected 0 to 2") as caught:
            run(session, [batch_of(3)])
        assert caught.value.row == "Row(k=0)"
        session.close()


@pytest.mark.parametrize(
    ("end", "text", "is_retried"),
    [
        (lambda: os._exit(7), "exited with code 7", False),
        (lambda: os.kill(os.getpid(), 11), "signal 11 (SIGSEGV)", False),
        (lambda: os.kill(os.getpid(), 9), "signal 9 (SIGKILL)", True),
    ],
)
def test_a_worker_that_dies_is_an_error_that_says_how_and_the_next_session_works(runner, end, text, is_retried):
    def dies(row):
        end()

    session = open_session(runner, dies)
    with pytest.raises(UserFunctionError, match="the Python worker") as caught:
        run(session, [batch_of(4)])
    assert text in str(caught.value)
    assert failure_info(caught.value).retryable is is_retried
    session.close()
    session = open_session(runner, lambda row: (row.k, row.name))
    assert len(run(session, [batch_of(3)])) == 3
    session.close()


def test_sys_exit_in_a_function_is_an_error_and_not_the_end(runner):
    def leaves(row):
        raise SystemExit(3)

    session = open_session(runner, leaves)
    with pytest.raises(UserFunctionError) as caught:
        run(session, [batch_of(1)])
    assert caught.value.type_name == "SystemExit"
    session.close()


def test_cancel_ends_an_endless_loop_at_once(runner):
    def endless(row):
        while True:
            pass

    session = open_session(runner, endless)
    timer = threading.Timer(0.2, session.cancel)
    timer.start()
    with pytest.raises(JobCancelledError):
        run(session, [batch_of(1)])
    timer.join()
    session.close()


def test_workers_belong_to_one_job_and_are_used_again_by_it(runner):
    def pid(row):
        return os.getpid(), row.name

    first = open_session(runner, pid)
    pids = {row["k2"] for row in run(first, [batch_of(2)])}
    first.close()
    second = open_session(runner, pid)
    assert {row["k2"] for row in run(second, [batch_of(2)])} == pids
    second.close()
    runner.release_job("job")
    third = open_session(runner, pid)
    assert {row["k2"] for row in run(third, [batch_of(2)])}.isdisjoint(pids | {os.getpid()})
    third.close()


def test_a_large_batch_grows_the_shared_memory(runner):
    session = open_session(runner, lambda row: (row.k, row.name * 100))
    rows = run(session, [batch_of(8000), batch_of(10)])
    session.close()
    assert len(rows) == 8010
    assert rows[7999]["upper"] == "N7999".lower() * 100


def test_a_row_is_a_tuple_with_names_also_where_they_are_no_identifiers():
    row = row_class(("a", "class", "two words", "count"))([1, 2, 3, 4])
    assert (row.a, row["class"], row["two words"], row["count"], row[-1]) == (1, 2, 3, 4, 4)
    assert row.asdict() == {"a": 1, "class": 2, "two words": 3, "count": 4}
    assert cloudpickle.loads(cloudpickle.dumps(row)) == row
    with pytest.raises(KeyError, match="the row has a, class"):
        row["missing"]
    with pytest.raises(AttributeError):
        _ = row.missing


def test_the_results_of_a_very_large_batch_come_before_the_next_one_is_sent(runner):
    session = open_session(runner, lambda row: (row.k, row.name[:1]))
    assert list(session.process(batch_of(1))) == []
    large = pa.record_batch([pa.array([1], pa.int64()), pa.array(["x" * (9 << 20)])], schema=IN)
    found = [row for result in session.process(large) for row in result.to_pylist()]
    assert found == [{"k2": 0, "upper": "n"}, {"k2": 1, "upper": "x"}]
    assert list(session.finish()) == []
    session.close()


def test_all_workers_end_when_one_of_them_cannot_be_ended_cleanly(monkeypatch):
    before = len(psutil.Process().children(recursive=True))
    runner = FunctionRunner()
    sessions = [open_session(runner, lambda row: (row.k, row.name)) for _ in range(2)]
    for session in sessions:
        run(session, [batch_of(1)])
    for session in sessions:
        session.close()
    close, ended = Worker.close, []

    def refuse(worker):
        close(worker)
        ended.append(worker)
        raise OSError(f"worker {len(ended)}")

    monkeypatch.setattr(Worker, "close", refuse)
    with pytest.raises(OSError, match="worker 1"):
        runner.close()
    assert len(ended) == 2
    monkeypatch.undo()
    deadline = time.monotonic() + 60
    while len(psutil.Process().children(recursive=True)) > before:
        assert time.monotonic() < deadline, "the zygote or a worker lives on"
        time.sleep(0.01)
