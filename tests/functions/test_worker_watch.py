"""Workers that hold too much are ended, with an error that says who, where, how much and what to do."""

import os
import threading
import time
from contextlib import closing, contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from engine.config.loader import Configuration
from engine.errors import MemoryBudgetError
from engine.functions.function_bytes import packed
from engine.functions.function_error import UserFunctionError, WorkerMemoryError
from engine.functions.function_runner import FunctionRunner
from engine.functions.function_session import FunctionPlan
from engine.functions.worker_excess import WorkerExcess
from engine.functions.worker_trace import _innermost
from engine.functions.worker_watch import WorkerWatch, anonymous_bytes, proportional_bytes
from engine.gateways.failure_info import failure_info
from engine.graph.operator_descriptor import PythonOperator
from engine.memory.worker_budget import WorkerBudget

pytestmark = pytest.mark.usefixtures("one_zygote")

MIB = 1 << 20
SCHEMA = pa.schema({"x": pa.int64()})


@contextmanager
def running(limit_bytes):
    before = set(threading.enumerate())
    with closing(FunctionRunner(WorkerBudget(limit_bytes), 0)) as runner:
        yield runner
    assert set(threading.enumerate()) <= before


def open_session(runner, kind, function):
    code = function.__code__
    operator = PythonOperator(kind, packed(function), code.co_name, code.co_filename, code.co_firstlineno)
    return runner.open("job", FunctionPlan(operator, SCHEMA, SCHEMA), Configuration())


def results_of(session, values=(1, 2, 3)):
    results = list(session.process(pa.record_batch([pa.array(values)], SCHEMA)))
    results += session.finish()
    return [value for batch in results for value in batch.column("x").to_pylist()]


def hoards(row):
    kept = []
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if len(kept) < 40:
            kept.append(b"x" * (8 << 20))
    return (len(kept),)


def passes(row):
    return (row.x,)


def test_a_worker_that_grows_past_the_share_is_an_error_that_says_where_and_what_to_do():
    with (
        running(100 * MIB) as runner,
        closing(open_session(runner, "map", hoards)) as session,
        pytest.raises(WorkerMemoryError) as caught,
    ):
        results_of(session)
    error = caught.value
    assert isinstance(error, MemoryBudgetError)
    told = failure_info(error)
    assert (told.error_class, told.retryable) == ("MemoryBudgetError", False)
    assert error.function_name == "hoards"
    assert error.file == __file__
    first = hoards.__code__.co_firstlineno
    assert first < error.line <= first + 7
    assert "may hold 100mb" in str(error)
    assert "taskmanager.memory.process.size" in str(error)
    assert "taskmanager.memory.managed.size" in str(error)


def test_what_the_rest_of_the_process_leaves_may_be_used_too():
    def grows(row):
        kept = b"x" * (150 << 20)
        time.sleep(0.5)
        return (len(kept) >> 20,)

    process_bytes = anonymous_bytes(os.getpid()) + (1 << 30)
    with (
        closing(FunctionRunner(WorkerBudget(1 * MIB), process_bytes)) as runner,
        closing(open_session(runner, "map", grows)) as one,
    ):
        assert results_of(one, (1,)) == [150]


def test_of_several_workers_the_largest_is_ended():
    with running(150 * MIB) as runner:
        small, large = open_session(runner, "map", passes), open_session(runner, "map", hoards)
        with closing(small), closing(large):
            with pytest.raises(WorkerMemoryError, match="the 2 Python workers of this process held"):
                results_of(large)
            assert results_of(small) == [1, 2, 3]


def test_workers_that_wait_are_ended_before_one_that_works():
    def keeps(row):
        import builtins

        builtins.kept = b"x" * (60 << 20)
        return (1,)

    with running(110 * MIB) as runner:
        first, second = open_session(runner, "map", keeps), open_session(runner, "map", passes)
        assert results_of(first, (1,)) == [1]
        assert results_of(second) == [1, 2, 3]
        keeper = first._worker
        keeper_status = Path(f"/proc/{keeper.pid}/stat")

        def needs(row):
            more = b"x" * (60 << 20)
            deadline = time.monotonic() + 60
            while keeper_status.read_text().rpartition(")")[2].split()[0] != "Z" and time.monotonic() < deadline:
                time.sleep(0.01)
            return (len(more) >> 20,)

        first.close()
        second.close()
        with closing(open_session(runner, "map", needs)) as third:
            assert third._worker is not keeper
            assert results_of(third, (1,)) == [60]
        assert keeper.is_killed


