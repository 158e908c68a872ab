"""HashAggregate against plain Python, pyarrow and DuckDB."""

import math
import random

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.accumulators.aggregate_functions import result_schema, state_schema
from engine.aggregate.aggregate_spec import AggregateSpec
from engine.aggregate.hash_aggregate import HashAggregate
from engine.errors import CorruptBlockError, SchemaError
from engine.graph.expression import AggregateCall, ColumnRef
from engine.memory.budget import Budget, Kind
from engine.memory.segment import MemorySegment
from engine.records import wide_rows
from engine.records.row_codec import RowCodec
from tests.aggregate.group_oracle import (
    ALL,
    MEMORIES,
    VALUE_TYPES,
    aggregate,
    argument_types_of,
    input_table,
    make_calls,
    make_table,
    oracle,
    rows_of,
    single,
    two_phases,
)

# --------------------------------------------------------------------------------------------------- types and memory


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("value_type", VALUE_TYPES)
def test_every_argument_type_aggregates_like_the_oracle(workshop, value_type, memory):
    table, calls = make_table("int64", value_type, 4000, 6000)
    result, operator = single(workshop, MEMORIES[memory], table, ("key",), calls)
    assert rows_of(result) == oracle(table, ("key",), calls)
    assert (operator.spilled_bytes > 0) == (memory != "fits")


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("key_type", VALUE_TYPES)
def test_every_key_type_groups_like_the_oracle(workshop, key_type, memory):
    table, calls = make_table(key_type, "int64", 800, 500)
    result, _ = single(workshop, MEMORIES[memory], table, ("key",), calls)
    assert rows_of(result) == oracle(table, ("key",), calls)


@pytest.mark.parametrize("value_type", ["int64", "decimal", "double", "string", "bool"])
@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("force_spill", [False, True])
def test_partial_and_final_give_what_single_gives(workshop, value_type, memory, force_spill):
    table, calls = make_table("string", value_type, 1000, 600)
    result, operator, _ = two_phases(workshop, MEMORIES[memory], table, ("key",), calls, force_spill=force_spill)
    assert rows_of(result) == oracle(table, ("key",), calls)
    assert operator.spilled_bytes > 0 or not force_spill or len(result) <= 16


@pytest.mark.parametrize("batch_rows", [1, 2, 7, 49, 3000])
@pytest.mark.parametrize("distinct", [1, 20, 400])
@pytest.mark.parametrize("force_spill", [False, True])
def test_batch_sizes_and_duplicates_do_not_matter(workshop, batch_rows, distinct, force_spill):
    table, calls = make_table("int64", "int64", 400, distinct)
    result, operator = single(workshop, 30, table, ("key",), calls, batch_rows, force_spill=force_spill)
    assert rows_of(result) == oracle(table, ("key",), calls)
    assert (operator.spilled_bytes > 0) == (force_spill and distinct > 1)


@given(
    rows=st.lists(
        st.tuples(
            st.none() | st.integers(-2, 2),
            st.none() | st.text("ab", max_size=3),
            st.none() | st.sampled_from([0.0, -0.0, 1.5, math.nan]),
            st.none() | st.integers(-(2**31), 2**31 - 1),
            st.none() | st.text("xy", max_size=30),
        ),
        max_size=90,
    ),
    keys=st.sampled_from([("a",), ("b",), ("c",), ("a", "b"), ("b", "c", "a"), ()]),
    force_spill=st.booleans(),
    level_max=st.sampled_from([-1, 0, 6]),
    split=st.booleans(),
)
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_rows_and_any_keys_group_like_the_oracle(workshop, rows, keys, force_spill, level_max, split):
    calls = (
        *make_calls(ALL),
        *(AggregateCall(function, ColumnRef("t"), function) for function in ("max", "first", "last")),
    )
    columns = dict(zip("abcde", zip(*rows, strict=True) if rows else [[]] * 5, strict=True))
    key_types = {"a": pa.int16(), "b": pa.string(), "c": pa.float64()}
    argument_types = [None if call.argument is None else pa.int32() for call in calls[:-3]] + [pa.string()] * 3
    data = [columns[key] for key in keys] + [columns["d"]] * 7 + [columns["e"]] * 3
    table = input_table(keys, [key_types[key] for key in keys], calls, argument_types, [list(c) for c in data])
    options = {"force_spill": force_spill, "level_max": level_max}
    if split:
        result, _, _ = two_phases(workshop, 6, table, keys, calls, 7, **options)
    else:
        result, _ = single(workshop, 6, table, keys, calls, 7, **options)
    assert rows_of(result) == oracle(table, keys, calls)


