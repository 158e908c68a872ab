"""Sums, means, products and quotients of durations: those of Python's integers, in groups, windows and SQL."""

import math
import operator
from collections import defaultdict
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import DataError, JobExecutionError, SchemaError, avg, col, stddev, sum_

UNITS = ("s", "ms", "us", "ns")
ROWS = st.lists(st.tuples(st.integers(0, 3), st.none() | st.integers(-(10**6), 10**6) | st.integers(-(2**60), 2**60)))


def mean(values):
    """Return the nearest whole number, the lower one of two."""
    return math.ceil(Fraction(sum(values), len(values)) - Fraction(1, 2))


def ticks(column):
    assert pa.types.is_duration(column.type)
    return column.cast(pa.int64()).to_pylist()


def of_groups(rows, function):
    groups = defaultdict(list)
    for key, value in rows:
        groups[key] += [] if value is None else [value]
    return {key: function(values) if values else None for key, values in groups.items()}


def spans(rows, unit="us"):
    columns = list(zip(*rows, strict=True)) or [(), ()]
    return pa.table({"k": pa.array(columns[0], pa.int64()), "x": pa.array(columns[1], pa.duration(unit))})


@given(rows=ROWS.filter(lambda rows: abs(sum(value or 0 for _, value in rows)) < 2**61), unit=st.sampled_from(UNITS))
def test_sums_and_means_are_exact(environment, rows, unit):
    data = environment.from_arrow(spans(rows, unit))
    found = data.group_by("k").agg(total=sum_("x"), mean=avg("x"), distinct=avg("x", distinct=True)).to_arrow()
    assert found.schema.field("mean").type == pa.duration(unit)
    keys = found["k"].to_pylist()
    for name, function in (("total", sum), ("mean", mean), ("distinct", lambda values: mean(set(values)))):
        assert dict(zip(keys, ticks(found[name]), strict=True)) == of_groups(rows, function), name
    kept = [(0, value) for key, value in rows if key == 1]
    totals = data.agg(total=sum_("x", filter=col("k") == 1), mean=avg("x", filter=col("k") == 1)).to_arrow()
    assert ticks(totals["total"]) == [of_groups(kept, sum).get(0)]
    assert ticks(totals["mean"]) == [of_groups(kept, mean).get(0)]


@given(rows=ROWS.filter(lambda rows: abs(sum(value or 0 for _, value in rows)) < 2**61))
def test_windows_have_those_of_their_frames(environment, rows):
    table = spans(rows).append_column("i", pa.array(range(len(rows)), pa.int64()))
    window = {"partition_by": "k", "order_by": "i"}
    data = environment.from_arrow(table).with_columns(
        total=sum_("x").over("k"),
        mean=avg("x").over("k"),
        running=avg("x").over(**window),
        near=avg("x").over(**window, rows=(-1, 0)),
    )
    found = data.sort("i").to_arrow()
    for name, function in (("total", sum), ("mean", mean)):
        wanted = of_groups(rows, function)
        assert ticks(found[name]) == [wanted[key] for key, _ in rows], name
    seen = defaultdict(list)
    for index, (key, value) in enumerate(rows):
        seen[key].append(value)
        for name, values in (("running", seen[key]), ("near", seen[key][-2:])):
            there = [each for each in values if each is not None]
            assert ticks(found[name])[index] == (mean(there) if there else None), name


def test_a_mean_of_sums_beyond_64_bits_is_exact_and_such_a_sum_is_an_error(environment):
    data = environment.from_arrow(spans([(1, 2**62), (1, 2**62), (1, 2**62 - 3)], "ns"))
    assert ticks(data.agg(x=avg("x")).to_arrow()["x"]) == [2**62 - 1]
    assert ticks(data.select(x=avg("x").over("k")).to_arrow()["x"]) == [2**62 - 1] * 3
    with pytest.raises(DataError, match="overflows int64"):
        data.agg(x=sum_("x")).to_arrow()


def test_session_lengths_are_those_of_duckdb_and_polars(environment):
    begins = pa.array([0, 10**6, 86_400 * 10**6, None], pa.timestamp("us"))
    ends = pa.array([90 * 10**6, 10**6, 3 * 86_400 * 10**6, 5], pa.timestamp("us"))
    table = pa.table({"k": [1, 1, 2, 2], "a": begins, "b": ends})
    environment.register("sessions", environment.from_arrow(table))
    query = "SELECT k, avg(b - a) AS mean, median(b - a) AS middle FROM sessions GROUP BY k ORDER BY k"
    sessions = duckdb.from_arrow(table)
    assert environment.sql(query).to_arrow().to_pylist() == [
        dict(zip(("k", "mean", "middle"), row, strict=True)) for row in sessions.query("sessions", query).fetchall()
    ]
    span = (pl.col("b") - pl.col("a")).alias("span")
    grouped = pl.from_arrow(table).group_by("k").agg(span.sum().alias("sum"), span.mean().alias("mean")).sort("k")
    totals = "SELECT k, sum(b - a) AS sum, avg(b - a) AS mean FROM sessions GROUP BY k ORDER BY k"
    assert environment.sql(totals).to_arrow().to_pylist() == grouped.to_dicts()
    means = "SELECT avg(b - a) > INTERVAL '1 hour' AS x, extract(epoch FROM avg(b - a)) AS s FROM sessions"
    found = environment.sql(means)
    assert found.to_arrow().to_pylist() == [{"x": True, "s": 57_630.0}]


