"""Few groups: sums and counts over lists of their rows are those of plain Python, for all types of numbers."""

import decimal
import random

import pyarrow as pa
import pytest

from engine.errors import DataError
from tests.aggregate.group_oracle import (
    MEMORIES,
    NUMBERS,
    VALUE_TYPES,
    input_table,
    make_calls,
    oracle,
    rows_of,
    single,
    two_phases,
)

FUNCTIONS = ("sum", "count", "avg", "count_all", "max")
MORE = {"int16": (pa.int16(), -(2**15), 2**15), "int32": (pa.int32(), -(2**31), 2**31)}
MORE |= {"uint16": (pa.uint16(), 0, 2**16), "uint32": (pa.uint32(), 0, 2**32)}


def table_of(data_type, keys, values, functions=FUNCTIONS):
    calls = make_calls(functions)
    types = [None if call.argument is None else data_type for call in calls]
    columns = [keys, *(values for each in types if each is not None)]
    return input_table(("k",), (pa.int32(),), calls, types, columns), calls


def values_of(type_name, rows, null_share):
    chance = random.Random(3)
    if type_name in MORE:
        data_type, low, high = MORE[type_name]
        values = [chance.choice([low, high - 1, chance.randrange(low, high)]) for _ in range(rows)]
    else:
        data_type, draw = VALUE_TYPES[type_name]
        values = [draw(chance) for _ in range(rows)]
        if pa.types.is_floating(data_type):
            values = [value if value == value else 0.5 for value in values]
    return data_type, [None if chance.random() < null_share else value for value in values]


@pytest.mark.parametrize("null_share", [0.0, 0.1])
@pytest.mark.parametrize("key_count", [1, 4, 8, 9, 40])
@pytest.mark.parametrize("type_name", [*NUMBERS, *MORE])
@pytest.mark.sample("values")
def test_numbers(workshop, type_name, key_count, null_share):
    chance = random.Random(key_count)
    data_type, values = values_of(type_name, 5003, null_share)
    keys = [chance.choice([None, *range(key_count - 1)]) for _ in values]
    table, calls = table_of(data_type, keys, values)
    wanted = oracle(table.slice(5), ("k",), calls)
    for memory in ("fits", "minimum"):
        result, _ = single(workshop, MEMORIES[memory], table.slice(5), ("k",), calls, 1500)
        assert rows_of(result) == wanted
        merged, _, _ = two_phases(workshop, MEMORIES[memory], table.slice(5), ("k",), calls, 1500)
        assert rows_of(merged) == wanted


def test_groups_that_come_and_go(workshop):
    """Blocks of few groups and of many in turns, and one key that never goes."""
    keys = [7 if n % 3 else (n // 1500 % 2) * (n % 300) for n in range(20_000)]
    table, calls = table_of(pa.int64(), keys, range(20_000))
    result, _ = single(workshop, 600, table, ("k",), calls, 1100)
    assert rows_of(result) == oracle(table, ("k",), calls)


@pytest.mark.parametrize("short", [0.0, 0.5, 1.0])
def test_wide_decimals_short_and_long(workshop, short):
    chance = random.Random(5)
    values = [
        decimal.Decimal(chance.randrange(-(10**18), 10**18) if chance.random() < short else chance.randrange(10**70))
        for _ in range(4000)
    ]
    keys = [n % 3 for n in range(4000)]
    table, calls = table_of(pa.decimal256(76, 0), keys, values, ("sum", "count", "count_all"))
    result, _ = single(workshop, 600, table, ("k",), calls, 1500)
    assert rows_of(result) == oracle(table, ("k",), calls)


@pytest.mark.parametrize(
    ("data_type", "number", "largest"),
    [
        (pa.int64(), int, 2**63 - 1),
        (pa.decimal128(38, 0), decimal.Decimal, 10**38 - 1),
        (pa.decimal256(76, 0), decimal.Decimal, 10**76 - 1),
    ],
)
@pytest.mark.parametrize("sign", [1, -1])
def test_a_sum_that_overflows_is_an_error(workshop, data_type, number, largest, sign):
    keys = [n % 3 for n in range(2000)]
    values = [number(0)] * 2000
    values[600], values[1500] = number(sign * largest), number(2 * sign)
    table, calls = table_of(data_type, keys, values, ("sum", "count", "count_all"))
    with pytest.raises(DataError, match="overflows"):
        single(workshop, 600, table, ("k",), calls, 2000)


def test_floats_are_added_in_their_order(workshop):
    chance = random.Random(1)
    values = [chance.choice([1e16, 1.0, -1e16, 0.1]) for _ in range(5000)]
    keys = [chance.randrange(3) for _ in values]
    table, calls = table_of(pa.float64(), keys, values, ("sum", "count", "count_all"))
    result, _ = single(workshop, 600, table, ("k",), calls, 1500)
    wanted = [0.0] * 3
    for key, value in zip(keys, values, strict=True):
        wanted[key] += value
    assert dict(zip(*list(result.to_pydict().values())[:2], strict=True)) == dict(enumerate(wanted))
