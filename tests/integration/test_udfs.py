"""User-defined functions in expressions, and functions that are called with values of columns."""

import dataclasses
import datetime
import os
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from engine import JobExecutionError, SchemaError, col, row_number, sum_, udf
from engine.column_expressions.udfs import Udf

pytestmark = pytest.mark.usefixtures("one_zygote")

ROWS = 20_000


@pytest.fixture
def data(environment):
    table = pa.table(
        {
            "x": pa.array([None if n % 7 == 0 else n for n in range(ROWS)], pa.int64()),
            "t": [f"t{n % 5}" for n in range(ROWS)],
            "rest": pa.array([[n] for n in range(ROWS)], pa.list_(pa.int64())),
        }
    )
    return environment.from_arrow(table)


@udf(int)
def twice(value):
    return None if value is None else 2 * value


@udf
def joined(number: int | None, text: str) -> str:
    return f"{number}-{text}"


@udf(pa.int64(), kind="arrow")
def added(left, right):
    return pc.add(left, right)


@udf(pa.int64(), kind="pandas")
def length(texts):
    return texts.str.len()


@udf(pa.float64(), kind="numpy")
def half(numbers):
    return numbers / 2


@pytest.mark.quick
def test_a_function_makes_a_column_and_all_others_stay(data):
    found = data.with_columns(y=twice(col("x"))).to_arrow().sort_by([("y", "ascending")])
    assert found.column_names == ["x", "t", "rest", "y"]
    assert found.num_rows == ROWS
    for row in found.slice(0, 50).to_pylist():
        assert row["y"] == 2 * row["x"]
        assert row["rest"] == [row["x"]]
        assert row["t"] == f"t{row['x'] % 5}"
    assert found["y"].null_count == data.to_arrow()["x"].null_count


def test_several_functions_nested_and_computed_arguments_in_one_projection(data):
    found = data.select(
        "x",
        (twice(twice(col("x") + 1)) - 1).alias("a"),
        joined(col("x"), col("t").str.upper()).alias("b"),
        twice(col("x")).alias("c"),
        added(twice(col("x")), col("x")).alias("d"),
        length(joined(col("x"), "text")).alias("e"),
        half(col("x").fill_null(0)).alias("f"),
    )
    assert found.explain().count("column twice") == 3
    for row in found.collect():
        x = row.x
        text = f"{x}-text"
        assert row.a == (None if x is None else 4 * (x + 1) - 1)
        assert row.c == (None if x is None else 2 * x)
        assert row.d == (None if x is None else 3 * x)
        assert row.e == len(text)
        assert row.f == (x or 0) / 2


@pytest.mark.parametrize("mode", ["process", "thread"])
def test_filters_are_applied_with_functions_in_them(open_environment, mode):
    environment = open_environment(**{"python.execution-mode": mode})
    data = environment.from_arrow(pa.table({"x": range(100), "t": ["a"] * 100}))
    kept = data.filter((col("x") > 10) & (twice(col("x")) < 40))
    assert sorted(row.x for row in kept.collect()) == list(range(11, 20))
    assert kept.schema.names == ["x", "t"]
    by_values = data.filter(lambda x: x % 30 == 0, columns="x")
    assert sorted(by_values.collect()) == [(x, "a") for x in (0, 30, 60, 90)]


def test_parts_of_a_filter_that_do_not_need_the_function_go_before_it(environment):
    @udf(bool)
    def small(value):
        assert value < 10, "others are left out before"
        return True

    data = environment.from_arrow(pa.table({"x": range(100)}))
    assert data.filter((col("x") < 10) & small(col("x"))).count() == 10


def test_a_function_whose_result_nobody_uses_is_not_called(environment):
    @udf(int)
    def never(value):
        raise AssertionError("called")

    data = environment.from_arrow(pa.table({"x": range(10), "y": range(10)}))
    assert data.with_columns(z=never(col("x"))).select("y").count() == 10


def test_only_the_arguments_are_read_where_nothing_else_is_used(environment, tmp_path):
    wide = pa.table({f"c{n}": range(10) for n in range(20)})
    environment.from_arrow(wide).write_parquet(str(tmp_path / "wide"))
    environment.execute()
    data = environment.read_parquet(str(tmp_path / "wide"))
    for found in (
        data.select(twice(col("c3")).alias("y")),
        data.map(lambda c3: 2 * c3, pa.schema([("y", pa.int64())]), columns=["c3"]),
    ):
        assert "1 of 20 columns" in found.explain()
        assert sorted(found.to_arrow()["y"].to_pylist()) == list(range(0, 20, 2))


def test_functions_and_windows_and_aggregates_meet(environment):
    data = environment.from_arrow(pa.table({"k": [1, 1, 2], "x": [1, 2, 3]}))
    over = data.select("x", sum_(twice(col("x"))).over("k").alias("s"))
    assert sorted(over.collect()) == [(1, 6), (2, 6), (3, 6)]
    numbered = data.select(twice(row_number().over(order_by="x")).alias("n"))
    assert sorted(numbered.collect()) == [(2,), (4,), (6,)]
    doubled = data.with_columns(y=twice(col("x"))).group_by("k").agg(total=sum_("y"))
    assert sorted(doubled.collect()) == [(1, 6), (2, 6)]


