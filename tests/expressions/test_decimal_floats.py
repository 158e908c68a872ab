"""A decimal is cast to the nearest float, and multiplied with another one, in native steps and beside Arrow."""

from __future__ import annotations

import random
from decimal import Context, Decimal

import pyarrow as pa
import pytest

from engine import col
from engine.errors import DataError
from engine.expressions.evaluate import compile_expression

WIDE = Context(prec=80)


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


def test_decimals_of_38_digits_as_sums_are_have_a_product() -> None:
    chance = random.Random(2)
    values: list[tuple[Decimal | None, Decimal | None]] = [(None, Decimal(1)), (Decimal(1), None)]
    for _ in range(500):
        one = chance.randrange(1, 37)
        drawn = (chance.randrange(-(10**digits), 10**digits) for digits in (one, 37 - one))
        values.append((Decimal(next(drawn)).scaleb(-2, WIDE), Decimal(next(drawn)).scaleb(-4, WIDE)))
    batch = _pairs(values, 2, 4)
    compiled = compile_expression((col("a") * col("b")).expression, batch.schema)
    wanted = [None if one is None or other is None else WIDE.multiply(one, other) for one, other in values]
    assert compiled(batch).to_pylist() == compiled.by_arrow(batch).to_pylist() == wanted


def test_a_product_of_more_digits_than_there_are_fails() -> None:
    batch = _pairs([(Decimal(10**37), Decimal(10**37))], 0, 0)
    with pytest.raises(DataError):
        compile_expression((col("a") * col("b")).expression, batch.schema)(batch)


def _pairs(values: list[tuple[Decimal | None, Decimal | None]], *scales: int) -> pa.RecordBatch:
    columns = zip("ab", zip(*values, strict=True), scales, strict=True)
    return pa.record_batch({name: pa.array(each, pa.decimal128(38, scale)) for name, each, scale in columns})
