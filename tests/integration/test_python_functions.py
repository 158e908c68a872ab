"""User functions in worker processes: results, errors, crashes, endless loops, and where they are defined."""

import os
import pdb
import signal
import subprocess
import sys
import textwrap

import psutil
import pyarrow as pa
import pytest

from engine import Environment, JobCancelledError, JobExecutionError, col, count
from engine.client.job_listener import SilentListener
from engine.errors import SchemaError
from engine.functions.worker_process import Zygote
from engine.minicluster.mini_cluster import MiniCluster
from tests.integration.conftest import wait_until
from tests.integration.row_oracle import assert_same_rows, rows_of

pytestmark = pytest.mark.usefixtures("one_zygote")

ONE = pa.schema([("a", pa.int64())])
TWO = pa.schema([("a", pa.int64()), ("t", pa.string())])


def numbers(env, row_count=1000):
    return env.from_arrow(pa.table({"a": range(row_count), "t": [f"t{n}" for n in range(row_count)]}))


@pytest.fixture(params=["process", "thread"])
def env(request, open_environment):
    return open_environment(**{"python.execution-mode": request.param})


def test_map_takes_rows_and_returns_tuples_dicts_or_rows(env):
    data = numbers(env, 100)
    expected = [(n + 1, f"t{n}!") for n in range(100)]
    assert_same_rows(data.map(lambda row: (row.a + 1, row.t + "!"), TWO).collect(), expected)
    assert_same_rows(data.map(lambda row: {"t": row["t"] + "!", "a": row["a"] + 1}, TWO).collect(), expected)
    assert_same_rows(data.map(lambda row: row, TWO).collect(), [(n, f"t{n}") for n in range(100)])

    def unpack(row):
        number, text = row
        return number + 1, f"{text}!"

    unpacked = data.map(unpack, TWO)
    assert unpacked.to_arrow().schema.equals(TWO)
    assert_same_rows(unpacked.collect(), expected)


NOT_NULL = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("t", pa.string())])


@pytest.mark.parametrize(
    "apply",
    [
        lambda data, value: data.map(lambda row: (value if row.a == 7 else row.a, None), NOT_NULL),
        lambda data, value: data.flat_map(lambda row: [{"a": value if row.a == 7 else row.a, "t": None}], NOT_NULL),
        lambda data, value: data.map_batches(
            lambda batch: {"a": pa.array([value, *range(1, len(batch["a"]))]), "t": batch["t"]}, NOT_NULL, "numpy"
        ),
        lambda data, value: data.group_by("a").reduce(lambda rows: [(value, None)], NOT_NULL),
        lambda data, value: data.co_group(data, "a", lambda left, right: [(value, None)], NOT_NULL),
    ],
)
def test_a_null_for_a_column_that_is_not_nullable_is_an_error(env, apply):
    data = numbers(env, 10)
    assert apply(data, 1).to_arrow().schema.equals(TWO)
    assert apply(data, 1).count() == 10
    with pytest.raises(JobExecutionError, match="for column 'a' of type int64, which is not nullable"):
        apply(data, None).sort("a").count()


