"""Values of columns as Python's, one at a time: what pyarrow makes of them all at once."""

import datetime
import decimal
import random

import pyarrow as pa
import pytest

from engine.errors import DataError
from engine.records.python_values import made_values
from engine.records.value_reader import ColumnValues, python_values

_MOMENT = datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999)
_EDGES = {
    pa.null(): [None],
    pa.bool_(): [True, False],
    **{pa.type_for_alias(f"int{bits}"): [-(2 ** (bits - 1)), -1, 0, 2 ** (bits - 1) - 1] for bits in (8, 16, 32, 64)},
    **{pa.type_for_alias(f"uint{bits}"): [0, 1, 2**bits - 1] for bits in (8, 16, 32, 64)},
    pa.float16(): [0.5, -1.0],
    pa.float32(): [0.1, float("-inf"), -0.0],
    pa.float64(): [0.1, 1e300, -0.0],
    pa.string(): ["", "a", "ä€\U0001f600", "x" * 300],
    pa.large_string(): ["", "ä", "long" * 99],
    pa.string_view(): ["", "a", "longer than twelve bytes"],
    pa.binary(): [b"", b"\xff\x00"],
    pa.large_binary(): [b"", b"\xff\x00"],
    pa.binary(3): [b"abc", b"\x00\x01\x02"],
    pa.date32(): [datetime.date.min, datetime.date(1970, 1, 1), datetime.date(2000, 2, 29), datetime.date.max],
    pa.date64(): [datetime.date(1969, 12, 31), datetime.date(2024, 2, 29)],
    **{
        pa.timestamp(unit): [
            datetime.datetime.min,
            datetime.datetime(2000, 2, 29, 1, 2, 3),
            datetime.datetime(9999, 12, 31),
        ]
        for unit in ("s", "ms", "us")
    },
    pa.timestamp("ns"): [datetime.datetime(2000, 2, 29, 1, 2, 3)],
    pa.timestamp("us", "Europe/Zurich"): [datetime.datetime(2000, 7, 1, tzinfo=datetime.UTC)],
    pa.time32("s"): [datetime.time(0), datetime.time(23, 59, 59)],
    pa.time32("ms"): [datetime.time(1, 2, 3, 4000)],
    pa.time64("us"): [datetime.time.max],
    pa.time64("ns"): [datetime.time.max],
    pa.duration("s"): [datetime.timedelta(days=-1, seconds=5), datetime.timedelta(0)],
    pa.duration("us"): [datetime.timedelta(microseconds=-1), datetime.timedelta(days=99_999_999, microseconds=3)],
    pa.decimal128(9, 2): [decimal.Decimal("-1.50")],
    pa.list_(pa.int32()): [[], [1, None]],
    pa.struct([("a", pa.string())]): [{"a": "x"}, {"a": None}],
    pa.map_(pa.string(), pa.int8()): [[("a", 1)]],
    pa.dictionary(pa.int8(), pa.string()): ["a", "b"],
}


@pytest.mark.parametrize("data_type", _EDGES, ids=str)
def test_values_are_those_of_pyarrow_with_and_without_nulls_and_in_slices(data_type):
    drawn = random.Random(str(data_type))
    values = [drawn.choice([*_EDGES[data_type], None]) for _ in range(70)]
    for column in (pa.array(values, data_type), pa.array(_EDGES[data_type], data_type), pa.array([], data_type)):
        for part in (column, column.slice(1), column.slice(3, 9)):
            found = ColumnValues("c", part).values()
            assert found == made_values("c", part) == part.to_pylist()
            assert list(map(type, found)) == list(map(type, part.to_pylist()))


def test_a_moment_before_1970_is_cut_into_days_and_their_rest():
    for unit, moment in (
        ("us", _MOMENT),
        ("ms", _MOMENT.replace(microsecond=999_000)),
        ("s", _MOMENT.replace(microsecond=0)),
    ):
        assert ColumnValues("c", pa.array([moment], pa.timestamp(unit))).values() == [moment]


def test_every_day_of_a_year_and_every_leap_rule_is_a_date():
    days = [
        datetime.date(year, 1, 1).toordinal() + day for year in (1, 4, 100, 400, 1900, 2000, 2024) for day in range(366)
    ]
    column = pa.array([day - 719_163 for day in days], pa.int32()).view(pa.date32())
    assert ColumnValues("c", column).values() == [datetime.date.fromordinal(day) for day in days]


@pytest.mark.parametrize(
    ("number", "data_type"),
    [
        (2**31 - 1, pa.date32()),
        (-(2**31), pa.date32()),
        (2**62, pa.timestamp("us")),
        (-(2**63), pa.timestamp("s")),
        (2**63 - 1, pa.duration("s")),
    ],
)
def test_a_value_that_python_does_not_have_is_an_error_that_names_the_column(number, data_type):
    width = pa.int32() if data_type.bit_width == 32 else pa.int64()
    column = pa.array([None, number], width).view(data_type)
    with pytest.raises(DataError, match="'c'"):
        ColumnValues("c", column).values()


def test_a_time_of_day_beyond_the_day_is_what_pyarrow_makes_of_it():
    for column in (
        pa.array([5, 86_400], pa.int32()).view(pa.time32("s")),
        pa.array([-1], pa.int64()).view(pa.time64("us")),
    ):
        assert ColumnValues("c", column).values() == column.to_pylist()


def test_bytes_that_are_no_text_are_an_error_that_shows_them():
    column = pa.array([b"fine", b"\xff"]).view(pa.string())
    with pytest.raises(DataError, match=r"column 'c': b'.*' is not UTF-8"):
        ColumnValues("c", column).values()


def test_chunks_follow_each_other():
    assert python_values("c", pa.chunked_array([[1], [], [2, None]], pa.int64())) == [1, 2, None]
