"""What Spark reads of a path: that file or folder, whatever its name, or nothing that says so."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import Environment
from engine.errors import PlanError
from engine.spark import export_command
from engine.spark.data_source import register
from engine.spark.export import export_data
from engine.spark.export_checks import Checks
from engine.spark.file_urls import is_left_out, is_pattern, url_to_read

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]

NAMES = ["plain", "st*r", "b[1]", "{p,q}", "q?", "ba\\ck", "per%20cent", "sp ace", "k=1", "ünï"]


@pytest.mark.parametrize("name", NAMES)
def test_a_path_is_no_pattern(spark, tmp_path, name):
    # what the names would match as patterns
    for number, each in enumerate([name, "star", "b1", "p", "q", "qq", "back", "per cent"]):
        (tmp_path / each).mkdir()
        pq.write_table(pa.table({"n": [number]}), tmp_path / each / "a.parquet")
    for path in (tmp_path / name, tmp_path / name / "a.parquet"):
        assert [row.n for row in spark.read.parquet(url_to_read(path)).collect()] == [0]
    assert is_pattern(name) == any(one in name for one in "*?[]{}\\")


@pytest.mark.parametrize("name", ["_a.parquet", ".a.parquet", "a.parquet._COPYING_", "a_.parquet", "a"])
def test_names_that_spark_leaves_out_are_known(spark, tmp_path, name):
    pq.write_table(pa.table({"n": [1]}), tmp_path / name)
    read = spark.read.schema("n BIGINT").parquet(url_to_read(tmp_path / name)).count()
    assert is_left_out(name) == (read == 0)


def test_urls_mean_one_folder_to_an_export_to_the_format_and_to_drey(spark, tmp_path):
    register(spark)
    for number, begin in enumerate(("file:", "file://", "file://localhost", "")):
        url = f"{begin}{tmp_path}/out {number}"
        export_data(spark.range(3), url)
        spark.range(3).write.format("drey").mode("append").save(url)
        assert spark.read.format("drey").load(url).count() == 6
        with Environment() as env:
            assert env.read_records(url).count() == env.read_records(tmp_path / f"out {number}").count() == 6
    for url, said in (
        ("", "path is empty"),
        ("hdfs://a/b", "Spark exports to folders"),
        ("gopher://a/b", "gopher:// is no place"),
    ):
        with pytest.raises(PlanError, match=said):
            export_data(spark.range(3), url, overwrite=True)


@pytest.mark.parametrize("name", ["st*r", "b[1]", "ba\\ck"])
def test_an_export_reads_its_own_data_set_again(spark, tmp_path, name):
    target = tmp_path / name / "out"
    checks = Checks(["id <> 2"], unique=[["id"]])
    export_data(spark.range(5), str(target), since="id", checks=checks)
    assert export_data(spark.range(2, 9), str(target), since="id", checks=checks).row_count == 4
    rejected = [each.read_text() for each in target.with_name("out.rejected").iterdir()]
    assert [json.loads(line)["id"] for text in rejected for line in text.splitlines()] == [2]
    known = Checks(references=[f"id={target}:id"])
    assert export_data(spark.range(4), str(tmp_path / "known"), checks=known).row_count == 3


def test_an_input_that_spark_would_leave_out_is_refused(spark, tmp_path, capsys):
    (tmp_path / "_a.csv").write_text("1\n")
    words = ["--format", "csv", "--schema", "id INT", "--output", str(tmp_path / "out")]
    assert export_command.main(["--input", str(tmp_path / "_a.csv"), *words]) == 1
    assert "Spark leaves out files whose names begin with _ or ." in capsys.readouterr().err
    (tmp_path / "a.csv").write_text("2\n")
    assert export_command.main(["--input", str(tmp_path / "*.csv"), *words]) == 0
    with Environment() as env:
        assert [row.id for row in env.read_records(tmp_path / "out").collect()] == [2]
