"""Greatest common divisors of integers, by Euclid's steps over whole arrays: at most 90 of them, mostly about 20.

Held by: tests/expressions/test_divisors.py
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from engine.expressions.binding import Binding, Operand, Options
from engine.expressions.nested_functions import over_rows
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of

_INT64 = pa.int64()


def bind_gcd(_operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind the greatest common divisor of two integers; of 0 and a number it is the number."""
    return Binding(over_rows(_divisors), (_INT64, _INT64), can_raise=True)


def _divisors(left: pa.Array, right: pa.Array) -> pa.Array:
    is_valid = pc.and_(pc.is_valid(left), pc.is_valid(right))
    larger, smaller = (pc.abs_checked(pc.fill_null(one, 0)) for one in (left, right))
    is_left = pc.not_equal(smaller, 0)
    while pc.any(is_left).as_py():
        by = pc.if_else(is_left, smaller, 1)
        rest = pc.subtract(larger, pc.multiply(pc.divide(larger, by), by))
        larger, smaller = pc.if_else(is_left, smaller, larger), pc.if_else(is_left, rest, 0)
        is_left = pc.not_equal(smaller, 0)
    return pc.if_else(is_valid, larger, scalar_of(None, _INT64))
