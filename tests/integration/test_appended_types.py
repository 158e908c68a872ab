"""Rows that are added to files of other types, columns or another format: an error before anything is added."""

import datetime
import re
import warnings
from decimal import Decimal

import pyarrow as pa
import pytest

from engine import col, lit
from engine.cli.sql_session import SqlSession
from engine.errors import ConfigurationError, DreyWarning, JobExecutionError, PlanError, SchemaError

READS = {
    "parquet": lambda env, path, **options: env.read_parquet(path, **options),
    "ipc": lambda env, path, **options: env.read_ipc(path, **options),
    "orc": lambda env, path, **options: env.read_orc(path, **options),
    "csv": lambda env, path, **_: env.read_csv(path, header=True),
    "json": lambda env, path, **_: env.read_json(path),
}
DAY, MOMENT = datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1)
NUMBERS = {"int64": pa.array([1, 2]), "double": pa.array([1.5, 2.5]), "int32": pa.array([1, 2], pa.int32())}
OTHERS = {
    "string": pa.array(["a", "b"]),
    "bool": pa.array([True, False]),
    "date32[day]": pa.array([DAY, DAY]),
    "timestamp[us]": pa.array([MOMENT, MOMENT], pa.timestamp("us")),
}


@pytest.fixture
def write(environment, tmp_path):
    """Return a function (format, columns, mode) that writes the folder out."""

    def write_it(kind, columns, mode="error", **options):
        rows = columns if isinstance(columns, pa.Table) else pa.table(columns)
        header = {"header": True} if kind == "csv" else {}
        getattr(environment.from_arrow(rows), f"write_{kind}")(tmp_path / "out", mode=mode, **header, **options)
        environment.execute()

    return write_it


def files(folder):
    return sorted(path.relative_to(folder) for path in folder.rglob("*"))


@pytest.mark.parametrize("kind", READS)
@pytest.mark.parametrize("mode", ["append", "overwrite_partitions"])
@pytest.mark.parametrize(
    ("there", "added"),
    [("int64", "string"), ("int64", "bool"), ("int64", "date32[day]"), ("date32[day]", "int64"), ("bool", "int64")],
)
def test_rows_of_another_type_are_refused_and_nothing_is_added(environment, write, tmp_path, kind, mode, there, added):
    values = {**NUMBERS, **OTHERS}
    keys = {"partition_by": "k"} if mode == "overwrite_partitions" else {}
    k = pa.array([1, 1])
    write(kind, {"v": values[there], "w": values["string"], "k": k}, **keys)
    before = files(tmp_path / "out")
    # In CSV nothing but its texts says what a column of strings is: that is seen when they are written.
    is_late = kind == "csv" and added == "string"
    expected = f"has 'v' as {there}, these rows as {added}: cast it"
    if is_late:
        expected = "column 'v': 'a' is not int64, as which what is there is read"
    with pytest.raises(JobExecutionError if is_late else SchemaError, match=re.escape(expected)) as caught:
        write(kind, {"v": values[added], "w": values["string"], "k": k}, mode=mode, **keys)
    if not is_late:
        assert str(caught.value).startswith(f"write_{kind}({str(tmp_path / 'out')!r}): mode={mode!r}: what is there")
    assert files(tmp_path / "out") == before
    assert READS[kind](environment, tmp_path / "out").count() == 2


@pytest.mark.parametrize("kind", READS)
@pytest.mark.parametrize(("there", "added"), [("int64", "int64"), ("int64", "int32"), ("int64", "double")])
def test_rows_that_readers_take_beside_are_added(environment, write, tmp_path, kind, there, added):
    write(kind, {"v": NUMBERS[there]})
    alike = there == added or kind in ("csv", "json") or (kind == "parquet" and added == "int32")
    if not alike:
        with pytest.raises(SchemaError, match=r"cast it, .*; schema_mode='union' adds it as it is, for who reads with"):
            write(kind, {"v": NUMBERS[added]}, mode="append")
    write(kind, {"v": NUMBERS[added]}, mode="append", schema_mode="strict" if alike else "union")
    found = READS[kind](environment, tmp_path / "out", **({} if alike else {"schema_mode": "union"}))
    assert sorted(found.to_arrow()["v"].to_pylist()) == sorted(NUMBERS[there].to_pylist() + NUMBERS[added].to_pylist())


@pytest.mark.parametrize("kind", READS)
@pytest.mark.parametrize("other", READS)
def test_files_of_two_formats_are_not_put_together(environment, write, tmp_path, kind, other):
    write(kind, {"v": [1]})
    if kind == other:
        write(other, {"v": [2]}, mode="append")
        assert READS[kind](environment, tmp_path / "out").count() == 2
        return
    with pytest.raises(ConfigurationError, match=rf"there is \S+, and files of {kind} and of {other} are not read"):
        write(other, {"v": [2]}, mode="append")
    assert READS[kind](environment, tmp_path / "out").count() == 1