def test_two_hundred_thousand_rows_group_like_duckdb_and_pyarrow(workshop):
    import duckdb

    rng = random.Random(5)
    calls = make_calls(ALL[:6])
    values = [None if i % 11 == 0 else rng.randrange(-(10**6), 10**6) for i in range(200_000)]
    keys = [int(rng.paretovariate(0.4)) % 60_000 for _ in range(200_000)]
    types = [None if call.argument is None else pa.int64() for call in calls]
    table = input_table(("key",), [pa.int64()], calls, types, [keys, *[values] * 5])
    result, operator = single(workshop, 100, table, ("key",), calls, 8192)
    assert operator.spilled_bytes > 0
    connection = duckdb.connect()
    connection.register("t", table)
    wanted = connection.execute(
        "select key, sum(__arg0)::bigint, count(__arg0), count(*), min(__arg0), max(__arg0), avg(__arg0) "
        "from t group by 1"
    ).fetchall()
    assert rows_of(result) == sorted(map(repr, wanted))
    grouped = table.group_by("key").aggregate([("__arg0", "sum")])
    assert sorted(grouped.to_pydict()["__arg0_sum"], key=repr) == sorted(result.to_pydict()["sum_0"], key=repr)


@pytest.mark.parametrize(("pages", "rows"), [(4000, range(8193, 32769)), (200, range(1, 4097))])
def test_results_come_in_large_batches_where_there_is_memory_for_them(workshop, pages, rows):
    calls = make_calls(["count_all"])
    table = input_table(("key",), [pa.int64()], calls, [None], [list(range(50_000))])
    result, _ = single(workshop, pages, table, ("key",), calls, 8192)
    assert max(len(chunk) for chunk in result["key"].chunks) in rows
    assert result.num_rows == 50_000


# ------------------------------------------------------------------------------------------------- keys and the global


def test_zeros_are_one_group_nans_are_one_group_and_nulls_are_one_group(workshop):
    calls = make_calls(["count_all"])
    keys = [0.0, -0.0, math.nan, -math.nan, None, None, 1.0]
    table = input_table(("key",), [pa.float64()], calls, [None], [keys])
    for pages, force_spill in ((100, False), (6, True)):
        result, _ = single(workshop, pages, table, ("key",), calls, 1, force_spill=force_spill)
        assert rows_of(result) == ["('nan', 2)", "(0.0, 2)", "(1.0, 1)", "(None, 2)"]


def test_without_calls_the_keys_are_made_distinct(workshop):
    table = input_table(("key",), [pa.string()], (), [], [["a", "b", None, "a", None]])
    result, _, _ = two_phases(workshop, 6, table, ("key",), ())
    assert rows_of(result) == ["('a',)", "('b',)", "(None,)"]


@pytest.mark.parametrize("phase", ["single", "final"])
def test_without_keys_nothing_gives_one_row(workshop, phase):
    calls = (*make_calls(ALL), AggregateCall("max", ColumnRef("s"), "top"))
    types = [None if call.argument is None else pa.int64() for call in calls[:-1]] + [pa.string()]
    output = result_schema([], calls, types)
    table = input_table((), [], calls, types, [[]] * 8)
    if phase == "final":
        table = state_schema([], calls, types).empty_table()
    with workshop.operator(6) as (pool, space):
        result, _ = aggregate(phase, table, (), calls, output, pool, space)
    assert result.to_pylist() == [dict(zip(output.names, [None, 0, 0, *[None] * 6], strict=True))]