def test_values_of_every_type_are_given_as_python_has_them(environment):
    @udf(str)
    def shown(*values):
        return repr(values)

    columns = {
        "a": pa.array([True, None]),
        "b": pa.array([1.5, None]),
        "c": pa.array([datetime.date(2020, 1, 2), None]),
        "d": pa.array([[1], None]),
        "e": pa.array([{"s": 1}, None]),
        "f": pa.array([b"x", None]),
    }
    found = environment.from_arrow(pa.table(columns)).select(shown(*map(col, columns)).alias("y")).collect()
    assert [row.y for row in found] == [
        repr((True, 1.5, datetime.date(2020, 1, 2), [1], {"s": 1}, b"x")),
        repr((None,) * 6),
    ]


def test_what_a_function_returns_is_the_value_also_where_it_looks_like_a_row(environment):
    @udf(pa.list_(pa.int64()))
    def pair(value):
        return [value]

    @udf(pa.struct([("p", pa.int64())]))
    def named(value):
        return {"p": value}

    found = environment.from_arrow(pa.table({"x": [5]})).select(pair(col("x")).alias("l"), named(col("x")).alias("s"))
    assert found.to_arrow().to_pylist() == [{"l": [5], "s": {"p": 5}}]


class Scaled:
    """A function with a state of its own."""

    def open(self, context):
        self.factor = 10
        self.calls = context.counter("calls")

    def __call__(self, value):
        self.calls.add()
        return value * self.factor


def test_an_object_is_opened_before_its_first_value(environment):
    scaled = udf(int)(Scaled())
    data = environment.from_arrow(pa.table({"x": range(100)}))
    assert sum(row.y for row in data.select(scaled(col("x")).alias("y")).collect()) == 49_500


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda value: 1 // (value - 3), r"(?s)ZeroDivisionError.*Row\(x=3\)"),
        (lambda value: "text", r"<lambda> returned 'text' \(str\) for its type int64"),
        (lambda value: os._exit(3), "exited with code 3"),
        (lambda value: (value,), r"returned \(0,\) \(tuple\)"),
    ],
)
def test_a_failing_function_is_told_with_its_values(environment, function, text):
    data = environment.from_arrow(pa.table({"x": range(10), "big": range(10)}))
    with pytest.raises(JobExecutionError, match=text):
        data.select("big", udf(pa.int64())(function)(col("x")).alias("y")).collect()


@pytest.mark.parametrize(
    ("kind", "function", "text"),
    [
        ("arrow", lambda column: column[:-1], "9 values for 10 rows"),
        ("arrow", lambda column: 5, r"returned int, expected a pyarrow\.Array"),
        ("numpy", lambda column: "text", r"returned str, expected a numpy\.ndarray"),
        ("pandas", lambda column: column.astype(str) + "x", "returned "),
        ("arrow", lambda column: 1 // 0, r"(?s)ZeroDivisionError.*rows 0 to 9"),
    ],
)
def test_a_function_of_columns_that_gives_another_is_told(open_environment, kind, function, text):
    data = open_environment(**{"parallelism.default": 1}).from_arrow(pa.table({"x": range(10)}))
    with pytest.raises(JobExecutionError, match=text):
        data.select(udf(pa.int64(), kind=kind)(function)(col("x")).alias("y")).collect()


def test_what_is_no_function_of_values_is_refused_at_once(data):
    plain = twice.function
    for wrong in (lambda: udf(5), lambda: udf(int)(7), lambda: udf(lambda x: x), lambda: udf(kind="arrow")(plain)):
        with pytest.raises(SchemaError):
            wrong()
    with pytest.raises(SchemaError, match="none of scalar, arrow, pandas, numpy"):
        udf(int, kind="frames")
    with pytest.raises(SchemaError, match="at least one value"):
        twice()
    with pytest.raises(SchemaError, match="'nothing'"):
        data.select(twice(col("nothing")))
    with pytest.raises(SchemaError, match="stands in select, with_columns and filter only"):
        data.group_by("t").agg(s=sum_(twice(col("x"))))
    assert isinstance(twice, Udf)
    assert twice.function(4) == 8


class Pair(NamedTuple):
    left: int
    right: str


@dataclasses.dataclass
class Point:
    x: int
    y: float | None


def test_functions_of_values_make_rows_and_hints_their_schema(environment):
    data = environment.from_arrow(pa.table({"a": [1, 2], "b": ["x y", "z"]}))

    def pair(b: str, a: int) -> Pair:
        return Pair(a, b)

    assert data.map(pair, columns=["b", "a"]).collect() == [(1, "x y"), (2, "z")]

    def point(a: int) -> Point:
        return Point(a, a / 2)

    found = data.map(point, columns="a")
    assert found.schema == pa.schema([("x", pa.int64()), ("y", pa.float64())])
    assert found.collect() == [(1, 0.5), (2, 1.0)]
    words = data.flat_map(str.split, pa.schema([("w", pa.string())]), columns="b")
    assert words.collect() == [("x",), ("y",), ("z",)]
    with pytest.warns(match="pass schema="):
        inferred = data.map(lambda a: {"n": a}, columns="a")
    assert inferred.collect() == [(1,), (2,)]
    for wrong in ("missing", []):
        with pytest.raises(SchemaError):
            data.map(pair, columns=wrong)


def test_an_error_of_a_function_of_values_names_the_whole_row(environment):
    data = environment.from_arrow(pa.table({"a": [1, 0], "b": ["x", "y"]}))
    with pytest.raises(JobExecutionError, match=r"Row\(a=0"):
        data.map(lambda a: (1 // a,), pa.schema([("n", pa.int64())]), columns="a").collect()
