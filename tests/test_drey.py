"""The name that programs import: the engine's own modules and objects, whichever name came first, in workers too."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import engine

ROOT = Path(__file__).parents[1]
FOLDER = Path(engine.__file__).parent / "drey"
#: modules that programs import beside the package itself: of errors, selectors and Spark, and those of new formats
NAMES = [
    "errors",
    "examples.generate_instruments",
    "formats.registry",
    "formats.sink_format",
    "formats.source_format",
    "graph.source_spec",
    "selectors",
    "spark",
]

JOB = """
import sys
import drey
assert "engine.api" not in sys.modules, "names are loaded when they are first used"
import pyarrow as pa
from drey import Environment, col, functions
from drey.graph.plan import JoinHint

NUMBERS = pa.schema([("n", pa.int64())])

def twice(row):
    assert functions.__name__ == "engine.functions"
    from drey.functions import row as own
    assert drey.Row is own.Row and type(row).__module__.startswith("engine.")
    return (2 * row.n,)

with Environment() as env:
    rows = env.from_rows([(1,), (2,)], NUMBERS).filter(col("n") > 1).map(twice, NUMBERS).collect()
    print(rows[0].n, drey.Environment is Environment, drey.JoinHint is JoinHint, drey.__version__)
"""


def run(*words, cwd, code=0):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, *map(str, words)], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    return done.stdout if not code else done.stderr


def test_a_program_imports_it_far_from_the_sources_and_its_functions_do_in_workers(tmp_path):
    (tmp_path / "job.py").write_text(JOB)
    assert run("job.py", cwd=tmp_path) == f"4 True True {engine.__version__}\n"


@pytest.mark.parametrize("first", ["drey", "engine"])
def test_a_module_is_one_by_both_names(tmp_path, first):
    second = {"drey": "engine", "engine": "drey"}[first]
    names = f"{first}.spark, {second}.spark, {first}.errors, {second}.errors, {first}.examples.word_count"
    same = "drey is engine, drey.spark is engine.spark, drey.errors is engine.errors, engine.spark.__spec__.name"
    more = "sys.modules['drey.spark'] is sys.modules['engine.spark'], drey.examples is engine.examples"
    code = f"import sys, drey, engine, {names}\nprint({same}, {more})"
    assert run("-c", code, cwd=tmp_path) == "True True True engine.spark True True\n"


def test_modules_run_as_programs(tmp_path):
    run("-m", "drey.examples.generate_instruments", "--rows", 10, "--out", "data", cwd=tmp_path)
    assert (tmp_path / "data" / "currencies.csv").is_file()
    assert "No module named drey.none" in run("-m", "drey.none", cwd=tmp_path, code=1)
    assert "No module named 'drey.none'" in run("-c", "import drey.none", cwd=tmp_path, code=1)


ADVICE = """
import sys
import drey
assert not [one for one in ("engine.foreign_names", "engine.column_expressions") if one in sys.modules]
from drey import errors
assert "engine.foreign_names" not in sys.modules
assert not hasattr(drey, "sum_distinct") and getattr(drey, "lower", None) is None
from drey import aggregate
assert aggregate.__name__ == "engine.aggregate", "Spark has a function of this name"
for name in ("mean", "sum", "sum_distinct", "arccos", "scan_parquet", "xpath", "nothing"):
    try:
        exec(f"from drey import col, {name}")
    except ImportError as error:
        print(str(error).partition(" (")[0])
"""


def test_a_name_of_another_library_says_what_to_write(tmp_path):
    assert run("-c", ADVICE, cwd=tmp_path).splitlines() == [
        "cannot import name 'mean' from 'drey': write avg",
        "cannot import name 'sum' from 'drey': write sum_",
        "cannot import name 'sum_distinct' from 'drey': write sum_(x, distinct=True)",
        "cannot import name 'arccos' from 'drey': write x.acos()",
        "cannot import name 'scan_parquet' from 'drey': write Environment().read_parquet(path)",
        "cannot import name 'xpath' from 'drey': udf('string')(f)(x) with Python's xml",
        "cannot import name 'nothing' from 'engine'",
    ]


ROOMS = """
import drey
from drey import aggregate, functions as F, window
import drey.expressions as E
from drey.functions import row
drey.Environment
for call in (
    lambda: F.sum("x"), lambda: F.col("x"), lambda: E.when, lambda: window("t", "1 hour"), lambda: drey.aggregate("x"),
    lambda: F.nowhere, lambda: drey.sql("SELECT 1"),
):
    try:
        call()
    except (AttributeError, TypeError) as error:
        print(error)
for name in ("col", "sum", "nowhere"):
    try:
        exec(f"from drey.functions import {name}")
    except ImportError as error:
        print(str(error).partition(" (")[0])
assert not hasattr(F, "__nothing__") and F.row is row and type(drey.config).__name__ == "module"
"""


def test_a_room_that_is_taken_for_functions_says_where_they_are(tmp_path):
    behind = "; functions are in drey itself"
    assert run("-c", ROOMS, cwd=tmp_path).splitlines() == [
        f"module 'drey.functions' has no attribute 'sum': write sum_{behind}",
        f"module 'drey.functions' has no attribute 'col': write drey.col{behind}",
        f"module 'drey.expressions' has no attribute 'when': write drey.when{behind}",
        "module 'drey.window' is a part of the engine, and no function: write ds.group_by_dynamic('t', '1 hour')",
        "module 'drey.aggregate' is a part of the engine, and no function: write x.list.reduce(lambda one, two: one + "
        "two, 0)",
        f"module 'drey.functions' has no attribute 'nowhere'{behind}",
        "module 'drey' has no attribute 'sql': write Environment().sql('SELECT 1 AS x')",
        "cannot import name 'col' from 'drey.functions': write drey.col",
        "cannot import name 'sum' from 'drey.functions': write sum_",
        "cannot import name 'nowhere' from 'engine.functions'",
    ]


def test_readers_of_types_find_what_is_there():
    assert (FOLDER / "py.typed").is_file()
    stubs = [path for path in sorted(FOLDER.rglob("*.py")) if path.stem != "__init__"]
    names = [".".join(path.relative_to(FOLDER).with_suffix("").parts) for path in stubs]
    assert names == NAMES
    for name, stub in zip(names, stubs, strict=True):
        assert import_module(f"drey.{name}") is import_module(f"engine.{name}")
        assert f"from engine.{name} import *" in stub.read_text()
