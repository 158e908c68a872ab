"""Texts are read by a format as Python reads them, and days that there are not are no days."""

import datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import DataError, SchemaError, col
from engine.expressions.infer import infer_type
from tests.expressions.function_oracle import values

S = col("x").str
M = datetime.datetime
FORMATS = ["%Y-%m-%d %H:%M:%S", "%d/%m/%Y %H:%M:%S", "%Y%m%d%H%M%S", "%d %b %Y %I:%M:%S %p", "%B %d, %Y at %H.%M.%S"]


def _has_whole_minutes(zone):
    """Whether %z of the zone has no seconds, as those of local times of old have."""
    return all(M(year, 7, 1, tzinfo=zone).utcoffset().seconds % 60 == 0 for year in (1972, 1985, 2024))


@pytest.mark.parametrize("written", FORMATS)
@given(moments=st.lists(st.none() | st.datetimes(M(1000, 1, 1), M(9999, 12, 31)), min_size=1))
def test_what_is_written_by_a_format_is_read_by_it(written, moments):
    whole = [one and one.replace(microsecond=0) for one in moments]
    texts = [one and one.strftime(written) for one in whole]
    assert values(S.to_timestamp(written), x=pa.array(texts, pa.string())) == whole
    assert values(S.to_timestamp(written), x=pa.array(texts, pa.large_string())) == whole
    texts = [one and one.strftime(f"{written}.%f") for one in moments]
    assert values(S.to_timestamp(f"{written}.%f"), x=pa.array(texts, pa.string())) == moments


def test_days_that_there_are_not_are_null_or_an_error():
    texts = [
        "2024-02-29",
        "2023-02-29",
        "2023-02-31",
        "2023-13-01",
        "2023-02-1",
        "2023-02-01x",
        " 2023-02-01",
        "",
        None,
    ]
    found = [datetime.date(2024, 2, 29), None, None, None, datetime.date(2023, 2, 1), None, None, None, None]
    assert values(S.to_date(strict=False), x=texts) == found
    with pytest.raises(DataError, match=r"'2023-02-31' is not of the format '%Y-%m-%d'; in a row with x='2023-02-31'"):
        values(S.to_date(), x=["2024-02-29", None, "2023-02-31"])
    assert values(S.to_timestamp(strict=False), x=["2024-02-29 24:00:00", "2024-02-29 23:59:61"]) == [None, None]
    assert values(S.to_timestamp("%H:%M:%S.%f", strict=False), x=["12:00:00.", "12:00:00.1234567"]) == [None, None]


@given(
    moments=st.lists(
        st.none() | st.datetimes(M(1972, 1, 2), M(9999, 12, 30), timezones=st.timezones().filter(_has_whole_minutes)),
        min_size=1,
    )
)
def test_an_offset_at_the_end_gives_the_moment_of_utc(moments):
    for written in ("%Y-%m-%d %H:%M:%S.%f%z", "%d/%b/%Y:%H:%M:%S.%f %z"):
        texts = [one and one.strftime(written) for one in moments]
        found = values(S.to_timestamp(written), x=pa.array(texts, pa.string()))
        assert found == [one and one.astimezone(datetime.UTC) for one in moments]


def test_offsets_are_those_of_clocks():
    written = "%d/%b/%Y:%H:%M:%S %z"
    texts = ["29/Feb/2024:23:59:59 -08:00", "01/Jan/2024:00:00:00 +0130", "31/Dec/2023:23:00:00 Z"]
    found = [M(2024, 3, 1, 7, 59, 59), M(2023, 12, 31, 22, 30), M(2023, 12, 31, 23)]
    assert values(S.to_timestamp(written), x=texts) == [one.replace(tzinfo=datetime.UTC) for one in found]
    wrong = [
        "01/Jan/2024:00:00:00 +2500",
        "01/Jan/2024:00:00:00 +0160",
        "01/Jan/2024:00:00:00",
        "30/Feb/2024:00:00:00 Z",
    ]
    assert values(S.to_timestamp(written, strict=False), x=wrong) == [None] * 4
    with pytest.raises(DataError, match=r"'01/Jan/2024:00:00:00 \+2500' is not of the format '%d/%b/%Y:%H:%M:%S %z'"):
        values(S.to_timestamp(written), x=wrong)
    with pytest.raises(SchemaError, match=r"a date with %z: use to_timestamp\(\)"):
        infer_type(S.to_date("%Y-%m-%d %z").expression, pa.schema({"x": pa.string()}))
