"""The number between two decimals is rounded once, whatever their size, sign and the fraction."""

from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from engine.window.exact_quantiles import exact_between

WIDE = pa.decimal256(76, 0)
NUMBERS = st.integers(-(10**38) + 1, 10**38 - 1) | st.integers(-100, 100)
#: of 62 digits behind the point at most
FRACTIONS = st.integers(0, 2**53 - 1).map(lambda part: part / 2**53) | st.sampled_from([0.0, 0.5, 0.25, 0.1, 0.9])


@given(rows=st.lists(st.tuples(NUMBERS, NUMBERS, FRACTIONS), min_size=1), scale=st.integers(0, 38))
def test_the_number_between_two_is_the_nearest_float(rows, scale):
    low, high, parts = zip(*rows, strict=True)
    made = (pa.array([None, *map(Decimal, each)], WIDE) for each in (low, high))
    found = exact_between(*made, pa.array([0.0, *parts], pa.float64()), scale)
    expected = [
        float((one * (1 - Fraction(part)) + other * Fraction(part)) / 10**scale)
        for one, other, part in zip(low, high, parts, strict=True)
    ]
    assert found.to_pylist() == [None, *expected]
