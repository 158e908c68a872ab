"""Times move on the calendar as in DuckDB, Java and Python: leap days, ends of months, changes of clocks."""

import datetime
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import DataError, SchemaError, col, interval, lit
from engine.expressions.infer import infer_type
from tests.expressions.function_oracle import by_duckdb, compute, values

X, Y = col("x"), col("y")
D, M = datetime.date, datetime.datetime
DATES = [
    D(2024, 2, 29),
    D(2023, 2, 28),
    D(2024, 1, 31),
    D(1969, 12, 31),
    D(1, 1, 1),
    D(9990, 12, 31),
    D(1900, 3, 1),
    None,
]
MOMENTS = [M(2024, 2, 29, 23, 59, 59, 999999), M(1969, 12, 31, 1), M(2023, 12, 30), M(1, 1, 1, 0, 0, 1), None]
INTERVALS = [
    {"months": 1},
    {"months": -13},
    {"years": 1, "days": 1},
    {"quarters": 2},
    {"weeks": -1},
    {"months": 1, "days": 30, "hours": 25, "seconds": -1},
]


def in_sql(units):
    return " + ".join(f"INTERVAL ({count}) {unit[:-1]}" for unit, count in units.items() if unit != "quarters")


@pytest.mark.parametrize("units", INTERVALS)
def test_intervals_move_dates_and_moments_as_in_duckdb(units):
    query = f"x + INTERVAL ({units['quarters'] * 3}) month" if "quarters" in units else f"x + ({in_sql(units)})"
    dates = pa.array([one for one in DATES if one is None or 10 < one.year < 9000], pa.date32())
    moments = pa.array([one for one in MOMENTS if one is None or one.year > 10], pa.timestamp("us"))
    assert values(X.dt.add(**units), x=moments) == by_duckdb(query, x=moments)
    found, expected = compute(X + interval(**units), x=dates), by_duckdb(query, x=dates)
    if "hours" not in units:
        assert found.type == pa.date32()
        expected = [one and one.date() for one in expected]
    assert found.to_pylist() == expected


