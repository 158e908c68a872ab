"""Checks of the batch export, its report, what is new since the last one, and handing over to a job."""

import json
from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import Environment, PlanError, SchemaError
from engine.connectors.records_manifest import read_manifest
from engine.spark import export_command
from engine.spark.export import export_data
from engine.spark.export_checks import Checks
from engine.spark.export_report import ExportedColumn, ExportReport

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]

ORDERS = pa.table(
    {
        "id": pa.array([1, 2, 3, 3, 5, 6, None], pa.int64()),
        "customer": pa.array([10, 11, 99, 10, None, 11, 10], pa.int64()),
        "kind": ["a", "b", "a", "a", "b", "z", "a"],
        "day": pa.array([date(2024, 1, day) for day in (1, 2, 3, 3, 5, 6, 7)], pa.date32()),
    }
)
CHECKS = Checks(("kind IN ('a', 'b')",), ("id",), (("id",),))


@pytest.fixture
def orders(spark):
    return spark.createDataFrame(ORDERS)


def ids(folder):
    with Environment() as env:
        return sorted(row.id for row in env.read_records(folder).collect())


def test_every_reason_is_counted_and_kept_with_its_rows(orders, tmp_path):
    report = export_data(orders, str(tmp_path / "out"), checks=CHECKS)
    assert ids(tmp_path / "out") == [1, 2, 5]
    assert report.bad_rows == {"no value: id": 1, "check failed: kind IN ('a', 'b')": 1, "not unique: id": 2}
    assert (report.rows_read, report.row_count, report.bad_row_count) == (7, 3, 4)
    lines = [
        json.loads(line)
        for path in (tmp_path / "out.rejected").glob("*.json")
        for line in path.read_text().splitlines()
    ]
    assert sorted(line["reason"] for line in lines) == sorted(
        ["no value: id", "check failed: kind IN ('a', 'b')", "not unique: id", "not unique: id"]
    )


def test_rows_that_are_set_aside_take_no_key_from_others(spark, tmp_path):
    (tmp_path / "in.csv").write_text("1,a,5\n1,b,x\n2,c,5\n2,c,-5\n3,d,5\n3,e,5\n4,e,5\n")
    words = ("--input", tmp_path / "in.csv", "--format", "csv", "--schema", "id INT, name STRING, n INT")
    checks = ("--check", "n > 0", "--unique", "id", "--unique", "name", "--report", tmp_path / "r.json")
    assert run(*words, *checks, "--output", tmp_path / "out") == 0
    assert ids(tmp_path / "out") == [1, 2, 4]  # of 4 the name is that of a row whose id occurs twice
    told = json.loads((tmp_path / "r.json").read_text())["bad_rows"]
    assert told == {"does not parse": 1, "check failed: n > 0": 1, "not unique: id": 2}


def test_reasons_that_begin_alike_are_counted_apart(orders, tmp_path):
    report = export_data(orders, str(tmp_path / "out"), checks=["id < 5", "id < 50"])
    assert report.bad_rows == {"check failed: id < 5": 3}


@pytest.mark.parametrize(("condition", "check"), [("1 = 0", "id > 0"), ("1 = 1", "1 = 0"), ("id > 90", "1 = 0")])
def test_rows_that_spark_knows_to_be_none_are_counted(spark, tmp_path, condition, check):
    data = spark.sql("SELECT 1 AS id UNION ALL SELECT 2").where(condition)
    report = export_data(data, str(tmp_path / "out"), checks=[check])
    assert (report.row_count, report.bad_row_count) == (0, 2 if condition == "1 = 1" else 0)
    assert (tmp_path / "out.rejected").exists() == (report.bad_row_count > 0)


def test_columns_are_told_apart_by_case_where_nothing_else_does(spark, tmp_path):
    data = spark.createDataFrame([(1, 2), (3, 4)], "a int, A int")
    report = export_data(data, str(tmp_path / "out"), checks=["A > 2", "a > 0"], partitions=["a"], sort_by=["A"])
    assert (report.row_count, report.bad_row_count) == (1, 1)
    with Environment() as env:
        assert env.read_records(tmp_path / "out").to_arrow().to_pydict() == {"a": [3], "A": [4]}
    assert spark.conf.get("spark.sql.caseSensitive") == "false"
    with pytest.raises(SchemaError, match="two columns 'x'; rename one"):
        export_data(data.toDF("x", "x"), str(tmp_path / "none"))


