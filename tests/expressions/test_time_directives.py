"""Formats mean what they mean to Python on Linux: directive by directive, with flags, in both directions."""

import datetime
import re
import zoneinfo

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine import DataError, SchemaError, col
from engine.expressions.infer import infer_type
from engine.expressions.time_directives import DIRECTIVES
from tests.expressions.function_oracle import values

X = col("x")
M, D = datetime.datetime, datetime.date
#: %s counts from local time in Python, :z came with Python 3.12; both are held below
BY_PYTHON = [name for name in DIRECTIVES if name not in ("s", ":z")]
#: numbers and names take flags and widths, what is put together upper case
FLAGGED = [name for name in BY_PYTHON if name not in "fzZ%"]
SIMPLE = [name for name in FLAGGED if not DIRECTIVES[name].short_for]
#: years from 1000 on: Python before 3.14 writes those before with fewer digits
MOMENTS = st.lists(st.none() | st.datetimes(M(1000, 1, 1), M(9999, 12, 31)), min_size=1, max_size=4)
EDGES = [M(1999, 12, 31, 23, 59, 59, 999999), M(2000, 1, 1), M(2024, 2, 29, 12, 5, 7, 89), M(2025, 1, 1, 0, 30), None]
ZONES = ("UTC", "Europe/Berlin", "Asia/Kathmandu", "America/New_York", "Australia/Lord_Howe")


def python(moments, written):
    return [one and one.strftime(written) for one in moments]


def type_of(expression, data_type=None):
    return infer_type(expression.expression, pa.schema({"x": data_type or pa.string()}))


@example(moments=EDGES)
@given(moments=MOMENTS)
def test_each_directive_writes_what_python_writes(moments):
    written = "|".join(f"<%{name}>" for name in BY_PYTHON)
    assert values(X.dt.strftime(written), x=pa.array(moments, pa.timestamp("us"))) == python(moments, written)
    dates = [one and one.date() for one in moments]
    assert values(X.dt.strftime(written), x=pa.array(dates, pa.date32())) == python(dates, written)


@given(
    name=st.sampled_from(SIMPLE),
    flags=st.text("-_0^#", max_size=3),
    width=st.sampled_from(["", "1", "2", "3", "5", "12", "120"]),
    moments=MOMENTS,
)
def test_flags_and_widths_write_what_glibc_writes(name, flags, width, moments):
    written = f"%{flags}{width}{name}|"
    assert values(X.dt.strftime(written), x=pa.array(moments, pa.timestamp("us"))) == python(moments, written)


@pytest.mark.parametrize("name", [name for name in FLAGGED if DIRECTIVES[name].short_for])
def test_what_is_put_together_may_be_in_upper_case(name):
    assert values(X.dt.strftime(f"%^{name}"), x=pa.array(EDGES, pa.timestamp("us"))) == python(EDGES, f"%^{name}")


@pytest.mark.parametrize("written", ["%Ec %EC %Ex %EX %Ey %EY", "%Od %Oe %OH %OI %Om %OM %OS %Ou %OU %OV %Ow %OW %Oy"])
def test_forms_of_a_locale_change_nothing(written):
    assert values(X.dt.strftime(written), x=pa.array(EDGES, pa.timestamp("us"))) == python(EDGES, written)


