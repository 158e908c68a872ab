"""Dates of parts agree with Python, business days with Polars: nulls, holidays, other weeks, both directions."""

import datetime
import random

import polars
import pyarrow as pa
import pytest

from engine import DataError, SchemaError, col, make_date, make_time, make_timestamp
from tests.expressions.function_oracle import values

X, Y = col("x"), col("y")
_CHANCE = random.Random(3)


def some_days(count):
    return [datetime.date(2024, 1, 1) + datetime.timedelta(_CHANCE.randrange(-400, 400)) for _ in range(count)]


DAYS, OTHERS, HOLIDAYS = some_days(150), some_days(150), some_days(30)
COUNTS = [_CHANCE.randrange(-300, 300) for _ in DAYS]
WEEKS = [(True,) * 5 + (False,) * 2, (True, False, True, True, False, True, True), (False,) * 6 + (True,)]


@pytest.mark.parametrize("week", WEEKS)
@pytest.mark.parametrize("holidays", [[], HOLIDAYS])
def test_business_days_are_those_of_polars(week, holidays):
    frame = polars.DataFrame({"x": DAYS, "y": OTHERS, "n": COUNTS})
    rule = {"holidays": holidays, "week_mask": week}
    for roll in ("forward", "backward"):
        wanted = frame.select(polars.col("x").dt.add_business_days("n", roll=roll, **rule))["x"].to_list()
        assert values(X.dt.add_business_days(Y, holidays, week, roll), x=DAYS, y=COUNTS) == wanted
    wanted = frame.select(polars.business_day_count("x", "y", **rule))["x"].to_list()
    assert values(Y.dt.business_day_count(X, holidays, week), x=DAYS, y=OTHERS) == wanted
    wanted = frame.select(polars.col("x").dt.is_business_day(**rule))["x"].to_list()
    assert values(X.dt.is_business_day(holidays, week), x=DAYS) == wanted


def test_business_days_keep_the_time_of_day_and_nulls():
    column = pa.array([datetime.datetime(2024, 3, 1, 12, 30), None], pa.timestamp("us"))
    moved = X.dt.add_business_days(Y)
    assert values(moved, x=column, y=[1, 1]) == [datetime.datetime(2024, 3, 4, 12, 30), None]
    assert values(moved, x=column, y=pa.array([None, 1])) == [None, None]
    assert values(X.dt.is_business_day("2024-03-01"), x=column) == [False, None]
    assert values(X.dt.business_day_count(Y), x=column, y=[datetime.date(2024, 2, 1), None]) == [21, None]


def test_a_day_that_is_none_of_business_fails_unless_it_rolls():
    with pytest.raises(DataError, match=r"roll='forward'.*in a row with x=datetime.date\(2024, 3, 2\)"):
        values(X.dt.add_business_days(1), x=[datetime.date(2024, 3, 1), datetime.date(2024, 3, 2)])
    with pytest.raises(DataError, match="more than 2147483648 business days"):
        values(X.dt.add_business_days(2**40), x=[datetime.date(2024, 3, 1)])
    for wrong, message in (
        (lambda: X.dt.is_business_day([3]), "the holiday 3 is no date"),
        (lambda: X.dt.is_business_day(week=[False] * 7), "at least one of them true"),
        (lambda: X.dt.add_business_days(1, roll="nearest"), "choose one of raise, forward, backward"),
    ):
        with pytest.raises(SchemaError, match=message):
            wrong()


@pytest.mark.parametrize("name", ["Monday", "tue", "SUNDAY"])
def test_the_next_day_of_a_name_lies_behind(name):
    found = values(X.dt.next_day(name), x=[*DAYS, None])
    assert found.pop() is None
    for day, following in zip(DAYS, found, strict=True):
        assert 1 <= (following - day).days <= 7
        assert following.strftime("%A").lower().startswith(name.lower())
    with pytest.raises(SchemaError, match="choose one of monday"):
        X.dt.next_day("t")


def test_dates_and_times_of_parts_are_those_of_python():
    for day in DAYS:
        assert values(make_date(day.year, X, day.day), x=[day.month, None]) == [day, None]
    assert values(make_time(X, 59, 59.999999), x=[23, None]) == [datetime.time(23, 59, 59, 999999), None]
    whole = make_timestamp(X, 2, 29, 1, 2, 3.5)
    assert values(whole, x=[2024, None]) == [datetime.datetime(2024, 2, 29, 1, 2, 3, 500000), None]
    assert values(make_timestamp(X, 12, 31), x=[1969]) == [datetime.datetime(1969, 12, 31)]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (make_date(X, 2, 30), "no such date: 2024-2-30"),
        (make_date(X, 13, 1), "no such date"),
        (make_time(24, 0, X * 0), "no hour 24"),
        (make_time(0, X, 0), "no minute 2024"),
        (make_time(0, 0, X), "no second 2024"),
        (make_timestamp(X * 10**5, 1, 1), "no such date|overflow"),
    ],
)
def test_what_no_calendar_or_clock_has_fails(expression, message):
    with pytest.raises(DataError, match=message):
        values(expression, x=[2024])
