"""ExternalSorter against sorted() and pyarrow."""

import datetime
import decimal
import math
import random

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.errors import CorruptBlockError, DiskFullError, EngineError, SchemaError
from engine.graph.sort_key import SortKey
from engine.memory.segment import MemorySegment
from engine.records.row_codec import RowCodec
from engine.sort.external_sorter import ExternalSorter
from engine.sort.merge_plan import MERGE_BYTES_MIN
from engine.sort.merged_batches import MergedBatches

TYPES = {
    "bool": (pa.bool_(), lambda r: r.random() < 0.5),
    "int8": (pa.int8(), lambda r: r.randrange(-128, 128)),
    "int64": (pa.int64(), lambda r: r.choice([r.randrange(-5, 5), r.randrange(-(2**63), 2**63)])),
    "uint64": (pa.uint64(), lambda r: r.randrange(2**64)),
    "double": (pa.float64(), lambda r: r.choice([r.gauss(0, 1e9), 0.0, -0.0, math.nan, math.inf, -math.inf])),
    "float": (pa.float32(), lambda r: r.choice([float(r.randrange(-100, 100)), math.nan])),
    "decimal": (pa.decimal128(20, 2), lambda r: decimal.Decimal(r.randrange(-(10**19), 10**19)) / 100),
    "date": (pa.date32(), lambda r: datetime.date(2020, 1, 1) + datetime.timedelta(r.randrange(-9999, 9999))),
    "timestamp": (pa.timestamp("us"), lambda r: datetime.datetime(2020, 1, 1) + datetime.timedelta(r.gauss(0, 900))),
    "string": (pa.string(), lambda r: "".join(r.choice("aäz") for _ in range(r.choice([0, 1, 5, 9, 30])))),
    "prefixed": (pa.string(), lambda r: "the same beginning " + str(r.randrange(50))),
    "binary": (pa.large_binary(), lambda r: r.randbytes(r.randrange(12))),
    "fixed": (pa.binary(5), lambda r: r.randbytes(5)),
}
#: types that only the test of all directions takes beside those
MORE_TYPES = {
    "int16": (pa.int16(), lambda r: r.randrange(-(2**15), 2**15)),
    "int32": (pa.int32(), lambda r: r.randrange(-(2**31), 2**31)),
    "uint8": (pa.uint8(), lambda r: r.randrange(256)),
    "uint16": (pa.uint16(), lambda r: r.randrange(2**16)),
    "uint32": (pa.uint32(), lambda r: r.randrange(2**32)),
    "float zeros": (pa.float32(), lambda r: r.choice([0.0, -0.0, math.nan, math.inf, -math.inf, 0.5, -0.5])),
    "decimal256": (pa.decimal256(50, 3), lambda r: decimal.Decimal(r.randrange(-(10**40), 10**40)) / 1000),
    "time": (pa.time32("s"), lambda r: datetime.time(r.randrange(24), r.randrange(60), r.randrange(60))),
    "zone": (
        pa.timestamp("ms", "UTC"),
        lambda r: datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(r.randrange(-9999, 9999)),
    ),
    "large string": (pa.large_string(), lambda r: "".join(r.choice("aé") for _ in range(r.randrange(12)))),
}
MEMORIES = {"fits": 400, "half": 10, "minimum": 6}


def order_of(value, key):
    """A comparison key: nulls absolute, NaN the largest number."""
    if value is None:
        return (1 if key.nulls_last else -1, 0)
    return (0, Reversed(value) if key.descending else Plain(value))


class Plain:
    """Orders values as the engine does."""

    def __init__(self, value):
        if isinstance(value, float):
            value = (1, 0.0) if math.isnan(value) else (0, value + 0.0)
        elif isinstance(value, str):
            value = value.encode()
        self.value = value

    def __lt__(self, other):
        return self.value < other.value

    def __eq__(self, other):
        return self.value == other.value

    __hash__ = None


class Reversed(Plain):
    """The other way round."""

    def __lt__(self, other):
        return other.value < self.value