def test_a_partial_of_nothing_gives_nothing_and_so_does_any_phase_with_keys(workshop):
    calls = make_calls(ALL)
    types = [None if call.argument is None else pa.int64() for call in calls]
    for keys, key_types in (((), []), (("key",), [pa.int8()])):
        table = input_table(keys, key_types, calls, types, [[]] * (len(keys) + 7))
        result, _, partial = two_phases(workshop, 6, table, keys, calls)
        assert partial.num_rows == 0
        assert result.num_rows == (0 if keys else 1)


def test_rows_without_columns_are_counted(workshop):
    rows = pa.record_batch({"a": [1, 2, 3]}).select([])
    output = pa.schema([("rows", pa.int64())])
    with workshop.operator(6) as (pool, space):
        operator = HashAggregate(
            AggregateSpec("single", rows.schema, (), make_calls(["count_all"]), output), pool, space
        )
        for _ in range(2):
            operator.add_batch(rows)
        assert [batch.to_pylist() for batch in operator.finish()] == [[{"rows": 6}]]
        operator.close()


def test_a_global_maximum_that_outgrows_the_memory_is_found(workshop):
    calls = make_calls(["max", "count"])
    values = ["a" * size for size in (10, 3000, 9000, 15_000, 21_000, 60_000, 5, 60_001)]
    table = input_table((), [], calls, [pa.string()] * 2, [values] * 2)
    for run in (single, two_phases):
        result = run(workshop, 6, table, (), calls, 3)[0]
        assert result.to_pylist() == [{"max_0": "a" * 60_001, "count_1": 8}]


# -------------------------------------------------------------------------------------------------------- large groups


@pytest.mark.parametrize("size", [4000, 5000, 30_000])
@pytest.mark.parametrize("level_max", [-1, 6])
def test_keys_and_values_larger_than_a_page_or_the_memory_are_grouped(workshop, size, level_max):
    rng = random.Random(1)
    calls = make_calls(["min", "max", "count_all"])
    keys = [f"{rng.randrange(12)}" + "k" * rng.choice([3, size]) for _ in range(120)]
    values = [f"{rng.randrange(100)}" + "v" * rng.choice([0, size]) for _ in range(120)]
    table = input_table(("key",), [pa.string()], calls, [pa.string(), pa.string(), None], [keys, values, values])
    result, operator = single(workshop, 6, table, ("key",), calls, 10, level_max=level_max)
    assert rows_of(result) == oracle(table, ("key",), calls)
    assert operator.spilled_bytes > 0


def test_a_very_wide_group_on_its_way_to_disk_waits_for_its_room(workshop, monkeypatch):
    rooms = []
    monkeypatch.setattr(wide_rows, "WIDE_BYTES", 20_000)

    class Noting(Budget):
        def step(self, kind, size, is_ended):
            rooms.append(size)
            return super().step(kind, size, is_ended)

    monkeypatch.setattr(wide_rows, "process_budget", budget := Noting())
    calls = make_calls(["count_all"])
    keys = [f"{number % 40}" + "k" * (30_000 if number % 4 == 0 else 3) for number in range(120)]
    table = input_table(("key",), [pa.string()], calls, [None], [keys])
    result, operator = single(workshop, 6, table, ("key",), calls, 10)
    assert rows_of(result) == oracle(table, ("key",), calls) and operator.spilled_bytes > 0
    assert rooms and min(rooms) > 30_000
    assert budget.held(Kind.ARROW) == 0


