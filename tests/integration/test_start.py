"""What a job does not load: it starts in a process of a person who waits."""

import importlib.util
import subprocess
import sys
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

_JOB = """
import sys
from engine import Environment, avg, col, count, sum_, when
with Environment() as env:
    rows = env.read_csv("{folder}/in.csv", header=True)
    named = when(col("name").is_null() | (col("name") == "")).then("none").otherwise(col("name"))
    kept = rows.filter((col("n") + 1 > 2) & col("name").str.contains("a")).select(named.alias("name"), "n")
    kept.group_by("name").agg(rows=count(), total=sum_(col("n"))).write_parquet("{folder}/grouped")
    env.execute()
    back = env.read_parquet("{folder}/grouped")
    back.sort("name").write_csv("{folder}/sorted", header=True)
    env.execute()
    wide = back.filter(col("total") > 1).group_by("name").agg(rows=sum_("rows"))
    assert [tuple(row) for row in wide.collect()] == [("adam", 2)]
    pages = env.read_parquet("{folder}/indexed.parquet").filter(col("n") < 1000)
    means = pages.group_by("name").agg(rows=count(), mean=avg(col("n")), price=sum_(col("price"))).sort("name")
    assert [row.rows for row in means.collect()] == [250, 500, 250]
known = ("pandas", "pyspark", "duckdb", "polars", "pyarrow.compute")
print(sorted(name for name in known if name in sys.modules))
"""
_QUERIES = """
import sys
from engine import Environment
with Environment() as env:
    env.register("t", env.read_csv("{folder}/in.csv", header=True))
    days = "SELECT n, DATE '2020-01-31' + INTERVAL '1' MONTH AS day, 0.5 * n AS half, CAST('2020-1-5' AS DATE) FROM t"
    assert [row.half for row in env.sql(days + " WHERE n > 1 ORDER BY n").collect()] == [1, 1.5]
    ranks = "SELECT name, CASE WHEN n > 1 THEN 6 / (n - 1) END, rank() OVER (PARTITION BY name ORDER BY n) FROM t"
    ranked = [tuple(row) for row in env.sql(ranks + " ORDER BY 1, 2").collect()]
    assert ranked == [("adam", 3, 2), ("adam", 6, 1), ("anna", None, 1)]
    assert env.sql("SELECT name FROM t INTERSECT SELECT name FROM t WHERE n < 3").count() == 2
    assert env.sql("SELECT n FROM t ORDER BY n LIMIT 2 OFFSET 1").to_arrow()["n"].to_pylist() == [2, 3]
    assert [row.d.day for row in env.sql("FROM (VALUES (DATE '2020-01-02'), (NULL)) AS v(d)").collect() if row.d] == [2]
print("pandas" in sys.modules)
"""


@pytest.mark.quick
@pytest.mark.integration
@pytest.mark.skipif(importlib.util.find_spec("pandas") is None, reason="pandas is not installed")
def test_jobs_do_not_load_pandas_and_other_libraries_that_start_slowly(tmp_path):
    names = pa.array([None, "adam", "anna", "adam"] * 2500)
    rows = pa.table({"n": range(10_000), "name": names, "price": [Decimal("1.25")] * 10_000})
    pq.write_table(rows, tmp_path / "indexed.parquet", write_page_index=True, data_page_size=1024, row_group_size=4096)
    (tmp_path / "in.csv").write_text("name,n\nanna,1\nadam,2\nadam,3\n")
    words = subprocess.run(
        [sys.executable, "-c", _JOB.format(folder=tmp_path)], capture_output=True, text=True, check=False
    )
    assert words.stdout == "[]\n", words.stderr
    assert (tmp_path / "sorted" / "part-00000.csv").read_text().splitlines()[-1] == "adam,2,5"


@pytest.mark.quick
@pytest.mark.integration
@pytest.mark.skipif(importlib.util.find_spec("pandas") is None, reason="pandas is not installed")
def test_queries_do_not_load_pandas(tmp_path):
    (tmp_path / "in.csv").write_text("name,n\nanna,1\nadam,2\nadam,3\n")
    words = subprocess.run(
        [sys.executable, "-c", _QUERIES.format(folder=tmp_path)], capture_output=True, text=True, check=False
    )
    assert words.stdout == "False\n", words.stderr
