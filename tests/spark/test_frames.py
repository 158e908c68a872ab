"""DataFrames as data sets and back, within one program."""

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from engine import Environment, col, sum_
from engine.errors import DataError, SchemaError
from engine.spark import export_data, frames, read_dataframe

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]


@pytest.mark.parametrize("small_bytes", [frames.SMALL_BYTES, 0])
def test_rows_go_to_drey_and_come_back(spark, monkeypatch, small_bytes):
    monkeypatch.setattr(frames, "SMALL_BYTES", small_bytes)
    data = spark.range(0, 1000, 1, 3).selectExpr("id % 10 AS k", "id AS n", "timestamp_seconds(id) AS at")
    with Environment() as env:
        rows = read_dataframe(data, env)
        assert rows.schema.field("at").type == pa.timestamp("us", "UTC")
        sums = rows.group_by("k").agg(total=sum_("n")).filter(col("k") < 2).to_spark(spark)
        assert dict(sums.collect()) == {0: sum(range(0, 1000, 10)), 1: sum(range(1, 1000, 10))}


@pytest.mark.parametrize("small_bytes", [frames.SMALL_BYTES, 0])
def test_no_rows_are_a_frame_with_columns(spark, monkeypatch, small_bytes):
    monkeypatch.setattr(frames, "SMALL_BYTES", small_bytes)
    with Environment() as env:
        none = read_dataframe(spark.range(10).where("id > 50"), env)
        assert none.count() == 0
        assert none.to_spark(spark).columns == ["id"]


def test_a_data_set_whose_parts_have_no_rows_is_a_frame_with_columns(spark, tmp_path):
    export_data(
        spark.range(3).where("id > 5").selectExpr("id", "array(timestamp_seconds(id)) AS a"), str(tmp_path / "out")
    )
    with Environment() as env:
        frame = env.read_records(tmp_path / "out").to_spark(spark)
        assert (frame.dtypes, frame.collect()) == ([("id", "bigint"), ("a", "array<timestamp>")], [])


def test_a_type_that_spark_has_not_is_refused_before_anything_runs(spark):
    with Environment() as env:
        data = env.from_arrow(pa.table({"d": pa.array([1], pa.decimal256(50, 2))}))
        with pytest.raises(SchemaError, match="column 'd'"):
            data.to_spark(spark)


def test_a_value_that_does_not_fit_names_its_column(spark):
    nanos = pa.table({"k": [1], "at": pa.array([1], pa.timestamp("ns"))})
    with Environment() as env, pytest.raises(DataError, match=r"to_spark, column 'at': .*cannot hold it"):
        env.from_arrow(nanos).to_spark(spark)


@pytest.mark.parametrize("small_bytes", [frames.SMALL_BYTES, 0])
def test_columns_that_differ_by_case_alone_are_two(spark, monkeypatch, small_bytes):
    monkeypatch.setattr(frames, "SMALL_BYTES", small_bytes)
    with Environment() as env:
        there = read_dataframe(spark.createDataFrame([(1, 2)], "a int, A int"), env)
        assert there.to_arrow().to_pydict() == {"a": [1], "A": [2]}
        assert there.to_spark(spark).collect() == [(1, 2)]
        with pytest.raises(SchemaError, match="two columns 'a'"):
            read_dataframe(spark.createDataFrame([(1, 2)], "a int, b int").toDF("a", "a"), env)
