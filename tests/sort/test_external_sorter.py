"""ExternalSorter against sorted() and pyarrow."""

import random

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.graph.sort_key import SortKey
from engine.records.row_codec import RowCodec
from engine.sort.external_sorter import ExternalSorter
from tests.sort.sort_oracle import MEMORIES, MORE_TYPES, TYPES, make_table, oracle, same, sort_table


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("type_name", TYPES)
def test_every_type_sorts_like_the_oracle(workshop, type_name, memory):
    table = make_table(type_name, 700)
    for key in (SortKey("key"), SortKey("key", descending=True, nulls_last=True)):
        with workshop.operator(MEMORIES[memory]) as (pool, space):
            result, sorter = sort_table(table, (key,), pool, space)
        assert same(result.to_pylist(), oracle(table, (key,)))
        assert (sorter.run_count > 0) == (memory != "fits")


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("nulls_last", [False, True])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("type_name", [*TYPES, *MORE_TYPES])
def test_every_type_sorts_in_every_direction(workshop, type_name, descending, nulls_last):
    """Nulls are where they were asked for, whatever the direction; NaN is the largest; -0.0 and 0.0 are equal."""
    table = make_table(type_name, 200, null_share=0.2)
    keys = (SortKey("key", descending, nulls_last),)
    with workshop.operator(10) as (pool, space):
        result, sorter = sort_table(table, keys, pool, space, force_spill=True)
    assert sorter.run_count > 0
    assert same(result.to_pylist(), oracle(table, keys))
    nulls = [row["key"] is None for row in result.to_pylist()]
    assert nulls == sorted(nulls, reverse=not nulls_last)


@pytest.mark.parametrize("nulls_last", [False, True])
@pytest.mark.parametrize("descending", [False, True])
def test_numbers_at_the_ends_of_their_type_are_not_taken_for_one(workshop, descending, nulls_last):
    """The number beside null has the prefix of its neighbour: rows with both are not sorted by the next key alone."""
    rng = random.Random(11)
    ends = [None, -(2**63), 1 - 2**63, 2**63 - 2, 2**63 - 1]
    rows = [(rng.choice(ends), rng.randrange(1000), number) for number in range(2000)]
    schema = pa.schema([("key", pa.int64()), ("second", pa.int64()), ("number", pa.int64())])
    table = pa.table([list(column) for column in zip(*rows, strict=True)], schema=schema)
    keys = (SortKey("key", descending, nulls_last), SortKey("second"))
    with workshop.operator(400) as (pool, space):
        result, _ = sort_table(table, keys, pool, space)
    assert same(result.to_pylist(), oracle(table, keys))


@pytest.mark.parametrize("least", [0, 1 << 40, -(1 << 62)])
@pytest.mark.parametrize("bits", [1, 7, 8, 9, 17, 33, 62])
@pytest.mark.parametrize("second", [False, True])
def test_keys_of_any_range_sort_like_the_oracle(workshop, least, bits, second):
    rng = random.Random(bits)
    numbers = [least + rng.randrange(1 << bits) for _ in range(1500)]
    table = pa.table({"key": numbers, "other": [rng.randrange(9) for _ in numbers], "number": range(1500)})
    keys = (SortKey("key", bits % 2 == 0), SortKey("other", True))[: 1 + second]
    for rows in (table, table.sort_by("key"), table.sort_by([("key", "descending")])):
        with workshop.operator(400) as (pool, space):
            result, _ = sort_table(rows, keys, pool, space)
        assert same(result.to_pylist(), oracle(rows, keys))


@pytest.mark.parametrize("batch_rows", [1, 2, 7, 49, 100])
@pytest.mark.parametrize("distinct", [1, 3, None])
@pytest.mark.parametrize("force_spill", [False, True])
def test_rows_with_equal_keys_stay_in_order_of_arrival(workshop, batch_rows, distinct, force_spill):
    table = make_table("int64", 300, distinct=distinct)
    keys = (SortKey("key", descending=True),)
    with workshop.operator(8) as (pool, space):
        result, sorter = sort_table(table, keys, pool, space, batch_rows, force_spill=force_spill)
    assert same(result.to_pylist(), oracle(table, keys))
    assert not force_spill or sorter.run_count >= 300 // 16


HEADS = {
    "text": (pa.string(), ["", "S1", "S2", None]),
    "texts that end in zeros": (pa.string(), ["", "\0", "S1", "S1\0", "S1\0\0", None]),
    "texts about as long as a prefix": (
        pa.string(),
        [*(c * n for c in "ab" for n in (6, 7, 8, 9)), "a" * 7 + "\0", None],
    ),
    "long text": (pa.string(), ["the same beginning 1", "the same beginning 2"]),
    "number and a cut one": (pa.int64(), [5, None, -(2**63)]),
}


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("tail", [["moment"], ["moment", "text"], ["text", "moment"], ["small", "moment", "text"]])
@pytest.mark.parametrize(("descending", "nulls_last", "arrives"), [(False, False, "any"), (True, True, "sorted")])
def test_many_rows_with_one_first_key_are_sorted_by_the_others(workshop, head, tail, descending, nulls_last, arrives):
    data_type, values = HEADS[head]
    rng = random.Random(7)
    moments = [None if rng.random() < 0.1 else rng.randrange(-50, 2**40) for _ in range(900)]
    if arrives == "sorted":
        moments.sort(key=lambda value: -1 if value is None else value)
    columns = {
        "first": pa.array([rng.choice(values) for _ in moments], data_type),
        "moment": pa.array(moments, pa.int64()),
        "small": pa.array([rng.randrange(3) for _ in moments], pa.int8()),
        "text": [rng.choice(["a", "b", "a text that is longer", None]) for _ in moments],
        "number": range(len(moments)),
    }
    table = pa.table(columns)
    keys = (SortKey("first"), *(SortKey(name, descending, nulls_last) for name in tail))
    for pages, is_spilled in ((400, False), (8, True)):
        with workshop.operator(pages) as (pool, space):
            result, sorter = sort_table(table, keys, pool, space)
        assert same(result.to_pylist(), oracle(table, keys))
        assert (sorter.run_count > 0) == is_spilled