@pytest.mark.parametrize("kind", ["records", "parquet"])
def test_values_must_be_in_another_data_set(spark, orders, tmp_path, kind):
    customers = pa.table({"number": pa.array([10, 11, 11, None], pa.int64())})
    place = tmp_path / "customers"
    if kind == "records":
        export_data(spark.createDataFrame(customers), str(place))
    else:
        place.mkdir()
        pq.write_table(customers, place / "a.parquet")
    text = f"customer={place}:number"
    report = export_data(orders, str(tmp_path / "out"), checks=Checks(references=(text,)))
    assert report.bad_rows == {f"not in the other data set: {text}": 1}
    assert report.row_count == 6


@pytest.mark.parametrize(
    ("checks", "message"),
    [
        (Checks(not_null=("nope",)), "no column 'nope'. There are: id, customer, kind, day"),
        (Checks(unique=(("id", "nope"),)), "no column 'nope'"),
        (Checks(references=("customer",)), "expected COLUMN=PATH:COLUMN"),
        (Checks(references=("customer=/nowhere/x:id",)), "/nowhere/x does not exist"),
        (Checks(("nope > 1",)), "no column 'nope'"),
    ],
)
def test_a_check_that_cannot_be_made_says_why(orders, tmp_path, checks, message):
    with pytest.raises(PlanError, match=message):
        export_data(orders, str(tmp_path / "out"), checks=checks)
    assert list(tmp_path.iterdir()) == []


def test_only_what_is_new_is_added(spark, orders, tmp_path):
    target = str(tmp_path / "out")
    first = orders.where("day < DATE'2024-01-03'")
    assert export_data(first, target, since="day").row_count == 2
    report = export_data(orders, target, since="day")
    assert (report.row_count, report.since) == (5, "day > 2024-01-02")
    assert read_manifest(tmp_path / "out").row_count == 7
    again = export_data(orders, target, since="day")
    assert (again.row_count, again.file_count, again.size_bytes) == (0, 0, 0)
    assert read_manifest(tmp_path / "out").row_count == 7
    assert export_data(orders, target, since="day", overwrite=True).row_count == 7


def test_what_cannot_grow_is_refused(orders, tmp_path):
    with pytest.raises(PlanError, match="column 'kind' is string; whole numbers, decimals and times can grow"):
        export_data(orders, str(tmp_path / "out"), since="kind")
    with pytest.raises(PlanError, match="no column 'nope'"):
        export_data(orders, str(tmp_path / "out"), since="nope")
    export_data(orders.where("id < 3"), str(tmp_path / "out"), since="day")
    with pytest.raises(SchemaError, match="kind"):
        export_data(orders.drop("kind").where("id = 6"), str(tmp_path / "out"), since="id")
    # also on a day without new rows, and not only when there are some
    with pytest.raises(SchemaError, match="id"):
        export_data(
            orders.withColumn("id", orders.id.cast("double")).where("id < 3"), str(tmp_path / "out"), since="day"
        )


def run(*arguments):
    return export_command.main([*map(str, arguments)])


def test_queries_and_tables_are_inputs_too(spark, orders, tmp_path, capsys):
    orders.createOrReplaceTempView("orders")
    assert run("--sql", "SELECT id, kind FROM orders WHERE id > 3", "--output", tmp_path / "a") == 0
    assert ids(tmp_path / "a") == [5, 6]
    assert run("--table", "orders", "--not-null", "id", "--output", tmp_path / "b") == 0
    assert "1 bad row was set aside" in capsys.readouterr().out
    pq.write_table(ORDERS, tmp_path / "in.parquet")
    words = ("--input", tmp_path / "in.parquet", "--format", "parquet", "--sql", "SELECT id FROM input WHERE id = 1")
    assert run(*words, "--output", tmp_path / "c") == 0
    assert ids(tmp_path / "c") == [1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--table", "nowhere"), "PlanError: --table: The table or view `nowhere` cannot be found"),
        (("--sql", "selec 1"), "PlanError: --sql: Syntax error at or near 'selec'"),
        (("--sql", "SELECT 1/(id - id) AS x FROM range(2)"), "DataError: Spark: Division by zero"),
        (("--sql", "SELECT id FROM range(2)", "--check", "1 / (id - 1) > 0"), "DataError: Spark: Division by zero"),
        (("--input", "{0}/bad.parquet", "--format", "parquet"), "bad.parquet is not a Parquet file"),
        (("--input", "{0}/a.csv", "--format", "csv", "--schema", "id FOO"), "PlanError: --schema: Unsupported data"),
        (("--sql", "SELECT 1 AS x", "--partitions", "0"), "PlanError: partitions: (0,); a number from 1"),
        (("--sql", "SELECT 1 AS x", "--sort-by", "x,x"), "PlanError: --sort-by: column 'x' is listed twice"),
        (("--sql", "SELECT 1 AS x", "--output", "{0}/a.csv/x"), "PlanError: {0}/a.csv cannot be written to"),
    ],
)
def test_what_goes_wrong_is_told_in_few_lines_with_the_cause_first(spark, tmp_path, capsys, words, said):
    (tmp_path / "bad.parquet").write_bytes(b"PAR1, it says")
    (tmp_path / "a.csv").write_text("1\n")
    assert run("--output", tmp_path / "out", *(word.format(tmp_path) for word in words)) == 1
    told = capsys.readouterr().err
    assert said.format(tmp_path) in told
    assert len(told.splitlines()) < 8
    assert {path.name for path in tmp_path.iterdir()} == {"a.csv", "bad.parquet"}