SECONDS = "of a duration x, x.cast\\(int\\) / 1000000 is the number of its seconds"


@pytest.mark.parametrize(
    ("expression", "what"),
    [
        (2 / col("x"), f"only numbers can be divided; {SECONDS}"),
        (col("x") % 2, f"only numbers can be divided; {SECONDS}"),
        (col("x").sqrt(), f"it works on numbers; {SECONDS}"),
        (col("x").dt.epoch("s"), f"it works on dates and timestamps; {SECONDS}"),
        (col("x").dt.diff(col("x"), "seconds"), f"it works on dates and timestamps; {SECONDS}"),
        (stddev("x").over(), f"stddev takes numbers, the argument is duration.us.: {SECONDS}"),
        (col("x") > "1 second", r"no common type: compare a duration with timedelta\(seconds=1\)"),
    ],
)
def test_what_takes_no_durations_says_what_does(environment, expression, what):
    data = environment.from_arrow(spans([(1, 90 * 10**6)]))
    with pytest.raises(SchemaError, match=what):
        data.select(y=expression)
    with pytest.raises(SchemaError, match=SECONDS):
        data.agg(y=stddev("x"))
    assert data.select(y=col("x").cast(int) / 10**6).to_arrow()["y"].to_pylist() == [90.0]


SPANS = [0, 1, -1, 3, -3, 5, -7, 10**6, 2**53 + 1, -(2**62) - 1, 2**63 - 1, None]
NUMBERS = [1, -1, 2, -2, 3, 4, 7, -10, 2**40, None]
PAIRS = [(each, number) for each in SPANS for number in NUMBERS]


def nearest(value):
    """Return the integer that is nearest to a fraction, the lower one of two."""
    return math.ceil(value - Fraction(1, 2))


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_spans_are_divided_exactly_by_integers_and_by_each_other(environment, unit):
    left, right = (pa.array(each, pa.int64()) for each in zip(*PAIRS, strict=True))
    table = pa.table({"x": left.cast(pa.duration(unit)), "n": right, "y": right.cast(pa.duration(unit))})
    x, n, y = col("x"), col("n"), col("y")
    values = {"near": x / n, "low": x // n, "times": x / y, "whole": x // y, "rest": x % y, "size": x.abs()}
    found = environment.from_arrow(table).select(**values).to_arrow()
    wanted = {
        "near": lambda one, other: nearest(Fraction(one, other)),
        "low": operator.floordiv,
        "times": lambda one, other: float(one) / float(other),
        "whole": operator.floordiv,
        "rest": operator.mod,
        "size": lambda one, _: abs(one),
    }
    for name, function in wanted.items():
        column = found[name].to_pylist() if name in ("times", "whole") else ticks(found[name])
        rows = [(pair, value) for pair, value in zip(PAIRS, column, strict=True) if name != "size" or None not in pair]
        assert rows == [(pair, None if None in pair else function(*pair)) for pair, _ in rows], name


def test_spans_are_multiplied_and_divided_by_fractions(environment):
    counts, factors = [5, -5, 7, 10**6, None], [0.5, 1.5, 2.25, -0.1]
    table = pa.table({"x": pa.array(counts, pa.duration("ms"))})
    for factor in factors:
        found = environment.from_arrow(table).select(
            a=col("x") * factor, b=factor * col("x"), c=col("x") / factor, d=col("x") * Decimal(str(factor))
        )
        wanted = [one if one is None else nearest(Fraction(one * factor)) for one in counts]
        found = found.to_arrow()
        assert ticks(found["a"]) == ticks(found["b"]) == ticks(found["d"]) == wanted
        assert ticks(found["c"]) == [one if one is None else nearest(Fraction(one / factor)) for one in counts]


@pytest.mark.parametrize("expression", [col("x") / 0, col("x") // 0, col("x") // col("y"), col("x") / 0.0])
def test_a_span_divided_by_nothing_is_an_error(environment, expression):
    table = pa.table({"x": pa.array([1], pa.duration("us")), "y": pa.array([0], pa.duration("us"))})
    with pytest.raises((DataError, JobExecutionError)):
        environment.from_arrow(table).select(v=expression).collect()


def test_the_share_of_a_mean_is_said_in_sql(environment):
    environment.register("d", environment.from_arrow(spans([(1, 4), (1, 8)])))
    found = environment.sql("SELECT avg(x) / 2 AS h, max(x) / min(x) AS t, abs(min(x) - max(x)) AS d FROM d").collect()
    assert found == [(timedelta(microseconds=3), 2.0, timedelta(microseconds=4))]