def test_texts_of_csv_may_look_like_numbers_and_are_added_as_long_as_they_do(environment, write, tmp_path):
    write("csv", {"zip": ["12345", "23456"], "day": ["2024-01-01", None]})
    assert environment.read_csv(tmp_path / "out", header=True).schema.types == [pa.int64(), pa.date32()]
    write("csv", {"zip": ["34567", None], "day": ["2024-01-02", "2024-01-03"]}, mode="append")
    for rows, said in (
        ({"zip": ["14a"], "day": ["2024-01-01"]}, "column 'zip': '14a' is not int64"),
        ({"zip": ["14"], "day": ["soon"]}, r"column 'day': 'soon' is not date32\[day\]"),
    ):
        with pytest.raises(JobExecutionError, match=f"{said}, as which what is there is read; .*schema_mode='union'"):
            write("csv", rows, mode="append")
    assert environment.read_csv(tmp_path / "out", header=True).count() == 4
    write("csv", {"zip": ["14a"], "day": ["soon"]}, mode="append", schema_mode="union")
    found = environment.read_csv(tmp_path / "out", header=True)
    assert found.schema.types == [pa.string(), pa.string()]
    assert found.count() == 5


def test_texts_of_json_are_texts_and_days_only_beside_days(environment, write, tmp_path):
    write("json", {"v": ["a"], "day": ["2024-01-01"], "d": pa.array([Decimal("1.50")])})
    for rows in (
        {"v": [1], "day": ["2024-01-01"], "d": pa.array([Decimal(1)])},
        {"v": ["1"], "day": ["2024-01-01"], "d": pa.array([1.5])},
    ):
        with pytest.raises(SchemaError, match=r"these rows as (int64|double): cast it"):
            write("json", rows, mode="append")
    with pytest.raises(JobExecutionError, match=r"column 'day': 'soon' is not date32"):
        write("json", {"v": ["b"], "day": ["soon"], "d": pa.array([Decimal(1)])}, mode="append")
    write("json", {"v": ["5"], "day": pa.array([DAY]), "d": pa.array([Decimal(1)])}, mode="append")
    assert environment.read_json(tmp_path / "out").schema.types == [pa.string(), pa.date32(), pa.string()]


@pytest.mark.parametrize("kind", READS)
def test_any_type_is_added_behind_a_part_without_values(environment, write, tmp_path, kind):
    nulls = pa.table({"v": pa.array([None, None], pa.int64()), "w": [1, 2]})
    write(kind, nulls)
    write(kind, {"v": [3], "w": [4]}, mode="append")
    found = READS[kind](environment, tmp_path / "out")
    assert found.schema.field("v").type == pa.int64()
    assert sorted(found.to_arrow()["w"].to_pylist()) == [1, 2, 4]
    if kind == "json":
        with pytest.raises(SchemaError, match="has 'v' as int64, these rows as string"):
            write(kind, {"v": ["x"], "w": [5]}, mode="append")


def test_what_is_nested_is_held_against_what_is_there(environment, write, tmp_path):
    nested = pa.table({"v": [[{"x": 1}]]})
    for kind in ("json", "parquet", "ipc"):
        write(kind, nested, mode="overwrite")
        for other in ([{"x": "y"}], {"x": 1}, "text"):
            with pytest.raises(SchemaError, match=r"has 'v' as list<.*these rows as"):
                write(
                    kind,
                    pa.table({"v": [other if kind != "json" or other != [{"x": "y"}] else [{"x": "y"}]]}),
                    mode="append",
                )
        write(kind, nested, mode="append")
        assert READS[kind](environment, tmp_path / "out").count() == 2


@pytest.mark.parametrize("kind", ["parquet", "ipc", "orc"])
def test_other_columns_are_told_unless_they_are_meant(environment, write, tmp_path, kind):
    write(kind, {"v": [1], "w": ["a"]})
    with pytest.warns(DreyWarning, match="has other columns: m, w; select those that are there, or pass schema_mode="):
        write(kind, {"v": [2], "m": [3]}, mode="append")
    with warnings.catch_warnings():
        warnings.simplefilter("error", DreyWarning)
        write(kind, {"v": [3], "m": [3]}, mode="append", schema_mode="union")
    assert READS[kind](environment, tmp_path / "out", schema_mode="union").count() == 3


