"""Begins of spans agree with Polars and DuckDB, in time zones, before 1970, and over nulls."""

import datetime
import random

import polars
import pyarrow as pa
import pytest

from engine import SchemaError, col
from engine.expressions.infer import infer_type
from tests.expressions.function_oracle import by_duckdb, compute, values

X = col("x").dt
_CHANCE = random.Random(7)
MOMENTS = [
    datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=_CHANCE.randrange(-(10**9), 4 * 10**9), microseconds=at)
    for at in range(200)
]
MOMENTS += [datetime.datetime(2024, 10, 27, 0, 0) + datetime.timedelta(minutes=20 * at) for at in range(20)] + [None]
SPANS = {
    "15 minutes": "15m",
    "7h": "7h",
    "1h30m": "90m",
    "36 hours": "36h",
    "2 weeks": "2w",
    "3d": "3d",
    "5 months": "5mo",
    "2q": "2q",
    "7 years": "7y",
    "1500ms": "1500ms",
    "1 week": "1w",
}


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_spans_begin_where_those_of_polars_do(zone):
    column = pa.array(MOMENTS, pa.timestamp("us", zone))
    wanted = polars.Series("x", MOMENTS, polars.Datetime("us"))
    if zone:
        wanted = wanted.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    for span, short in SPANS.items():
        found = compute(X.truncate(span), x=column)
        assert found.type == column.type
        assert found.to_pylist() == wanted.dt.truncate(short).to_list(), span


@pytest.mark.parametrize(
    ("span", "origin"),
    [
        ("15 minutes", datetime.datetime(2000, 1, 3)),
        ("10 days", datetime.date(2001, 5, 7)),
        ("5 months", datetime.date(2000, 1, 1)),
        ("36 hours", datetime.datetime(2001, 5, 7, 1, 2, 3, 4)),
    ],
)
def test_an_origin_is_the_begin_of_a_span_as_in_duckdb(span, origin):
    column = pa.array(MOMENTS, pa.timestamp("us"))
    expected = by_duckdb(f"time_bucket(INTERVAL '{span}', x, TIMESTAMP '{origin}')", x=column)
    assert values(X.truncate(span, origin), x=column) == expected


def test_dates_have_spans_of_whole_days():
    days = pa.array([datetime.date(2024, 1, 2), datetime.date(1969, 12, 31), None])
    assert values(X.truncate("15 minutes"), x=days) == days.to_pylist()
    assert values(X.truncate("2 weeks"), x=days) == polars.Series(days.to_pylist()).dt.truncate("2w").to_list()
    with pytest.raises(SchemaError, match="spans that do not begin with days have no date"):
        infer_type(X.truncate("36h").expression, pa.schema({"x": pa.date32()}))
    with pytest.raises(SchemaError, match=r"do not fit timestamp.s."):
        infer_type(X.truncate("1500 ms").expression, pa.schema({"x": pa.timestamp("s")}))
    assert values(X.truncate(datetime.timedelta(hours=1)), x=[datetime.datetime(2024, 1, 1, 2, 3)])[0].minute == 0


@pytest.mark.parametrize(
    ("span", "message"),
    [
        ("15 apples", "no unit 'apples'"),
        ("month 2", "write a span such as"),
        ("1mo2d", "months have no fixed length"),
        ("0 days", "the span is above 0"),
        ("-1d", "the span is above 0"),
        (15, "write a span such as"),
        ("", "write a span such as"),
    ],
)
def test_what_is_no_span_is_said(span, message):
    with pytest.raises(SchemaError, match=message):
        X.truncate(span)


@pytest.mark.parametrize("origin", ["2024-01-01", datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)])
def test_an_origin_is_a_moment_without_a_zone(origin):
    with pytest.raises(SchemaError, match="a date, or a datetime without a zone"):
        X.truncate("1 hour", origin)


def test_an_origin_fits_its_span():
    with pytest.raises(SchemaError, match="begin with the first day of a month"):
        X.truncate("2 months", datetime.date(2024, 1, 2))
    with pytest.raises(SchemaError, match="write '24 hours'"):
        X.truncate("1d2d", datetime.datetime(2024, 1, 2, 1))


def test_spans_are_added_by_their_text():
    column = [datetime.datetime(2024, 1, 31, 12), None]
    assert values(X.offset_by("1 month"), x=column) == [datetime.datetime(2024, 2, 29, 12), None]
    assert values(X.offset_by("-1mo2d"), x=column) == [datetime.datetime(2023, 12, 29, 12), None]