def test_the_report_is_written_as_json_and_as_a_page(spark, orders, tmp_path, capsys):
    orders.createOrReplaceTempView("orders")
    words = (
        "--table",
        "orders",
        "--check",
        "kind <> 'z'",
        "--unique",
        "id",
        "--overwrite",
        "--output",
        tmp_path / "out",
    )
    assert run(*words, "--report", tmp_path / "r.json") == 0
    report = json.loads((tmp_path / "r.json").read_text())
    assert (report["rows_read"], report["row_count"]) == (7, 4)
    assert report["bad_rows"] == {"check failed: kind <> 'z'": 1, "not unique: id": 2}
    assert report["heavy_keys"] == []
    number = {"name": "id", "type": "int64", "nulls": 1, "distinct": 3, "min": "1", "max": "5"}
    assert report["columns"][0] == number
    assert [each["name"] for each in report["columns"]] == ["id", "customer", "kind", "day"]
    assert run(*words, "--report", tmp_path / "r.html") == 0
    page = (tmp_path / "r.html").read_text()
    assert "kind &lt;&gt; &#x27;z&#x27;" in page
    assert "Heaviest values" not in page
    assert "2024-01-07" in page
    many = tuple(("id", str(place), 0.05) for place in range(12))
    assert "and 2 more, which the manifest names." in ExportReport("out", 2, 0, 1, 10, None, heavy_keys=many).page()
    assert "50.0%" in ExportReport("out", 2, 0, 1, 10, None, heavy_keys=(("id", "7", 0.5),)).page()
    capsys.readouterr()
    assert run(*words, "--report", tmp_path / "r.txt") == 1
    assert ".json or .html" in capsys.readouterr().err


def test_a_page_tells_few_rows_from_none():
    page = ExportReport("out", 999_999, 1, 1, 10, "out.rejected", {"does not parse": 1}).page()
    assert ("&lt;0.1%" in page, "&gt;99.9%" in page, "0.0%" in page) == (True, True, False)
    page = ExportReport("out", 5, 0, 1, 10, None).page()
    assert ("0.0%" in page, "100.0%" in page) == (True, True)


def test_a_page_shows_markup_in_data_as_text():
    evil = "<script>alert(1)</script>"
    column = ExportedColumn(evil, evil, 0, 1, evil, evil)
    report = ExportReport(evil, 1, 1, 1, 1, evil, {evil: 1}, ((evil, evil, 0.5),), columns=(column,), since=evil)
    page = report.page()
    assert "<script" not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") == 11


def test_a_job_is_run_behind_the_export(spark, orders, tmp_path, capfd):
    orders.createOrReplaceTempView("orders")
    script = tmp_path / "job.py"
    script.write_text(
        "import sys\nfrom engine import Environment\n"
        "with Environment() as env:\n    print('rows', env.read_records(sys.argv[1]).count())\n"
    )
    words = ("--table", "orders", "--output", tmp_path / "out", "--submit", "-t", "local", script, tmp_path / "out")
    assert run(*words) == 0
    assert "rows 7" in capfd.readouterr().out
    with pytest.raises(SystemExit):
        run(*words[:2], "--output", tmp_path / "none", "--submit")
    assert "--submit needs a script" in capfd.readouterr().err
    with pytest.raises(SystemExit):
        run(*words[:2], "--output", tmp_path / "none", "--submit", "-t", "local", tmp_path / "nojob.py")
    assert "nojob.py" in capfd.readouterr().err
    assert not (tmp_path / "none").exists()
    script.write_text("raise SystemExit(7)\n")
    assert run(*words[:2], "--overwrite", *words[2:]) == 7
