"""Arrays become another type where nothing is lost, whatever they are nested in; else the first such row is named."""

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from engine.records.array_fit import fitted
from engine.records.value_check import MisfitError

M, D = datetime.datetime, datetime.date
NOON = M(2024, 1, 1, 12, 0, 0, 5)
A = pa.array
TEXT = pa.string()
WRONG = [
    (A([1.0, 1e300]), pa.float32(), "1e.300 is beyond the range of float"),
    (A([1.0, 70000.0], pa.float32()), pa.float16(), "70000.0 is beyond the range of halffloat"),
    (A([1, 2**53 + 1]), pa.float64(), "9007199254740993 not in range"),
    (A([1.0, 1.5]), pa.int64(), "1.500000 was truncated"),
    (A([1.0, float("nan")]), pa.int64(), "nan was truncated"),
    (A([1, 300]), pa.int8(), "300 not in range"),
    (A([1, -1]), pa.uint64(), "-1 not in range"),
    (A([1, 1000]), pa.decimal128(3, 0), "1000: Decimal value does not fit"),
    (A([Decimal("1.00"), Decimal("1.55")]), pa.decimal128(5, 1), "would cause data loss"),
    (A([Decimal("1.00"), Decimal("1.55")]), pa.int64(), "would cause data loss"),
    (A([1.5, 1.55]), pa.decimal128(5, 1), "1.55 is not the same as decimal128"),
    (A([Decimal(1), Decimal("12345678901234567890")]), pa.float64(), "is not the same as double"),
    (A([M(2024, 1, 1), NOON]), pa.date32(), "2024-01-01 12:00:00.000005 is not the same as date32"),
    (A([M(2024, 1, 1), NOON]), pa.timestamp("s"), "would lose data"),
    (A([datetime.time(1), datetime.time(1, 2, 3, 4)]), pa.time32("s"), "would lose data"),
    (A([datetime.timedelta(1), datetime.timedelta(microseconds=5)]), pa.duration("s"), "would lose data"),
    (A([b"a", b"\xff"]), pa.string(), "Invalid UTF8"),
    (A([b"ab", b"abc"]), pa.binary(2), "expected to be length 2"),
]
NO_KIND = [
    (A(["1"]), pa.int64()),
    (A([1]), pa.string()),
    (A([True]), pa.int64()),
    (A([True]), pa.float64()),
    (A([1]), pa.bool_()),
    (A(["2024-01-01"]), pa.date32()),
    (A([NOON]), pa.int64()),
    (A([D(2024, 1, 1)]), pa.int32()),
    (A([NOON]), pa.string()),
    (A([[1]]), pa.int64()),
    (A([1]), pa.list_(pa.int64())),
    (A([{"a": 1}]), pa.map_(pa.string(), pa.int64())),
]
RIGHT = [
    (A([1, None]), pa.float32(), [1.0, None]),
    (A([1, None]), pa.decimal128(3, 2), [Decimal("1.00"), None]),
    (A([2.0, None]), pa.int8(), [2, None]),
    (A([0.5, float("inf"), float("-inf")]), pa.float16(), [0.5, float("inf"), float("-inf")]),
    (A([1.55, None]), pa.decimal128(5, 2), [Decimal("1.55"), None]),
    (A([Decimal("1.10")]), pa.float64(), [1.1]),
    (A([Decimal("1.00")]), pa.int8(), [1]),
    (A(["a", None]), pa.large_string(), ["a", None]),
    (A(["a"]).dictionary_encode(), pa.string(), ["a"]),
    (A(["a", "a"]), pa.dictionary(pa.int8(), pa.string()), ["a", "a"]),
    (A(["ä"]), pa.binary(), ["ä".encode()]),
    (A([b"a"]), pa.string(), ["a"]),
    (A([b"ab", None]), pa.binary(2), [b"ab", None]),
    (A([D(2024, 1, 1)]), pa.timestamp("ms"), [M(2024, 1, 1)]),
    (A([D(2024, 1, 1)]), pa.date64(), [D(2024, 1, 1)]),
    (A([M(2024, 1, 1)]), pa.date32(), [D(2024, 1, 1)]),
    (A([M(2024, 1, 1)]), pa.timestamp("us", "UTC"), [M(2024, 1, 1, tzinfo=datetime.UTC)]),
    (A([5]), pa.timestamp("us"), [M(1970, 1, 1, 0, 0, 0, 5)]),
    (A([None, None]), pa.date32(), [None, None]),
    (A([float("nan")], from_pandas=True), pa.string(), [None]),
    (A([], pa.float64()), pa.string(), []),
    (A([[1, None], None, [2]]).slice(1), pa.list_(pa.int8()), [None, [2]]),
    (A([[1], [2]], pa.list_(pa.int64(), 1)), pa.list_(pa.int8()), [[1], [2]]),
    (A([[1], [2]]), pa.list_(pa.int8(), 1), [[1], [2]]),
    (A([[1], [2]], pa.large_list(pa.int64())), pa.list_(pa.float32()), [[1.0], [2.0]]),
    (A([[("a", 1)], None, []], pa.map_(TEXT, pa.int64())).slice(0, 2), pa.map_(TEXT, pa.int8()), [[("a", 1)], None]),
    (A([{"b": 1, "a": 2.0}, None]), pa.struct([("a", pa.int8()), ("b", pa.int8())]), [{"a": 2, "b": 1}, None]),
    (A([{"a": 2}]), pa.struct([("a", pa.int8()), ("c", pa.date32())]), [{"a": 2, "c": None}]),
]  # fmt: skip