def oracle(table, keys, limit=None):
    rows = table.to_pylist()
    rows.sort(key=lambda row: tuple(order_of(row[key.column], key) for key in keys))
    return rows if limit is None else rows[:limit]


def same(left, right):
    return len(left) == len(right) and repr(left) == repr(right)


def sort_table(table, keys, pool, space, batch_rows=100, **options):
    sorter = ExternalSorter(table.schema, keys, pool, space, **options)
    try:
        for batch in table.to_batches(max_chunksize=batch_rows):
            sorter.add_batch(batch)
        sorter.finish()
        batches = list(sorter.batches())
        assert sorter.rows_in == table.num_rows
        return pa.Table.from_batches(batches, table.schema), sorter
    finally:
        sorter.close()


def make_table(type_name, count, null_share=0.1, seed=0, distinct=None):
    rng = random.Random(seed)
    data_type, make = (TYPES | MORE_TYPES)[type_name]
    pool = [make(rng) for _ in range(distinct or count)]
    keys = [None if rng.random() < null_share else (rng.choice(pool) if distinct else pool[i]) for i in range(count)]
    schema = pa.schema([("key", data_type), ("number", pa.int64()), ("text", pa.string())])
    return pa.table([keys, list(range(count)), [f"row {i} " * (i % 4) for i in range(count)]], schema=schema)


# --------------------------------------------------------------------------------------------------- types and memory


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


#: values of a first key that many rows have in common
HEADS = {
    "text": (pa.string(), ["", "S1", "S2", None]),
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


def test_a_small_limit_with_large_rows_in_between_is_kept(workshop):
    rng = random.Random(4)
    texts = [rng.choice("abc") + "x" * rng.choice([5, 5, 5, 5000, 30_000]) for _ in range(300)]
    table = pa.table({"key": texts, "number": list(range(300))})
    with workshop.operator(6) as (pool, space):
        result, _ = sort_table(table, (SortKey("key"),), pool, space, limit=20)
    assert same(result.to_pylist(), oracle(table, (SortKey("key"),), 20))


def test_two_hundred_thousand_rows_sort_like_pyarrow_with_one_spill(workshop):
    rng = random.Random(7)
    table = pa.table(
        {
            "key": pa.array([rng.randrange(10**6) for _ in range(200_000)], pa.int64()),
            "payload": pa.array([f"{i:040}" for i in range(200_000)]),
        }
    )
    with workshop.operator(64, 32768) as (pool, space):
        result, sorter = sort_table(table, (SortKey("key"),), pool, space, 8192)
        row_bytes = 200_000 * len(RowCodec(table.schema).to_rows(table.slice(0, 1).to_batches()[0]))
        assert sorter.run_count > 4
        assert row_bytes <= sorter.spilled_bytes <= 2 * row_bytes
        assert space.spilled_bytes <= 2 * row_bytes
    assert result.equals(table.take(pa.compute.sort_indices(table, [("key", "ascending")])))


def test_spilled_bytes_are_those_of_the_input_when_one_merge_is_enough(workshop):
    table = make_table("int64", 5000)
    row_bytes = sum(len(RowCodec(table.schema).to_rows(batch)) for batch in table.to_batches())
    with workshop.operator(32) as (pool, space):
        _, sorter = sort_table(table, (SortKey("key"),), pool, space)
    assert sorter.run_count > 1
    assert sorter.spilled_bytes == row_bytes


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("pages", "most"), [(6, {1: 1.25, 2: 1.65}), (8, {1: 1, 2: 1.5}), (16, {1: 1, 2: 1.05}), (64, {1: 1, 2: 1})]
)
@pytest.mark.parametrize("readers", [1, 2])
def test_what_is_written_is_less_than_twice_the_input_however_few_the_pages(workshop, pages, most, readers):
    """Some hundred times the memory of the operator; what is on disk is less than twice the Arrow batches too."""
    rng = random.Random(pages)
    count = 16_000
    keys = [rng.randrange(2**40) for _ in range(count)]
    table = pa.table({"key": keys, "text": [rng.randbytes(900) for _ in range(count)]})
    row_bytes = sum(len(RowCodec(table.schema).to_rows(batch)) for batch in table.to_batches())
    with workshop.operator(pages) as (pool, space), workshop.operator(6) as (merge_pool, _):
        sorter = ExternalSorter(table.schema, (SortKey("key"),), pool, space, reader_count=readers)
        for batch in table.to_batches(max_chunksize=500):
            sorter.add_batch(batch)
        runs = sorter.take_runs()
        files = len(workshop.files())
        merged = MergedBatches([runs], merge_pool)
        found = pa.Table.from_batches(merged.batches(), table.schema)
        held = workshop.io.buffer_bytes_out
        merged.close()
        assert 0.9 * row_bytes < runs.spilled_bytes <= most[readers] * row_bytes
        assert space.spilled_bytes <= 2 * table.nbytes
        assert held <= MERGE_BYTES_MIN // readers
        assert files <= 3
        assert workshop.io.buffer_bytes_out == 0
        runs.release()
    assert found.equals(table.take(pa.compute.sort_indices(table, [("key", "ascending")])))


