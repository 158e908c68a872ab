"""Quantiles of numbers are the floats nearest to the exact ones: against fractions, in memory and beyond."""

import random
from decimal import Context, Decimal
from fractions import Fraction

import pyarrow as pa
import pytest

from engine.window.quantiles import quantile_type, quantiles, searched_quantile

EXACT = Context(prec=100)
SHARES = (0.0, 0.1, 0.25, 0.3, 0.5, 0.9, 1.0)
#: type, the integers that a value is drawn from
TYPES = {
    "int64": (pa.int64(), 2**63 - 1),
    "few": (pa.int64(), 3),
    "cents": (pa.decimal128(9, 2), 10**5),
    "words": (pa.decimal128(18, 4), 10**18 - 1),
    "wide": (pa.decimal128(38, 10), 10**38 - 1),
    "wide type of small": (pa.decimal128(38, 2), 10**4),
    "near to each other": (pa.decimal128(38, 0), 2**64 + 5),
    "wider": (pa.decimal256(60, 5), 10**30),
}


def drawn(kind, count, seed):
    data_type, most = TYPES[kind]
    rng = random.Random(seed)
    low = most - 20 if kind == "near to each other" else -most
    numbers = [None if rng.random() < 0.1 else rng.randint(low, most) for _ in range(count)]
    if pa.types.is_integer(data_type):
        return numbers, pa.array(numbers, data_type)
    scaled = [None if each is None else EXACT.scaleb(Decimal(each), -data_type.scale) for each in numbers]
    return scaled, pa.array(scaled, data_type)


def exact(values, share):
    """The float nearest to the exact quantile."""
    known = sorted(Fraction(value) for value in values if value is not None)
    if not known:
        return None
    place = share * (len(known) - 1)
    low = int(place)
    part = Fraction(place - low)
    return float(known[low] * (1 - part) + known[low + (place > low)] * part)


def nearly(found, expected, kind):
    """Decimals of more than 38 digits go through floats."""
    return found == pytest.approx(expected, rel=1e-14) if kind == "wider" else found == expected


@pytest.mark.parametrize("kind", TYPES)
def test_groups_in_any_order_and_as_they_lie(kind):
    groups = [drawn(kind, count, count) for count in (1, 2, 3, 10, 25, 300)]
    values = pa.concat_arrays([pa.nulls(1, TYPES[kind][0]), *(array for _, array in groups)]).slice(1)
    bounds = [0]
    for each, _ in groups:
        bounds.append(bounds[-1] + len(each))
    mixed = list(range(len(values)))
    random.Random(1).shuffle(mixed)
    places = {row: place for place, row in enumerate(mixed)}
    order = pa.array([places[row] for row in range(len(values))], pa.int32())
    for share in SHARES:
        expected = [exact(each, share) for each, _ in groups]
        for found in (
            quantiles(values, None, pa.array(bounds, pa.int64()), share),
            quantiles(values.take(pa.array(mixed)), order, pa.array(bounds, pa.int64()), share),
        ):
            assert found.type == quantile_type(values.type) == pa.float64()
            assert all(map(nearly, found.to_pylist(), expected, [kind] * len(expected))), share
        last = quantiles(values, None, pa.array(bounds[3:], pa.int64()), share).to_pylist()
        assert all(map(nearly, last, expected[3:], [kind] * len(last))), share


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("rows_max", [1, 100, 5000])
def test_a_group_that_is_searched_in_passes(kind, rows_max):
    values, array = drawn(kind, 2000, 7)
    blocks = [array.slice(start, 300) for start in range(0, 2000, 300)]
    count = len(array) - array.null_count
    for share in (0.0, 0.3, 0.5, 1.0):
        found = searched_quantile(lambda: iter(blocks), array.type, count, share, rows_max)
        assert nearly(found[0].as_py(), exact(values, share), kind)


def test_a_group_of_nulls_has_none():
    for data_type in (pa.int64(), pa.decimal128(9, 2), pa.decimal128(38, 2), pa.decimal256(50, 2)):
        values = pa.array([None, None, 10**7 - 1, None], data_type)
        found = quantiles(values, None, pa.array([0, 2, 4], pa.int64()), 0.5)
        assert found.to_pylist() == [None, 9999999.0]


def test_the_median_of_two_prices_lies_between_them():
    prices = pa.array([Decimal("2.01"), Decimal("2.02")], pa.decimal128(18, 2))
    assert quantiles(prices, None, pa.array([0, 2], pa.int64()), 0.5).to_pylist() == [2.015]
