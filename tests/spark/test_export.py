"""Spark batch export: cleaning, bad rows, statistics, and nothing under the name before it is whole."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.clientserver import ClientServerConnection
from pyspark import SparkContext
from pyspark.errors import utils as pyspark_errors
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from engine import DreyWarning, Environment
from engine.connectors.records_manifest import MANIFEST_NAME, read_manifest
from engine.spark import export_command
from engine.spark.session import open_session
from engine.spark.session_settings import with_settings

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]

SCHEMA = "id BIGINT, name STRING, price DOUBLE, day DATE"
CSV = (
    '1, Anna ,1.5,2024-01-01\n2,"B, with comma",,2024-01-02\n3,,2.5,2024-01-03\n4,"",3.5,2024-01-04\n'
    'five,E,4.5,2024-01-05\n6,"F ""quoted""",not a price,2024-01-06\n7,G,-1.0,2024-01-07\n'
)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text(CSV)
    return path


def run(*arguments):
    return export_command.main([*map(str, arguments), "--quiet"])


def rows_of(folder):
    return sorted(pq.read_table(folder, ignore_prefixes=["_"]).to_pylist(), key=lambda row: row["id"])


def test_csv_is_cleaned_and_rows_that_do_not_parse_are_set_aside(spark, source, tmp_path, capsys):
    target = tmp_path / "out"
    code = run(
        "--input",
        source,
        "--format",
        "csv",
        "--schema",
        SCHEMA,
        "--output",
        target,
        "--check",
        "price IS NULL OR price > 0",
    )
    assert code == 0
    rows = rows_of(target)
    assert [(row["id"], row["name"], row["price"]) for row in rows] == [
        (1, "Anna", 1.5),
        (2, "B, with comma", None),
        (3, None, 2.5),
        (4, "", 3.5),
    ]
    assert "3 bad rows were set aside" in capsys.readouterr().out
    lines = [
        json.loads(line)
        for path in (tmp_path / "out.rejected").glob("*.json")
        for line in path.read_text().splitlines()
    ]
    assert {line["source"] for line in lines} == {f"file:{source}"}
    assert sorted(line["reason"] for line in lines) == [
        "check failed: price IS NULL OR price > 0",
        'does not parse: 6,"F ""quoted""",not a price,2024-01-06',
        "does not parse: five,E,4.5,2024-01-05",
    ]


def test_the_manifest_counts_what_was_written_and_knows_the_columns(spark, tmp_path):
    source = tmp_path / "in.parquet"
    table = pa.table({"k": pa.array([7] * 130 + list(range(10)), pa.int64()), "s": ["a"] * 139 + [None]})
    pq.write_table(table, source)
    target = tmp_path / "out"
    assert run("--input", source, "--format", "parquet", "--output", target, "--partitions", 2) == 0
    manifest = read_manifest(target)
    assert (manifest.row_count, len(manifest.files), manifest.bad_rows) == (140, 2, 0)
    assert manifest.size_bytes == sum((target / file.name).stat().st_size for file in manifest.files)
    assert {path.name for path in target.iterdir()} == {"part-00000.parquet", "part-00001.parquet", MANIFEST_NAME}
    key = manifest.columns["k"]
    assert (key.min, key.max, key.null_count, key.distinct_estimate) == (0, 9, 0, 10)
    assert key.heavy_keys[0][0] == "7"
    assert abs(key.heavy_keys[0][1] - 131 / 140) < 0.01
    assert manifest.columns["s"].null_count == 1
    assert pa.ipc.read_schema(pa.py_buffer(manifest.schema)).names == ["k", "s"]


def test_json_is_read_and_sorted_within_parts(spark, tmp_path):
    source = tmp_path / "in.json"
    source.write_text("".join(json.dumps({"id": i % 5, "v": f"{i}"}) + "\n" for i in range(20)))
    target = tmp_path / "out"
    arguments = ("--input", source, "--format", "json", "--output", target, "--partitions", 2, "--sort-by", "id,v")
    assert run(*arguments) == 0
    for path in target.glob("*.parquet"):
        keys = [(row["id"], row["v"]) for row in pq.read_table(path).to_pylist()]
        assert keys == sorted(keys)
    assert read_manifest(target).row_count == 20


