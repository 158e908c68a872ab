"""Which sources leave out rows that a top-n will drop."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import Environment, col, lit, rand
from engine.optimizer import top_planning


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setattr(top_planning, "SOURCE_ROWS_MIN", 0)
    pq.write_table(pa.table({"k": range(900), "n": [1.5] * 900, "t": ["x"] * 900}), tmp_path / "rows.parquet", 100)
    with Environment() as env:
        yield env.read_parquet(tmp_path / "rows.parquet")


@pytest.mark.parametrize(
    ("query", "column"),
    [
        (lambda data: data.top(5, "k"), "k"),
        (lambda data: data.sort(["n", "t"]).limit(5), "n"),
        (lambda data: data.filter(col("n") > 1).sort("t").limit(5), "t"),
        (lambda data: data.select(col("k").alias("a"), (col("n") + lit(1)).alias("b")).top(5, "a"), "k"),
        (lambda data: data.select(col("k").alias("a"), (col("n") + lit(1)).alias("b")).top(5, "b"), None),
        (lambda data: data.with_columns(r=rand(1)).top(5, "k"), None),
        (lambda data: data.limit(50).top(5, "k"), None),
        (lambda data: data.sort("k"), None),
        (lambda data: data.top(600, "k"), None),
    ],
)
def test_a_column_of_the_scan_gives_a_threshold(data, query, column):
    text = query(data).explain()
    assert ("top-n threshold" in text) == (column is not None)
    assert column is None or f"top-n threshold on {column} from top [" in text


def test_a_scan_that_others_read_too_keeps_its_rows(data):
    kept = data.filter(col("k") >= 0).union(data.filter(col("k") > 3))
    assert "top-n threshold" not in kept.top(5, "k").explain()


def test_small_sources_have_none(data, monkeypatch):
    monkeypatch.setattr(top_planning, "SOURCE_ROWS_MIN", 1000)
    assert "top-n threshold" not in data.top(5, "k").explain()
