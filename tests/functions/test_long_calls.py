"""A function that is at one row for very long is told of, with the row and the place, and ended where that is set."""

import os
import re
import socket
import sys
import threading
import time

import pyarrow as pa
import pytest

from engine import Environment, JobExecutionError
from engine.functions import long_calls
from engine.functions.function_body import FunctionBody
from engine.functions.long_calls import LongCalls, call_of
from engine.functions.worker_protocol import receive_message
from engine.graph.operator_descriptor import PythonOperator

pytestmark = pytest.mark.usefixtures("one_zygote")

SCHEMA = pa.schema([("a", pa.int64())])


LET_GO = threading.Event()


def waiting(row):
    while row.a == 7 and not LET_GO.is_set():
        time.sleep(0.01)
    return (row.a,)


def waiting_rows(rows):
    for row in rows:
        yield waiting(row)


def endless(row):
    while row.a == 7:
        pass
    return (row.a,)


ENDLESS_LINES = {endless.__code__.co_firstlineno + 1, endless.__code__.co_firstlineno + 2}


@pytest.mark.parametrize(("kind", "function"), [("map", waiting), ("map_partition", waiting_rows)])
def test_the_row_and_the_place_are_told_once(capfd, monkeypatch, kind, function):
    monkeypatch.setattr(LongCalls, "_set_timer", lambda self: None)
    monkeypatch.setattr(long_calls.faulthandler, "cancel_dump_traceback_later", lambda: None)
    LET_GO.clear()
    operator = PythonOperator(kind, b"", function.__name__, __file__, 21)
    body = FunctionBody(operator, function, SCHEMA, SCHEMA)
    results = []

    def work():
        batch = pa.record_batch([pa.array(range(10))], schema=SCHEMA)
        with LongCalls(operator, 0.0, lambda: 0, lambda *_: None, 0.2):
            results.extend(body.run(iter([batch])))

    thread = threading.Thread(target=work)
    thread.start()
    text, deadline = "", time.monotonic() + 60
    while "\n  at" not in text and time.monotonic() < deadline:
        time.sleep(0.01)
        text += capfd.readouterr().err
    time.sleep(0.5)
    LET_GO.set()
    thread.join()
    head, *stack = (text + capfd.readouterr().err).splitlines()
    assert head.startswith(f"Python function {function.__name__} has been at work on Row(a=7) for ")
    assert head.endswith(f"({__file__}, line 21); functions.timeout would end it")
    assert all(line.startswith("  at ") for line in stack)
    assert any(", in waiting: " in line for line in stack), stack
    assert sum(batch.num_rows for batch in results) == 10


def test_a_function_beyond_its_time_fails_the_job_with_row_and_place():
    with Environment(config={"functions.timeout": "500 ms", "parallelism.default": 1}) as env:
        data = env.from_arrow(pa.table({"a": pa.array(range(100))}))
        with pytest.raises(JobExecutionError) as error:
            data.map(endless, SCHEMA).collect()
        lines = str(error.value).splitlines()
        assert lines[0].startswith("FunctionTimeoutError: endless has been at work on one row for ")
        assert lines[0].endswith("longer than functions.timeout; mend the function, or allow more")
        assert lines[1] in {f"  in function endless ({__file__}, line {line})" for line in ENDLESS_LINES}
        assert lines[2] == "  row: Row(a=7)"
        assert "in endless" in error.value.details
        assert data.map(lambda row: (row.a,), SCHEMA).count() == 100


def keeps_the_lock(text):
    return re.match(r"(a+)+b", text) is not None


class Matches:
    def map_batches(self, batch):
        return pa.record_batch({"a": [keeps_the_lock(text) for text in batch["t"].to_pylist()]})


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda data: data.filter(keeps_the_lock, columns="t"), "keeps_the_lock"),
        (lambda data: data.map_batches(Matches(), pa.schema([("a", pa.bool_())])), "Matches"),
    ],
)
def test_native_code_that_keeps_the_lock_of_python_ends_with_the_same_error(call, name):
    with Environment(config={"functions.timeout": "500 ms", "parallelism.default": 1}) as env:
        data = env.from_arrow(pa.table({"t": ["aab", "a" * 60]}))
        with pytest.raises(JobExecutionError) as error:
            call(data).collect()
        lines = str(error.value).splitlines()
        assert lines[0] == (
            f"FunctionTimeoutError: {name} has been at work on one row for 0.5 s in native code that keeps Python's"
            " lock, longer than functions.timeout; mend the function, or allow more"
        )
        place = keeps_the_lock.__code__.co_firstlineno + 1
        assert lines[1] == f"  in function {name} ({__file__}, line {place})"
        assert f"line {place}, in keeps_the_lock\n" in error.value.details
        assert call(data.limit(1)).count() == 1


def test_a_function_that_ends_its_process_is_no_long_call():
    with Environment(config={"functions.timeout": "60 s", "parallelism.default": 1}) as env:
        data = env.from_arrow(pa.table({"a": [1]}))
        with pytest.raises(JobExecutionError, match="WorkerDied: the Python worker exited with code 1 while"):
            data.map(lambda row: os._exit(1), SCHEMA).collect()


def test_many_rows_that_are_quick_are_no_long_call():
    with Environment(config={"functions.timeout": "500 ms", "parallelism.default": 1}) as env:
        data = env.from_arrow(pa.table({"a": pa.array(range(40))}))

        def work(row):
            time.sleep(0.05)
            return row

        assert data.map(work, SCHEMA).count() == 40


def test_a_worker_that_waits_for_input_is_in_no_call():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        waiting = threading.Thread(target=receive_message, args=(theirs,))
        waiting.start()
        stop = time.monotonic() + 5
        while not (frame := sys._current_frames().get(waiting.ident)) or frame.f_code.co_name != "recv_fds":
            assert time.monotonic() < stop
            time.sleep(0.001)
        assert call_of(frame) is None
        ours.close()
        waiting.join()