def test_an_output_that_exists_is_an_error_and_stays_as_it_is_unless_overwritten(spark, source, tmp_path, capsys):
    target = tmp_path / "out"
    target.mkdir()
    arguments = ("--input", source, "--format", "csv", "--schema", SCHEMA, "--output", target)
    assert run(*arguments) == 1
    assert "already exists" in capsys.readouterr().err
    assert list(target.iterdir()) == []
    assert run(*arguments, "--overwrite") == 0
    assert read_manifest(target).row_count == 5
    assert {path.name for path in tmp_path.iterdir()} == {"in.csv", "out", "out.rejected"}


@pytest.mark.parametrize("url", ["s3a://bucket/out", "s3://bucket/out", "gs://bucket/out"])
def test_an_object_store_is_refused_with_what_to_do(spark, source, capsys, url):
    assert run("--input", source, "--format", "csv", "--schema", SCHEMA, "--output", url) == 1
    said = capsys.readouterr().err
    assert url in said and "hadoop-aws" in said and "read_records(folder).write_records(path)" in said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id,ID,a.b\n1,2,3\n", ("csv", "--header")),
        ("id,ID,a.b\n1,2,3\n", ("csv", "--header", "--schema", "id INT, ID INT, `a.b` INT", "--check", "`a.b` > 0")),
        ('{"id": 1, "ID": 2, "a.b": 3}\n', ("json",)),
    ],
)
def test_columns_that_differ_by_case_alone_keep_their_names(spark, tmp_path, text, words):
    (tmp_path / "in").write_text(text)
    assert run("--input", tmp_path / "in", "--output", tmp_path / "out", "--format", *words) == 0
    with Environment() as env:
        assert env.read_records(tmp_path / "out").collect()[0].asdict() == {"id": 1, "ID": 2, "a.b": 3}
    assert spark.conf.get("spark.sql.caseSensitive") == "false"


def test_an_input_that_is_missing_is_one_clear_line(spark, tmp_path, capsys):
    assert run("--input", tmp_path / "nowhere", "--format", "csv", "--output", tmp_path / "out") == 1
    assert "no such input" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_machine_without_java_is_one_clear_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert run("--input", tmp_path, "--format", "csv", "--output", tmp_path / "out") == 1
    assert capsys.readouterr().err.startswith("ConfigurationError: Spark needs Java 17 or 21, and there is no java")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert run("--input", tmp_path, "--format", "csv", "--output", tmp_path / "out") == 1
    assert f"JAVA_HOME is {tmp_path}" in capsys.readouterr().err


def test_a_session_that_is_there_is_used_as_it_is(spark):
    with with_settings(spark, {"spark.sql.session.timeZone": "America/New_York"}):
        assert open_session("another", "local[7]").sparkContext is spark.sparkContext
        assert spark.conf.get("spark.sql.session.timeZone") == "America/New_York"
    for master, remote in (("sc://127.0.0.1:1", None), (None, "sc://127.0.0.1:1")):
        with pytest.warns(DreyWarning, match="at sc://127.0.0.1:1 is not asked: .* with a JVM of its own already"):
            assert open_session("another", master, remote).sparkContext is spark.sparkContext


def test_a_column_is_one_question_of_a_session_of_ours(spark, monkeypatch):
    asked = []
    # as at the first call of a process, which decides for all
    monkeypatch.setattr(pyspark_errors, "_enable_debugging_cache", None)
    send = ClientServerConnection.send_command
    monkeypatch.setattr(
        ClientServerConnection, "send_command", lambda *given: asked.append(given[1].split("\n")) or send(*given)
    )
    F.col("first")
    asked.clear()
    F.col("second")
    assert [words[2] for words in asked if words[0] == "c"] == ["col"]