@given(
    rows=st.lists(
        st.tuples(
            st.none() | st.integers(-3, 3),
            st.none() | st.text("ab", max_size=12),
            st.none() | st.floats(width=64),
            st.binary(max_size=40),
        ),
        max_size=120,
    ),
    order=st.permutations(["a", "b", "c"]),
    flags=st.lists(st.booleans(), min_size=6, max_size=6),
    limit=st.none() | st.integers(0, 50),
    force_spill=st.booleans(),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_rows_and_any_keys_sort_like_the_oracle(workshop, rows, order, flags, limit, force_spill):
    schema = pa.schema([("a", pa.int32()), ("b", pa.string()), ("c", pa.float64()), ("d", pa.binary())])
    columns = list(zip(*rows, strict=True)) if rows else [[], [], [], []]
    table = pa.table(
        [pa.array(list(column), t) for column, t in zip(columns, schema.types, strict=True)], schema=schema
    )
    keys = tuple(SortKey(name, flags[i], flags[i + 3]) for i, name in enumerate(order))
    with workshop.operator(6) as (pool, space):
        result, _ = sort_table(table, keys, pool, space, 7, limit=limit, force_spill=force_spill)
    assert same(result.to_pylist(), oracle(table, keys, limit))


@pytest.mark.parametrize("limit", [0, 1, 10, 300, 5000])
@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("force_spill", [False, True])
def test_a_limit_keeps_the_first_rows(workshop, memory, limit, force_spill):
    table = make_table("prefixed", 1500)
    keys = (SortKey("key"),)
    with workshop.operator(MEMORIES[memory]) as (pool, space):
        result, sorter = sort_table(table, keys, pool, space, limit=limit, force_spill=force_spill)
    assert same(result.to_pylist(), oracle(table, keys, limit))
    assert (sorter.run_count > 0) == (force_spill or (memory != "fits" and limit >= 300))


@pytest.mark.parametrize("limit", [1, 50, 2000])
@pytest.mark.parametrize("as_rows", [False, True])
def test_few_rows_beyond_a_limit_are_held(workshop, limit, as_rows):
    """Many rows with the same keys, of which the first ones are wanted; memory is plenty, and little of it is taken."""
    table = make_table("int8", 20_000, distinct=3)
    keys = (SortKey("key", descending=True),)
    batches = table.to_batches(max_chunksize=3000)
    with workshop.operator(MEMORIES["fits"]) as (pool, space):
        if as_rows:
            sorter, codec = ExternalSorter(table.schema, keys, pool, space, limit=limit), RowCodec(table.schema)
            for batch in batches:
                sorter.add_rows(codec.to_rows(batch))
            sorter.finish()
            result = pa.Table.from_batches(sorter.batches(), table.schema)
            sorter.close()
        else:
            result, sorter = sort_table(table, keys, pool, space, 3000, limit=limit)
        assert pool.pages_peak < 240  # of 400, which are too few for all rows
    assert sorter.run_count == 0
    assert same(result.to_pylist(), oracle(table, keys, limit))


def test_runs_are_cut_to_the_limit(workshop):
    table = make_table("int64", 4000)
    row_bytes = sum(len(RowCodec(table.schema).to_rows(batch)) for batch in table.to_batches())
    with workshop.operator(10) as (pool, space):
        _, everything = sort_table(table, (SortKey("key"),), pool, space)
    with workshop.operator(10) as (pool, space):
        result, cut = sort_table(table, (SortKey("key"),), pool, space, limit=150)
    assert same(result.to_pylist(), oracle(table, (SortKey("key"),), 150))
    assert 0 < cut.spilled_bytes < row_bytes == everything.spilled_bytes


@pytest.mark.parametrize("pages", [400, 1000, 8000])
def test_first_rows_that_are_too_wide_to_keep_are_sorted_again_seldom(workshop, pages):
    rng = random.Random(5)
    batches = [
        pa.record_batch({"key": [rng.random() for _ in range(8_192)], "text": ["x" * 300] * 8_192}) for _ in range(8)
    ]
    with workshop.operator(pages) as (pool, space):
        sorter = ExternalSorter(batches[0].schema, (SortKey("key"),), pool, space, limit=2_000)
        for batch in batches:
            sorter.add_batch(batch)
        sorter.finish()
        found = [key for made in sorter.batches() for key in made.column("key").to_pylist()]
        spilled = sorter.spilled_bytes
        sorter.close()
    assert found == sorted(key for batch in batches for key in batch.column("key").to_pylist())[:2_000]
    assert (spilled > 0) == (pages < 8000)


def test_a_small_limit_with_large_rows_in_between_is_kept(workshop):
    rng = random.Random(4)
    texts = [rng.choice("abc") + "x" * rng.choice([5, 5, 5, 5000, 30_000]) for _ in range(300)]
    table = pa.table({"key": texts, "number": list(range(300))})
    with workshop.operator(6) as (pool, space):
        result, _ = sort_table(table, (SortKey("key"),), pool, space, limit=20)
    assert same(result.to_pylist(), oracle(table, (SortKey("key"),), 20))
