"""``--replay-failed-row``: the function that failed stands under pdb with the row that it failed on."""

import os
import subprocess
import sys
import textwrap

import pytest

from tests.integration.conftest import ROOT

JOB = """
    import asyncio
    import pyarrow as pa
    from engine import Environment, col, udf

    env = Environment(config={{"parallelism.default": 2{config}}})
    data = env.from_arrow(pa.table({{"id": range(1000), "price": ["1"] * 700 + ["none"] + ["2"] * 299}}))
    OUT = pa.schema([("price", pa.int64())])

    {function}

    print({call}.count())
"""
PARSE = """
def parse(row):
    text = row.price
    return (int(text),)
"""


@pytest.fixture
def replay(tmp_path):
    def call(function, call, commands, *options, config="", flag="--replay-failed-row"):
        text = textwrap.dedent(JOB).format(function=textwrap.dedent(function).strip(), call=call, config=config)
        (tmp_path / "job.py").write_text(text)
        words = [
            sys.executable,
            "-m",
            "engine.cli.main",
            "job",
            "submit",
            *options,
            *([flag] if flag else []),
            "job.py",
        ]
        given = "".join(f"{command}\n" for command in commands)
        return subprocess.run(
            words,
            input=given,
            capture_output=True,
            text=True,
            timeout=120,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            check=False,
        )

    return call


@pytest.mark.parametrize("config", ["", ', "python.execution-mode": "thread"'], ids=["worker", "inline"])
def test_it_stops_at_the_first_line_and_where_it_fails(replay, config):
    commands = ["p row.id", "n", "n", "p text", "c", "p 'at ' + text", "q"]
    done = replay(PARSE, "data.map(parse, OUT)", commands, config=config)
    assert done.returncode == 1, done.stderr
    assert "ValueError: invalid literal for int()" in done.stderr  # the job's own error
    assert "parse is called again with Row(id=700, price='none')" in done.stdout
    assert "text = row.price" in done.stdout
    assert "\n(Pdb) 700\n" in done.stdout
    assert "(Pdb) 'none'\n" in done.stdout
    assert "(Pdb) 'at none'\n" in done.stdout


@pytest.mark.parametrize(
    ("function", "call", "shown"),
    [
        ("def parse(row):\n    yield int(row.price),\n", "data.flat_map(parse, OUT)", "row.price"),
        ("def parse(row):\n    return int(row.price) > 0\n", "data.filter(parse)", "row.price"),
        ("def parse(price):\n    return int(price)\n", 'data.map(parse, OUT, "price")', "price"),
        (
            "@udf(pa.int64())\ndef parse(price):\n    return int(price)\n",
            'data.select(x=parse(col("price")))',
            "price",
        ),
        (
            "async def parse(row):\n    await asyncio.sleep(0)\n    return int(row.price),\n",
            "data.map(parse, OUT)",
            "row.price",
        ),
        (
            "class parse:\n    async def open(self, context):\n        self.kind = int\n\n"
            "    def map(self, row):\n        return self.kind(row.price),\n",
            "data.map(parse(), OUT)",
            "row.price",
        ),
    ],
    ids=["flat_map", "filter", "value", "udf", "async", "rich"],
)
def test_every_function_of_a_row_is_called_again(replay, function, call, shown):
    done = replay(function, call, ["c", f"p 'here ' + {shown}", "q"])
    assert done.returncode == 1
    assert "(Pdb) 'here none'\n" in done.stdout, done.stdout + done.stderr


def test_what_does_not_fit_its_column_is_shown(replay):
    done = replay("def parse(row):\n    return (row.price if row.id == 700 else 1,)\n", "data.map(parse, OUT)", ["c"])
    assert done.returncode == 1
    assert "returned ('none',)" in done.stdout, done.stdout + done.stderr


def test_a_group_has_no_row_to_replay(replay):
    function = "def parse(rows):\n    yield (sum(int(row.price) for row in rows),)\n"
    done = replay(function, 'data.group_by("price").reduce(parse, OUT)', [])
    assert done.returncode == 1
    assert "no row to replay" in done.stderr
    assert "(Pdb)" not in done.stdout


def test_without_input_the_debugger_ends(replay):
    done = replay(PARSE, "data.map(parse, OUT)", [])
    assert done.returncode == 1
    assert "the debugger was left" in done.stdout


def test_a_job_that_succeeds_and_a_job_without_the_option_have_no_debugger(replay):
    fine = replay("def parse(row):\n    return (row.id,)\n", "data.map(parse, OUT)", [])
    assert fine.returncode == 0, fine.stderr
    failed = replay(PARSE, "data.map(parse, OUT)", [], flag="")
    assert failed.returncode == 1
    assert "(Pdb)" not in fine.stdout + failed.stdout


def test_a_cluster_has_the_rows_elsewhere(replay):
    done = replay(PARSE, "data.map(parse, OUT)", [], "-t", "cluster")
    assert done.returncode != 0
    assert "--replay-failed-row needs the rows in this process" in done.stderr
