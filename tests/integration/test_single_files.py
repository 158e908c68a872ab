"""Outputs that are one file with a name of its own: its rows, their order, and what is refused."""

import random

import polars as pl
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

from engine import Environment, col
from engine.errors import ConfigurationError, PlanError


@pytest.fixture(scope="module")
def env():
    with Environment(config={"parallelism.default": 4}) as environment:
        yield environment


def numbers(tmp_path, count):
    """Return the path of numbers in order, large enough for several splits."""
    path = tmp_path / "in.csv"
    path.write_text("".join(f"{number},{'x' * 60}\n" for number in range(count)))
    return path


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.csv.zst"])
def test_rows_of_files_stay_in_the_order_of_the_files(env, tmp_path, name):
    rows = env.read_csv(numbers(tmp_path, 60_000)).filter(col("column_0") >= 5).select("column_0")
    rows.write_csv(tmp_path / name, single_file=True, header=True)
    env.execute()
    found = pl.read_csv(tmp_path / name)["column_0"].to_list()
    assert found == list(range(5, 60_000))
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted([name, "in.csv"])


def test_sorted_rows_stay_sorted(env, tmp_path):
    values = random.Random(7).sample(range(10**6), 50_000)
    rows = env.from_arrow(pa.table({"x": values, "text": ["t" * 100] * len(values)}))
    rows.write_parquet(tmp_path / "a.parquet", single_file=True, sort_by="x")
    rows.sort("x", descending=True).select("x").write_json(tmp_path / "a.jsonl", single_file=True)
    rows.write_orc(tmp_path / "a.orc", single_file=True)
    env.execute()
    assert pq.read_table(tmp_path / "a.parquet")["x"].to_pylist() == sorted(values)
    assert pl.read_ndjson(tmp_path / "a.jsonl")["x"].to_list() == sorted(values, reverse=True)
    assert sorted(pyarrow.orc.read_table(tmp_path / "a.orc")["x"].to_pylist()) == sorted(values)


def test_a_file_is_replaced_and_one_without_rows_is_there(env, tmp_path):
    rows = env.from_arrow(pa.table({"x": [1, 2]}))
    for data in (rows, rows.filter(col("x") > 5)):
        data.write_csv(tmp_path / "a.csv", header=True, single_file=True, overwrite=True)
        env.execute()
    assert (tmp_path / "a.csv").read_text() == "x\n"
    rows.write_csv(tmp_path / "a.csv", single_file=True)
    with pytest.raises(PlanError, match=r"a\.csv already exists; pass overwrite=True to replace it"):
        env.execute()


def test_options_of_several_files_are_refused(env, tmp_path):
    rows = env.from_arrow(pa.table({"x": [1]}))
    for options in ({"partition_by": "x"}, {"target_file_size": "1mb"}, {"mode": "append"}):
        with pytest.raises(ConfigurationError, match="single_file=True makes one file"):
            rows.write_parquet(tmp_path / "a.parquet", single_file=True, **options)
    with pytest.raises(ConfigurationError, match="zip archives are not written; name it"):
        rows.write_csv(tmp_path / "a.csv.zip", single_file=True)
    with pytest.raises(ConfigurationError, match="single_file='yes': choose True or False"):
        rows.write_csv(tmp_path / "a.csv", single_file="yes")
    with pytest.raises(ConfigurationError, match=r"whose name does not say it; name it .*a\.json\.gz"):
        rows.write_json(tmp_path / "a.json", compression="gzip", single_file=True)
    with pytest.raises(TypeError, match=r"write_records.* has no option single_file"):
        rows.write_records(tmp_path / "a", single_file=True)


def test_rows_are_added_beside_files_of_the_same_form(env, tmp_path):
    form = {"header": True, "delimiter": ";", "decimal": ",", "null_text": "-", "encoding": "utf-16"}
    for values in ([1.5, None], [2.25]):
        env.from_arrow(pa.table({"x": values})).write_csv(tmp_path / "a", mode="append", **form)
        env.execute()
    found = env.read_csv(tmp_path / "a", header=True, delimiter=";", decimal=",", null_values="-")
    assert sorted(found.to_arrow()["x"].to_pylist(), key=str) == [1.5, 2.25, None]
