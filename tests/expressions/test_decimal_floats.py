"""A decimal is cast to the nearest float, in native steps and beside Arrow."""

from __future__ import annotations

import random
from decimal import Decimal

import pyarrow as pa
import pytest

from engine import col
from engine.expressions.evaluate import compile_expression


@pytest.mark.parametrize(("precision", "scale"), [(15, 2), (20, 5), (12, 4), (38, 10), (18, 18)])
def test_a_decimal_is_the_nearest_float(precision: int, scale: int) -> None:
    chance = random.Random(precision)
    digits = 10 ** min(precision, 15)
    values = [Decimal(chance.randrange(-digits, digits)).scaleb(-scale) for _ in range(3000)]
    values += [Decimal(3) if precision > scale else Decimal(0), None]
    batch = pa.record_batch({"d": pa.array(values, pa.decimal128(precision, scale))}).slice(1)
    wanted = [None if value is None else float(value) for value in values[1:]]
    for expression in (col("d").cast(pa.float64()), col("d") * 1.0):
        compiled = compile_expression(expression.expression, batch.schema)
        assert compiled(batch).to_pylist() == compiled.by_arrow(batch).to_pylist() == wanted