# ---------------------------------------------------------------------------------------------------------- large rows


@pytest.mark.parametrize("sizes", [[5000], [20_000], [60_000], [100, 5000, 60_000, 9000, 60_000, 10, 30_000]])
def test_rows_larger_than_a_page_or_than_all_pages_are_sorted(workshop, sizes):
    rng = random.Random(3)
    texts = [rng.choice("abc") + "x" * rng.choice(sizes) for _ in range(40)] + [f"s{i}" for i in range(200)]
    rng.shuffle(texts)
    table = pa.table({"key": texts, "number": list(range(len(texts)))})
    with workshop.operator(6) as (pool, space):
        result, _ = sort_table(table, (SortKey("key"),), pool, space, 20)
    assert same(result.to_pylist(), oracle(table, (SortKey("key"),)))


def test_many_rows_larger_than_the_memory_are_merged_in_bounded_memory(workshop):
    rng = random.Random(8)
    table = pa.table(
        {"key": [rng.randrange(1000) for _ in range(60)], "blob": [rng.randbytes(200_000) for _ in range(60)]}
    )
    with workshop.operator(8) as (pool, space):
        sorter = ExternalSorter(table.schema, (SortKey("key"),), pool, space)
        for batch in table.to_batches(max_chunksize=7):
            sorter.add_batch(batch)
        sorter.finish()
        batches = sorter.batches()
        found = [next(batches)]
        held = workshop.io.buffer_bytes_out
        found.extend(batches)
        assert 60 < sorter.run_count < 80
        assert 0 < held <= 1.5 * MERGE_BYTES_MIN
        assert sorter.spilled_bytes <= 2 * table.nbytes
        sorter.close()
    assert same(pa.Table.from_batches(found).to_pylist(), oracle(table, (SortKey("key"),)))


def test_a_batch_is_bounded_by_rows_and_by_bytes(workshop):
    table = make_table("int64", 3000)
    for pages in (200, 10):
        with workshop.operator(pages) as (pool, space):
            sorter = ExternalSorter(table.schema, (SortKey("key"),), pool, space)
            for batch in table.to_batches(max_chunksize=500):
                sorter.add_batch(batch)
            sorter.finish()
            batches = list(sorter.batches(max_rows=50, max_bytes=2048))
            sorter.close()
        codec = RowCodec(table.schema)
        assert sum(batch.num_rows for batch in batches) == 3000
        assert max(batch.num_rows for batch in batches) <= 50
        assert max(len(codec.to_rows(batch)) for batch in batches) <= 2048


# ------------------------------------------------------------------------------------------------------------ row pages


