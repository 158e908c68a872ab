"""Rows that exports set aside: none is lost, and none is there twice."""

import json

import pytest

from engine import PlanError
from engine.connectors.records_manifest import read_manifest
from engine.spark import export, manifest_switch
from engine.spark.export import export_data
from engine.spark.export_checks import Checks

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]


def rejected(folder):
    lines = [
        json.loads(line) for path in sorted(folder.glob("out.rejected/*")) for line in path.read_text().splitlines()
    ]
    return sorted(lines, key=str)


def rows(spark, *values):
    return spark.createDataFrame(list(values), "n int, v string")


def test_an_export_of_everything_replaces_those_of_the_export_before(spark, tmp_path):
    target = str(tmp_path / "out")
    export_data(rows(spark, (1, "a"), (2, "b")), target, checks=["n <> 1"])
    assert [row["n"] for row in rejected(tmp_path)] == [1]
    export_data(rows(spark, (1, "a"), (2, "b")), target, checks=["n <> 2"], overwrite=True)
    assert [row["n"] for row in rejected(tmp_path)] == [2]
    export_data(rows(spark, (1, "a")), target, overwrite=True)
    assert {path.name for path in tmp_path.iterdir()} == {"out"}


def test_rows_that_are_added_keep_what_was_set_aside_before(spark, tmp_path):
    target = str(tmp_path / "out")
    checks = ["v <> 'bad'"]
    first = ((1, "a"), (2, "bad"), (3, "c"), (9, "bad"), (None, "null"))
    assert export_data(rows(spark, *first), target, checks=checks, since="n").bad_row_count == 3
    report = export_data(rows(spark, *first, (4, "bad"), (5, "e")), target, checks=checks, since="n")
    # of the three, two come again: beyond 3, and without a value
    assert (report.row_count, report.bad_row_count) == (1, 3)
    found = rejected(tmp_path)
    assert sorted(row.get("n", 0) for row in found) == [0, 2, 4, 9]
    assert export_data(rows(spark, (6, "f")), target, checks=checks, since="n").rejected is None
    assert rejected(tmp_path) == found


@pytest.mark.parametrize("step", ["write_manifest", "shutil"])
def test_an_export_that_fails_at_the_switch_is_run_again(spark, tmp_path, monkeypatch, step):
    target = str(tmp_path / "out")
    export_data(rows(spark, (1, "a"), (2, "bad")), target, checks=["v <> 'bad'"], since="n")
    more = rows(spark, (1, "a"), (2, "bad"), (3, "bad"), (4, "d"))

    def broken(*_args, **_kwargs):
        raise OSError("no more")

    with monkeypatch.context() as patch, pytest.raises((OSError, AttributeError)):
        patch.setattr(manifest_switch, step, broken)
        export_data(more, target, checks=["v <> 'bad'"], since="n")
    export_data(more, target, checks=["v <> 'bad'"], since="n")
    assert read_manifest(tmp_path / "out").row_count == 2
    assert [row["n"] for row in rejected(tmp_path)] == [2, 3]


def test_the_second_of_two_exports_leaves_what_the_first_set_aside(spark, tmp_path, monkeypatch):
    target = str(tmp_path / "out")
    export_data(rows(spark, (1, "a")), target, checks=["v <> 'bad'"], since="n")
    own = export._write_staging

    def slow(*args):
        made = own(*args)
        monkeypatch.setattr(export, "_write_staging", own)
        export_data(rows(spark, (2, "b"), (3, "bad")), target, checks=["v <> 'bad'"], since="n")
        return made

    monkeypatch.setattr(export, "_write_staging", slow)
    with pytest.raises(PlanError, match="was changed by another export meanwhile"):
        export_data(rows(spark, (2, "b"), (8, "bad")), target, checks=["v <> 'bad'"], since="n")
    assert [row["n"] for row in rejected(tmp_path)] == [3]


def test_a_column_may_be_called_reason(spark, tmp_path):
    data = spark.createDataFrame([(1, "why"), (2, "not")], "n int, Reason string")
    export_data(data, str(tmp_path / "out"), checks=["n > 1"])
    assert rejected(tmp_path) == [{"n": 1, "Reason": "why", "rejected_because": "check failed: n > 1"}]


def test_columns_may_be_called_as_those_of_an_export_once_were(spark, tmp_path):
    data = spark.range(3).selectExpr("id AS __drey_reason", "'b' AS __drey_source", "'c' AS __drey_corrupt")
    report = export_data(data, str(tmp_path / "out"), checks=["__drey_reason > 0"])
    assert (report.row_count, [each.name for each in report.columns]) == (2, data.columns)
    (row,) = rejected(tmp_path)
    assert (row["__drey_reason"], row["reason"]) == (0, "check failed: __drey_reason > 0")


def test_times_that_were_set_aside_keep_all_of_their_digits(spark, tmp_path):
    data = spark.sql("SELECT timestamp'2024-01-01 00:00:00.123456Z' AS at, timestamp_ntz'2024-01-01 00:00:00.5' AS n")
    export_data(data, str(tmp_path / "out"), checks=["at > n"])
    (row,) = rejected(tmp_path)
    assert (row["at"], row["n"]) == ("2024-01-01T00:00:00.123456Z", "2024-01-01T00:00:00.500000")


def test_keys_are_unique_beside_those_that_are_there(spark, tmp_path):
    target, checks = str(tmp_path / "out"), Checks(unique=[["v"], ["v", "n"]])
    export_data(rows(spark, (1, "a"), (2, "b")), target, checks=checks, since="n")
    report = export_data(rows(spark, (3, "a"), (4, "c"), (5, None)), target, checks=checks, since="n")
    assert (report.row_count, report.bad_rows) == (2, {"not unique: v": 1})
    assert [(row["n"], row["v"]) for row in rejected(tmp_path)] == [(3, "a")]