@pytest.mark.parametrize("zone", [None, *ZONES, "+05:30", "-03:00"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_every_unit_and_zone_writes_its_local_time(unit, zone):
    moments = [M(1972, 7, 1, 10), M(2024, 3, 31, 0, 59, 59), M(2024, 10, 27, 1, 30), M(2200, 6, 30, 23, 5, 7), None]
    if unit in ("us", "ns"):
        moments.append(M(2024, 1, 1, 1, 2, 3, 4567))
    array = pa.array(moments, pa.timestamp("us")).cast(pa.timestamp(unit)).cast(pa.timestamp(unit, zone))
    found = None if zone is None else datetime.timezone(_offset(zone)) if zone[0] in "+-" else zoneinfo.ZoneInfo(zone)
    local = [one and one.replace(tzinfo=datetime.UTC).astimezone(found) if found else one for one in moments]
    written = "%Y-%m-%d %H:%M:%S.%f %a %j %p %z %Z %c"
    assert values(X.dt.strftime(written), x=array) == python(local, written)
    seconds = [one and str(int(one.replace(tzinfo=datetime.UTC).timestamp())) for one in moments]
    assert values(X.dt.strftime("%s"), x=array) == seconds
    colons = [one and re.sub(r"(..)$", r":\1", one.strftime("%z")) for one in local]
    assert values(X.dt.strftime("%:z"), x=array) == (colons if found else [one and "" for one in local])


def _offset(zone):
    sign = -1 if zone[0] == "-" else 1
    return sign * datetime.timedelta(hours=int(zone[1:3]), minutes=int(zone[4:]))


def test_dates_in_milliseconds_times_of_day_and_parts_of_arrays_are_written():
    days = [D(2024, 2, 29), None, D(1960, 1, 2)]
    assert values(X.dt.strftime("%-d.%-m.%Y"), x=pa.array(days, pa.date64())) == ["29.2.2024", None, "2.1.1960"]
    assert values(X.dt.strftime("%e"), x=pa.array(days, pa.date32()).slice(1)) == [None, " 2"]
    times = [datetime.time(13, 5, 7, 89), None]
    for data_type in (pa.time64("us"), pa.time64("ns")):
        assert values(X.dt.strftime("%-I:%M %P %f"), x=pa.array(times, data_type)) == ["1:05 pm 000089", None]
    assert values(X.dt.strftime("%T"), x=pa.array([3661], pa.time32("s"))) == ["01:01:01"]
    with pytest.raises(SchemaError, match="has more than the hour, minute and second of a time of day"):
        type_of(X.dt.strftime("%F %T"), pa.time64("us"))


def test_years_of_any_size_are_written():
    days = pa.array([-719529, -719528, -719162, 3_000_000], pa.int32()).view(pa.date32())
    expected = ["-0001-12-31 -01 99", "0000-01-01 00 00", "0001-01-01 00 01", "10183-09-21 101 83"]
    assert values(X.dt.strftime("%F %C %y"), x=days) == expected


@pytest.mark.parametrize(
    ("written", "named"),
    [
        ("%Q", r"has %Q, which is no directive of strftime; there are %Y %y"),
        ("%Y-%i", r"has %i, which is no directive of strftime \(did you mean %M\?\)"),
        ("%L", r"did you mean %f\?"),
        ("%-q", "has %-q, which is no directive"),
        ("%E", "ends within '%E'"),
        ("%Ed", "has %Ed, which is no directive"),
        ("%+", r"has %\+, which"),
        ("%-f", "has %-f, which takes no flag and no width"),
        ("%20F", "has %20F, which takes no flag and no width"),
        ("%d%", "ends within '%'; %% is a percent sign"),
        ("%1000d", "which is no directive"),
        ("", "the format of strftime is empty"),
        ("yyyy-MM-dd", "'yyyy-MM-dd' has no directive, such as %Y: yyyy-MM-dd is written %Y-%m-%d"),
        ("\ud800%Y", "is no Unicode text"),
    ],
)
def test_what_is_no_directive_is_an_error_when_the_plan_is_made(written, named):
    with pytest.raises(SchemaError, match=named):
        type_of(X.dt.strftime(written), pa.timestamp("us"))


READ_BY_PYTHON = [
    *("%Y-%m-%d %H:%M:%S.%f", "%d.%m.%y", "%d %b %Y %I:%M:%S %p", "%A, %B %d %Y", "%a %d%b%Y", "%Y%j", "%Y %U %w"),
    *("%Y-W%W-%u", "%G-W%V-%u", "%G %V %a %H", "%c", "%x %X", "%H:%M", "%f %S %M %H %d %m %Y", "%d%m%Y%H%M%S%f", "%Y"),
    *("%m/%d/%Y%t%T", "%%%Y%%%m", "%d\xa0%b\u202f%Y", "%Y-%m-%dT%H:%M:%SZ", "%p %I%Y"),
]


def by_python(texts, written):
    found = []
    for text in texts:
        try:
            found.append(M.strptime(text, written.replace("%t", "\t").replace("%T", "%H:%M:%S")))
        except (ValueError, TypeError):
            found.append(None)
    return found


@pytest.mark.parametrize("written", READ_BY_PYTHON)
@example(moments=EDGES)
@settings(max_examples=10)
@given(moments=MOMENTS)
def test_texts_are_read_as_python_reads_them(written, moments):
    texts = python(moments, written)
    expected = by_python(texts, written)
    assert values(X.str.to_timestamp(written), x=pa.array(texts, pa.string())) == expected
    assert values(X.str.to_timestamp(written), x=pa.array(texts, pa.large_string()).slice(1)) == expected[1:]
    dates = [one and one.date() for one in expected]
    assert values(X.str.to_date(written), x=pa.array(texts, pa.string())) == dates


@given(written=st.sampled_from(READ_BY_PYTHON), moment=st.datetimes(M(1000, 1, 1), M(9999, 12, 31)), data=st.data())
def test_texts_with_another_character_are_read_as_python_reads_them_or_not_at_all(written, moment, data):
    text = moment.strftime(written)
    place = data.draw(st.integers(0, len(text)))
    inserted = data.draw(st.sampled_from(["", "0", "1", "3", "9", " ", ":", "x", "-", "\t", "ä"]))
    changed = text[:place] + inserted + text[place + data.draw(st.integers(0, 1)) :]
    (found,), (expected,) = values(X.str.to_timestamp(written, False), x=[changed]), by_python([changed], written)
    if found is not None:
        assert found == expected, changed
    elif expected is not None:
        # what contradicts itself: a weekday, a week or a day of the year that is not that of the date
        again = expected.strftime(written)
        assert re.sub(r"\b0+(?=\d)|\s", "", again).lower() != re.sub(r"\b0+(?=\d)|\s", "", changed).lower(), changed


@pytest.mark.parametrize(
    ("written", "text", "found"),
    [
        ("%-d.%-m.%Y", "1.2.2024", M(2024, 2, 1)),
        ("%e.%m.%Y", " 1.02.2024", M(2024, 2, 1)),
        ("%F %R", "2024-02-01 13:05", M(2024, 2, 1, 13, 5)),
        ("%D %r", "02/01/24 01:05:00 pm", M(2024, 2, 1, 13, 5)),
        ("%d %h %Y %l %P", "1 FEB 2024  1 PM", M(2024, 2, 1, 13)),
        ("%Y-%m-%d %Z", "2024-02-01 gmt", M(2024, 2, 1)),
        ("%f %Y", "25 2024", M(2024, 1, 1, 0, 0, 0, 250000)),
        ("%I %Y", "12 2024", M(2024, 1, 1)),
        ("%H:%M", "13:05", M(1900, 1, 1, 13, 5)),
        ("%d%m%Y", "112024", M(2024, 1, 1)),
        ("%Y  %m", "2024 \t 02", M(2024, 2, 1)),
    ],
)
def test_directives_of_strftime_are_read_too(written, text, found):
    assert values(X.str.to_timestamp(written), x=[text]) == [found]


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("%a %F", "Mon 2024-02-01"),
        ("%Y-%j", "2023-366"),
        ("%H %p", "13 am"),
        ("%Y %W %u", "2023 00 1"),
        ("%G-%V-%u", "2023-53-1"),
        ("%Y-%m-%d", "0000-01-01"),
        ("%Y-%m-%d", "2024-2-30"),
        ("%d %m", "29 02"),
        ("%F %T", "2024-02-01 12:00:60"),
        ("%Y %y", "2024 23"),
        ("%Y-%m-%d %Z", "2024-02-01 CET"),
        ("%B %Y", "Feb 2024"),
        ("%b %Y", "February 2024"),
        ("%F%z", "2024-02-01+0130:15"),
        ("%F%z", "2024-02-01+01:3015"),
        ("%F%z", "2024-02-01z"),
    ],
)
def test_what_is_no_date_or_contradicts_itself_is_not_read(written, text):
    assert values(X.str.to_timestamp(written, strict=False), x=[text, None]) == [None, None]
    with pytest.raises(DataError, match="is not of the format"):
        values(X.str.to_timestamp(written), x=[None, text])