@pytest.mark.parametrize("pages", [100, 6])
def test_pages_of_rows_and_batches_mix(workshop, pages):
    table = make_table("string", 400)
    codec = RowCodec(table.schema)
    batches = table.to_batches(max_chunksize=20)
    with workshop.operator(pages) as (pool, space):
        sorter = ExternalSorter(table.schema, (SortKey("key"),), pool, space)
        for index, batch in enumerate(batches):
            rows = codec.to_rows(batch)
            if index % 3 == 0:
                sorter.add_batch(batch)
            elif index % 3 == 1:
                sorter.add_rows(rows)
            else:
                segment = MemorySegment(len(rows) + 64)
                segment.put_bytes(0, rows)
                sorter.add_page(segment, len(rows))
        sorter.add_rows(b"")
        sorter.finish()
        result = pa.Table.from_batches(sorter.batches(), table.schema)
        assert sorter.rows_in == 400
        sorter.close()
    assert same(result.to_pylist(), oracle(table, (SortKey("key"),)))


def test_a_page_whose_sizes_do_not_add_up_is_refused(workshop):
    table = make_table("int64", 3)
    rows = RowCodec(table.schema).to_rows(table.to_batches()[0])
    with workshop.operator(6) as (pool, space):
        sorter = ExternalSorter(table.schema, (SortKey("key"),), pool, space)
        with pytest.raises(CorruptBlockError, match="do not add up"):
            sorter.add_rows(rows[:-8])
        with pytest.raises(ValueError, match="used"):
            sorter.add_page(MemorySegment(64), 65)
        sorter.close()


# ----------------------------------------------------------------------------------------------------- life and errors


def test_an_empty_input_gives_no_batch(workshop):
    table = make_table("int64", 0)
    for force_spill in (False, True):
        with workshop.operator(6) as (pool, space):
            result, sorter = sort_table(table, (SortKey("key"),), pool, space, force_spill=force_spill)
        assert result.num_rows == 0
        assert sorter.run_count == 0


def test_closing_early_returns_pages_and_files_in_every_state(workshop):
    table = make_table("int64", 2000)
    for steps in range(4):
        with workshop.operator(8) as (pool, space):
            sorter = ExternalSorter(table.schema, (SortKey("key"),), pool, space)
            if steps > 0:
                for batch in table.to_batches(max_chunksize=100):
                    sorter.add_batch(batch)
                assert workshop.files() != []
            if steps > 1:
                sorter.finish()
            if steps > 2:
                next(sorter.batches(max_rows=10))
            sorter.close()
            sorter.close()
            assert pool.pages_used == 0
            assert workshop.files() == []


def test_calls_in_the_wrong_order_are_refused(workshop):
    table = make_table("int64", 10)
    with workshop.operator(6) as (pool, space):
        sorter = ExternalSorter(table.schema, (SortKey("key"),), pool, space)
        with pytest.raises(RuntimeError, match="after finish"):
            next(sorter.batches())
        sorter.finish()
        with pytest.raises(RuntimeError, match="finished"):
            sorter.add_batch(table.to_batches()[0])
        sorter.close()
        with pytest.raises(RuntimeError, match="closed"):
            sorter.finish()


def test_unknown_columns_nested_keys_and_other_schemas_are_refused(workshop):
    schema = pa.schema([("key", pa.int64()), ("nested", pa.list_(pa.int64()))])
    with workshop.operator(6) as (pool, space):
        for column in ("missing", "nested"):
            with pytest.raises(SchemaError):
                ExternalSorter(schema, (SortKey(column),), pool, space)
        sorter = ExternalSorter(schema, (SortKey("key"),), pool, space)
        with pytest.raises(EngineError):
            sorter.add_batch(pa.record_batch({"key": ["text"]}))
        sorter.close()


def test_a_failing_disk_is_an_error_and_leaves_nothing(workshop, monkeypatch):
    table = make_table("int64", 2000)
    with workshop.operator(8) as (pool, space):
        sorter = ExternalSorter(table.schema, (SortKey("key"),), pool, FailingSpace(space, 0))
        with pytest.raises(DiskFullError):
            for batch in table.to_batches(max_chunksize=100):
                sorter.add_batch(batch)
        sorter.close()
        assert pool.pages_used == 0


class FailingSpace:
    """A space that has no room after some files."""

    def __init__(self, space, files):
        self.space = space
        self.left = files

    def writer(self, label, block_size):
        self.left -= 1
        if self.left < 0:
            raise DiskFullError("no room")
        return self.space.writer(label, block_size=block_size)
