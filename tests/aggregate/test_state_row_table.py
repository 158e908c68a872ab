"""Groups found among rows of states: each once, in the order of first rows, whatever the memory."""

import random
from decimal import Decimal

import pyarrow as pa
import pytest

from engine.accumulators.aggregate_functions import result_schema, state_schema
from engine.accumulators.aggregate_layout import aggregate_layout
from engine.accumulators.state_combiner import StateCombiner
from engine.aggregate.aggregate_spec import AggregateSpec
from engine.aggregate.hash_aggregate import HashAggregate
from engine.aggregate.partition_merger import PartitionMerger
from engine.aggregate.state_row_table import state_row_table_of
from engine.errors import DataError
from engine.partitions.partition_files import PartitionFiles
from engine.partitions.row_partitions import RowPartitions
from engine.partitions.spilled_rows import SpilledRows
from engine.records.row_codec import RowCodec
from tests.aggregate.group_oracle import (
    aggregate,
    argument_types_of,
    input_table,
    make_calls,
    make_table,
    oracle,
    rows_of,
    two_phases,
)

STATES = [("sum", pa.int64()), ("count", pa.int64()), ("least", pa.int32()), ("first", pa.int16()), ("last", pa.int8())]
OPERATIONS = [0, 0, 5, 9, 10]
KEYS = {
    "int64": ([pa.int64()], lambda r, n: (r.randrange(n) - n // 2,)),
    "int32": ([pa.int32()], lambda r, n: (r.randrange(n) - n // 2,)),
    "bool": ([pa.bool_()], lambda r, n: (r.random() < 0.5,)),
    "decimal": ([pa.decimal128(20, 2)], lambda r, n: (Decimal(r.randrange(n)) / 4,)),
    "fixed": ([pa.binary(5), pa.int8()], lambda r, n: (r.randrange(n).to_bytes(5, "big"), r.randrange(2))),
    "text": ([pa.string()], lambda r, n: ("x" * r.randrange(2) + str(r.randrange(n)),)),
    "wide": ([pa.large_string()], lambda r, n: (str(r.randrange(n)) * 60,)),
    "texts": ([pa.string(), pa.int16(), pa.binary()], lambda r, n: (str(r.randrange(n)), 7, b"y" * r.randrange(2))),
    "pair": ([pa.int64(), pa.date32()], lambda r, n: (r.randrange(n) // 3, r.randrange(3))),
}


def make_states(key, rows, groups, seed=1):
    rng = random.Random(seed)
    types, make = KEYS[key]
    keys = [tuple(None if rng.random() < 0.05 else part for part in make(rng, groups)) for _ in range(rows)]
    schema = pa.schema([*((f"k{index}", kind) for index, kind in enumerate(types)), *STATES])
    values = [[rng.choice([None, rng.randrange(100)]) for _ in range(rows)] for _ in STATES]
    columns = [*zip(*keys, strict=True), *values]
    return pa.record_batch(
        [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )


def python_rows(batches):
    return [row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)]


def merged(rows, key_count):
    """What becomes of rows: groups in order of their first rows."""
    groups = {}
    for row in rows:
        key, (total, count, least, first, last) = row[:key_count], row[key_count:]
        if key not in groups:
            groups[key] = [total, count, least, first, last]
            continue
        group = groups[key]
        for index, value in enumerate((total, count)):
            group[index] = value if group[index] is None else group[index] + (value or 0)
        group[2] = least if group[2] is None else min(group[2], group[2] if least is None else least)
        group[4] = last
    return [(*key, *group) for key, group in groups.items()]


def kept_rows(batch, key_count, pool, space, pages):
    parts = RowPartitions(RowCodec(batch.schema), range(key_count), pool, PartitionFiles(space, 4096), 1, 0, pages)
    assert parts.add(batch, 0) == batch.num_rows
    return parts.finish()[0]


def file_of(batch, key_count, pool, space):
    writer, rows = space.writer("states", block_size=4096), SpilledRows(batch.schema, key_count, pool)
    rows.write(batch, writer)
    rows.close()
    return writer.finish()


def groups_for(batch, key_count, pool, group_limit=0, operations=OPERATIONS):
    combiner = StateCombiner(batch.schema, key_count, operations, ["sum overflows"] * len(operations))
    return state_row_table_of(RowCodec(batch.schema), key_count, combiner, pool, group_limit)


def merged_alone(groups, kept, expected):
    """The groups of these rows, None: they do not fit."""
    return groups.take() if groups.add_kept(kept, expected) else None


@pytest.mark.parametrize("pages", [100, 2000])
def test_a_directory_is_made_for_the_groups_to_come_where_pages_abound(workshop, pages):
    batch = make_states("pair", 4000, 10**6)
    with workshop.operator(pages) as (pool, space):
        found, page_slots = groups_for(batch, 2, pool), pool.page_size // 8
        assert found.add_kept(kept_rows(batch.slice(0, 2000), 2, pool, space, 90), 2000)
        before, expected = found.page_count, 100 * page_slots
        assert found.add_kept(kept_rows(batch.slice(2000), 2, pool, space, 90), expected)
        assert (found.page_count - before > expected // page_slots) == (pages == 2000)
        taken = found.take()
        found.close()
        assert python_rows(taken) == merged(python_rows([batch]), 2)


def note_results(monkeypatch, cls, name):
    """What a method returns from now on."""
    method, results = getattr(cls, name), []

    def noting(*arguments):
        results.append(method(*arguments))
        return results[-1]

    monkeypatch.setattr(cls, name, noting)
    return results


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(("rows", "groups"), [(1, 1), (1500, 9), (2000, 500), (2000, 100000)])
@pytest.mark.parametrize("expected", [0, 100000])
def test_groups_are_those_of_the_rows_in_order(workshop, key, rows, groups, expected):
    batch = make_states(key, rows, groups)
    key_count = len(KEYS[key][0])
    with workshop.operator(400) as (pool, space):
        kept = kept_rows(batch, key_count, pool, space, 200)
        found = groups_for(batch, key_count, pool)
        result = merged_alone(found, kept, expected)
        wanted = merged(python_rows([batch]), key_count)
        assert result.row_count == len(wanted)
        assert python_rows(result) == wanted
        found.close()
        assert pool.pages_used == 0


def test_of_a_file_too_and_one_source_after_the_other(workshop):
    with workshop.operator(200) as (pool, space):
        batches = [make_states("int64", 3000, groups, seed=groups) for groups in (20, 2000, 20)]
        found = groups_for(batches[0], 1, pool)
        for batch in batches:
            file = file_of(batch, 1, pool, space)
            wanted = merged(python_rows([batch]), 1)
            assert python_rows(found.merge_file(file, 1)) == wanted
            assert python_rows(merged_alone(found, kept_rows(batch, 1, pool, space, 90), 1)) == wanted
            file.delete()
        found.close()
        assert pool.pages_used == 0


@pytest.mark.parametrize("groups", [9, 1200, 100000])
def test_rows_that_come_little_by_little_are_merged_into_the_groups_before(workshop, groups):
    batch = make_states("pair", 6000, groups)
    with workshop.operator(300) as (pool, space):
        found = groups_for(batch, 2, pool)
        for start in (0, 10, 10, 3000):
            assert found.add_kept(kept_rows(batch.slice(start, 3000), 2, pool, space, 90), 3000)
            assert found.page_count == pool.pages_used
        wanted = merged(python_rows(batch.slice(start, 3000) for start in (0, 10, 10, 3000)), 2)
        assert found.group_count == len(wanted)
        assert python_rows(found.take()) == wanted
        assert found.add_kept(kept_rows(batch.slice(0, 100), 2, pool, space, 90), 1)  # others
        assert python_rows(found.take()) == merged(python_rows([batch.slice(0, 100)]), 2)
        found.close()
        assert pool.pages_used == 0


@pytest.mark.parametrize("limit", [16, 700, 1500])
def test_groups_that_came_before_are_put_back_too(workshop, limit):
    batch = make_states("int64", 6000, 2000)
    with workshop.operator(300) as (pool, space):
        found = groups_for(batch, 1, pool, group_limit=limit)
        assert found.add_kept(kept_rows(batch.slice(0, 10), 1, pool, space, 10), 10)
        kept = kept_rows(batch.slice(10), 1, pool, space, 200)
        assert not found.add_kept(kept, 1)
        assert found.group_count == 0 and not kept.is_merged
        rows = python_rows(kept)
        assert len(rows) < batch.num_rows
        assert merged(rows, 1) == merged(python_rows([batch]), 1)
        found.close()
        assert pool.pages_used == 0


@pytest.mark.parametrize("limit", [16, 700, 1500])
def test_groups_that_do_not_fit_are_put_back_before_the_other_rows(workshop, limit):
    """The source has the same states: what becomes of it is the same."""
    batch = make_states("int64", 6000, 2000)
    with workshop.operator(300) as (pool, space):
        kept = kept_rows(batch, 1, pool, space, 200)
        found = groups_for(batch, 1, pool, group_limit=limit)
        assert merged_alone(found, kept, 1) is None
        rows = python_rows(kept)
        assert len(rows) < batch.num_rows
        assert merged(rows, 1) == merged(python_rows([batch]), 1)
        found.close()
        assert pool.pages_used == 0


@pytest.mark.parametrize("spare", [0, 1, 2, 5])
def test_pages_that_are_short_are_no_error(workshop, spare):
    """Nearly all rows are groups, and the directory has no room to grow, or no page at all."""
    batch = make_states("int64", 4000, 10**9)
    with workshop.operator(200) as (pool, space):
        kept = kept_rows(batch, 1, pool, space, 200)
        pages = pool.pages_used + spare
        kept.delete()
    with workshop.operator(pages) as (pool, space):
        kept = kept_rows(batch, 1, pool, space, 200)
        found = groups_for(batch, 1, pool)
        result = merged_alone(found, kept, 4000)
        rows = python_rows(kept if result is None else result)
        assert merged(rows, 1) == merged(python_rows([batch]), 1)
        found.close()
        assert pool.pages_used == 0


def test_a_file_whose_groups_do_not_fit_is_left_as_it_is(workshop):
    batch = make_states("int64", 4000, 10**9)
    with workshop.operator(12) as (pool, space):
        file = file_of(batch, 1, pool, space)
        found = groups_for(batch, 1, pool)
        assert found.merge_file(file, 4000) is None  # not begun
        assert found.merge_file(file, 1) is None  # begun
        found.close()
        assert pool.pages_used == 0
        with file.reader() as reader:
            assert sum(len(block) for block in reader) == file.raw_bytes
        file.delete()


def test_a_sum_that_overflows_is_an_error_and_nothing_is_left(workshop):
    schema = pa.schema([("key", pa.int64()), ("sum", pa.int64())])
    batch = pa.record_batch([pa.array([1, 2, 2]), pa.array([1, 2**62, 2**62])], schema=schema)
    with workshop.operator(20) as (pool, space):
        kept = kept_rows(batch, 1, pool, space, 10)
        found = groups_for(batch, 1, pool, operations=[0])
        with pytest.raises(DataError, match="sum overflows"):
            found.add_kept(kept, 3)
        kept.delete()
        found.close()
        assert pool.pages_used == 0


def make_texts(rows, groups, longest, seed=3):
    """Least, largest, first and last texts of groups, which grow as rows come, or do not."""
    rng = random.Random(seed)
    keys = [rng.choice([None, *(str(index) for index in range(groups))]) for _ in range(rows)]

    def texts():
        return [
            rng.choice([None, "ab"[rng.randrange(2)] * rng.randrange(1 + longest * row // rows)]) for row in range(rows)
        ]

    columns = [pa.array(column, pa.string()) for column in (keys, texts(), texts(), texts(), texts())]
    return pa.record_batch([*columns, pa.array([1] * rows)], ["key", "least", "largest", "first", "last", "count"])


def merged_texts(rows):
    groups = {}
    for key, least, largest, first, last, count in rows:
        group = groups.setdefault(key, [None, None, first, None, 0])
        group[0] = min((text for text in (group[0], least) if text is not None), default=None)
        group[1] = max((text for text in (group[1], largest) if text is not None), default=None)
        group[3], group[4] = last, group[4] + count
    return sorted(repr((key, *group)) for key, group in groups.items())


@pytest.mark.parametrize("longest", [3, 40, 700])
@pytest.mark.parametrize("groups", [1, 30, 500])
def test_texts_that_beat_those_of_their_groups_take_their_place(workshop, longest, groups):
    """In place or in a row written anew, while the directory grows and groups leave and come back."""
    batch = make_texts(4000, groups, longest)
    with workshop.operator(3000) as (pool, space):
        found = groups_for(batch, 1, pool, operations=[5, 6, 9, 10, 0])
        for start in range(0, 4000, 1000):
            assert found.add_kept(kept_rows(batch.slice(start, 1000), 1, pool, space, 900), 1)
        merged_rows = python_rows(found.take())
        assert sorted(map(repr, merged_rows)) == merged_texts(python_rows([batch]))
        found.close()
        assert pool.pages_used == 0


@pytest.mark.parametrize("spare", [0, 1, 2, 6, 20])
def test_groups_with_texts_that_do_not_fit_are_put_back_with_all_their_states(workshop, spare):
    batch = make_texts(3000, 900, 200)
    with workshop.operator(900) as (pool, space):
        kept = kept_rows(batch, 1, pool, space, 800)
        pages = pool.pages_used + spare
        kept.delete()
    with workshop.operator(pages) as (pool, space):
        kept = kept_rows(batch, 1, pool, space, pages)
        found = groups_for(batch, 1, pool, operations=[5, 6, 9, 10, 0])
        result = merged_alone(found, kept, 1)
        count = (kept if result is None else result).row_count
        rows = python_rows(kept if result is None else result)
        assert len(rows) == count
        assert merged_texts(rows) == merged_texts(python_rows([batch]))
        found.close()
        assert pool.pages_used == 0


@pytest.mark.parametrize("types", [[pa.float64(), pa.int64()], [pa.int64(), pa.list_(pa.int8())], [pa.int8()] * 33])
def test_other_keys_and_rows_are_not_taken(workshop, types):
    """-0.0 and 0.0 are one key; lists are compared by their values; null bits beyond the first word."""
    batch = pa.record_batch([pa.nulls(0, kind) for kind in types], [f"c{index}" for index in range(len(types))])
    with workshop.operator(10) as (pool, _):
        assert groups_for(batch, 1, pool, operations=[0] * (len(types) - 1)) is None


@pytest.mark.parametrize("value_type", ["int64", "decimal", "double"])
@pytest.mark.parametrize("pages", [66, 130])
@pytest.mark.parametrize("force_spill", [False, True])
def test_an_aggregate_gives_results_of_such_groups(workshop, monkeypatch, value_type, pages, force_spill):
    """Averages, sums and the rest, from partitions in memory and from files."""
    monkeypatch.setattr("engine.aggregate.grouping_phase.CACHED_GROUPS", 64)
    found = note_results(monkeypatch, PartitionMerger, "groups_of")
    table, calls = make_table("int64", value_type, 3500, 3000, null_share=0.05)
    fields, types = [table.schema.field("key")], argument_types_of(table, calls)
    states_of, results_of = state_schema(fields, calls, types), result_schema(fields, calls, types)
    assert RowCodec(aggregate_layout(states_of, ("key",), calls, merging=True).state_schema).is_fixed
    with workshop.operator(6) as (pool, space):
        states, _ = aggregate("partial", table, ("key",), calls, states_of, pool, space, 100)
    with workshop.operator(pages) as (pool, space):
        final = HashAggregate(AggregateSpec("final", states_of, ("key",), calls, results_of, force_spill), pool, space)
        for batch in states.to_batches(max_chunksize=100):
            assert list(final.add_batch(batch)) == []
        result = pa.Table.from_batches(final.finish(), results_of)
        assert final.group_count == result.num_rows
        final.close()
        assert pool.pages_used == 0
    assert rows_of(result) == oracle(table, ("key",), calls)
    if force_spill:
        assert None in found
    else:
        assert any(groups is not None for groups in found)


@pytest.mark.parametrize("pages", [66, 130, 600])
@pytest.mark.parametrize("longest", [20, 900, 9000])
def test_an_aggregate_of_texts_larger_than_pages_too(workshop, monkeypatch, pages, longest):
    """A row larger than a page goes to the file of its partition, behind the groups that are in memory."""
    monkeypatch.setattr("engine.aggregate.grouping_phase.CACHED_GROUPS", 64)
    rng = random.Random(longest)
    rows = 1500
    keys = [rng.choice([None, f"{rng.randrange(700)}" * (1 + longest // 60)]) for _ in range(rows)]
    values = [rng.choice([None, str(rng.randrange(99)) * rng.randrange(1 + longest // 2)]) for _ in range(rows)]
    calls = make_calls(("min", "max", "first", "last", "count_all"))
    table = input_table(("key",), [pa.string()], calls, [pa.string()] * 4 + [None], [keys, *[values] * 4])
    result, _, _ = two_phases(workshop, pages, table, ("key",), calls)
    assert rows_of(result) == oracle(table, ("key",), calls)