@pytest.mark.parametrize("level_max", [-1, 0, 1])
def test_a_frozen_table_ends_with_every_group_once(workshop, level_max):
    table, calls = make_table("int64", "string", 1500, 900)
    result, operator = single(workshop, 6, table, ("key",), calls, level_max=level_max)
    assert rows_of(result) == oracle(table, ("key",), calls)
    assert operator.spilled_bytes > 0


@pytest.mark.parametrize("seed", [12, 16, 26, 44])
def test_a_frozen_table_takes_no_group_again_that_it_has_refused(workshop, seed):
    # Few groups have values of several pages that grow: what they give back makes room in the middle of a pass.
    rng = random.Random(seed)
    calls = make_calls(["max", "count_all"])
    keys = [rng.randrange(250) for _ in range(900)]
    sizes = [rng.choice([0, 0, 0, 0, 600, 5000, 9000, 17_000] if key < 6 else [0, 0, 20]) for key in keys]
    values = [f"{index:05d}" + "v" * size for index, size in enumerate(sizes)]
    table = input_table(("key",), [pa.int64()], calls, [pa.string(), None], [keys, values])
    result, operator = single(workshop, 6, table, ("key",), calls, 30, level_max=-1)
    assert rows_of(result) == oracle(table, ("key",), calls)
    assert operator.spilled_bytes > 0


def test_only_some_partitions_are_spilled_when_the_memory_nearly_suffices(workshop):
    table, calls = make_table("int64", "int64", 6000, 3000, null_share=0)
    result, operator = single(workshop, 90, table, ("key",), calls)
    assert rows_of(result) == oracle(table, ("key",), calls)
    _, everything = single(workshop, 6, table, ("key",), calls)
    assert 0 < operator.spilled_bytes < everything.spilled_bytes / 2


# -------------------------------------------------------------------------------------------------- inputs and closing


def test_wrong_schemas_phases_and_functions_are_refused_before_memory_is_taken(workshop):
    calls = make_calls(["sum"])
    schema = pa.schema([("key", pa.int64()), ("__arg0", pa.int64())])
    good = result_schema([schema.field(0)], calls, [pa.int64()])
    with workshop.operator(6) as (pool, space):
        with pytest.raises(ValueError, match="no phase 'whole'"):
            HashAggregate(AggregateSpec("whole", schema, ("key",), calls, good), pool, space)
        with pytest.raises(SchemaError, match="no column 'other'"):
            HashAggregate(AggregateSpec("single", schema, ("other",), calls, good), pool, space)
        with pytest.raises(SchemaError, match="__arg0"):
            HashAggregate(AggregateSpec("single", pa.schema([("key", pa.int64())]), ("key",), calls, good), pool, space)
        with pytest.raises(SchemaError, match="__state0_0"):
            HashAggregate(AggregateSpec("final", schema, ("key",), calls, good), pool, space)
        with pytest.raises(SchemaError, match="gives columns of types"):
            HashAggregate(
                AggregateSpec("single", schema, ("key",), calls, pa.schema([("key", pa.int64())])), pool, space
            )
        with pytest.raises(SchemaError, match="median"):
            HashAggregate(AggregateSpec("single", schema, ("key",), make_calls(["median"]), good), pool, space)
        nested = pa.schema([("key", pa.list_(pa.int64())), ("__arg0", pa.int64())])
        with pytest.raises(SchemaError):
            output = result_schema([nested.field(0)], calls, [pa.int64()])
            HashAggregate(AggregateSpec("single", nested, ("key",), calls, output), pool, space)
        operator = HashAggregate(AggregateSpec("single", schema, ("key",), calls, good), pool, space)
        with pytest.raises(SchemaError, match="got a batch of"):
            operator.add_batch(pa.record_batch({"key": [1]}))
        operator.close()


