"""Connections of Ibis: tables, files, functions, rows as they come."""

import datetime as dt
import gc
from decimal import Decimal

import pandas as pd
import polars
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from engine import Environment
from engine.errors import PlanError

pytest.importorskip("ibis")
import ibis
import ibis.common.exceptions as com

ROWS = pa.table({"k": ["a", "b", "a"], "v": pa.array([1, 2, 3], pa.int64())})


@pytest.fixture
def con():
    made = ibis.drey.connect(config={"parallelism.default": 1})
    yield made
    made.disconnect()


def test_an_environment_is_taken_and_stays_open():
    with Environment(config={"parallelism.default": 1}) as env:
        env.register("t", env.from_arrow(ROWS))
        con = ibis.drey.connect(env)
        assert con.con is env and con.list_tables() == ["t"]
        assert ibis.drey.from_connection(env).table("t").v.sum().execute() == 6
        con.disconnect()
        assert env.sql("SELECT count(*) AS n FROM t").collect()[0].n == 3
        with pytest.raises(PlanError, match="pass either of them"):
            ibis.drey.connect(env, target="cluster")


def test_names_and_types_of_tables(con):
    types = {
        "b": "boolean", "i8": "int8", "u64": "uint64", "f32": "float32", "f": "float64", "s": "string", "bin": "binary",
        "d": "date", "t": "time", "ts": "timestamp(6)", "tz": "timestamp('UTC', 6)", "p": "decimal(12, 3)",
        "x": "array<int64>", "st": "struct<a: int64, b: array<string>>", "m": "map<!string, float64>",
    }  # fmt: skip
    made = con.create_table("all_types", schema=types)
    expected = ibis.schema(types)
    assert {name: str(one) for name, one in made.schema().items() if name != "t"} == {
        name: str(one) for name, one in expected.items() if name != "t"
    }
    assert made.count().execute() == 0
    assert con.list_tables(like="all") == ["all_types"] and con.list_catalogs() == ["drey"]
    assert con.list_databases() == ["main"] and con.list_tables(database="drey.main") == ["all_types"]
    with pytest.raises(com.TableNotFound):
        con.table("nothing")
    con.drop_table("all_types")
    con.drop_table("all_types", force=True)
    with pytest.raises(com.TableNotFound):
        con.drop_table("all_types")


@pytest.mark.parametrize(
    "made",
    [
        lambda: ROWS,
        ROWS.to_pandas,
        lambda: polars.from_arrow(ROWS),
        ROWS.to_reader,
        lambda: pa.dataset.dataset(ROWS),
        lambda: ibis.memtable(ROWS),
        lambda: {"k": ["a", "b", "a"], "v": [1, 2, 3]},
    ],
)
def test_a_table_is_made_of_anything(con, made):
    con.create_table("t", made())
    assert con.table("t").order_by("v").to_pyarrow().to_pylist() == ROWS.to_pylist()
    with pytest.raises(com.IbisError, match="is there already"):
        con.create_table("t", made())
    con.create_table("t", made(), overwrite=True)


def test_rows_are_added_by_name_else_by_place(con):
    table = con.create_table("t", ROWS)
    con.insert("t", {"v": [9], "k": ["z"]})
    con.insert("t", pd.DataFrame({"one": ["y"], "two": [8]}))
    con.insert("t", table.filter(table.v == 9).mutate(v=10).select("v"))
    assert table.order_by("v").to_pyarrow()["v"].to_pylist() == [1, 2, 3, 8, 9, 10]
    assert table.filter(table.v >= 8).order_by("v").to_pyarrow()["k"].to_pylist() == ["y", "z", None]
    con.insert("t", {"k": ["only"], "v": [1]}, overwrite=True)
    assert table.to_pyarrow().to_pylist() == [{"k": "only", "v": 1}]
    con.truncate_table("t")
    assert table.count().execute() == 0
    con.rename_table("t", "u")
    assert con.list_tables(like="^[tu]$") == ["u"]
    with pytest.raises(com.UnsupportedOperationError, match=r"tables are made in drey\.main alone"):
        con.create_table("t", ROWS, database="lake.sales")


def test_a_view_is_a_query(con):
    table = con.create_table("t", ROWS)
    view = con.create_view("big", table.filter(table.v > 1))
    assert view.count().execute() == 2
    with pytest.raises(com.IbisError):
        con.create_view("big", table)
    con.drop_view("big")
    assert con.list_tables() == ["t"]


