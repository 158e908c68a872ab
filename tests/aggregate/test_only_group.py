"""Aggregates without keys: sums and counts of all rows are those of plain Python, for all types of numbers."""

import random

import pyarrow as pa
import pytest

from engine.errors import DataError
from tests.aggregate.group_oracle import (
    MEMORIES,
    NUMBERS,
    VALUE_TYPES,
    functions_for,
    input_table,
    make_calls,
    oracle,
    rows_of,
    single,
    two_phases,
)

MORE = {"int16": (pa.int16(), -(2**15), 2**15), "int32": (pa.int32(), -(2**31), 2**31)}
MORE |= {"uint16": (pa.uint16(), 0, 2**16), "uint32": (pa.uint32(), 0, 2**32)}


def table_of(data_type, values, functions):
    calls = make_calls(functions)
    columns = [values for call in calls if call.argument is not None]
    return input_table((), (), calls, [None if call.argument is None else data_type for call in calls], columns), calls


def check(workshop, table, calls):
    for memory in ("fits", "minimum"):
        result, _ = single(workshop, MEMORIES[memory], table, (), calls, 1500)
        assert rows_of(result) == oracle(table, (), calls)
        merged, _, _ = two_phases(workshop, MEMORIES[memory], table, (), calls, 1500)
        assert rows_of(merged) == oracle(table, (), calls)


@pytest.mark.parametrize("null_share", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("type_name", [*NUMBERS, *MORE])
def test_numbers(workshop, type_name, null_share):
    chance = random.Random(3)
    if type_name in MORE:
        data_type, low, high = MORE[type_name]
        values = [chance.choice([low, high - 1, chance.randrange(low, high)]) for _ in range(4000)]
    else:
        data_type, draw = VALUE_TYPES[type_name]
        values = [draw(chance) for _ in range(4000)]
        if pa.types.is_floating(data_type):
            values = [value if value == value else 0.5 for value in values]
    values = [None if chance.random() < null_share else value for value in values]
    table, calls = table_of(data_type, values, functions_for(type_name) if type_name not in MORE else ("sum", "count"))
    check(workshop, table.slice(5), calls)


@pytest.mark.parametrize("values", [[2**63 - 1, 1], [-(2**63), -1], [2**62] * 3, [2**63 - 1] + [0] * 3000 + [1]])
def test_a_sum_that_overflows_is_an_error(workshop, values):
    table, calls = table_of(pa.int64(), values, ("sum",))
    with pytest.raises(DataError, match="overflows int64"):
        single(workshop, 600, table, (), calls, 1500)


def test_sums_up_to_the_ends(workshop):
    table, calls = table_of(pa.int64(), [2**63 - 1, -(2**63), 1, 2**63 - 2, 1], ("sum", "count_all"))
    check(workshop, table, calls)


def test_floats_are_added_in_their_order(workshop):
    chance = random.Random(1)
    values = [chance.choice([1e16, 1.0, -1e16, 0.1]) for _ in range(5000)]
    table, calls = table_of(pa.float64(), values, ("sum",))
    result, _ = single(workshop, 600, table, (), calls, 1500)
    wanted = 0.0
    for value in values:
        wanted += value
    assert result.to_pydict() == {"sum_0": [wanted]}


def test_nothing_but_rows(workshop):
    calls = make_calls(("count_all",))
    schema = pa.schema([("other", pa.null())])
    table = pa.table([pa.nulls(3000)], schema=schema)
    check(workshop, table, calls)
