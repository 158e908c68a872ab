"""Batches that Arrow does not know go from the source to a table of groups or to pages; others get Arrow's batches."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import Environment, count
from engine.aggregate.aggregate_operator import Aggregate
from engine.column_expressions.expressions import col
from engine.operators.batch_task import TaskOutput
from engine.parquet.reader import ParquetReader

ROWS = 40_000
SCHEMA = pa.schema([("k", pa.int32()), ("v", pa.int64()), ("t", pa.string())])

STATEMENTS = [
    "SELECT k, sum(v) AS s, count(t) AS c FROM t GROUP BY k",
    "SELECT t, max(v + 1) AS m FROM t WHERE v > 100 AND t <> 'text 3' GROUP BY t",
    "SELECT d.name, sum(t.v * 2) AS s FROM t JOIN d ON t.k = d.k GROUP BY d.name",
    "SELECT t.t, d.name, count(*) AS c FROM t LEFT JOIN d ON t.k = d.k AND t.v > d.k GROUP BY t.t, d.name",
    "SELECT k, count(*) AS c FROM t WHERE EXISTS (SELECT 1 FROM d WHERE d.k = t.k AND d.k <> t.v) GROUP BY k",
    "SELECT k, s FROM (SELECT k, sum(v) AS s FROM t GROUP BY k) WHERE s > 10 ORDER BY s DESC, k LIMIT 7",
    "SELECT k % 10 AS g, count(DISTINCT t) AS c FROM t GROUP BY k % 10",
    "SELECT v, k FROM t WHERE k = 3 ORDER BY v LIMIT 20",
    "SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v) AS n FROM t WHERE v < 500",
    "SELECT CASE WHEN k = 0 THEN NULL ELSE v / k END AS q, count(*) AS c FROM t GROUP BY 1",
    "SELECT upper(t) AS u, min(b) AS b FROM (SELECT t, v > 5 AS b FROM t UNION SELECT name, true FROM d) GROUP BY u",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("opened")
    rows = pa.table(
        {
            "k": pa.array([None if row % 97 == 0 else row % 50 for row in range(ROWS)], pa.int32()),
            "v": pa.array([row * 7 % 1000 for row in range(ROWS)], pa.int64()),
            "t": pa.array([None if row % 31 == 0 else f"text {row % 9}" for row in range(ROWS)]),
        }
    )
    pq.write_table(rows, found / "t.parquet", row_group_size=5000)
    pq.write_table(
        pa.table({"k": pa.array(range(0, 60, 2), pa.int32()), "name": ["a", "b", "c"] * 10}), found / "d.parquet"
    )
    return found


def rows_of(folder, statement, **config):
    with Environment(config=config) as env:
        for name in ("t", "d"):
            env.register(name, env.read_parquet(folder / f"{name}.parquet"))
        return sorted(map(str, env.sql(statement).to_arrow().to_pylist()))


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize("statement", STATEMENTS)
def test_rows_are_those_of_batches_that_arrow_knows(folder, monkeypatch, statement, parallelism):
    found = rows_of(folder, statement, **{"parallelism.default": parallelism})
    monkeypatch.setattr(TaskOutput, "takes_opened", False)
    monkeypatch.setattr(Aggregate, "takes_opened", False)
    assert found == rows_of(folder, statement, **{"parallelism.default": parallelism})
    assert found


@pytest.fixture
def opened_readers(monkeypatch):
    opened = []
    keep = ParquetReader.keep_opened
    monkeypatch.setattr(ParquetReader, "keep_opened", lambda self: (opened.append(self), keep(self)))
    return opened


def test_a_source_in_front_of_groups_makes_opened_batches(folder, opened_readers):
    rows_of(folder, STATEMENTS[0])
    assert opened_readers


def test_a_function_gets_batches_of_arrows(folder, opened_readers):
    with Environment() as env:
        taken = env.read_parquet(folder / "t.parquet").filter(col("v") > 10).map_batches(only_arrows, SCHEMA)
        assert taken.group_by("k").agg(n=count()).to_arrow().num_rows == 51
    assert not opened_readers


def only_arrows(batch: pa.RecordBatch) -> pa.RecordBatch:
    assert type(batch) is pa.RecordBatch
    return batch


def test_a_result_is_of_arrows_batches(folder):
    with Environment() as env:
        batches = list(env.read_parquet(folder / "t.parquet").filter(col("v") > 10).to_batches())
        assert batches
        assert {type(batch) for batch in batches} == {pa.RecordBatch}
