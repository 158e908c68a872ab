"""Every type of Spark is exported and read back as the same values, or refused before anything is written."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql import types

from engine import Environment
from engine.connectors.records_manifest import read_manifest
from engine.errors import SchemaError
from engine.spark import export_command
from engine.spark.data_source import register
from engine.spark.export import export_data

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]

UTC = dt.UTC
_EARLY = dt.datetime(1500, 2, 28, 1, 2, 3, 4)
_LATE = dt.datetime(2262, 4, 12, 23, 59, 59, 999999)

#: SQL of two values, the type that is read, and the values that are; a third row is null everywhere
TYPES = {
    "boolean": (["true", "false"], pa.bool_(), [True, False]),
    "byte": (["-128Y", "127Y"], pa.int8(), [-128, 127]),
    "short": (["-32768S", "32767S"], pa.int16(), [-32768, 32767]),
    "int": (["-2147483648", "2147483647"], pa.int32(), [-(2**31), 2**31 - 1]),
    "long": (["-9223372036854775808L", "9223372036854775807L"], pa.int64(), [-(2**63), 2**63 - 1]),
    "float": (["1.5F", "CAST('-Infinity' AS FLOAT)"], pa.float32(), [1.5, float("-inf")]),
    "double": (["-0.25D", "1e300D"], pa.float64(), [-0.25, 1e300]),
    "decimal_9": (
        ["CAST(-1.5 AS DECIMAL(9, 2))", "CAST(9999999.99 AS DECIMAL(9, 2))"],
        pa.decimal128(9, 2),
        [Decimal("-1.50"), Decimal("9999999.99")],
    ),
    "decimal_18": (
        ["CAST(-1 AS DECIMAL(18, 6))", "CAST(123456789012.345678 AS DECIMAL(18, 6))"],
        pa.decimal128(18, 6),
        [Decimal("-1.000000"), Decimal("123456789012.345678")],
    ),
    "decimal_38": (
        ["CAST('-9999999999999999999999999999.9999999999' AS DECIMAL(38, 10))", "CAST(0.5 AS DECIMAL(38, 10))"],
        pa.decimal128(38, 10),
        [Decimal("-9999999999999999999999999999.9999999999"), Decimal("0.5000000000")],
    ),
    "string": (["'  blanks stay  '", "'żółć 漢字'"], pa.string(), ["  blanks stay  ", "żółć 漢字"]),
    "collated": (["'A' COLLATE UTF8_LCASE", "'b' COLLATE UTF8_LCASE"], pa.string(), ["A", "b"]),
    "binary": (["X'00FF'", "X''"], pa.binary(), [b"\x00\xff", b""]),
    "date": (["DATE'0001-01-01'", "DATE'9999-12-31'"], pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    "timestamp": (
        ["TIMESTAMP'1500-02-28 01:02:03.000004+00:00'", "TIMESTAMP'2262-04-12 23:59:59.999999+00:00'"],
        pa.timestamp("us", "UTC"),
        [_EARLY.replace(tzinfo=UTC), _LATE.replace(tzinfo=UTC)],
    ),
    "timestamp_ntz": (
        ["TIMESTAMP_NTZ'1500-02-28 01:02:03.000004'", "TIMESTAMP_NTZ'2262-04-12 23:59:59.999999'"],
        pa.timestamp("us"),
        [_EARLY, _LATE],
    ),
    "array": (
        ["array(1, NULL)", "CAST(array() AS ARRAY<INT>)"],
        pa.list_(pa.int32()),
        [[1, None], []],
    ),
    "map": (
        ["map('a', TIMESTAMP'2020-01-01 00:00:00+00:00')", "CAST(map() AS MAP<STRING, TIMESTAMP>)"],
        pa.map_(pa.string(), pa.timestamp("us", "UTC")),
        [[("a", dt.datetime(2020, 1, 1, tzinfo=UTC))], []],
    ),
    "struct": (
        ["named_struct('d', DATE'2020-01-01', 'n', 1.5BD)", "named_struct('d', DATE'2021-01-01', 'n', 2.5BD)"],
        pa.struct([("d", pa.date32()), ("n", pa.decimal128(2, 1))]),
        [{"d": dt.date(2020, 1, 1), "n": Decimal("1.5")}, {"d": dt.date(2021, 1, 1), "n": Decimal("2.5")}],
    ),
    "nested": (
        ["array(named_struct('m', map(1L, array('x', NULL))))", "array(named_struct('m', map(2L, array('y'))))"],
        pa.list_(pa.struct([("m", pa.map_(pa.int64(), pa.list_(pa.string())))])),
        [[{"m": [(1, ["x", None])]}], [{"m": [(2, ["y"])]}]],
    ),
}

REFUSED = {
    "CAST(NULL AS VOID)": "void",
    "INTERVAL '1-2' YEAR TO MONTH": "interval year to month",
    "INTERVAL '1 02:03:04.5' DAY TO SECOND": "interval day to second",
    "make_interval(1, 2, 3, 4)": "interval",
    "parse_json('{}')": "variant",
    "array(parse_json('{}'))": "variant in array",
    "map(1, named_struct('i', INTERVAL '1' MONTH))": "interval month in map",
}

#: settings of a session that change how Spark itself writes Parquet, or what it makes of values
SETTINGS = {
    "plain": {},
    "legacy": {
        "spark.sql.parquet.outputTimestampType": "INT96",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.writeLegacyFormat": "true",
        "spark.sql.session.timeZone": "America/New_York",
        "spark.sql.ansi.enabled": "false",
    },
    "odd": {
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS",
        "spark.sql.session.timeZone": "Asia/Kathmandu",
        "spark.sql.parquet.compression.codec": "gzip",
        "spark.sql.files.maxRecordsPerFile": "1",
    },
}


@pytest.fixture
def rows(spark):
    """A DataFrame of all types."""

    def select(position):
        return ", ".join(f"{values[position]} AS `{name}`" for name, (values, _, _) in TYPES.items())

    nulls = ", ".join("NULL" for _ in TYPES)
    return spark.sql(f"SELECT 0 AS id, {select(0)} UNION ALL SELECT 1, {select(1)} UNION ALL SELECT 2, {nulls}")


@pytest.fixture
def settings(spark, request):
    before = {key: spark.conf.get(key, None) for key in request.param}
    for key, value in request.param.items():
        spark.conf.set(key, value)
    yield request.param
    for key, value in before.items():
        spark.conf.unset(key) if value is None else spark.conf.set(key, value)


def check(folder, names=tuple(TYPES)):
    table = Environment().read_records(folder).sort("id").to_arrow()
    assert table.column("id").to_pylist() == [0, 1, 2]
    for name in names:
        _, expected_type, values = TYPES[name]
        assert (name, plain(table.schema.field(name).type)) == (name, plain(expected_type))
        assert (name, table.column(name).to_pylist()) == (name, [*values, None])


def plain(data_type):
    """The text of a type, without what may be null inside of it and how elements of lists are called."""
    return str(data_type).replace(" not null", "").replace("<element: ", "<item: ")


@pytest.mark.thorough
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS, indirect=True)
def test_a_data_frame_of_every_type_is_exported_and_read_back_whatever_the_session_is_set_to(
    spark, rows, settings, tmp_path
):
    report = export_data(rows, str(tmp_path / "out"))
    assert (report.row_count, report.bad_row_count) == (3, 0)
    check(tmp_path / "out")
    assert {key: spark.conf.get(key) for key in settings} == settings


def test_the_script_exports_every_type_too(spark, rows, tmp_path):
    rows.drop("collated").coalesce(1).write.parquet(str(tmp_path / "in"))
    words = ["--input", tmp_path / "in", "--format", "parquet", "--output", tmp_path / "out", "--check", "id >= 0"]
    assert export_command.main([*map(str, words), "--quiet"]) == 0
    check(tmp_path / "out", [name for name in TYPES if name != "collated"])


def test_the_script_reads_timestamps_from_csv(spark, tmp_path):
    (tmp_path / "in.csv").write_text("1,2020-01-01T00:00:00Z\n2,2021-06-01T12:00:00.5+02:00\n")
    words = ["--input", tmp_path / "in.csv", "--format", "csv", "--schema", "id INT, t TIMESTAMP", "--output"]
    assert export_command.main([*map(str, words), str(tmp_path / "out"), "--quiet"]) == 0
    table = Environment().read_records(tmp_path / "out").sort("id").to_arrow()
    assert table.column("t").to_pylist() == [
        dt.datetime(2020, 1, 1, tzinfo=UTC),
        dt.datetime(2021, 6, 1, 10, 0, 0, 500000, tzinfo=UTC),
    ]


@pytest.mark.parametrize(("expression", "named"), REFUSED.items(), ids=REFUSED.values())
def test_a_type_that_cannot_be_held_is_refused_before_anything_is_written(spark, expression, named, tmp_path):
    data = spark.sql(f"SELECT 1 AS id, {expression} AS odd")
    with pytest.raises(SchemaError, match=f"'odd' has the type {named}"):
        export_data(data, str(tmp_path / "out"))
    assert list(tmp_path.iterdir()) == []


def test_values_that_python_has_no_dates_for_are_exported_too(spark, tmp_path):
    data = spark.sql("SELECT DATE'+15000-01-01' AS d, timestamp_micros(8000000000000000000) AS t")
    export_data(data, str(tmp_path / "out"))
    assert Environment().read_records(tmp_path / "out").count() == 1


def test_a_data_frame_without_rows_keeps_its_types(spark, rows, tmp_path):
    export_data(rows.where("id > 5"), str(tmp_path / "out"))
    table = Environment().read_records(tmp_path / "out").to_arrow()
    assert table.num_rows == 0
    assert [plain(table.schema.field(name).type) for name in TYPES] == [plain(one[1]) for one in TYPES.values()]


def test_blanks_of_a_data_frame_stay_unless_trim_is_asked_for(spark, tmp_path):
    data = spark.createDataFrame([("  a ",)], "s STRING")
    export_data(data, str(tmp_path / "as it is"))
    export_data(data, str(tmp_path / "trimmed"), trim=True)
    env = Environment()
    assert env.read_records(tmp_path / "as it is").to_arrow().column("s").to_pylist() == ["  a "]
    assert env.read_records(tmp_path / "trimmed").to_arrow().column("s").to_pylist() == ["a"]


def test_a_check_that_spark_does_not_understand_is_one_clear_line(spark, tmp_path, capsys):
    (tmp_path / "in.csv").write_text("1\n")
    words = ["--input", tmp_path / "in.csv", "--format", "csv", "--schema", "id INT", "--output", tmp_path / "out"]
    assert export_command.main([*map(str, words), "--check", "nowhere > 0"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("PlanError: check 'nowhere > 0': no column 'nowhere'. There are: id\n")
    assert "[" not in said and "__drey" not in said
    assert "nowhere" in said
    assert len(said.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_the_data_frame_is_computed_once(spark, tmp_path):
    computed = spark.sparkContext.accumulator(0)

    def count(rows):
        for row in rows:
            computed.add(1)
            yield row

    data = spark.createDataFrame(spark.sparkContext.range(100).mapPartitions(count).map(lambda n: (n,)), "n BIGINT")
    export_data(data, str(tmp_path / "out"))
    assert computed.value == 100


def test_rows_whose_parts_may_be_null_are_added_to_others(spark, tmp_path):
    target = str(tmp_path / "out")
    whole = spark.sql("SELECT 1 AS n, array(named_struct('x', 1, 'y', map('k', 2))) AS a")
    some = spark.sql("SELECT 2 AS n, array(named_struct('x', null + 1, 'y', map('k', null + 1)), null) AS a")
    export_data(whole, target, since="n")
    export_data(whole.union(some), target, since="n")
    with Environment() as env:
        found = env.read_records(target).sort("n").to_arrow()["a"].to_pylist()
    assert found == [[{"x": 1, "y": [("k", 2)]}], [{"x": None, "y": [("k", None)]}, None]]
    register(spark)
    some.write.format("drey").mode("append").save(target)
    assert read_manifest(tmp_path / "out").row_count == 3


def test_rows_with_nulls_in_lists_and_maps_are_added_to_rows_without(spark, tmp_path):
    # Spark leaves such a cast out
    target = str(tmp_path / "out")
    export_data(spark.range(3).selectExpr("id", "array(id) AS a", "map('k', id) AS m"), target)
    register(spark)
    more = spark.sql("SELECT 3L AS id, array(1L, null) AS a, map('k', CAST(null AS BIGINT)) AS m")
    more.write.format("drey").mode("append").save(target)
    export_data(more.selectExpr("id + 1 AS id", "a", "m"), target, since="id")
    with Environment() as env:
        rows = env.read_records(target).sort("id").to_arrow().to_pylist()
    assert [(row["a"], row["m"]) for row in rows] == [
        *(([n], [("k", n)]) for n in range(3)),
        *[([1, None], [("k", None)])] * 2,
    ]
    assert spark.conf.get("spark.sql.optimizer.excludedRules", None) is None


@pytest.mark.skipif(not hasattr(types, "TimeType"), reason="from Spark 4.1")
def test_times_of_day_are_exported(spark, tmp_path):
    export_data(spark.sql("SELECT TIME'12:34:56.123456' AS t, 1 AS n"), str(tmp_path / "out"))
    export_data(spark.sql("SELECT TIME'00:00:00' AS t, 2 AS n"), str(tmp_path / "out"), since="n")
    with Environment() as env:
        table = env.read_records(tmp_path / "out").sort("n").to_arrow()
    assert table.schema.field("t").type == pa.time64("us")
    assert table.column("t").to_pylist() == [dt.time(12, 34, 56, 123456), dt.time()]


def test_two_fields_of_one_name_are_refused_by_the_column(spark, tmp_path):
    data = spark.sql("SELECT array(named_struct('a', 1, 'b', named_struct('x', 1, 'x', 2))) AS s")
    with pytest.raises(SchemaError, match="column 's' has two fields 'x' in a struct; rename one"):
        export_data(data, str(tmp_path / "out"))
    assert list(tmp_path.iterdir()) == []
