"""Sequences agree with Python's range and with DuckDB's series, in both directions, over nulls and time zones."""

import datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import DataError, SchemaError, col, interval, sequence
from engine.expressions.infer import infer_type
from tests.expressions.function_oracle import by_duckdb, compute, values

X, Y, Z = col("x"), col("y"), col("z")
SMALL = st.none() | st.integers(-9, 9)


@given(rows=st.lists(st.tuples(SMALL, SMALL, st.none() | st.integers(-3, 3).filter(bool)), min_size=1, max_size=6))
def test_integers_are_those_of_range(rows):
    columns = {name: pa.array(one, pa.int64()) for name, one in zip("xyz", zip(*rows, strict=True), strict=True)}
    for closed in ("both", "left"):
        expected = [
            None
            if None in row
            else list(range(row[0], row[1] + (closed == "both") * (1 if row[2] > 0 else -1), row[2]))
            for row in rows
        ]
        assert values(sequence(X, Y, Z, closed), **columns) == expected


@pytest.mark.parametrize("step", ["1 day", "36 hours", "-1 day", "1 month", "-2 months"])
@pytest.mark.parametrize("closed", ["both", "left"])
def test_moments_are_those_of_duckdb(step, closed):
    begins = [datetime.datetime(2024, 1, day, 12) for day in (28, 5, 1)] + [None, datetime.datetime(2023, 12, 27)]
    ends = [datetime.datetime(2024, month, 28, 12) for month in (5, 2, 1)] + [datetime.datetime(2024, 1, 1), None]
    columns = {"x": pa.array([*begins, *ends], pa.timestamp("us")), "y": pa.array([*ends, *begins], pa.timestamp("us"))}
    name = "generate_series" if closed == "both" else "range"
    expected = by_duckdb(f"{name}(x, y, INTERVAL '{step}')", **columns)
    assert values(sequence(X, Y, step, closed), **columns) == expected


def test_dates_go_by_days_unless_said_otherwise():
    days = {"x": pa.array([datetime.date(2024, 2, 28)]), "y": pa.array([datetime.date(2024, 3, 1)])}
    found = compute(sequence(X, Y), **days)
    assert found.type == pa.list_(pa.date32())
    assert [day.day for day in found.to_pylist()[0]] == [28, 29, 1]
    assert values(sequence(Y, X, interval(days=-2)), **days) == [
        [datetime.date(2024, 3, 1), datetime.date(2024, 2, 28)]
    ]
    months = values(sequence(datetime.date(2024, 1, 31), Y, "1 month"), y=pa.array([datetime.date(2024, 4, 30)]))
    assert [(day.month, day.day) for day in months[0]] == [(1, 31), (2, 29), (3, 31), (4, 30)]


def test_days_of_a_zone_keep_the_time_of_day():
    berlin = pa.timestamp("us", "Europe/Berlin")
    moments = pa.array([datetime.datetime(2024, 3, 30, 11), datetime.datetime(2024, 4, 1, 10)], berlin)
    (found,) = values(sequence(X, Y, "1 day"), x=moments.slice(0, 1), y=moments.slice(1))
    assert [one.hour for one in found] == [12, 12, 12]
    (elapsed,) = values(sequence(X, Y, "24 hours"), x=moments.slice(0, 1), y=moments.slice(1))
    assert [one.hour for one in elapsed] == [12, 13]


def test_what_has_no_end_or_is_too_long_fails():
    with pytest.raises(DataError, match="a step of 0 leads nowhere"):
        values(sequence(X, 3, Y), x=[1], y=[0])
    with pytest.raises(DataError, match=r"elements together; take a longer step.*x=0"):
        values(sequence(X, 2**62), x=[0])
    with pytest.raises(DataError, match="overflow"):
        values(sequence(X, 2**63 - 1), x=[-(2**63)])


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (sequence(X, 2.5), "no meaning|works on|it works"),
        (sequence(col("d"), col("d"), "1 hour"), "a sequence of dates by hours"),
        (sequence(col("d"), col("d"), "1mo1d"), "and not of both"),
        (sequence(col("d"), col("d"), X), "is a constant interval"),
        (sequence(col("s"), col("s"), "1 ms"), "does not fit timestamp.s."),
    ],
)
def test_what_is_no_sequence_is_said_before_anything_runs(expression, message):
    schema = pa.schema({"x": pa.int64(), "d": pa.date32(), "s": pa.timestamp("s")})
    with pytest.raises(SchemaError, match=message):
        infer_type(expression.expression, schema)
    with pytest.raises(SchemaError, match="choose one of both, left"):
        sequence(1, 2, closed="right")