@pytest.mark.parametrize("offset", ["+0130", "-01:30", "Z", "+01:30:15", "-013015", "+00:00:00.25", "-00:00:00.000001"])
def test_offsets_stand_anywhere_in_a_format(offset):
    for written in ("%Y-%m-%d%z %H:%M", "%z %Y-%m-%d %H:%M", "%Y-%m-%d %H:%M %z"):
        text = written.replace("%z", offset).replace("%Y-%m-%d", "2024-02-01").replace("%H:%M", "10:30")
        expected = M.strptime(text, written)
        assert values(X.str.to_timestamp(written), x=[text]) == [expected], text
        assert values(X.str.to_timestamp(written.replace("%z", "%:z")), x=[text]) == [expected]
    assert type_of(X.str.to_timestamp("%F%z")) == pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("written", "named"),
    [
        ("%Q", "has %Q, which is no directive of strptime; there are %Y"),
        ("%s", "has %s, which is written and not read"),
        ("%^a %F", r"has %\^a, where only %a is read"),
        ("%4Y", "has %4Y, where only %Y is read"),
        ("%Y-%m-", None),
        ("%Y%", "ends within '%'"),
        ("%Y %F", "says %Y twice"),
        ("%u %w %F", None),
        ("%b %h", "says %b or %h twice"),
        ("%G-%V", "%G and %V are read together, with a day of the week"),
        ("%V %A %Y", "%G and %V are read together"),
        ("%Y-%U", "a week is read with its year and a day of the week"),
        ("yyyy-MM-dd", "has no directive, such as %Y"),
        ("", "has no directive"),
    ],
)
def test_formats_that_say_no_moment_are_refused_when_the_plan_is_made(written, named):
    if named is None:
        type_of(X.str.to_timestamp(written))
        return
    with pytest.raises(SchemaError, match=named):
        type_of(X.str.to_timestamp(written))
    with pytest.raises(SchemaError, match=named):
        type_of(X.str.to_date(written))
