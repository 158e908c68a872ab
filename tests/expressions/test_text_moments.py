"""Texts beside dates and times are dates and times; what is none is said at once."""

import datetime

import pyarrow as pa
import pytest

from engine import DataError, SchemaError, col, greatest
from engine.expressions.infer import infer_type, with_typed_texts
from engine.expressions.literals import literal_scalar
from tests.expressions.function_oracle import by_duckdb, compute, values

X = col("x")
D, M = datetime.date, datetime.datetime
DAYS = [D(1998, 9, 1), D(1998, 9, 2), D(1998, 9, 3), None]
MOMENTS = pa.array([M(1998, 9, 1, 23), M(1998, 9, 2), M(1998, 9, 2, 12, 30), None], pa.timestamp("us"))


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">=", "==", "!="])
@pytest.mark.parametrize("text", ["1998-09-02", "1998-09-02 12:30:00", "1998-09-02T00:00"])
def test_dates_and_moments_compare_with_texts_as_in_duckdb(operator, text):
    for column in (pa.array(DAYS, pa.date32()), MOMENTS):
        found = values(eval(f"X {operator} text", {"X": X, "text": text}), x=column)
        assert found == by_duckdb(f"x {operator} TIMESTAMP '{text.replace('T', ' ')}'", x=column)


def test_texts_stand_in_ranges_lists_and_choices():
    assert values(X.between("1998-09-02", "1998-09-02"), x=DAYS) == [False, True, False, None]
    assert values(X.is_in("1998-09-01", "1998-09-03"), x=DAYS) == [True, False, True, None]
    assert values(X.fill_null("2000-01-01"), x=DAYS)[3] == D(2000, 1, 1)
    assert values(greatest(X, "1998-09-02"), x=DAYS) == [D(1998, 9, 2), D(1998, 9, 2), D(1998, 9, 3), D(1998, 9, 2)]
    assert values(X.dt.diff("1998-09-01", "days"), x=DAYS) == [0, 1, 2, None]
    assert values(X - "1998-09-01", x=DAYS)[2] == datetime.timedelta(2)
    assert values(X < "12:30:01", x=[datetime.time(12, 30), datetime.time(12, 30, 1)]) == [True, False]
    assert values(X < "12:30:00.5", x=pa.array([datetime.time(12, 30)], pa.time32("s"))) == [True]


def test_a_text_beside_a_zone_is_local_there_unless_it_has_one_itself():
    noon = pa.array([M(2024, 7, 1, 10, tzinfo=datetime.UTC)], pa.timestamp("s", "Europe/Berlin"))
    assert values(X == "2024-07-01 12:00", x=noon) == [True]
    assert values(X == "2024-07-01T10:00Z", x=noon) == [True]
    assert values(X == "2024-07-01 19:00:00+09:00", x=noon) == [True]
    assert values(X < "2024-07-01 12:00:00.000001", x=noon) == [True]


def test_a_text_has_up_to_nine_digits_of_a_second():
    tick = pa.array([1_700_000_000_123_456_789, None])
    local, zoned = tick.view(pa.timestamp("ns")), tick.view(pa.timestamp("ns", "Europe/Zurich"))
    assert values(X == "2023-11-14 22:13:20.123456789", x=local) == [True, None]
    assert values(X == "2023-11-14 22:13:20.12345679", x=local) == [False, None]
    assert values(X.is_in("2023-11-14T22:13:20.123456789"), x=local) == [True, None]
    assert values(X == "2023-11-14 23:13:20.123456789", x=zoned) == [True, None]
    assert values(X == "2023-11-14 22:13:20.123456789Z", x=zoned) == [True, None]
    assert values(X < "2023-11-14 22:13:20.123456001", x=pa.array([M(2023, 11, 14, 22, 13, 20, 123456)])) == [True]
    assert values(X < "1969-12-31 23:59:59.999999999", x=pa.array([-2, -1], pa.timestamp("ns"))) == [True, False]
    assert values(X == "00:00:00.000000005", x=pa.array([5], pa.time64("ns"))) == [True]
    assert values(X < "00:00:00.000000005", x=pa.array([0, 1], pa.time32("s"))) == [True, False]
    with pytest.raises(SchemaError, match=r"'9999-12-31' is beyond the years of a timestamp\[ns\], 1677 to 2262"):
        infer_type((X < "9999-12-31").expression, pa.schema({"x": local.type}))


