"""Expressions are built by operators and methods, and nothing else is done to them."""

import datetime
import re

import pandas as pd
import pyarrow as pa
import pytest

from engine.column_expressions.data_types import to_data_type
from engine.column_expressions.expressions import avg, col, count, lit, max_, min_, sum_, when
from engine.errors import SchemaError
from engine.expressions.literals import literal_scalar
from engine.expressions.text import expression_text


def text(expression):
    return expression_text(expression.expression)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (lambda a, b: a + b * 2 - 1, "a + b * 2 - 1"),
        (lambda a, b: (a + b) / 2, "(a + b) / 2"),
        (lambda a, b: 1 - a // b % 3, "1 - a // b % 3"),
        (lambda a, b: 2 * a + 3 / b, "2 * a + 3 / b"),
        (lambda a, b: -a + +b, "-a + b"),
        (lambda a, b: (a < 1) & (b >= 2) | ~(a != b), "(a < 1) & (b >= 2) | ~(a != b)"),
        (lambda a, _: a == "x", "a == 'x'"),
        (lambda a, _: 5 > a, "a < 5"),  # noqa: SIM300
        (lambda a, _: a.is_null() | a.is_not_null(), "is_null(a) | is_not_null(a)"),
        (lambda a, _: a.is_in([1, None]), "is_in(a, [1, None])"),
        (lambda a, _: a.is_in(1, 2), "is_in(a, [1, 2])"),
        (lambda a, _: a.is_in("ab"), "is_in(a, ['ab'])"),
        (lambda a, b: a.between(b, 5), "between(a, b, 5)"),
        (lambda a, _: a.cast(pa.int8()), "cast(a as int8)"),
        (lambda a, _: a.cast("float64").str.length(), "length(cast(a as double))"),
        (lambda a, _: a.str.upper().str.slice(0, 3), "slice(upper(a), 0, 3)"),
        (lambda a, b: a.str.concat("-", b, separator="/"), "concat(a, '-', b, '/')"),
        (lambda a, _: a.dt.truncate("month").dt.year(), "year(truncate(a, 'month'))"),
        (
            lambda a, b: when(a > 1).then(b).when(b > 1).then("x").otherwise(lit(None)),
            "when(a > 1).then(b).when(b > 1).then('x').otherwise(None)",
        ),
        (lambda a, b: when(a > 1).then(b), "when(a > 1).then(b)"),
    ],
)
def test_what_is_written_is_what_is_built(expression, expected):
    assert text(expression(col("a"), col("b"))) == expected


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        (col("a"), "a"),
        (col("a") + 1, "a + 1"),
        ((col("a") + 1).alias("b"), "b"),
        (col("a").cast(int), "a"),
        (lit(5), "5"),
        (col("a").str.upper(), "upper(a)"),
    ],
)
def test_every_expression_has_a_column_name(expression, name):
    assert expression.output_name == name


@pytest.mark.parametrize(
    "use",
    [
        lambda a: a > 1 and a < 2,
        lambda a: not a,
        lambda a: 1 < a < 2,
        lambda a: "x" if a else "y",
        lambda a: a in [1, 2],
    ],
)
def test_python_logic_over_expressions_is_refused_with_the_way_out(use):
    with pytest.raises(SchemaError, match="use & for and"):
        use(col("a"))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: col(""),
        lambda: col(1),
        lambda: col("a").alias(""),
        lambda: col("a").cast("no_such_type"),
        lambda: col("a").cast(3),
        lambda: col("a").dt.truncate("decade"),
        lambda: col("a").str.slice("x"),
        lambda: lit(object()),
        lambda: when("a").then(1),
        lambda: sum_(max_("a")),
        lambda: bool(count()),
    ],
)
def test_nonsense_is_refused_where_it_is_written(wrong):
    with pytest.raises(SchemaError):
        wrong()


def test_aggregates_take_names_and_expressions():
    calls = [sum_("a"), min_(col("a") + 1), avg(col("a")), count(), count("a")]
    texts = [expression_text(call.expression) for call in calls]
    assert texts == ["sum(a)", "min(a + 1)", "avg(a)", "count()", "count(a)"]


def test_expressions_can_be_keys_of_a_dict_and_are_shown():
    a = col("a")
    assert {a: 1}[a] == 1
    assert repr((a + 1).alias("b")) == "<Expr a + 1.alias('b')>"


@pytest.mark.parametrize(
    ("value", "scalar"),
    [
        (pd.Timestamp(1), pa.scalar(1, pa.timestamp("ns"))),
        (pd.Timestamp(1001, tz="Asia/Tokyo"), pa.scalar(1001, pa.timestamp("ns", "Asia/Tokyo"))),
        (pd.Timedelta(1), pa.scalar(1, pa.duration("ns"))),
        (pd.Timestamp(1000), pa.scalar(1, pa.timestamp("us"))),
        (pd.Timedelta(1000), pa.scalar(1, pa.duration("us"))),
    ],
    ids=str,
)
def test_constants_of_pandas_keep_their_nanoseconds(value, scalar):
    assert literal_scalar(lit(value).expression).equals(scalar)
    assert literal_scalar(lit(value).expression).type == scalar.type


@pytest.mark.parametrize(
    ("written", "data_type"),
    [
        ("date", pa.date32()),
        ("Timestamp", pa.timestamp("us")),
        ("datetime", pa.timestamp("us")),
        ("time", pa.time64("us")),
        ("decimal(10,2)", pa.decimal128(10, 2)),
        ("Decimal128( 38 , 0 )", pa.decimal128(38, 0)),
        ("decimal(5)", pa.decimal128(5, 0)),
        (datetime.date, pa.date32()),
        (datetime.datetime, pa.timestamp("us")),
        (datetime.timedelta, pa.duration("us")),
        (bytes, pa.binary()),
    ],
)
def test_types_have_names_that_pyarrow_has_not(written, data_type):
    assert to_data_type(written) == data_type


@pytest.mark.parametrize(
    ("written", "advice"),
    [
        ("int", "use 'int64' or 'int32'"),
        ("BIGINT", "use 'int64'"),
        ("decimal", "use 'decimal(18, 2)'"),
        ("decimal(39, 2)", "a decimal has 1 to 38 digits"),
        ("decimal(3,4)", "a decimal has 1 to 38 digits"),
        ("foo", "use a pyarrow type such as pa.int64"),
    ],
)
def test_a_name_that_means_several_types_says_which_to_write(written, advice):
    with pytest.raises(SchemaError, match=re.escape(advice)):
        to_data_type(written)
