"""Readers of types find nothing wrong in examples and recipes, and find misspelt words of the API."""

import json
import shutil
import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.docs.cookbook_oracles import ORACLES
from tests.docs.pages import FOLDER, blocks_of
from tests.tidy.imports import ROOT

pytestmark = pytest.mark.thorough

EXAMPLES = ROOT / "engine" / "examples"
PROGRAM = """
from drey import Environment, col, rank, sequence, udf

env = Environment()
one = env.read_csv("a.csv", header=True)
one.join(one, on="k", how="left").drop_duplicates("k", keep="last").write_csv("out", mode="append")
one.join(one, on="k", how="lfet")
one.drop_duplicates("k", keep="lsat")
one.asof_join(one, on="k", direction="backwards")
one.map(len, on_error="ignore")
env.read_csv("a.csv", on_bad_row="drop")
env.read_parquet("a", schema_mode="loose")
one.write_parquet("out", mode="apend")
one.map_batches(len, one.schema, format="arow")
one.explain(format="yaml")
one.jion(one)
one.map_batches(len, one.schema, format="polars")
one.pivot("a", "b", index="c", agg="median")
one.join(one, on="k", hint="BROADCAST_HASH_SECOND", validate="1:m").rolling("t", period="1 h", closed="both")
one.pivot("a", "b", index="c", agg="smu")
one.join(one, on="k", hint="BROADCAST")
one.join(one, on="k", validate="1:n")
one.group_by_dynamic("t", every="1 h", closed="lfet")
one.group_by_dynamic("t", every="1 h", label="middle")
one.group_by("k").reduce(len, format="arow")
rank(method="maximum")
rank().over("k", order_by="t", rows=(-1, 0), exclude="self")
sequence(1, 3, closed="right")
env.sql("SELECT 1", dialect="postgre")
env.read_csv("a.csv", ragged_rows="drop")
env.read_json("a.json", compression="zip")
one.write_csv("out", quoting="some")
one.write_csv("out", decimal=";")
one.write_parquet("out", compression="snapy")
one.write_orc("out", compression="gzip")
one.write_ipc("out", compression="gzip")
col("t").dt.diff(col("u"), "fortnights")
col("t").dt.epoch("m")
col("t").dt.add_business_days(1, roll="back")
col("x").str.normalize("NFX")
col("x").str.encode("base32")
udf(int, batch="arow")
Environment(target="yarn")
"""
WRONG_LINES = {*range(7, 17), *range(20, 44)}


@pytest.fixture
def programs(tmp_path):
    """A folder with the recipes of each page of the cookbook, the examples, and a program with misspelt words."""
    for page in ORACLES:
        blocks = blocks_of((FOLDER / "cookbook" / f"{page}.md").read_text(encoding="utf-8"), "python")
        (tmp_path / f"{page}.py").write_text("\n".join(block.code for block in blocks))
    for path in EXAMPLES.glob("[a-z]*.py"):
        if path.stem != "generate_instruments":  # data of another example
            shutil.copy(path, tmp_path)
    (tmp_path / "misspelt.py").write_text(PROGRAM)
    return tmp_path


def test_mypy_finds_misspelt_words_alone(programs):
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "pyproject.toml", *programs.glob("*.py")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    errors = [line.split(":") for line in done.stdout.splitlines() if ": error:" in line]
    assert {name.rpartition("/")[2] for name, *_ in errors} == {"misspelt.py"}, done.stdout
    assert {int(line) for _, line, *_ in errors} == WRONG_LINES


@pytest.mark.skipif(find_spec("pyright") is None, reason="the extra editors is not installed")
def test_pyright_finds_misspelt_words_alone(programs):
    settings = {"extraPaths": [str(ROOT)], "include": ["."], "typeCheckingMode": "standard"}
    (programs / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(programs)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = [
        (each["file"].rpartition("/")[2], each["range"]["start"]["line"] + 1)
        for each in json.loads(done.stdout)["generalDiagnostics"]
        # pyarrow makes its functions when it is imported
        if each["severity"] == "error" and "pyarrow.compute" not in each["message"]
    ]
    assert set(found) == {("misspelt.py", line) for line in WRONG_LINES}, found
