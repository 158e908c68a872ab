"""First and last follow the order of rows, nulls included, whatever is spilled on the way."""

import random

import pyarrow as pa
import pytest

from tests.aggregate.group_oracle import (
    VALUE_TYPES,
    input_table,
    make_calls,
    oracle,
    rows_of,
    single,
    two_phases,
)

CALLS = make_calls(["first", "last"])


def make(type_name, rows, distinct, nulls=0.3, seed=1):
    rng = random.Random(seed)
    data_type, make_value = VALUE_TYPES[type_name]
    keys = [rng.randrange(distinct) for _ in range(rows)]
    values = [None if rng.random() < nulls else make_value(rng) for _ in range(rows)]
    return input_table(("key",), [pa.int64()], CALLS, [data_type] * 2, [keys, values, values])


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("pages", [6, 66])
@pytest.mark.parametrize("phases", [single, two_phases])
@pytest.mark.parametrize("type_name", ["int64", "string", "bool", "decimal256", "fixed"])
def test_order_survives_spilling(workshop, type_name, phases, pages):
    table = make(type_name, 6000, 900)
    result = phases(workshop, pages, table, ("key",), CALLS, force_spill=True)[0]
    assert rows_of(result) == oracle(table, ("key",), CALLS)


def test_groups_that_found_no_room_for_their_value_do_not_begin_with_null(workshop):
    """Values of half a page fill the pages while groups for the rows behind them are made already."""
    rng = random.Random(7)
    keys = [rng.randrange(200) for _ in range(1500)]
    values = [None if rng.random() < 0.2 else str(index) * rng.choice([1, 300, 900]) for index in range(1500)]
    table = input_table(("key",), [pa.int64()], CALLS, [pa.string()] * 2, [keys, values, values[::-1]])
    for phases in (single, two_phases):
        for pages in (6, 12, 66):
            result = phases(workshop, pages, table, ("key",), CALLS, batch_rows=500)[0]
            assert rows_of(result) == oracle(table, ("key",), CALLS)


def test_order_survives_the_frozen_table(workshop):
    table = make("string", 900, 300)
    result, operator = single(workshop, 6, table, ("key",), CALLS, level_max=0)
    assert rows_of(result) == oracle(table, ("key",), CALLS)
    assert operator.spilled_bytes > 0


@pytest.mark.parametrize("size", [3000, 9000])
def test_values_larger_than_a_page_come_and_go(workshop, size):
    rows = 40
    values = [None if index % 7 == 0 else chr(97 + index % 26) * (size + 50 * (index % 9)) for index in range(rows)]
    table = input_table(
        ("key",), [pa.int64()], CALLS, [pa.string()] * 2, [[i % 3 for i in range(rows)], values, values]
    )
    for pages in (6, 40):
        result, _ = single(workshop, pages, table, ("key",), CALLS, batch_rows=7)
        assert rows_of(result) == oracle(table, ("key",), CALLS)


@pytest.mark.parametrize("phases", [single, two_phases])
@pytest.mark.parametrize("values", [[], [None], [None, "x"], ["x", None], ["x", "y"]])
def test_one_group_without_keys(workshop, values, phases):
    table = input_table((), [], CALLS, [pa.string()] * 2, [values, values])
    first, last = (values[0], values[-1]) if values else (None, None)
    assert phases(workshop, 6, table, (), CALLS)[0].to_pylist() == [{"first_0": first, "last_1": last}]
