"""A partial aggregate: reduces in memory alone, gives up where rows do not repeat, never writes a file."""

import random

import pyarrow as pa
import pytest

from engine.accumulators.aggregate_functions import result_schema, state_schema
from engine.aggregate import pre_aggregation
from engine.aggregate.aggregate_spec import AggregateSpec
from engine.aggregate.aggregate_state import AggregateState
from engine.aggregate.hash_aggregate import HashAggregate
from tests.aggregate.group_oracle import (
    VALUE_TYPES,
    aggregate,
    argument_types_of,
    input_table,
    make_calls,
    make_table,
    oracle,
    rows_of,
    two_phases,
)


def test_a_partial_that_does_not_reduce_passes_rows_through(workshop, monkeypatch):
    monkeypatch.setattr(pre_aggregation, "PASS_ROWS", 200)
    for value_type in ("int8", "uint64", "float", "decimal", "string"):
        table, calls = make_table(value_type, value_type, 50, 40)
        rng = random.Random(2)
        unique = [f"{i}-{rng.random()}" for i in range(1000)]
        values = [None if i % 7 == 0 else VALUE_TYPES[value_type][1](rng) for i in range(1000)]
        types = [None if call.argument is None else VALUE_TYPES[value_type][0] for call in calls]
        columns = [unique, *[values for call in calls if call.argument is not None]]
        table = input_table(("key",), [pa.string()], calls, types, columns)
        for force_spill in (False, True):
            result, _, partial = two_phases(workshop, 100, table, ("key",), calls, 100, force_spill=force_spill)
            assert partial.num_rows == 1000
            assert rows_of(result) == oracle(table, ("key",), calls)


@pytest.mark.parametrize(
    ("groups", "expects_no_fewer", "passes"), [(10**6, True, True), (10**6, False, False), (2000, True, False)]
)
def test_few_rows_say_that_most_are_new_where_the_plan_expects_it(
    workshop, monkeypatch, groups, expects_no_fewer, passes
):
    """Of 2000 groups, 400 rows have met a tenth, and 4000 would meet nearly all."""
    monkeypatch.setattr(pre_aggregation, "PASS_ROWS", 4000)
    monkeypatch.setattr(pre_aggregation, "PASS_ROWS_EARLY", 400)
    rng, calls = random.Random(3), make_calls(["count_all"])
    keys = [rng.randrange(groups) for _ in range(1200)]
    table = input_table(("key",), [pa.int64()], calls, [None], [keys])
    states = state_schema([table.schema.field("key")], calls, argument_types_of(table, calls))
    with workshop.operator(200) as (pool, space):
        spec = AggregateSpec("partial", table.schema, ("key",), calls, states, expects_no_fewer=expects_no_fewer)
        operator = HashAggregate(spec, pool, space)
        before = sum(batch.num_rows for part in table.to_batches(100) for batch in operator.add_batch(part))
        assert (before > 0) == passes
        after = sum(batch.num_rows for batch in operator.finish())
        assert before + after == (len(set(keys[:400])) + 800 if passes else len(set(keys)))
        operator.close()


@pytest.mark.parametrize(
    ("groups", "rows_expected", "passes"),
    [(2000, 0, True), (2000, 6000, False), (2000, 3000, True), (10**9, 10**6, True)],
)
def test_a_partial_goes_on_where_rows_meet_as_many_groups_as_the_plan_expects(
    workshop, monkeypatch, groups, rows_expected, passes
):
    """Of 2000 groups, 400 rows have met a tenth: they are a third of 6000 rows, and two thirds of 3000."""
    monkeypatch.setattr(pre_aggregation, "PASS_ROWS", 400)
    rng, calls = random.Random(3), make_calls(["count_all"])
    keys = [rng.randrange(groups) for _ in range(2000)]
    table = input_table(("key",), [pa.int64()], calls, [None], [keys])
    states = state_schema([table.schema.field("key")], calls, argument_types_of(table, calls))
    with workshop.operator(200) as (pool, space):
        spec = AggregateSpec("partial", table.schema, ("key",), calls, states, rows_expected=rows_expected)
        operator = HashAggregate(spec, pool, space)
        before = sum(batch.num_rows for part in table.to_batches(100) for batch in operator.add_batch(part))
        assert (before > 0) == passes
        after = sum(batch.num_rows for batch in operator.finish())
        assert (before + after == len(set(keys))) == (not passes or groups == 10**9)  # where no row meets another
        operator.close()