def test_rows_that_fail_are_no_nulls_of_a_column_that_is_not_nullable(env):
    data = numbers(env, 10)
    for way in ("null", "collect"):
        with pytest.raises(SchemaError, match=f"map: on_error='{way}' gives nulls .* column 'a' is not nullable"):
            data.map(lambda row: (1 // row.a, None), NOT_NULL, on_error=way)
    assert data.map(lambda row: (1 // row.a, None), NOT_NULL, on_error="skip").count() == 9


def test_flat_map_returns_none_one_or_many_rows(env):
    data = numbers(env, 300).flat_map(lambda row: ((row.a,) for _ in range(row.a % 4)), ONE)
    assert_same_rows(data.collect(), [(n,) for n in range(300) for _ in range(n % 4)])
    huge = numbers(env, 3).flat_map(lambda row: ((n,) for n in range(20_000)), ONE)
    assert huge.count() == 60_000


def test_a_limit_ends_a_function_that_would_go_on_for_ever(env):
    def forever(row):
        number = row.a
        while True:
            yield (number,)
            number += 1

    assert numbers(env, 1).flat_map(forever, ONE).limit(5).collect() == [(n,) for n in range(5)]
    assert numbers(env, 30).flat_map(forever, ONE).limit(20_000).count() == 20_000


def test_filter_takes_a_function_or_an_expression(env):
    data = numbers(env)
    assert data.filter(lambda row: row.a % 10 == 3).count() == 100
    assert data.filter(col("a") % 10 == 3).filter(lambda row: row.t.endswith("13")).count() == 10
    assert data.filter(lambda row: None).collect() == []


def test_functions_in_a_chain_between_blocking_operators(env):
    data = numbers(env, 2000).map(lambda row: (row.a % 7, row.t), TWO).group_by("a").agg(n=count())
    shifted = data.map(lambda row: (row.n, f"g{row.a}"), TWO).sort("t").filter(lambda row: row.t != "g3")
    expected = [(len(range(g, 2000, 7)), f"g{g}") for g in range(7) if g != 3]
    assert shifted.collect() == expected


@pytest.mark.quick
def test_every_type_reaches_a_function_and_comes_back(env):
    from tests.integration.row_oracle import KEY_VALUES

    columns = {f"c{i}": pa.array([values[0], None, values[-1]], t) for i, (t, values) in enumerate(KEY_VALUES.items())}
    table = pa.table({**columns, "l": pa.array([[1], None, []], pa.list_(pa.int64()))})
    data = env.from_arrow(table).map(lambda row: row, table.schema).to_arrow()
    assert data.schema.equals(table.schema)
    assert_same_rows(rows_of(data), rows_of(table))


def fails_at_777(row):
    if row.a == 777:
        raise ValueError("no sevens, please")
    return (row.a,)


@pytest.mark.quick
def test_an_exception_names_type_function_place_and_row_in_few_lines(env):
    with pytest.raises(JobExecutionError) as caught:
        numbers(env).map(fails_at_777, ONE).collect()
    lines = str(caught.value).splitlines()
    assert lines[0] == "ValueError: no sevens, please"
    line = fails_at_777.__code__.co_firstlineno + 2
    text = "\n".join(lines)
    assert "fails_at_777" in text
    assert f"test_python_functions.py, line {line})" in text
    assert "a=777" in text
    assert "t='t777'" in text
    assert len(lines) <= 15
    assert text.index("fails_at_777") < text.index("a=777"), "function, then row"
    assert "Traceback" in caught.value.details


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda row: (row.a, 1, 2), "3 values"),
        (lambda row: ("text",), "text"),
        (lambda row: {"b": 1}, "b"),
        (lambda row: None, "None"),
        (lambda row: (2**70,), "1180591620717411303424"),
        (lambda row: (row.nothing,), "nothing"),
    ],
    ids=["width", "type", "names", "none", "overflow", "attribute"],
)
def test_a_result_that_does_not_fit_the_schema_is_an_error_with_its_row(env, function, text):
    with pytest.raises(JobExecutionError) as caught:
        numbers(env, 10).map(function, ONE).collect()
    assert text in str(caught.value)
    assert "a=0" in str(caught.value)
    assert "test_python_functions.py" in str(caught.value)


def test_one_column_takes_values_that_are_no_rows(env):
    assert [row.a for row in numbers(env, 3).map(lambda row: row.a * 2, ONE).collect()] == [0, 2, 4]
    words = numbers(env, 3).flat_map(lambda row: ["x" * row.a], pa.schema([("w", pa.string())]))
    assert [row.w for row in words.collect()] == ["", "x", "xx"]


def test_an_exception_without_a_text_still_has_its_type_and_place(env):
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError

    def fail(row):
        raise Mute

    with pytest.raises(JobExecutionError, match=r"^Mute: (.|\n)*fail") as caught:
        numbers(env, 3).map(fail, ONE).collect()
    assert "a=0" in str(caught.value)


def test_a_null_for_a_function_is_none(env):
    data = env.from_rows([(None, "x"), (1, None)], TWO).map(lambda row: (row.a, str(row.t)), TWO)
    assert_same_rows(data.collect(), [(None, "x"), (1, "None")])


@pytest.mark.quick
def test_a_worker_that_dies_is_an_error_and_the_next_job_works(environment):
    for end in (lambda row: os._exit(3), lambda row: os.kill(os.getpid(), signal.SIGSEGV)):
        with pytest.raises(JobExecutionError) as caught:
            numbers(environment).map(end, ONE).collect()
        assert "<lambda>" in str(caught.value)
        assert "test_python_functions.py" in str(caught.value)
        assert len(str(caught.value).splitlines()) <= 15
        assert numbers(environment, 10).map(lambda row: (row.a,), ONE).count() == 10


def test_sys_exit_and_keyboard_interrupt_in_a_function_fail_the_job_only(environment):
    def leave(row):
        raise SystemExit(4)

    def interrupt(row):
        raise KeyboardInterrupt

    for function in (leave, interrupt):
        with pytest.raises(JobExecutionError):
            numbers(environment, 10).map(function, ONE).collect()


def test_functions_run_in_other_processes_unless_told(open_environment):
    schema = pa.schema([("pid", pa.int64())])
    pids = {row.pid for row in numbers(open_environment()).map(lambda row: (os.getpid(),), schema).collect()}
    assert os.getpid() not in pids
    own = open_environment(**{"python.execution-mode": "thread"})
    assert {row.pid for row in numbers(own).map(lambda row: (os.getpid(),), schema).collect()} == {os.getpid()}


@pytest.mark.parametrize("stop", [breakpoint, pdb.set_trace])
def test_a_breakpoint_in_a_worker_says_where_debuggers_stop(environment, stop):
    def function(row):
        if row.a == 2:
            stop()
        return (row.a,)

    with pytest.raises(
        JobExecutionError, match=r"BdbQuit: a debugger has no terminal here.*python\.execution-mode: ?thread"
    ):
        numbers(environment, 10).map(function, ONE).collect()


def test_a_debugger_stops_in_a_function_that_runs_inline(tmp_path):
    (tmp_path / "job.py").write_text(
        "import pyarrow as pa\n"
        "from engine import Environment\n"
        "def double(row):\n"
        "    if row.a == 2:\n"
        "        breakpoint()\n"
        "    return (row.a * 2,)\n"
        "one = pa.schema([('a', pa.int64())])\n"
        "environment = Environment(config={'python.execution-mode': 'thread', 'parallelism.default': 1})\n"
        "print(environment.from_rows([(1,), (2,), (3,)], one).map(double, one).collect())\n"
    )
    done = subprocess.run(
        [sys.executable, "job.py"],
        cwd=tmp_path,
        input="p row\np row.a + 40\nc\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Row(a=2)" in done.stdout and "42" in done.stdout
    assert done.stdout.splitlines()[-1].endswith("[Row(a=2), Row(a=4), Row(a=6)]")


def test_a_global_and_a_closure_travel_with_the_function(env):
    factor = 3
    table = {n: n * factor for n in range(10)}
    assert sorted(numbers(env, 10).map(lambda row: (table[row.a],), ONE).collect()) == [(n * 3,) for n in range(10)]


@pytest.mark.quick
def test_what_cannot_be_pickled_is_an_error_before_anything_runs(environment):
    import threading

    lock = threading.Lock()
    with pytest.raises(Exception, match=r"(?i)lock|pickle"):
        numbers(environment, 10).map(lambda row: (row.a if lock else 0,), ONE).collect()


def test_a_data_set_inside_a_function_says_what_to_use_instead(env):
    data = numbers(env, 10)

    class Job:
        def __init__(self):
            self.env, self.data = env, data

        def plus(self, row):
            return (row.a + 1,)

    assert_same_rows(data.map(Job().plus, ONE).collect(), [(n + 1,) for n in range(10)])
    for function in (lambda _row: (data.count(),), lambda _row: (env.from_rows([], ONE).count(),)):
        with pytest.raises(
            JobExecutionError, match=r"^PlanError: a data set or .* use \.with_broadcast\(name=data_set\)"
        ):
            data.map(function, ONE).collect()


def test_an_endless_loop_is_cancelled_by_ctrl_c(start, tmp_path):
    (tmp_path / "job.py").write_text(
        textwrap.dedent(
            """
            import pyarrow as pa
            from engine import Environment
            def endless(row):
                open("entered", "w").close()
                while True:
                    pass
            env = Environment()
            env.from_arrow(pa.table({"a": range(10)})).map(endless, pa.schema([("a", pa.int64())])).write_csv("out")
            env.execute()
            """
        )
    )
    process = start("job.py")
    assert wait_until(lambda: (tmp_path / "entered").exists() or process.poll() is not None, 60)
    assert process.poll() is None, process.communicate()
    children = psutil.Process(process.pid).children(recursive=True)
    assert children
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode != 0
    assert wait_until(lambda: not any(child.is_running() and child.status() != "zombie" for child in children))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["entered", "job.py", "spill"]


class CancelsWhenStopped(SilentListener):
    wants_progress = True

    def __init__(self, cluster, stopped):
        self.cluster = cluster
        self.stopped = stopped

    def on_progress(self, progress):
        if self.stopped:
            self.cluster.cancel(progress.job_id)


def test_a_job_is_cancelled_while_the_process_of_its_workers_starts(monkeypatch, tmp_path):
    """That process does nothing at all: whoever waited for it would end with the time that a cancellation may take."""
    stopped = []

    class Stopped(subprocess.Popen):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            os.kill(self.pid, signal.SIGSTOP)
            os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOWAIT)
            stopped.append(self)

    settings = {"taskmanager.numberOfTaskSlots": "2", "parallelism.default": "2"}
    cluster = MiniCluster(settings, slots_follow_job=False)
    monkeypatch.setattr("engine.targets.local.mini_cluster", lambda *_, **__: cluster)
    monkeypatch.setattr("engine.functions.worker_process.Zygote", Zygote)  # one of its own
    monkeypatch.setattr("engine.functions.worker_process.subprocess.Popen", Stopped)
    monkeypatch.setattr("engine.targets.planned_job.listener_of_job", lambda: CancelsWhenStopped(cluster, stopped))
    try:
        environment = Environment(config=settings)
        numbers(environment).map(lambda row: (row.a,), ONE).write_csv(str(tmp_path / "out"))
        with pytest.raises(JobCancelledError):
            environment.execute("cancelled")
        assert [psutil.Process(process.pid).status() for process in stopped] == ["stopped"]
        assert not (tmp_path / "out").exists()
    finally:
        for process in stopped:
            process.send_signal(signal.SIGCONT)
        cluster.close()


@pytest.mark.quick
def test_killing_the_engine_kills_its_workers(start, tmp_path):
    (tmp_path / "job.py").write_text(
        textwrap.dedent(
            """
            import pyarrow as pa
            from engine import Environment
            def endless(row):
                open("entered", "w").close()
                while True:
                    pass
            env = Environment()
            env.from_arrow(pa.table({"a": range(10)})).map(endless, pa.schema([("a", pa.int64())])).collect()
            """
        )
    )
    process = start("job.py")
    assert wait_until(lambda: (tmp_path / "entered").exists() or process.poll() is not None, 60)
    children = psutil.Process(process.pid).children(recursive=True)
    assert children
    process.kill()
    assert wait_until(lambda: not any(child.is_running() and child.status() != "zombie" for child in children))


SCRIPT = """
import pyarrow as pa
from engine import Environment
from words import shout          # a module beside the script

SUFFIX = "?"

def ask(row):
    print("a line on stdout of the worker")
    return (shout(row.t) + SUFFIX,)

env = Environment()
data = env.from_rows([("a",), ("b",)], pa.schema([("t", pa.string())]))
data.map(ask, pa.schema([("t", pa.string())])).sort("t").write_csv("out")
env.execute("ask")
"""


@pytest.mark.parametrize("way", ["python", "flink-run"])
def test_a_plain_script_needs_no_main_guard_and_may_import_what_lies_beside_it(run, tmp_path, way):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "job.py").write_text(SCRIPT)
    (folder / "words.py").write_text("def shout(text):\n    return text.upper() + '!'\n")
    command = ["-m", "engine.cli.main"] if way == "flink-run" else []
    done = run(*command, "project/job.py")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "part-00000.csv").read_text() == "A!?\nB!?\n"


