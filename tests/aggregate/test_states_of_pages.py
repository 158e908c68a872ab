"""States taken from pages before they are decoded: the same groups, in the order of their rows."""

import pyarrow as pa
import pytest

from engine.accumulators.aggregate_functions import result_schema, state_schema
from engine.aggregate.aggregate_spec import AggregateSpec
from engine.aggregate.hash_aggregate import HashAggregate
from engine.exchange.page_reader import PageReader
from engine.records.row_codec import RowCodec
from tests.aggregate.group_oracle import aggregate, argument_types_of, make_table, oracle, rows_of


def add_pages(final, states):
    """Give states to a final aggregate as an exchange brings them: pages of rows, past its router."""
    codec = RowCodec(states.schema)
    reader = PageReader(states.schema, max_bytes=8192, router=final.router)
    for batch in states.to_batches(max_chunksize=20):
        rows = codec.to_rows(batch)
        if not reader.has_room_for(len(rows)):
            for staged in reader.take_batches():
                assert list(final.add_batch(staged)) == []
        reader.add_row(rows)
    for staged in reader.take_batches():
        assert list(final.add_batch(staged)) == []


@pytest.mark.parametrize("repeats", [1, 6])
def test_what_repeats_later_is_folded_in_memory(workshop, monkeypatch, repeats):
    """Groups outgrow the caches (said to be tiny) while there is room; they repeat, or not, when pages are full."""
    monkeypatch.setattr("engine.aggregate.grouping_phase.CACHED_GROUPS", 64)
    table, calls = make_table("int64", "int64", 6000, 10, null_share=0.05)
    keys = [*range(700), *(700 + index % (5300 // repeats) if repeats == 1 else index % 700 for index in range(5300))]
    table = table.set_column(0, "key", pa.array(keys, pa.int64()))
    fields, types = [table.schema.field("key")], argument_types_of(table, calls)
    states_of = state_schema(fields, calls, types)
    with workshop.operator(6) as (pool, space):
        states, _ = aggregate("partial", table, ("key",), calls, states_of, pool, space, 100)
    with workshop.operator(130) as (pool, space):
        output = result_schema(fields, calls, types)
        final = HashAggregate(AggregateSpec("final", states_of, ("key",), calls, output), pool, space)
        add_pages(final, states)
        result = pa.Table.from_batches(final.finish(), output)
        assert final.router.row_count > states.num_rows // 2
        assert (final.spilled_bytes > 0) == (repeats == 1)
        final.close()
    assert rows_of(result) == oracle(table, ("key",), calls)


@pytest.mark.parametrize("key_type", ["int64", "large"])
@pytest.mark.parametrize("value_type", ["int64", "string"])
@pytest.mark.parametrize("force_spill", [False, True])
def test_pages_group_like_batches(workshop, key_type, value_type, force_spill):
    """``first`` and ``last`` tell whether a row overtook another."""
    table, calls = make_table(key_type, value_type, 3500, 20000, null_share=0.05)
    fields, types = [table.schema.field("key")], argument_types_of(table, calls)
    states_of = state_schema(fields, calls, types)
    with workshop.operator(6) as (pool, space):
        states, _ = aggregate("partial", table, ("key",), calls, states_of, pool, space, 100)
    with workshop.operator(66) as (pool, space):
        output = result_schema(fields, calls, types)
        final = HashAggregate(AggregateSpec("final", states_of, ("key",), calls, output, force_spill), pool, space)
        add_pages(final, states)
        result = pa.Table.from_batches(final.finish(), output)
        assert 0 < final.router.row_count < states.num_rows
        assert final.router.row_count + final.rows_in == states.num_rows
        assert final.spilled_bytes > 0
        final.close()
    assert rows_of(result) == oracle(table, ("key",), calls)


def test_only_a_final_phase_gets_states(workshop):
    table, calls = make_table("int64", "int64", 10, 10)
    with workshop.operator(16) as (pool, space):
        output = result_schema([table.schema.field("key")], calls, argument_types_of(table, calls))
        single = HashAggregate(AggregateSpec("single", table.schema, ("key",), calls, output), pool, space)
        assert single.router is None
        single.close()