def test_a_table_that_was_full_does_not_wait_for_groups_that_it_has_given_out(workshop, monkeypatch):
    monkeypatch.setattr(pre_aggregation, "PASS_ROWS", 400)
    rng, calls = random.Random(3), make_calls(["count_all"])
    table = input_table(("key",), [pa.int64()], calls, [None], [[rng.randrange(20_000) for _ in range(40_000)]])
    states = state_schema([table.schema.field("key")], calls, argument_types_of(table, calls))
    with workshop.operator(6) as (pool, space):
        spec = AggregateSpec("partial", table.schema, ("key",), calls, states, rows_expected=10**6)
        operator = HashAggregate(spec, pool, space)
        for part in table.to_batches(100):
            for _ in operator.add_batch(part):
                pass
        assert operator.state is AggregateState.PASSING_THROUGH
        operator.close()


def test_a_partial_that_passes_rows_through_empties_its_table_once(workshop, monkeypatch):
    """Its directory may be of megabytes, and a batch of kilobytes."""
    scan, scans = pre_aggregation.GroupScan, []
    monkeypatch.setattr(pre_aggregation, "GroupScan", lambda *arguments: scans.append(arguments) or scan(*arguments))
    monkeypatch.setattr(pre_aggregation, "PASS_ROWS", 200)
    table, calls = make_table("int64", "int64", 3000, 3000)
    states = state_schema([table.schema.field("key")], calls, argument_types_of(table, calls))
    with workshop.operator(200) as (pool, space):
        operator = HashAggregate(AggregateSpec("partial", table.schema, ("key",), calls, states), pool, space)
        given = sum(batch.num_rows for part in table.to_batches(100) for batch in operator.add_batch(part))
        assert given == operator.group_count > 0.9 * table.num_rows
        assert len(scans) == 1
        operator.close()


def test_a_partial_that_reduces_keeps_on_grouping(workshop, monkeypatch):
    monkeypatch.setattr(pre_aggregation, "PASS_ROWS", 200)
    table, calls = make_table("int64", "int64", 3000, 30)
    _, _, partial = two_phases(workshop, 100, table, ("key",), calls)
    assert partial.num_rows == 31


def test_a_full_partial_gives_out_states_and_writes_no_file(workshop):
    table, calls = make_table("int64", "string", 3000, 700)
    states = state_schema([table.schema.field("key")], calls, argument_types_of(table, calls))
    with workshop.operator(6) as (pool, space):
        operator = HashAggregate(AggregateSpec("partial", table.schema, ("key",), calls, states), pool, space)
        early = sum(batch.num_rows for part in table.to_batches(500) for batch in operator.add_batch(part))
        late = sum(batch.num_rows for batch in operator.finish())
        operator.close()
        assert operator.spilled_bytes == 0
    assert early > 0
    assert 700 < early + late <= 3000


def test_sums_that_are_kept_once_are_given_out_for_each_call(workshop):
    rng = random.Random(5)
    calls = make_calls(["sum", "avg", "count", "max", "avg", "sum", "count_all"])
    for value_type in ("int64", "float", "decimal"):
        data_type, draw = VALUE_TYPES[value_type]
        values = [None if index % 5 == 0 else draw(rng) for index in range(500)]
        keys = [f"key {index % 7}" for index in range(500)]
        types = [None if call.argument is None else data_type for call in calls]
        columns = [keys, *[values for call in calls if call.argument is not None]]
        table = input_table(("key",), [pa.string()], calls, types, columns)
        result, _, partial = two_phases(workshop, 100, table, ("key",), calls, 100, force_spill=False)
        assert rows_of(result) == oracle(table, ("key",), calls)
        assert str(partial.column("__state0_0")) == str(partial.column("__state5_0"))


@pytest.mark.parametrize("force_spill", [False, True])
@pytest.mark.parametrize("distinct", [30, 3000])
@pytest.mark.parametrize("value_type", ["int8", "uint64", "float", "decimal", "string"])
def test_states_are_combined_as_rows_are_grouped_or_passed_through(
    workshop, monkeypatch, value_type, distinct, force_spill
):
    monkeypatch.setattr(pre_aggregation, "PASS_ROWS", 200)
    table, calls = make_table("int64", value_type, 3000, distinct)
    keys, fields, types = ("key",), [table.schema.field("key")], argument_types_of(table, calls)
    states = state_schema(fields, calls, types)
    made = table
    for phase in ("partial", "combine", "combine"):
        with workshop.operator(100) as (pool, space):
            made, _ = aggregate(phase, made, keys, calls, states, pool, space, 100, force_spill=force_spill)
        assert made.schema == states
    assert (made.num_rows == 31) == (distinct == 30 and not force_spill)
    with workshop.operator(100) as (pool, space):
        result, _ = aggregate("final", made, keys, calls, result_schema(fields, calls, types), pool, space, 100)
    assert rows_of(result) == oracle(table, keys, calls)
