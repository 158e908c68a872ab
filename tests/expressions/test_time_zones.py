"""Parts, begins and casts of moments in every zone and year agree with Python's zoneinfo, and with the calendar."""

import random
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from engine import col, lit
from engine.errors import DataError, SchemaError
from engine.expressions.evaluate import compile_expression

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: gaps and overlaps of an hour and of half, at midnight, a day left out, two hours, negative summer time
ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Havana",
    "America/Sao_Paulo",
    "Africa/Cairo",
    "Africa/Casablanca",
    "Antarctica/Troll",
    "Europe/Dublin",
    "Pacific/Apia",
    "Asia/Beirut",
    "Asia/Kathmandu",
)
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
PARTS = {
    "year": lambda t: t.year,
    "month": lambda t: t.month,
    "day": lambda t: t.day,
    "weekday": lambda t: t.weekday(),
    "week": lambda t: t.isocalendar().week,
    "ordinal_day": lambda t: t.timetuple().tm_yday,
    "hour": lambda t: t.hour,
    "minute": lambda t: t.minute,
    "second": lambda t: t.second,
}


def values_of(expression, array):
    batch = pa.record_batch({"t": array})
    return compile_expression(expression.expression, batch.schema)(batch)


@lru_cache
def seconds_near_changes(zone):
    """Moments around changes of clocks, before and after 2037, and anywhere."""
    chance = random.Random(zone)
    found = [chance.randrange(-3 * 10**9, 2 * 10**11) for _ in range(50)]
    for year in (1985, 2007, 2011, 2018, 2023, 2038, 2101, 9000):
        second = int((datetime(year, 1, 1, tzinfo=UTC) - EPOCH).total_seconds())
        known = local(zone, second).utcoffset()
        for hour in range(second, second + 366 * 86400, 86400):
            offset = local(zone, hour).utcoffset()
            if offset != known:
                found += range(hour - 86400, hour + 3600, 1800)
                found += [chance.randrange(hour - 86400, hour + 86400) for _ in range(6)]
                known = offset
    return found


def local(zone, second):
    return (EPOCH + timedelta(seconds=second)).astimezone(ZoneInfo(zone))


def wall(zone, second):
    return local(zone, second).replace(tzinfo=None)


def begin_of(zone, second, unit):
    """The begin, step by step: the first second whose local time is not before the floor of the local time."""
    at = wall(zone, second)
    if unit in ("hour", "minute"):
        floor = at.replace(minute=0, second=0) if unit == "hour" else at.replace(second=0)
        same = second - int((at - floor).total_seconds())
        if wall(zone, same) == floor and local(zone, same).utcoffset() == local(zone, second).utcoffset():
            return same
    else:
        floor = at.replace(hour=0, minute=0, second=0)
        if unit == "month":
            floor = floor.replace(day=1)
        if unit == "week":
            floor -= timedelta(days=floor.weekday())
    low = int((floor.replace(tzinfo=UTC) - EPOCH).total_seconds()) - 2 * 86400
    # Where clocks go back local time is not in order: look from far before, in steps that no change is shorter than.
    step = next(one for one in range(low, low + 4 * 86400, 900) if wall(zone, one) >= floor)
    return next(one for one in range(step - 900, step + 1) if wall(zone, one) >= floor)


@pytest.mark.parametrize("zone", ZONES)
def test_parts_are_those_of_python_in_all_years(zone):
    seconds = [None, *seconds_near_changes(zone)]
    array = pa.array(seconds, pa.timestamp("s", zone))
    for name, part in PARTS.items():
        wanted = [None if one is None else part(local(zone, one)) for one in seconds]
        assert values_of(getattr(col("t").dt, name)(), array.slice(0)).to_pylist() == wanted
        assert values_of(getattr(col("t").dt, name)(), array.slice(3)).to_pylist() == wanted[3:]


@pytest.mark.thorough
@pytest.mark.parametrize("unit", ["minute", "hour", "day", "week", "month"])
@pytest.mark.parametrize("zone", ZONES)
def test_begins_are_right_where_clocks_change(zone, unit):
    near = [one for one in seconds_near_changes(zone) if one > -(10**9)]
    seconds = random.Random(unit).sample(near, min(len(near), 60))
    for own_unit in ("s", "us"):
        numbers = [one * PER_SECOND[own_unit] for one in seconds]
        array = pa.array([None, *numbers], pa.timestamp(own_unit, zone))
        found = values_of(col("t").dt.truncate(unit), array).cast(pa.int64()).to_pylist()
        wanted = [begin_of(zone, one, unit) * PER_SECOND[own_unit] for one in seconds]
        assert found == [None, *wanted]