def test_fields_of_csv_are_as_many_as_there_are(environment, tmp_path):
    data = environment.from_arrow(pa.table({"a": [1], "b": [2]}))
    data.write_csv(tmp_path / "out")
    environment.execute()
    with pytest.raises(SchemaError, match="has 2 columns, these rows have 1: a"):
        data.select("a").write_csv(tmp_path / "out", mode="append")
    with pytest.raises(SchemaError, match="has 'b' as int64, these rows as bool"):
        data.select("a", b=col("b") > 1).write_csv(tmp_path / "out", mode="append")
    data.select("b", "a").write_csv(tmp_path / "out", mode="append")
    data.write_csv(tmp_path / "named", header=True)
    environment.execute()
    data.select("b", "a").write_csv(tmp_path / "named", header=True, mode="append")
    environment.execute()
    assert environment.read_csv(tmp_path / "named", header=True).select("a", "b").collect() == [(1, 2), (1, 2)]


def test_files_that_come_between_the_call_and_the_job_count(environment, write, tmp_path):
    environment.from_arrow(pa.table({"v": ["a"]})).write_parquet(tmp_path / "out", mode="append")
    waiting, environment._sinks[:] = list(environment._sinks), []
    write("parquet", {"v": [1]})
    environment._sinks[:] = waiting
    with pytest.raises(SchemaError, match="has 'v' as int64, these rows as string"):
        environment.execute()
    assert environment.read_parquet(tmp_path / "out").count() == 1


@pytest.mark.parametrize("kind", READS)
def test_sql_says_the_same(environment, write, tmp_path, kind):
    write(kind, {"v": [1], "w": ["a"]})
    session, out = SqlSession(environment, "csv"), tmp_path / "out"
    with pytest.raises((SchemaError, JobExecutionError), match="'v'"):
        session.run(f"COPY (SELECT 'x' AS v, 'y' AS w) TO '{out}' (FORMAT {kind}, MODE append)")
    with pytest.raises((SchemaError, PlanError, JobExecutionError), match="x"):
        session.run(f"INSERT INTO '{out}' SELECT 'x', 'y'")
    assert READS[kind](environment, out).count() == 1
    session.run(f"INSERT INTO '{out}' SELECT 2, 'y'")
    assert sorted(READS[kind](environment, out).to_arrow()["v"].to_pylist()) == [1, 2]


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize(("first", "second"), [(",", "."), (".", ",")])
def test_fractions_with_another_decimal_mark_are_not_added(environment, tmp_path, header, first, second):
    rows = environment.from_arrow(pa.table({"n": [1, 2], "x": [1.5, None], "t": ["1,5", "1.5"]}))
    rows.write_csv(tmp_path / "out", header=header, delimiter=";", decimal=first)
    environment.execute()
    before = files(tmp_path)
    with pytest.raises(ConfigurationError, match=rf"has '{first}' before fractions of 'x'; pass decimal='{first}'"):
        rows.write_csv(tmp_path / "out", header=header, delimiter=";", decimal=second, mode="append")
    assert files(tmp_path) == before
    rows.write_csv(tmp_path / "out", header=header, delimiter=";", decimal=first, mode="append")
    environment.execute()
    assert len(files(tmp_path)) == len(before) + 1


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize(("first", "second"), [("", "-"), ("NULL", ""), ("NULL", "-")])
def test_another_text_for_nulls_is_not_added(environment, tmp_path, header, first, second):
    rows = environment.from_arrow(pa.table({"t": ["a\nb", "-"], "x": [1.5, None], "d": [DAY, None]}))
    rows.write_csv(tmp_path / "out", header=header, null_text=first)
    environment.execute()
    before = files(tmp_path)
    with pytest.raises(ConfigurationError, match=f"has {first!r} for nulls of 'x'; pass null_text={first!r}"):
        rows.write_csv(tmp_path / "out", header=header, null_text=second, mode="append")
    with pytest.raises(ConfigurationError, match=f"has {first!r} for nulls of 'd'; pass null_text={first!r}"):
        rows.drop("x").with_columns(x=lit("n")).select("t", "x", "d").write_csv(
            tmp_path / "out", header=header, null_text=second, mode="append"
        )
    rows.write_csv(tmp_path / "out", header=header, null_text=first, mode="append")
    environment.execute()
    assert len(files(tmp_path)) == len(before) + 1


def test_a_file_without_nulls_takes_any_text_for_them(environment, tmp_path):
    whole = environment.from_arrow(pa.table({"x": [1.5, float("nan"), float("-inf")], "t": ["-", "", "NULL"]}))
    whole.write_csv(tmp_path / "out")
    environment.execute()
    before = files(tmp_path)
    whole.write_csv(tmp_path / "out", null_text="NULL", mode="append")
    environment.execute()
    assert len(files(tmp_path)) == len(before) + 1