@given(st.dates(D(1, 1, 1), D(9000, 1, 1)), st.integers(-(12 * 900), 12 * 900))
def test_months_later_is_the_same_day_or_the_last_of_the_month(date, months):
    total = date.year * 12 + date.month - 1 + months
    if not 12 <= total < 12 * 9999:
        return
    first = D(total // 12, total % 12 + 1, 1)
    following = D((total + 1) // 12, (total + 1) % 12 + 1, 1)
    expected = min(first + datetime.timedelta(date.day - 1), following - datetime.timedelta(1))
    assert values(X + interval(months=months), x=[date]) == [expected]
    assert values(interval(months=months) + X, x=[date]) == [expected]
    assert values(X.dt.last_day(), x=[first]) == [following - datetime.timedelta(1)]
    assert values(X.dt.first_day(), x=[expected]) == [first]


def test_a_day_of_the_calendar_is_no_day_of_24_hours_where_clocks_change():
    berlin = pa.timestamp("ms", "Europe/Berlin")
    before = M(2024, 3, 30, 12, 0, 0, 500000, tzinfo=ZoneInfo("Europe/Berlin"))
    column = pa.array([before, None], berlin)
    assert values(X + interval(days=1), x=column)[0].hour == 12
    assert values(X + datetime.timedelta(days=1), x=column)[0].hour == 13
    assert values(X + interval(days=1), x=column)[0].microsecond == 500000
    assert compute(X + interval(days=1), x=column).type == berlin
    assert compute(X + interval(microseconds=1), x=column).type == pa.timestamp("us", "Europe/Berlin")
    skipped = pa.array([M(2024, 3, 30, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))], berlin)
    assert values(X + interval(days=1), x=skipped)[0].hour == 3


def test_dates_and_timedeltas():
    day = datetime.timedelta(days=1)
    assert values(X + day, x=[D(2024, 2, 28), None]) == [D(2024, 2, 29), None]
    assert values(X - day, x=pa.array([D(2024, 3, 1)], pa.date64())) == [D(2024, 2, 29)]
    assert values(X + day / 2, x=[D(2024, 2, 28)]) == [M(2024, 2, 28, 12)]
    assert values(lit(M(2024, 3, 1)) - X, x=[M(2024, 2, 29)]) == [day]
    assert values(X - Y, x=[D(2024, 3, 1)], y=[D(2024, 2, 1)]) == [datetime.timedelta(29)]


UNITS = ["years", "quarters", "months", "weeks", "days", "hours", "minutes", "seconds", "milliseconds", "microseconds"]


@pytest.mark.parametrize("unit", UNITS)
def test_differences_are_whole_units_cut_toward_zero(unit):
    some = [M(2024, 2, 29, 12), M(2024, 3, 1), M(2023, 2, 28, 13), M(2020, 5, 15, 1, 2, 3), M(1969, 1, 1), None]
    pairs = [(one, other) for one in some for other in some]
    columns = {name: pa.array([pair[place] for pair in pairs], pa.timestamp("us")) for place, name in enumerate("xy")}
    found = values(X.dt.diff(Y, unit), **columns)
    assert found == [None if None in pair else whole_units(*pair, unit) for pair in pairs]
    turned = values(Y.dt.diff(X, unit), **columns)
    assert turned == [one and -one for one in found]


def whole_units(one, other, unit):
    if unit in ("years", "quarters", "months"):
        if one < other:
            return -whole_units(other, one, unit)
        months = (one.year - other.year) * 12 + one.month - other.month
        months -= (one.day, one.time()) < (other.day, other.time())
        return months // {"years": 12, "quarters": 3, "months": 1}[unit]
    microseconds = (one - other) // datetime.timedelta(microseconds=1)
    whole = abs(microseconds) // (datetime.timedelta(**{unit: 1}) // datetime.timedelta(microseconds=1))
    return whole if microseconds >= 0 else -whole


def test_differences_of_dates_and_with_constants():
    assert values(X.dt.diff(Y, "hours"), x=[D(2024, 3, 1)], y=[D(2024, 2, 29)]) == [24]
    assert values(X.dt.diff(D(2024, 1, 31), "months"), x=[D(2024, 2, 29), D(2024, 3, 31)]) == [0, 2]
    assert values(X.dt.diff(Y, "days"), x=[M(2024, 3, 1)], y=[D(2024, 2, 28)]) == [2]


def test_parts_and_names():
    days = pa.array(DATES, pa.date32())
    names = [one and f"{one:%B %A}" for one in DATES]
    assert values(X.dt.month_name().str.concat(X.dt.day_name(), separator=" "), x=days) == names
    assert values(X.dt.iso_year(), x=days) == [one and one.isocalendar().year for one in DATES]
    assert values(X.dt.day_of_year(), x=days) == [one and one.timetuple().tm_yday for one in DATES]
    moments = pa.array(MOMENTS, pa.timestamp("us"))
    assert values(X.dt.date(), x=moments) == [one and one.date() for one in MOMENTS]
    assert values(X.dt.time(), x=moments) == [one and one.time() for one in MOMENTS]
    zoned = pa.array([M(2024, 1, 1, 23, tzinfo=datetime.UTC)], pa.timestamp("s", "Asia/Tokyo"))
    assert values(X.dt.date(), x=zoned) == [D(2024, 1, 2)]
    assert values(X.dt.last_day(), x=zoned) == [D(2024, 1, 31)]
    assert values(X.dt.date(), x=days) == DATES
    assert values(X.dt.time(), x=days)[0] == datetime.time()


@pytest.mark.parametrize(("unit", "per"), [("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
def test_epochs_are_rounded_down(unit, per):
    found = values(X.dt.epoch(unit), x=pa.array([-1, 0, 1_500_000, None], pa.timestamp("us")))
    assert found == [-per // 10**6, 0, 1_500_000 * per // 10**6, None]
    assert values(X.dt.epoch(unit), x=[D(1969, 12, 31)]) == [-86400 * per]


@pytest.mark.parametrize("written", ["%Y-%m-%d", "%d.%m.%Y %H:%M:%S.%f", "%j %b %B %a %A %y %I%p %%f%%", "%H%M%S%%%f"])
def test_texts_of_moments_are_those_of_python(written):
    some = [one for one in MOMENTS if one is None or one.year > 1000]
    expected = [one and one.strftime(written) for one in some]
    assert values(X.dt.strftime(written), x=pa.array(some, pa.timestamp("us"))) == expected
    dates = [one for one in DATES if one is None or one.year > 1000]
    assert values(X.dt.strftime(written), x=dates) == [one and one.strftime(written) for one in dates]


def test_zones_are_given_changed_and_taken_away():
    local = [M(2024, 7, 1, 12), M(2024, 3, 31, 2, 30), M(2024, 10, 27, 2, 30), None]
    berlin = compute(X.dt.with_timezone("Europe/Berlin"), x=pa.array(local, pa.timestamp("us")))
    assert berlin.type == pa.timestamp("us", "Europe/Berlin")
    utc = [one and one.astimezone(datetime.UTC).replace(tzinfo=None) for one in berlin.to_pylist()]
    assert utc == [M(2024, 7, 1, 10), M(2024, 3, 31, 1), M(2024, 10, 27, 0, 30), None]
    assert values(X.dt.with_timezone(None), x=berlin) == [local[0], M(2024, 3, 31, 3), local[2], None]
    tokyo = compute(X.dt.to_timezone("Asia/Tokyo"), x=berlin)
    assert tokyo.cast(pa.int64()).equals(berlin.cast(pa.int64()))
    assert values(X.dt.strftime("%H:%M %z"), x=tokyo.slice(0, 1)) == ["19:00 +0900"]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (col("n") + interval(days=1), "it works on dates and timestamps"),
        (col("t") * interval(days=1), "cannot multiply"),
        (col("t").dt.to_timezone("Asia/Tokyo"), "with_timezone"),
        (col("t").dt.with_timezone("Nowhere/Town"), "Nowhere/Town"),
        (col("n").dt.last_day(), "it works on dates and timestamps"),
        (col("t").dt.diff(col("n"), "days"), "they have no common type"),
    ],
)
def test_what_cannot_be_moved_is_said_before_anything_runs(expression, message):
    with pytest.raises(SchemaError, match=message):
        infer_type(expression.expression, pa.schema({"n": pa.int64(), "t": pa.timestamp("us")}))


def test_wrong_units_are_refused_where_they_are_written():
    for wrong in (lambda: interval(moons=1), lambda: interval(days=1.5), lambda: X.dt.diff(Y, "moons")):
        with pytest.raises(SchemaError):
            wrong()
    with pytest.raises(SchemaError, match="is too long"):
        interval(months=2**31)


def test_a_moment_beyond_the_type_is_an_error_that_names_the_row():
    far = pa.array([0, 2**63 - 1], pa.timestamp("ns"))
    with pytest.raises(DataError, match="overflow"):
        values(X + interval(days=1), x=far)
    with pytest.raises(DataError, match="overflow"):
        values(X.dt.epoch("ns"), x=pa.array([2**62], pa.timestamp("s")))
