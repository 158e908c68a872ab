"""What the import of the engine, and a first job, bring along: in processes of their own."""

import subprocess
import sys
from pathlib import Path

import pytest

import engine

#: loaded only by who needs them: their import takes longer than planning and running a small job
NOT_FOR_A_SMALL_JOB = (
    "aiohttp",
    "configparser",
    "ctypes.util",
    "difflib",
    "email",
    "engine.csv.reader",
    "engine.transport.data_plane",
    "engine.transport.remote_input_channel",
    "engine.functions.worker_process",
    "engine.join",
    "engine.operators.python_operator",
    "engine.operators.sort_operator",
    "engine.rest",
    "engine.rpc.credentials",
    "http",
    "kazoo",
    "pandas",
    "pyarrow.compute",
    "pyarrow.csv",
    "pyarrow.dataset",
    "pyarrow.flight",
    "psutil",
    "rich",
    "yaml",
    "zipfile",
)

#: loaded when a call, an operator or a format asks for them
NOT_FOR_TEN_ROWS = (
    "engine.api.grouped_by",
    "engine.lowering.joins",
    "engine.column_expressions.windows",
    "engine.expressions.compile",
    "engine.optimizer.operator_entries.join",
    "engine.optimizer.rules.join_order",
    "engine.parquet",
    "engine.window",
)

#: loaded when a plan runs; a program that declares data sets, or asks for help, does not wait for them
NOT_FOR_A_PLAN = (
    "asyncio",
    "engine.dispatcher",
    "engine.jobmaster",
    "engine.minicluster",
    "engine.operators",
    "engine.targets.local",
    "engine.taskexecutor",
    "psutil",
    "ssl",
)

_JOB = """
import datetime
import decimal
import sys
import warnings
from engine import Environment, col, count, lit, sum_
with Environment(config={"parallelism.default": 2}) as env:
    with warnings.catch_warnings(action="ignore"):
        given = env.from_rows([(1, 1.5, "x", None), (2, None, "y", True)])
    given.filter((lit(datetime.date(2020, 1, 1)) > datetime.datetime(2019, 1, 1)) & (col("column_1") > 0)).collect()
    given.select((lit(decimal.Decimal("1.25")) * col("column_0")).alias("amount")).collect()
    rows = env.read_parquet(sys.argv[1])
    rows.group_by("key").agg(items=count(), amount=sum_(col("amount"))).write_parquet(sys.argv[2])
    env.execute()
print(*[name for name in sys.argv[3:] if name in sys.modules])
"""


def run(program, *arguments):
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.split()


@pytest.fixture
def source(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "rows.parquet"
    pq.write_table(
        pa.table({"key": [1, 2, 1], "amount": [10, 20, 30], "other": ["a", None, "c"]}), path, row_group_size=2
    )
    return path


def test_a_job_from_parquet_to_parquet_loads_no_module_that_it_does_not_need(source, tmp_path):
    assert run(_JOB, source, tmp_path / "out", *NOT_FOR_A_SMALL_JOB) == []


def test_ten_rows_load_neither_calls_nor_rules_of_others():
    program = """
import sys, pyarrow
from engine import Environment
with Environment() as env:
    env.from_rows([(number,) for number in range(10)], schema=pyarrow.schema([("key", pyarrow.int64())])).collect()
print(*[name for name in sys.argv[1:] if name in sys.modules])
"""
    assert run(program, *NOT_FOR_TEN_ROWS) == []


def test_a_program_that_declares_data_sets_loads_nothing_that_runs_them():
    program = """
import sys, pyarrow
from drey import Environment, col, count
with Environment() as env:
    rows = env.from_rows([(1,)], schema=pyarrow.schema([("key", pyarrow.int64())])).filter(col("key") > 0)
    assert rows.group_by("key").agg(rows=count()).columns == ["key", "rows"]
print(*[name for name in sys.argv[1:] if name in sys.modules])
"""
    assert run(program, *NOT_FOR_A_PLAN) == []


def test_the_tasks_of_a_job_find_their_operators_loaded(source, tmp_path):
    program = _JOB.replace(
        "import sys\n",
        """import sys, threading
in_tasks = []
class Finder:
    def find_spec(self, name, path, target=None):
        if name.startswith("engine.operators") and threading.current_thread() is not threading.main_thread():
            in_tasks.append(name)
sys.meta_path.insert(0, Finder())
""",
    )
    assert run(program + "print(*in_tasks)", source, tmp_path / "out") == []


def test_the_modules_that_are_not_for_a_small_job_exist():
    program = "import importlib.util, sys; print(*[n for n in sys.argv[1:] if importlib.util.find_spec(n) is None])"
    assert run(program, *NOT_FOR_A_SMALL_JOB, *NOT_FOR_TEN_ROWS, *NOT_FOR_A_PLAN) == []


def test_a_library_that_is_imported_behind_the_engine_ends_without_complaints():
    program = """
from engine import Environment
import duckdb, pyarrow
connection = duckdb.connect()
def taken():
    rows = pyarrow.table({"a": [1]})
    return connection.execute("select a from rows").fetchone()[0]
print(taken())
"""
    assert run(program) == ["1"]


def test_a_collector_that_is_off_stays_off():
    assert run("import gc\ngc.disable()\nfrom engine import Environment\nprint(gc.isenabled())") == ["False"]


def test_no_public_name_is_that_of_a_room():
    # once the room is imported, the package has it under that name
    rooms = {path.name.partition(".")[0] for path in Path(engine.__file__).parent.iterdir()}
    assert not rooms & set(engine.__all__)