def test_what_functions_print_does_not_disturb_json(run, tmp_path):
    import json

    (tmp_path / "job.py").write_text(SCRIPT)
    (tmp_path / "words.py").write_text("def shout(text):\n    return text.upper() + '!'\n")
    done = run("-m", "engine.cli.main", "job", "submit", "--json", "job.py")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["state"] == "FINISHED"
    assert "a line on stdout of the worker" in done.stderr


def test_the_workers_of_chained_functions_count_together(open_environment, tmp_path):
    def holds(row):
        kept.append(b"x" * (100 << 20) if not kept else b"")
        return row.a, "x"

    kept = []
    env = open_environment(**{"parallelism.default": 1, "taskmanager.memory.process.size": "4gb"})
    numbers(env, 4).map(holds, TWO).map(holds, TWO).write_parquet(tmp_path / "out")
    (vertex,) = env.execute().vertices
    assert vertex.worker_bytes_peak > 200 << 20


def test_the_result_says_what_arrow_and_the_workers_held(open_environment, tmp_path):
    def holds(row):
        kept.append(b"x" * (1 << 20))
        return row.a, "x" * 100_000

    kept = []
    env = open_environment(**{"parallelism.default": 1})
    numbers(env, 40).map(holds, TWO).with_columns(t=col("t").str.upper()).write_parquet(tmp_path / "out")
    (vertex,) = env.execute().vertices
    assert vertex.worker_bytes_peak > 40 << 20
    # What the function returned lies in memory shared with its worker; what is computed from it, in Arrow's.
    assert vertex.arrow_bytes_peak > 1 << 20
