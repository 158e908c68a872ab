"""scalar_of: the same scalars as pa.scalar, without the look for pandas."""

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from engine.records.plain_scalars import scalar_of

VALUES = [
    True, False, 0, -1, 2**63 - 1, -(2**63), 1.5, -0.0, float("inf"), "", "x", "żółw\0", b"bytes", None,
    Decimal("1.25"), datetime.date(2020, 2, 29), [1, 2],
]  # fmt: skip
TYPED = [
    (1, pa.int64()), (1, pa.int8()), (1, pa.float64()), (1.5, pa.float32()), ("x", pa.large_string()),
    ("x", pa.string()), ("x", pa.binary()), (True, pa.bool_()), (None, pa.int32()), (None, pa.string()),
    (None, pa.list_(pa.int64())), (None, None),
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