def test_files_are_tables(con, tmp_path):
    pq.write_table(ROWS, tmp_path / "a.parquet")
    pq.write_table(ROWS, tmp_path / "b.parquet")
    (tmp_path / "a.csv").write_text("k;v\na;1\n")
    (tmp_path / "a.json").write_text('{"k": "a", "v": 1}\n')
    assert con.read_parquet([tmp_path / "a.parquet", tmp_path / "b.parquet"], table_name="p").count().execute() == 6
    assert con.read_csv(tmp_path / "a.csv", delimiter=";").to_pyarrow().to_pylist() == [{"k": "a", "v": 1}]
    assert con.read_json(tmp_path / "a.json").to_pyarrow().to_pylist() == [{"k": "a", "v": 1}]
    con.environment.from_arrow(ROWS).write_delta(str(tmp_path / "delta"))
    con.environment.execute()
    assert con.read_delta(tmp_path / "delta").v.sum().execute() == 6
    con.table("p").to_parquet(tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").num_rows == 6
    con.table("p").to_parquet(tmp_path / "parts", partition_by="k")
    assert {one.name for one in (tmp_path / "parts").iterdir()} == {"k=a", "k=b"}
    assert pq.read_table(tmp_path / "parts").num_rows == 6


def test_rows_come_as_the_job_makes_them_and_closing_ends_it(con):
    env = con.environment
    env.register("slow", env.from_arrow(pa.table({"n": range(100_000)}), rate_limit=300.0))
    assert con.sql("SELECT 1 AS one").execute()["one"].tolist() == [1]
    reader = con.table("slow").to_pyarrow_batches(chunk_size=50)
    assert 0 < reader.read_next_batch().num_rows <= 50
    reader.close()
    del reader
    assert con.sql("SELECT 1 AS one").execute()["one"].tolist() == [1]
    assert not any(one.is_running for one in env._streams)


def test_values_that_do_not_fit_are_errors(con):
    table = con.create_table("t", pa.table({"p": pa.array([Decimal("9999.99")], pa.decimal128(6, 2))}))
    with pytest.raises(pa.ArrowInvalid, match="does not fit"):
        (table.p + table.p).to_pyarrow()
    moments = con.create_table("m", pa.table({"t": [dt.datetime(2020, 1, 1, 0, 0, 0, 5)]}))
    found = moments.select(past=moments.t - ibis.timestamp("2020-01-01 00:00:00")).to_pyarrow()
    assert found["past"].to_pylist() == [dt.timedelta(microseconds=5)]


def test_functions_of_python_and_of_columns(con):
    @ibis.udf.scalar.python
    def twice(value: int) -> int:
        return 2 * value

    @ibis.udf.scalar.pyarrow
    def negated(value: int) -> int:
        import pyarrow.compute as pc

        return pc.negate(value)

    @ibis.udf.scalar.pandas
    def longer(value: str) -> str:
        return value + "!"

    @ibis.udf.scalar.builtin
    def starts_with(text: str, begin: str) -> bool: ...

    @ibis.udf.scalar.python
    def number(values: dict[str, int], name: str) -> int:
        return values.get(name, 0)

    table = con.create_table("t", ROWS)
    counted = table.select(n=number(ibis.map(ibis.array([table.k]), ibis.array([table.v])), "b"))
    assert sorted(counted.to_pyarrow()["n"].to_pylist()) == [0, 0, 2]
    made = table.select(a=twice(table.v), b=negated(table.v), c=longer(table.k), d=starts_with(table.k, "a")).order_by(
        "a"
    )
    assert made.to_pyarrow().to_pylist()[1] == {"a": 4, "b": -2, "c": "b!", "d": False}


def test_a_table_in_memory_has_a_name_as_long_as_it_lives(con):
    expr = ibis.memtable(ROWS)
    assert con.execute(expr.v.sum()) == 6
    assert len(con.environment.tables) == 1 and con.list_tables() == []
    del expr
    gc.collect()
    assert len(con.environment.tables) == 0


def test_one_statement_at_a_time(con):
    con.raw_sql("CREATE TABLE t AS SELECT 1 AS n")
    assert con.raw_sql("SELECT n FROM t").collect()[0].n == 1
    with pytest.raises(PlanError, match="one statement"):
        con.raw_sql("SELECT 1; SELECT 2")
    assert con.sql("SELECT list_extract([1, 2], 1) AS a, [1, 2][2] AS b").to_pyarrow().to_pylist() == [{"a": 1, "b": 2}]
