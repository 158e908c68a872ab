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


@pytest.mark.parametrize(
    "data_type",
    [pa.decimal128(18, 0), pa.decimal128(38, 0), pa.decimal128(38, 30), pa.decimal128(5, -3), pa.decimal256(60, 20)],
    ids=str,
)
def test_more_digits_than_a_float_has_are_rounded_once(data_type: pa.DataType) -> None:
    chance = random.Random(1)
    values = [None]
    for _ in range(3000):
        sign, digits = chance.randrange(2), 10 ** chance.randrange(1, data_type.precision + 1)
        values.append(Decimal((sign, Decimal(chance.randrange(digits)).as_tuple().digits, -data_type.scale)))
    batch = pa.record_batch({"d": pa.array(values, data_type)}).slice(1)
    compiled = compile_expression(col("d").cast(pa.float64()).expression, batch.schema)
    wanted = [float(value) for value in values[1:]]
    assert compiled(batch).to_pylist() == compiled.by_arrow(batch).to_pylist() == wanted