def _nested(values):
    """Yield an array in lists, maps and structs, each with what makes another type one like it."""
    ends = pa.array(range(len(values) + 1), pa.int32())
    yield pa.ListArray.from_arrays(ends, values), pa.list_
    keys = pa.array(["k"] * len(values))
    yield pa.MapArray.from_arrays(ends, keys, values), lambda data_type: pa.map_(pa.string(), data_type)
    yield pa.StructArray.from_arrays([values], ["m"]), lambda data_type: pa.struct([("m", data_type)])


@pytest.mark.parametrize(("values", "data_type", "reason"), WRONG, ids=str)
def test_the_first_row_that_would_lose_something_is_named(values, data_type, reason):
    good = fitted(values.slice(0, 1), data_type)
    assert good.type == data_type
    with pytest.raises(MisfitError, match=reason) as caught:
        fitted(values, data_type)
    assert caught.value.index == 1
    many = pa.concat_arrays([values.slice(0, 1)] * 1000 + [values] + [values.slice(0, 1)] * 100)
    for nested, around in [(many, lambda each: each), *_nested(many)]:
        with pytest.raises(MisfitError, match=reason) as caught:
            fitted(nested, around(data_type))
        assert caught.value.index == 1001


@pytest.mark.parametrize(("values", "data_type"), NO_KIND, ids=str)
def test_no_kind_becomes_another_one(values, data_type):
    for nested, around in [(values, lambda each: each), *_nested(values)]:
        with pytest.raises(MisfitError, match="it is ") as caught:
            fitted(nested, around(data_type))
        assert caught.value.index == -1


@pytest.mark.parametrize(("values", "data_type", "found"), RIGHT, ids=str)
def test_what_loses_nothing_is_converted(values, data_type, found):
    made = fitted(values, data_type)
    made.validate(full=True)
    assert made.type == data_type
    assert made.to_pylist() == found


def test_zones_are_neither_taken_away_nor_given():
    zoned, plain = A([NOON], pa.timestamp("us", "Asia/Tokyo")), A([NOON])
    for target in (pa.timestamp("us"), pa.date32()):
        with pytest.raises(MisfitError, match="it has the time zone Asia/Tokyo, and the type has none"):
            fitted(zoned, target)
    with pytest.raises(MisfitError, match="it has no time zone, and the type has Asia/Tokyo"):
        fitted(plain, zoned.type)
    with pytest.raises(MisfitError, match="no time zone"):
        fitted(A([D(2024, 1, 1)]), zoned.type)
    other = fitted(zoned, pa.timestamp("ns", "UTC"))
    assert other.cast(pa.int64()).to_pylist() == [each * 1000 for each in zoned.cast(pa.int64()).to_pylist()]


def test_members_that_the_type_lacks_and_null_in_those_that_have_none_are_refused():
    values = A([{"a": 1, "b": 2}, {"a": None, "b": 3}])
    with pytest.raises(MisfitError, match="the type has no member 'b'"):
        fitted(values, pa.struct([("a", pa.int64())]))
    with pytest.raises(MisfitError, match="its member 'a' is null, and not nullable") as caught:
        fitted(values, pa.struct([pa.field("a", pa.int8(), False), ("b", pa.int64())]))
    assert caught.value.index == 1