def test_pages_of_rows_and_batches_mix(workshop):
    table, calls = make_table("string", "int64", 300, 100)
    output = result_schema([table.schema.field("key")], calls, argument_types_of(table, calls))
    codec = RowCodec(table.schema)
    with workshop.operator(6) as (pool, space):
        operator = HashAggregate(AggregateSpec("single", table.schema, ("key",), calls, output), pool, space)
        for index, batch in enumerate(table.to_batches(max_chunksize=20)):
            rows = codec.to_rows(batch)
            segment = MemorySegment(len(rows) + 8)
            segment.put_bytes(0, rows)
            if index % 3 == 0:
                operator.add_page(segment, len(rows))
            elif index % 3 == 1:
                operator.add_rows(rows)
            else:
                operator.add_batch(batch)
        with pytest.raises(CorruptBlockError):
            operator.add_rows(rows[:-8])
        result = pa.Table.from_batches(operator.finish(), output)
        operator.close()
    assert rows_of(result) == oracle(table, ("key",), calls)


def test_dictionaries_are_taken_as_their_values(workshop):
    calls = make_calls(["max"])
    schema = pa.schema(
        [("key", pa.dictionary(pa.int32(), pa.string())), ("__arg0", pa.dictionary(pa.int8(), pa.string()))]
    )
    columns = [
        pa.array(["a", "b", "a"]).dictionary_encode(),
        pa.array(["x", "y", "z"]).dictionary_encode().cast(schema.types[1]),
    ]
    output = result_schema([pa.field("key", pa.string())], calls, [pa.string()])
    with workshop.operator(6) as (pool, space):
        table = pa.Table.from_arrays(columns, schema=schema)
        result, _ = aggregate("single", table, ("key",), calls, output, pool, space)
    assert rows_of(result) == ["('a', 'z')", "('b', 'y')"]


def test_closing_early_returns_pages_and_files(workshop):
    table, calls = make_table("int64", "string", 3000, 2500)
    output = result_schema([table.schema.field("key")], calls, argument_types_of(table, calls))
    for steps in range(3):
        with workshop.operator(8) as (pool, space):
            operator = HashAggregate(AggregateSpec("single", table.schema, ("key",), calls, output), pool, space)
            if steps > 0:
                for batch in table.to_batches(max_chunksize=100):
                    operator.add_batch(batch)
                assert operator.spilled_bytes > 0
            if steps > 1:
                results = operator.finish()
                next(results)
                results.close()
            operator.close()
            operator.close()
            assert pool.pages_used == 0
            assert workshop.files() == []


@pytest.mark.parametrize("pages", [66, 600])
@pytest.mark.parametrize("key_type", [pa.int8(), pa.uint16(), pa.date32(), pa.int64(), pa.uint64(), pa.duration("us")])
def test_numbers_group_with_their_equals_from_batches_with_nulls_and_without(workshop, key_type, pages):
    """Batches without nulls take another way through the table than those with nulls, to the same groups."""
    rng = random.Random(5)
    small = key_type.bit_width == 8
    numbers = [rng.choice([0, 1, 100, *(() if small else (rng.randrange(30000),))]) for _ in range(4000)]
    numbers = [None if 1000 <= row < 2000 and row % 3 == 0 else number for row, number in enumerate(numbers)]
    if pa.types.is_signed_integer(key_type):
        numbers = [None if number is None else -number for number in numbers]
    wide = pa.int32() if pa.types.is_date(key_type) else pa.int64()
    keys = pa.array(numbers, wide).cast(key_type)
    calls = (AggregateCall("count_all", None, "rows"), AggregateCall("sum", ColumnRef("n"), "total"))
    amounts = pa.array([None, *range(3999)], pa.int64())
    table = pa.table({"key": keys, "__arg1": amounts})
    result, _ = single(workshop, pages, table, ("key",), calls, batch_rows=500)
    expected = table.group_by("key").aggregate([([], "count_all"), ("__arg1", "sum")])
    assert rows_of(result) == sorted(map(str, zip(*(column.to_pylist() for column in expected.columns), strict=True)))
