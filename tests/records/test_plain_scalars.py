"""scalar_of, array_of: the same values as pa.scalar and pa.array make, without the look for pandas."""

import datetime
import sys
from decimal import Decimal

import pyarrow as pa
import pytest

from engine.records.plain_scalars import array_of, scalar_of, without_pandas

VALUES = [
    True, False, 0, -1, 2**63 - 1, -(2**63), 1.5, -0.0, float("inf"), "", "x", "żółw\0", b"bytes", None,
    Decimal("1.25"), Decimal("-0.007"), Decimal("1E+3"), Decimal("-0"), Decimal("0.00"), Decimal("9" * 38),
    Decimal("9" * 40), Decimal("-1E-38"), datetime.date(2020, 2, 29), datetime.date(1, 1, 1), [1, 2],
    datetime.datetime(1969, 12, 31, 23, 59, 59, 999999), datetime.datetime(9999, 1, 1, tzinfo=datetime.UTC),
    datetime.timedelta(days=-1), pa.MonthDayNano([-1, 2, 3]), pa.MonthDayNano([0, 0, -(2**62)]),
]  # fmt: skip
TYPED = [
    (1, pa.int64()), (1, pa.int8()), (-1, pa.int32()), (2**64 - 1, pa.uint64()), (-(2**15), pa.int16()),
    (1, pa.float64()), (1.5, pa.float32()), ("x", pa.large_string()),
    ("x", pa.string()), ("x", pa.binary()), (True, pa.bool_()), (None, pa.int32()), (None, pa.string()),
    (None, pa.list_(pa.int64())), (None, None), (Decimal(7), pa.decimal128(38, 10)),
    (Decimal(-7), pa.decimal256(76, 0)),
    (Decimal("1.50"), pa.decimal128(2, 1)), (Decimal("-12.3"), pa.decimal64(3, 1)),
    (datetime.date(1969, 12, 31), pa.date64()),
    (datetime.datetime(2000, 1, 1), pa.timestamp("ns")), (datetime.datetime(2000, 1, 1), pa.timestamp("us", "UTC")),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_scalar_is_that_of_pyarrow(value):
    expected = pa.scalar(value)
    assert scalar_of(value).type == expected.type
    assert repr(scalar_of(value)) == repr(expected)


@pytest.mark.parametrize(("value", "data_type"), TYPED, ids=repr)
def test_a_scalar_of_a_type_is_that_of_pyarrow(value, data_type):
    expected = pa.scalar(value, data_type)
    found = scalar_of(value, data_type)
    assert (found.type, found.is_valid, found.as_py()) == (expected.type, expected.is_valid, expected.as_py())


def test_what_does_not_fit_is_refused_as_by_pyarrow():
    with pytest.raises(pa.ArrowInvalid):
        scalar_of("x", pa.int64())
    with pytest.raises(OverflowError):
        scalar_of(2**63)
    with pytest.raises((pa.ArrowInvalid, UnicodeEncodeError)):
        scalar_of("\ud800")
    for value, data_type in ((128, pa.int8()), (-1, pa.uint32()), (2**31, pa.int32())):
        expected = _made(lambda: pa.scalar(value, data_type))  # noqa: B023
        assert _made(lambda: scalar_of(value, data_type)) == expected  # noqa: B023
    for value, data_type in ((Decimal("1.25"), pa.decimal128(3, 1)), (Decimal(100), pa.decimal128(2, 0))):
        with pytest.raises(pa.ArrowInvalid):
            scalar_of(value, data_type)
    with pytest.raises(pa.ArrowInvalid):
        scalar_of(Decimal("NaN"))


COLUMNS = [
    ([], None), ([], pa.string()), ([None, None], None), ([None], pa.int32()), ([1, None, -(2**63)], None),
    ([1, 2], pa.int32()), ([True, None, False] * 7, None), ([None, 1.5, float("-inf")], None), ([1.5], pa.float32()),
    (["", None, "żółw\0", "x" * 40], None), (("a", "b"), pa.large_string()), ([1, 2.5], None), ([1, True], pa.int64()),
    ([b"x", None], None), ([[1], None], None), ([None] * 9 + [7], pa.int64()), ([7, None, -128], pa.int8()),
    ([2**64 - 1, None, 0], pa.uint64()), ([128], pa.int8()), ([-1], pa.uint16()), ([-(2**15), None], pa.int16()),
    ([datetime.date(1, 1, 1), None, datetime.date(9999, 12, 31)], None), ([datetime.date(1970, 1, 2)], pa.date32()),
    ([datetime.date(1970, 1, 2)], pa.date64()), ([datetime.date(1970, 1, 2)], pa.timestamp("us")),
]  # fmt: skip


@pytest.mark.parametrize("has_pandas", [False, True])
@pytest.mark.parametrize(("values", "data_type"), COLUMNS, ids=repr)
def test_an_array_is_that_of_pyarrow(values, data_type, has_pandas, monkeypatch):
    expected = _made(lambda: pa.array(values, data_type, from_pandas=False))
    if has_pandas:
        monkeypatch.setitem(sys.modules, "pandas", sys)
    else:
        monkeypatch.delitem(sys.modules, "pandas", raising=False)
    found = _made(lambda: array_of(values, data_type))
    if isinstance(found, pa.Array):
        found.validate(full=True)
    assert found == expected
    assert getattr(found, "type", None) == getattr(expected, "type", None)


def test_an_array_of_what_does_not_fit_is_refused_as_by_pyarrow(monkeypatch):
    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    for values, data_type in (([2**64], None), (["\ud800"], None), (["x"], pa.int64()), ([1, "x"], None)):
        assert _made(lambda: array_of(values, data_type)) == _made(lambda: pa.array(values, data_type))  # noqa: B023


def _made(make):
    """Return what is made, or the class of what is raised."""
    try:
        return make()
    except Exception as error:
        return type(error)


def test_constants_of_other_libraries_are_the_same_without_the_look():
    number = pa.scalar(7, pa.int32())
    own = pa.scalar, pa.array
    with without_pandas():
        assert (pa.scalar, pa.array) != own
        assert pa.scalar(7, type=pa.int32()).equals(number) and pa.scalar(7, pa.int32()).equals(number)
        assert pa.scalar(float("nan"), from_pandas=True).is_valid is False
        assert pa.array([number], number.type).equals(pa.repeat(number, 1))
        assert pa.array([1, None], pa.int8(), from_pandas=False).to_pylist() == [1, None]
    assert (pa.scalar, pa.array) == own
