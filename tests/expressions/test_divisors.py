"""Greatest common divisors, beside Python's."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import DataError, col
from tests.expressions.function_oracle import values

NUMBERS = st.none() | st.integers(-(2**63) + 1, 2**63 - 1) | st.integers(-50, 50)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=20))
def test_divisors_are_pythons(pairs):
    lefts, rights = ([pair[side] for pair in pairs] for side in (0, 1))
    found = values(col("a").gcd(col("b")), a=[*lefts, 0], b=[*rights, 0])
    assert found == [None if None in pair else math.gcd(*pair) for pair in pairs] + [0]
    assert values(col("a").gcd(12), a=[18, None, 0]) == [6, None, 12]


def test_the_least_integer_has_no_absolute_value():
    with pytest.raises(DataError, match="overflow"):
        values(col("a").gcd(2), a=[-(2**63)])