def test_a_function_that_catches_what_ended_its_input_fails_all_the_same():
    def careless(rows):
        try:
            for row in rows:
                yield (row.x,)
        except Exception:
            yield (0,)

    for mode in ("process", "thread"):
        configuration = Configuration()
        configuration.set("python.execution-mode", mode, "test")
        code = careless.__code__
        operator = PythonOperator("map_partition", packed(careless), "careless", code.co_filename, 1)
        declared = pa.schema({"x": pa.string()})
        with running(1 << 40) as runner:
            session = runner.open("job", FunctionPlan(operator, declared, SCHEMA), configuration)
            # Bytes that are no UTF-8 fail where the row is made, inside of the function's loop.
            broken = pa.StringArray.from_buffers(1, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff"))
            with closing(session), pytest.raises(UserFunctionError, match=r"utf-8|UnicodeDecodeError|decode"):
                list(session.process(pa.record_batch([broken], declared)))
                list(session.finish())


def test_broadcast_data_sets_count_as_memory_of_their_worker():
    code = passes.__code__
    operator = PythonOperator(
        "map", packed(passes), "passes", code.co_filename, code.co_firstlineno, broadcasts=("big",)
    )
    big = pa.record_batch([pa.array(range(1 << 18))], SCHEMA)
    with running(1 << 40) as runner:
        plan = FunctionPlan(operator, SCHEMA, SCHEMA, broadcasts=[(SCHEMA, [big])])
        session = runner.open("job", plan, Configuration())
        with closing(session):
            assert session._worker.shared_bytes >= big.nbytes
            assert results_of(session) == [1, 2, 3]
            worker = session._worker
        assert worker.broadcast_bytes == 0


def test_the_thread_ends_when_no_worker_works_and_comes_back():
    with running(1 << 40) as runner:
        for _ in range(3):
            with closing(open_session(runner, "map", passes)) as session:
                assert results_of(session) == [1, 2, 3]
            runner.release_job("job")
            assert not [each for each in threading.enumerate() if each.name == "python worker watch"]


def test_looking_at_processes_that_are_gone_sees_nothing():
    assert anonymous_bytes(1 << 30) == proportional_bytes(1 << 30) == 0
    assert anonymous_bytes(os.getpid()) > 1 * MIB
    watch = WorkerWatch(WorkerBudget(1), 1)
    watch.look()
    watch.settle()
    watch.close()
    watch.close()


def test_the_place_is_the_innermost_of_the_users_own():
    places = [("/x/lib/python3.11/json.py", "3"), ("/home/me/job.py", "17"), ("/home/me/job.py", "4")]
    frames = [(*place, "name") for place in places]
    assert _innermost(frames) == ("/home/me/job.py", 17)
    assert _innermost(frames[:1]) == ("/x/lib/python3.11/json.py", 3)
    assert _innermost([]) == ("", 0)


def test_the_text_speaks_of_one_worker_and_of_several():
    one = WorkerExcess(80 * MIB, 80 * MIB, 64 * MIB, 1, 512 * MIB).text("f")
    assert one.startswith("the Python worker of f was ended: it held 80mb and may hold 64mb of")
    assert "raise taskmanager.memory.process.size, or" in one
    advised = WorkerExcess(80 * MIB, 80 * MIB, 64 * MIB, 1, 512 * MIB, 1184 * MIB).text("f")
    assert "raise taskmanager.memory.process.size to 1184mb, or" in advised
    beyond = WorkerExcess(80 * MIB, 80 * MIB, 64 * MIB, 1, 512 * MIB, 0).text("f")
    assert "raise taskmanager.memory.process.size" not in beyond
    assert (
        "give the machine or container more memory: a process in which it had enough does not fit into it, or" in beyond
    )
    crowded = WorkerExcess(80 * MIB, 80 * MIB, 64 * MIB, 1, 512 * MIB, own_bytes=900 * MIB).text("f")
    assert "of taskmanager.memory.process.size 512mb, beside 900mb of the process itself; have" in crowded
    assert "beside" not in WorkerExcess(80 * MIB, 80 * MIB, 64 * MIB, 1, 512 * MIB, own_bytes=300 * MIB).text("f")
    two = WorkerExcess(50 * MIB, 80 * MIB, 64 * MIB, 2, 512 * MIB).text("f")
    assert two.startswith("the Python worker of f holds 50mb, the 2 Python workers of this process held 80mb and may")