@pytest.mark.parametrize("text", ["1998-9-2", "1998-02-30", "yesterday", "", "1998-09-02 25:00", "1998-09-02Z"])
def test_a_text_that_is_no_moment_is_named_before_anything_runs(text):
    schema = pa.schema({"x": pa.date32(), "m": pa.timestamp("us")})
    for column in (X, col("m")):
        with pytest.raises(SchemaError, match="is none: write it as '2024-02-29'"):
            infer_type((column < text).expression, schema)
    with pytest.raises(SchemaError, match="has a zone and the other side"):
        infer_type((col("m") < "1998-09-02 01:00Z").expression, schema)
    with pytest.raises(SchemaError, match="no common type"):
        infer_type((col("t") > X).expression, pa.schema({"x": pa.date32(), "t": pa.string()}))


def test_the_plan_has_the_date_so_that_estimates_know_it():
    schema = pa.schema({"x": pa.date32(), "t": pa.string()})
    typed = with_typed_texts(((X < "1998-09-02") & (col("t") == "1998-09-02")).expression, schema)
    day, text = (part.arguments[1] for part in typed.arguments)
    assert literal_scalar(day) == pa.scalar(D(1998, 9, 2))
    assert text.value == "1998-09-02"


def test_texts_are_times_of_day():
    clock = datetime.time
    texts = ["9:5", "09:05:03", "23:59:59.25", None, "0:0:0", "7:08:09"]
    times = [clock(9, 5), clock(9, 5, 3), clock(23, 59, 59, 250000), None, clock(0), clock(7, 8, 9)]
    for unit in (pa.time64("us"), pa.time64("ns"), pa.time32("ms")):
        for kind in (pa.string(), pa.large_string()):
            assert compute(X.cast(unit), x=pa.array(texts, kind)).equals(pa.array(times, unit))
    wrong = ["24:00", "9", "9:60", "1:2:60", "9:05Z", "-1:00", "", "2024-01-01 9:00", "1:2:3.", "1:2:3.1234567"]
    assert values(X.try_cast(pa.time64("us")), x=["1:02", *wrong]) == [clock(1, 2)] + [None] * len(wrong)
    assert values(X.try_cast(pa.time32("s")), x=["1:02:03", "1:02:03.5"]) == [clock(1, 2, 3), None]
    assert values(X.try_cast(pa.time64("ns")).cast(str), x=["1:02:03.123456789"]) == ["01:02:03.123456789"]
    with pytest.raises(DataError, match="Failed to parse string: '9:60' as a scalar of type time64"):
        values(X.cast(pa.time64("us")), x=["9:06", "9:60"])


def test_what_does_not_fit_is_null_for_try_cast_and_an_error_for_cast():
    texts = ["12", "-7", "1.5", "", "abc", "99999999999999999999", "0x10", "１", None]
    assert values(X.try_cast(int), x=texts) == [12, -7, None, None, None, None, 16, None, None]
    assert values(X.try_cast("float64"), x=["1.5", "inf", "x", None]) == [1.5, float("inf"), None, None]
    assert values(X.try_cast(pa.date32()), x=["2024-02-29", "2023-02-29", "x"]) == [D(2024, 2, 29), None, None]
    assert values(X.try_cast(pa.int8()), x=[1, 128, -128, None]) == [1, None, -128, None]
    assert values(X.try_cast(int), x=[1.0, 1.5, float("nan")]) == [1, None, None]
    assert values(X.try_cast(str), x=[1, None]) == ["1", None]
    assert compute(X.try_cast(pa.int16()), x=pa.array([], pa.string())).type == pa.int16()
    many = [str(number) if number % 3 else "none" for number in range(5000)]
    assert values(X.try_cast(int), x=many) == [number if number % 3 else None for number in range(5000)]
    with pytest.raises(DataError, match="x='abc'"):
        values(X.cast(int), x=["1", "abc"])
    with pytest.raises(SchemaError, match="cannot be cast to"):
        infer_type(X.try_cast(pa.list_(pa.int8())).expression, pa.schema({"x": pa.date32()}))