def test_an_hour_that_occurs_twice_has_two_begins_and_a_day_without_midnight_begins_behind_the_gap():
    def begin(text, zone, unit):
        array = pa.array([int(datetime.fromisoformat(text).timestamp())], pa.timestamp("s", zone))
        second = values_of(col("t").dt.truncate(unit), array).cast(pa.int64())[0].as_py()
        return local(zone, second).isoformat()

    for unit in ("hour", "minute", "second"):
        assert begin("2023-10-29T02:00:00+02:00", "Europe/Berlin", unit) == "2023-10-29T02:00:00+02:00"
        assert begin("2023-10-29T02:00:00+01:00", "Europe/Berlin", unit) == "2023-10-29T02:00:00+01:00"
    assert begin("2018-11-04T15:30:00-02:00", "America/Sao_Paulo", "day") == "2018-11-04T01:00:00-02:00"
    assert begin("2023-11-05T00:30:00-05:00", "America/Havana", "day") == "2023-11-05T00:00:00-04:00"
    assert begin("2050-07-01T12:34:56+02:00", "Europe/Berlin", "day") == "2050-07-01T00:00:00+02:00"


def test_casts_to_dates_times_and_text_are_of_the_local_time():
    zone = "Europe/Berlin"
    seconds = [one for one in seconds_near_changes(zone) if one > -(10**9)]
    array = pa.array(seconds, pa.timestamp("s", zone))
    times = [local(zone, one) for one in seconds]
    assert values_of(col("t").cast(pa.date32()), array).to_pylist() == [time.date() for time in times]
    assert values_of(col("t").cast(pa.time32("s")), array).to_pylist() == [time.time() for time in times]
    text = [time.strftime("%Y-%m-%d %H:%M:%S%z") for time in times]
    assert values_of(col("t").cast(pa.string()), array).to_pylist() == text


def test_dates_beyond_the_year_32767_have_the_parts_of_a_day_400_years_nearer():
    days = [2**31 - 1, -(2**31), 40_000 * 366, -40_000 * 366, 0, None]
    cycle = 146_097
    near = [None if day is None else EPOCH.date() + timedelta(days=day % cycle) for day in days]
    dates = pa.array(days, pa.int32()).cast(pa.date32())
    moments = pa.array([None if day is None else day * 86400 + 59 for day in days], pa.timestamp("s"))
    for array in (dates, moments, moments.cast(pa.timestamp("ms")), moments.cast(pa.timestamp("s", "UTC"))):
        years = values_of(col("t").dt.year(), array).to_pylist()
        assert years == [None if d is None else n.year + 400 * (d // cycle) for d, n in zip(days, near, strict=True)]
        for name in ("month", "day", "weekday", "week", "ordinal_day"):
            wanted = [None if one is None else PARTS[name](one) for one in near]
            assert values_of(getattr(col("t").dt, name)(), array).to_pylist() == wanted
    begins = values_of(col("t").dt.truncate("year"), dates.slice(0, 1)).view(pa.int32())[0].as_py()
    assert begins == 2**31 - 1 - (PARTS["ordinal_day"](near[0]) - 1)
    assert values_of(col("t").cast(pa.date32()), moments).view(pa.int32()).to_pylist() == days
    with pytest.raises(DataError, match="no text"):
        values_of(col("t").cast(pa.string()), dates)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Kathmandu", "-11:30"])
def test_the_first_and_last_moments_of_a_type_have_parts_and_no_begin_before_them(unit, zone):
    ends = [-(2**63), 2**63 - 1]
    array = pa.array(ends, pa.timestamp(unit, zone))
    cycle = 146_097 * 86400
    ahead = 0 if zone in (None, "UTC") else -41400 if zone == "-11:30" else int(5.75 * 3600)
    first = ahead if zone != "Asia/Kathmandu" else 20476
    near = [
        EPOCH + timedelta(seconds=(end // PER_SECOND[unit] + offset) % cycle)
        for end, offset in zip(ends, (first, ahead), strict=True)
    ]
    for name in ("month", "day", "hour", "minute", "second"):
        found = values_of(getattr(col("t").dt, name)(), array).to_pylist()
        assert found == [PARTS[name](one) for one in near], name
    for part in ("year", "day", "hour", "second"):
        if unit == "s" and part == "second":
            continue
        with pytest.raises(DataError):
            values_of(col("t").dt.truncate(part), array.slice(0, 1))


def test_constants_and_offsets_have_parts_and_unknown_zones_are_refused_by_name():
    array = pa.array([0], pa.timestamp("s", "+05:30"))
    assert values_of(col("t").dt.hour(), array).to_pylist() == [5]
    moment = datetime(2050, 7, 1, 12, tzinfo=ZoneInfo("Europe/Berlin"))
    assert values_of(lit(moment).dt.hour(), array).to_pylist() == [12]
    assert values_of(lit(date(2050, 7, 1)).dt.truncate("month"), array).to_pylist() == [date(2050, 7, 1)]
    for expression in (col("t").dt.hour(), col("t").dt.truncate("day"), col("t").cast(pa.date32())):
        with pytest.raises(SchemaError, match="no time zone 'Mars/Base'"):
            values_of(expression, pa.array([0], pa.timestamp("s", "Mars/Base")))
