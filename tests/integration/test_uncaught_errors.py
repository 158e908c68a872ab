"""What a script that catches nothing shows under plain Python: the root cause first, and the script's own lines."""

import gc
import textwrap
import traceback

import pyarrow as pa
import pytest

from engine import DataError, Environment, avg, col, sum_
from engine.column_expressions import written_places

HEAD = """
import pyarrow as pa
from engine import Environment, avg, col, sum_

env = Environment()
data = env.from_arrow(pa.table({"a": [1, 0, 3], "b": [1, 2, 3], "s": ["1", "x", "3"]}))
"""
#: what a script does, the first words it shows, and the line that is told
SCRIPTS = {
    "a column": (
        """
        parts = data.select(
            s=col("s"),
            q=10 // col("a"),
        )
        print(parts.filter(col("q") > 1).collect())
        """,
        "DataError: 10 // a: divide by zero; in a row with a=0",
        "q=10 // col",
    ),
    "a part of a column that was made before": (
        """
        ratio = col("b") // col("a")
        data.with_columns(r=ratio).select(z=(col("r") + 1) * 2).write_csv("out")
        env.execute()
        """,
        "DataError: ",
        'ratio = col("b") // col("a")',
    ),
    "a filter": (
        """
        kept = data.filter(
            (col("b") > 0)
            & (col("s").cast(int) > 0)
        )
        print(kept.count())
        """,
        "DataError: ",
        '& (col("s").cast(int) > 0)',
    ),
    "an aggregate": (
        """
        number = col("s").cast(int)
        print(data.group_by("b").agg(total=sum_(number)).collect())
        """,
        "DataError: cast(s as int64)",
        'number = col("s").cast(int)',
    ),
    "a plan": (
        """
        def total():
            return data.select(
                col("c") + 1,
            )

        print(total().collect())
        """,
        "SchemaError: no column 'c'",
        "return data.select(",
    ),
    "a function": (
        """
        def half(row):
            return (1 // row.a,)

        print(data.map(half, pa.schema([("h", pa.int64())])).collect())
        """,
        "ZeroDivisionError: ",
        "print(data.map(half",
    ),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_error_that_nothing_catches_is_short_and_names_the_line_that_made_it(run, tmp_path, name):
    code, begin, told = SCRIPTS[name]
    (tmp_path / "job.py").write_text(HEAD + textwrap.dedent(code))
    done = run("job.py")
    lines = done.stderr.splitlines()
    assert done.returncode == 1
    assert lines[0].startswith(begin)
    assert len(lines) <= 15
    assert any(told in line for line in lines), lines
    assert "/engine/" not in done.stderr
    assert "job.py" in done.stderr
    by_command = run("-m", "engine.cli.main", "job.py").stderr.splitlines()
    if "(--verbose" in by_command[-1]:
        del by_command[-1]
    assert by_command[0] == lines[0]
    assert len(by_command) == len(lines)
    assert any(told in line for line in by_command)
    whole = run("job.py", DREY_CLIENT_WHOLE_TRACEBACKS="true")
    assert whole.stderr.startswith("Traceback (most recent call last):")
    assert "/engine/" in whole.stderr


def test_other_errors_and_hooks_of_a_script_are_left_alone(run, tmp_path):
    (tmp_path / "job.py").write_text(HEAD + "1 / 0\n")
    assert run("job.py").stderr.startswith("Traceback (most recent call last):")
    hook = "import sys\nsys.excepthook = lambda *error: print('mine', error[0].__name__)\n"
    (tmp_path / "job.py").write_text(hook + HEAD + "data.select('c')\n")
    assert run("job.py").stdout == "mine SchemaError\n"


def test_the_way_through_functions_is_told_in_three_lines_at_most(run, tmp_path):
    (tmp_path / "job.py").write_text(
        HEAD
        + textwrap.dedent(
            """
            def deeper(n):
                return deeper(n - 1) if n else data.select("c")

            deeper(20)
            """
        )
    )
    lines = run("job.py").stderr.splitlines()
    assert len(lines) == 7
    assert [line.count("in deeper") for line in lines[1::2]] == [1, 1, 1]


def test_places_are_kept_as_long_as_their_expressions(any_environment):
    gc.collect()
    before = len(written_places._PLACES)
    ratio = (col("b") // col("a")).round(2).alias("r")
    assert len(written_places._PLACES) == before + 2
    del ratio
    gc.collect()
    assert len(written_places._PLACES) == before


def test_lists_of_a_long_chain_have_the_place_of_the_last_term():
    chain = col("a") // 1
    for number in range(200):
        chain = chain + number
    here = traceback.extract_stack()[-1].lineno - 1
    assert written_places._PLACES[id(chain.expression)][1].line == here


def test_a_stream_and_a_top_of_rows_say_it_too(any_environment):
    data = any_environment.from_arrow(pa.table({"a": [0, 1]}))
    ratio = 1 // col("a")
    here = traceback.extract_stack()[-1].lineno - 1
    for make in (
        lambda: list(data.select(r=ratio).to_batches()),
        lambda: data.sort(ratio).limit(1).collect(),
        lambda: data.agg(mean=avg(ratio), total=sum_("a")).collect(),
    ):
        with pytest.raises(DataError) as caught:
            make()
        assert f"  expression: {__file__}, line {here}: ratio = 1 // col" in str(caught.value)
        assert len(str(caught.value).splitlines()) <= 15


def test_what_the_engine_makes_itself_has_no_place():
    with Environment(config={"parallelism.default": 1}) as env:
        env.register("t", env.from_arrow(pa.table({"a": [0]})))
        with pytest.raises(DataError) as caught:
            env.sql("SELECT CAST('x' || a AS INTEGER) FROM t").collect()
    assert "  expression: " not in str(caught.value)
