"""Decimals that come in 64 bits add up to what they do in 128 and 256, by whichever kernel."""

import random
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from engine.accumulators.aggregate_functions import argument_column
from engine.aggregate.aggregate_spec import AggregateSpec
from engine.aggregate.hash_aggregate import HashAggregate
from engine.errors import DataError, SchemaError
from engine.graph.expression import AggregateCall, ColumnRef
from engine.records.narrow_decimals import narrow_type
from tests.aggregate.group_oracle import (
    argument_types_of,
    input_table,
    make_calls,
    oracle,
    result_schema,
    rows_of,
    state_schema,
)

FUNCTIONS = ("sum", "avg", "count", "count_all")
CALLS = make_calls(FUNCTIONS)
MOST = 10**18 - 1
TYPES = [pa.decimal128(15, 2), pa.decimal128(18, 4), pa.decimal128(38, 4), pa.decimal256(61, 6)]


def table_of(data_type, keys, numbers, calls=CALLS):
    values = [None if number is None else Decimal(f"{number}E{-data_type.scale}") for number in numbers]
    types = [None if call.argument is None else data_type for call in calls]
    return input_table(("k",), (pa.int32(),), calls, types, [keys, *(values for each in types if each is not None)])


def narrow(table):
    """The same rows with decimals of 64 bits."""
    for index, field in enumerate(table.schema):
        if pa.types.is_decimal(field.type):
            to = narrow_type(field.type)
            table = table.set_column(index, field.name, pc.cast(table[field.name], to))
    return table


def run(workshop, phase, schema, batches, calls=CALLS, keys=("k",), pages=600):
    fields, types = [schema.field(key) for key in keys], argument_types_of(pa.table(schema.empty_table()), calls)
    output = state_schema(fields, calls, types) if phase == "partial" else result_schema(fields, calls, types)
    source = state_schema(fields, calls, types) if phase == "final" else schema
    with workshop.operator(pages) as (pool, space):
        aggregate = HashAggregate(AggregateSpec(phase, source, keys, calls, output), pool, space)
        try:
            if phase != "final":
                assert aggregate.compact_columns >= {argument_column(index) for index in range(3)}
            found = [each for batch in batches for each in aggregate.add_batch(batch)]
            return pa.Table.from_batches([*found, *aggregate.finish()], output)
        finally:
            aggregate.close()


def check(workshop, table, batches, keys=("k",)):
    wanted = oracle(table, keys, CALLS)
    for pages in (600, 4):
        assert rows_of(run(workshop, "single", table.schema, batches, keys=keys, pages=pages)) == wanted
        states = run(workshop, "partial", table.schema, batches, keys=keys, pages=pages)
        merged = run(workshop, "final", table.schema, states.to_batches(), keys=keys)
        assert rows_of(merged) == wanted


@pytest.mark.parametrize("null_share", [0.0, 0.1])
@pytest.mark.parametrize("key_count", [1, 4, 40, 3000])
@pytest.mark.parametrize("data_type", TYPES, ids=str)
def test_sums_averages_and_counts(workshop, data_type, key_count, null_share):
    chance = random.Random(key_count)
    most = min(MOST, 10**data_type.precision - 1)
    numbers = [chance.choice([most, -most, chance.randrange(-(10**6), 10**6)]) for _ in range(5003)]
    numbers = [None if chance.random() < null_share else number for number in numbers]
    table = table_of(data_type, [chance.randrange(key_count) for _ in numbers], numbers)
    check(workshop, table, narrow(table).slice(5).to_batches(1500) + table.slice(0, 5).to_batches())
    one = table.drop_columns("k")
    check(workshop, one, narrow(one).to_batches(1500), keys=())


def test_narrow_and_wide_batches_in_turns(workshop):
    table = table_of(pa.decimal128(15, 2), [row % 3 for row in range(4000)], range(4000))
    slim = narrow(table)
    batches = [(slim if start % 1000 else table).slice(start, 500).to_batches()[0] for start in range(0, 4000, 500)]
    check(workshop, table, batches)


def test_rows_that_are_passed_through(workshop):
    """So many groups that a partial aggregate gives each row out as it is."""
    rows = 300_000
    table = table_of(pa.decimal128(15, 2), range(rows), [row % 1000 for row in range(rows)])
    states = run(workshop, "partial", table.schema, narrow(table).to_batches(65536), pages=64)
    assert states.num_rows == rows
    sums = pa.table({"k": states["k"], "s": states["__state0_0"], "n": states["__state2_0"]}).sort_by("k")
    assert sums["s"].to_pylist() == [Decimal(f"{row % 1000}E-2") for row in range(rows)]
    assert sums["n"].to_pylist() == [1] * rows


def compact_of(workshop, functions, argument="x"):
    calls = make_calls(functions)
    schema = table_of(pa.decimal128(15, 2), [], [], calls).schema
    output = result_schema([schema.field("k")], calls, argument_types_of(schema.empty_table(), calls))
    with workshop.operator(600) as (pool, space):
        aggregate = HashAggregate(AggregateSpec("single", schema, ("k",), calls, output), pool, space)
        try:
            batch = narrow(table_of(pa.decimal128(15, 2), [1], [5], calls)).to_batches()[0]
            if argument_column(0) not in aggregate.compact_columns:
                with pytest.raises(SchemaError, match="got a batch of"):
                    aggregate.add_batch(batch)
            return aggregate.compact_columns
        finally:
            aggregate.close()


@pytest.mark.parametrize("function", ["min", "max", "first", "last", "stddev"])
def test_what_is_more_than_added_up_is_not_taken_narrow(workshop, function):
    assert argument_column(0) not in compact_of(workshop, (function,))
    assert argument_column(1) in compact_of(workshop, (function, "sum"))


def test_a_key_of_decimals_is_not_taken_narrow(workshop):
    schema = pa.schema([("k", pa.decimal128(9, 2)), (argument_column(0), pa.decimal128(9, 2))])
    calls = (AggregateCall("sum", ColumnRef("x"), "s"),)
    output = result_schema([schema.field("k")], calls, [pa.decimal128(9, 2)])
    with workshop.operator(600) as (pool, space):
        aggregate = HashAggregate(AggregateSpec("single", schema, ("k",), calls, output), pool, space)
        assert aggregate.compact_columns == {argument_column(0)}
        aggregate.close()


@pytest.mark.parametrize("digits", [38, 76])
@pytest.mark.parametrize("keys", [("k",), ()])
def test_a_sum_beyond_its_type_is_an_error(workshop, digits, keys):
    """States that fill the type, and a narrow value on top."""
    data_type = pa.decimal128(38, 0) if digits == 38 else pa.decimal256(76, 0)
    calls = make_calls(("sum", "count", "avg"))
    wide = table_of(data_type, [1], [10**digits - 1], calls).select([*keys, *map(argument_column, range(3))])
    one = narrow(table_of(data_type, [1] * 200, [1] * 200, calls).select(wide.column_names))
    with pytest.raises(DataError, match="overflows decimal"):
        run(workshop, "single", wide.schema, [*wide.to_batches(), *one.to_batches()], calls, keys)
