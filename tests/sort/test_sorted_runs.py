"""Sorted runs read by ranges of keys, in memory, on disk and on their way from one to the other."""

import datetime
import decimal
import itertools
import math
import random
import resource
import threading

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.errors import CorruptBlockError, DiskFullError, PartitionReleasedError
from engine.graph.sort_key import SortKey
from engine.iomanager.spill_space import SpillSpace
from engine.sort.external_sorter import ExternalSorter
from engine.sort.key_bytes import KeyBytes
from engine.sort.merged_batches import MergedBatches
from tests.heap import heap_bytes
from tests.sampling import first
from tests.sort.sort_oracle import TYPES, FailingSpace, make_table, oracle, same

ROW = pa.schema([("key", pa.int64()), ("number", pa.int64()), ("text", pa.string())])


def take_runs(table, keys, pool, space, batch_rows=50, **options):
    sorter = ExternalSorter(table.schema, keys, pool, space, **options)
    for batch in table.to_batches(max_chunksize=batch_rows):
        sorter.add_batch(batch)
    runs = sorter.take_runs()
    sorter.close()
    return runs


def read_range(sources, pool, lower=None, upper=None, **options):
    merged = MergedBatches(sources, pool, lower, upper)
    try:
        return [row for batch in merged.batches(**options) for row in batch.to_pylist()]
    finally:
        merged.close()


def bounds_of(table, keys, fractions):
    found = sorted(key for batch in table.to_batches() for key in KeyBytes(table.schema, keys).of_batch(batch))
    return [found[int(fraction * len(found))] for fraction in fractions]


# -------------------------------------------------------------------------------------------------------- keys as bytes


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("nulls_last", [False, True])
@pytest.mark.parametrize("type_name", TYPES)
def test_key_bytes_are_in_the_order_of_the_rows(type_name, descending, nulls_last):
    table = make_table(type_name, 300)
    keys = (SortKey("key", descending, nulls_last), SortKey("number", not descending))
    key_bytes = KeyBytes(table.schema, keys)
    ordered = pa.Table.from_pylist(oracle(table, keys), table.schema)
    found = [key for batch in ordered.to_batches() for key in key_bytes.of_batch(batch)]
    assert found == sorted(found)
    assert len(set(found)) > 250


def test_key_bytes_know_one_zero_one_nan_and_values_of_any_length():
    schema = pa.schema([("a", pa.float64()), ("b", pa.binary())])
    key_bytes = KeyBytes(schema, (SortKey("a"), SortKey("b", descending=True)))

    def of(*rows):
        return key_bytes.of_batch(
            pa.RecordBatch.from_pylist([dict(zip("ab", row, strict=True)) for row in rows], schema)
        )

    assert len(set(of((0.0, b""), (-0.0, b"")))) == 1
    values = [b"a", b"a\0", b"a\0\0", b"a\0\xff", b"a\x01", b"ab", b"", None]
    found = of(*((1.0, value) for value in values))
    order = sorted((value for value in values if value is not None), reverse=True)
    assert sorted(found) == of((1.0, None), *((1.0, value) for value in order))
    assert max(of((math.inf, b"z" * 500), (math.nan, b""))) == of((math.nan, b""))[0]
    assert {len(key) for key in of((1.0, b"x" * 500))} == {64}


def test_key_bytes_of_decimals_dates_and_bools_are_in_order():
    schema = pa.schema([("d", pa.decimal256(50, 3)), ("e", pa.date32()), ("f", pa.bool_())])
    rng = random.Random(2)
    rows = [
        {
            "d": rng.choice([None, decimal.Decimal(rng.randrange(-(10**40), 10**40)) / 1000]),
            "e": datetime.date(1970, 1, 1) + datetime.timedelta(rng.randrange(-3, 3)),
            "f": rng.choice([None, False, True]),
        }
        for _ in range(400)
    ]
    for names in ("fed", "edf", "dfe"):
        keys = tuple(SortKey(name, rng.random() < 0.5, rng.random() < 0.5) for name in names)
        ordered = oracle(pa.Table.from_pylist(rows, schema), keys)
        found = KeyBytes(schema, keys).of_batch(pa.RecordBatch.from_pylist(ordered, schema))
        assert found == sorted(found)


# --------------------------------------------------------------------------------------------------------------- ranges


@pytest.mark.parametrize("pages", [400, 20, 6])
@pytest.mark.parametrize("force_spill", [False, True])
@pytest.mark.parametrize("type_name", ["int64", "string", "prefixed", "decimal"])
def test_ranges_of_two_sorters_hold_every_row_once_and_in_order(workshop, type_name, pages, force_spill):
    table = make_table(type_name, 900)
    keys = (SortKey("key", descending=True, nulls_last=True), SortKey("number"))
    halves = [table.filter(pa.array([i % 2 == part for i in range(900)])) for part in range(2)]
    with (
        workshop.operator(pages) as (pool, space),
        workshop.operator(pages) as (other_pool, other_space),
        workshop.operator(6) as (merge_pool, _),
    ):
        sources = [
            take_runs(halves[0], keys, pool, space, reader_count=2, force_spill=force_spill),
            take_runs(halves[1], keys, other_pool, other_space, reader_count=2, force_spill=force_spill),
        ]
        assert sum(source.row_count for source in sources) == 900
        bounds = [None, *bounds_of(table, keys, [0.2, 0.2, 0.5, 0.9]), None]
        ranges = [
            read_range(sources, merge_pool, lower, upper, max_rows=37) for lower, upper in itertools.pairwise(bounds)
        ]
        assert ranges[1] == []
        assert all(ranges[index] for index in (0, 2, 3, 4))
        assert same([row for part in ranges for row in part], oracle(table, keys))
        for source in sources:
            source.release()
            source.release()


@given(
    keys=st.lists(st.none() | st.text("ab\0", max_size=9), max_size=150),
    bounds=st.lists(st.binary(max_size=6), max_size=4),
    descending=st.booleans(),
    nulls_last=st.booleans(),
    force_spill=st.booleans(),
    sorters=st.integers(1, 3),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bounds_cut_any_rows_without_loss(workshop, keys, bounds, descending, nulls_last, force_spill, sorters):
    table = pa.table({"key": pa.array(keys, pa.string()), "number": pa.array(range(len(keys)), pa.int64())})
    order = (SortKey("key", descending, nulls_last), SortKey("number"))
    with workshop.operator(60) as (pool, space), workshop.operator(6) as (merge_pool, _):
        sources = [
            take_runs(
                table.slice(part * 50, 50 if part < sorters - 1 else None), order, pool, space, force_spill=force_spill
            )
            for part in range(sorters)
        ]
        cuts = [None, *sorted(bounds), None]
        found = [
            row
            for lower, upper in itertools.pairwise(cuts)
            for row in read_range(sources, merge_pool, lower, upper, max_rows=11)
        ]
        for source in sources:
            source.release()
    assert same(found, oracle(table, order))


@pytest.mark.parametrize("distinct", first(300, 7, 100_000))
def test_ranges_begin_anywhere_among_the_blocks_between_two_kept_keys(workshop, distinct):
    rng = random.Random(distinct)
    size = 6000
    keys = [rng.randrange(distinct) for _ in range(size)]
    table = pa.table({"key": keys, "number": range(size), "text": ["padding " * 5] * size}, ROW)
    order = (SortKey("key"),)
    with workshop.operator(10) as (pool, space), workshop.operator(10) as (merge_pool, _):
        runs = take_runs(table, order, pool, space, force_spill=True)
        kept, weights = runs.samples(0)
        assert sum(weights) == runs.row_bytes
        assert len(kept) <= runs.row_bytes / 65536 + runs.run_count, "one key for 64 KiB, and one a run"
        assert runs.row_bytes > 4 * 65536
        bounds = sorted({*bounds_of(table, order, [rng.random() for _ in range(30)]), *kept})
        found = [
            row
            for lower, upper in itertools.pairwise([None, *bounds, None])
            for row in read_range([runs], merge_pool, lower, upper)
        ]
        for bound in rng.sample(bounds, min(5, len(bounds))):
            above = read_range([runs], merge_pool, bound, None)
            first = bounds_of(pa.Table.from_pylist(above, ROW), order, [0])[0]
            assert first >= bound
            assert len(above) == sum(key >= above[0]["key"] for key in keys)
        runs.release()
    assert same(found, oracle(table, order))


@pytest.mark.parametrize("compressed", first(True, False))
def test_a_long_run_is_found_by_an_index_that_was_thinned_out(workshop, compressed):
    """More steps than its index has entries; a reader begins anywhere in it."""
    rng = random.Random(5)
    size = 4000
    texts = ["long " * 2000 if compressed else rng.randbytes(5000).hex() for _ in range(4)]
    keys = [rng.randrange(size // 2) for _ in range(size)]
    table = pa.table({"key": keys, "number": range(size), "text": [texts[key % 4] for key in keys]}, ROW)
    order = (SortKey("key"), SortKey("number"))
    with workshop.operator(2000, 32768) as (pool, space), workshop.operator(40, 32768) as (merge_pool, _):
        runs = take_runs(table, order, pool, space, limit=size)  # one memory, not halves
        assert runs.runs_in_memory == 1
        assert runs.row_bytes > 2 * 256 * 65536, "a step for each entry, and as many again"
        begun = MergedBatches([runs], merge_pool)
        batches = begun.batches(max_rows=1700)
        rows = next(batches).to_pylist()
        runs.spill()
        rows += [row for batch in batches for row in batch.to_pylist()]
        begun.close()
        kept, weights = runs.samples(1000)
        assert sum(weights) == runs.row_bytes
        assert 128 <= len(kept) <= 256
        assert kept == sorted(kept)
        bounds = [*bounds_of(table, order, [rng.random() for _ in range(9)]), *rng.sample(kept, 9)]
        found = [
            row
            for lower, upper in itertools.pairwise([None, *sorted(bounds), None])
            for row in read_range([runs], merge_pool, lower, upper)
        ]
        runs.release()
    assert same(rows, oracle(table, order))
    assert same(found, oracle(table, order))


def test_memory_beside_the_pages_does_not_grow_with_what_is_spilled(workshop):
    """But for some hundred bytes a run."""
    batch = pa.RecordBatch.from_pydict({"key": [7] * 1000, "number": range(1000), "text": ["row " * 20] * 1000}, ROW)
    with workshop.operator(64) as (pool, space):
        sorter = ExternalSorter(ROW, (SortKey("number"),), pool, space)
        found = []
        for spilled in (4 << 20, 24 << 20):
            while sorter.spilled_bytes < spilled:
                sorter.add_batch(batch)
            found.append(heap_bytes())
        assert found[1] - found[0] < (20 << 20) // 400
        sorter.close()


def test_samples_stand_for_all_bytes_and_come_from_all_over(workshop):
    table = make_table("int64", 2000, null_share=0)
    for pages in (400, 10):
        with workshop.operator(pages) as (pool, space):
            runs = take_runs(table, (SortKey("key"),), pool, space)
            keys, weights = runs.samples(100)
            assert sum(weights) == runs.row_bytes
            assert len(keys) == len(weights) > 10
            assert runs.runs_in_memory <= 1
            runs.release()


# ------------------------------------------------------------------------------------------ memory that is called back


@pytest.mark.parametrize("after", [0, 1, 5])
def test_a_reader_goes_on_in_the_file_when_memory_is_called_back(workshop, after):
    table = make_table("int64", 2000, distinct=40)
    keys = (SortKey("key"), SortKey("number"))
    with workshop.operator(400) as (pool, space), workshop.operator(6) as (merge_pool, _):
        runs = take_runs(table, keys, pool, space)
        freed = []
        runs.owned_by(lambda: freed.append("memory"), lambda: freed.append("all"))
        bound = bounds_of(table, keys, [0.3])[0]
        merged = MergedBatches([runs], merge_pool, bound, None)
        batches = merged.batches(max_rows=100)
        rows = [row for _ in range(after) for row in next(batches).to_pylist()]
        assert pool.pages_used > 0
        runs.spill()
        runs.spill()
        assert pool.pages_used == 0
        assert freed == ["memory"]
        assert workshop.files() != []
        rows += [row for batch in batches for row in batch.to_pylist()]
        merged.close()
        assert same(rows, oracle(table, keys)[-len(rows) :])
        assert len(rows) > 1300
        assert same(read_range([runs], merge_pool), oracle(table, keys))
        runs.release()
        assert freed == ["memory", "all"]


def test_readers_and_a_spiller_at_one_time_see_every_row(workshop):
    table = make_table("string", 4000)
    keys = (SortKey("key"), SortKey("number"))
    with workshop.operator(800) as (pool, space), workshop.operator(40) as (merge_pool, _):
        runs = take_runs(table, keys, pool, space)
        bounds = [None, *bounds_of(table, keys, [0.25, 0.5, 0.75]), None]
        found = [None] * 4

        def read(index):
            found[index] = read_range([runs], merge_pool, bounds[index], bounds[index + 1], max_rows=20)

        threads = [threading.Thread(target=read, args=(index,)) for index in range(4)]
        for thread in threads:
            thread.start()
        runs.spill()
        for thread in threads:
            thread.join()
        runs.release()
    assert same([row for part in found for row in part], oracle(table, keys))


def test_runs_that_were_released_cannot_be_read(workshop):
    table = make_table("int64", 500)
    with workshop.operator(100) as (pool, space), workshop.operator(6) as (merge_pool, _):
        runs = take_runs(table, (SortKey("key"),), pool, space)
        merged = MergedBatches([runs], merge_pool)
        batches = merged.batches(max_rows=10)
        next(batches)
        runs.release()
        assert runs.is_released
        assert pool.pages_used == 0
        with pytest.raises(PartitionReleasedError):
            next(batches)
        merged.close()
        with pytest.raises(PartitionReleasedError):
            MergedBatches([runs], merge_pool)


def test_a_full_disk_leaves_runs_in_memory(workshop):
    table = make_table("int64", 500)
    with workshop.operator(100) as (pool, space), workshop.operator(6) as (merge_pool, _):
        runs = take_runs(table, (SortKey("key"),), pool, FailingSpace(space, 0))
        with pytest.raises(DiskFullError):
            runs.spill()
        assert same(read_range([runs], merge_pool), oracle(table, (SortKey("key"),)))
        runs.release()


def test_a_disk_that_fills_up_meanwhile_keeps_nothing_of_the_run(workshop, monkeypatch):
    """However often the memory is asked for: what was written is removed, the blocks in memory go back."""
    table = make_table("int64", 3000)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with workshop.operator(100) as (pool, space), workshop.operator(6) as (merge_pool, _):
        runs = take_runs(table, (SortKey("key"),), pool, space)
        for _ in range(3):
            sizes = []

            def open_once(*arguments, sizes=sizes):
                sizes.extend(path.stat().st_size for path in workshop.files())
                if sizes:
                    raise DiskFullError("no room for more")
                return SpillSpace.open_extent(space, *arguments)

            monkeypatch.setattr(space, "open_extent", open_once)
            resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
            try:
                with pytest.raises(DiskFullError):
                    runs.spill()
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            assert sizes[0] > 0, "a part of the run was written"
            assert workshop.files() == []
            assert workshop.io.buffer_bytes_out == 0
        monkeypatch.undo()
        runs.spill()
        assert pool.pages_used == 0
        assert same(read_range([runs], merge_pool), oracle(table, (SortKey("key"),)))
        runs.release()


# --------------------------------------------------------------------------------------------------------------- damage


def test_a_flipped_bit_is_an_error_that_names_file_and_offset(workshop):
    table = make_table("int64", 3000)
    with workshop.operator(8) as (pool, space), workshop.operator(6) as (merge_pool, _):
        runs = take_runs(table, (SortKey("key"),), pool, space, force_spill=True)
        (path, *_) = sorted(workshop.files())
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 4
        path.write_bytes(content)
        with pytest.raises(CorruptBlockError, match=rf"{path.name}.*offset|offset.*{path.name}"):
            read_range([runs], merge_pool)
        runs.release()


def test_rows_larger_than_pages_and_budget_are_kept_and_cut(workshop):
    rng = random.Random(3)
    texts = [rng.choice("abc") + "x" * rng.choice([5, 5, 5000, 30_000, 60_000]) for _ in range(60)]
    table = pa.table({"key": texts, "number": list(range(60))})
    keys = (SortKey("key"), SortKey("number"))
    with workshop.operator(6) as (pool, space), workshop.operator(6) as (merge_pool, _):
        runs = take_runs(table, keys, pool, space, batch_rows=7)
        bounds = [None, *bounds_of(table, keys, [0.3, 0.6]), None]
        found = [
            row for lower, upper in itertools.pairwise(bounds) for row in read_range([runs], merge_pool, lower, upper)
        ]
        runs.release()
    assert same(found, oracle(table, keys))


def test_fifty_rows_walk_every_spill_path(workshop):
    table = make_table("prefixed", 50)
    keys = (SortKey("key"), SortKey("number"))
    with workshop.operator(6) as (pool, space), workshop.operator(6) as (merge_pool, _):
        runs = take_runs(table, keys, pool, space, batch_rows=10, force_spill=True)
        assert runs.runs_in_memory == 0
        assert runs.run_count >= 4
        assert runs.spilled_bytes <= 2 * runs.row_bytes
        bound = bounds_of(table, keys, [0.5])[0]
        assert same(
            read_range([runs], merge_pool, None, bound) + read_range([runs], merge_pool, bound, None),
            oracle(table, keys),
        )
        runs.release()


def test_runs_whose_file_cannot_be_removed_are_released_all_the_same(workshop, monkeypatch):
    def refuse(space, file):
        remove(space, file)
        raise OSError("it cannot be removed")

    told = []
    with workshop.operator(100) as (pool, space):
        runs = take_runs(make_table("int64", 500), (SortKey("key"),), pool, space)
        runs.spill()
        runs.owned_by(lambda: told.append("memory is free"), lambda: told.append("released"))
        remove = type(space).remove_file
        monkeypatch.setattr(type(space), "remove_file", refuse)
        with pytest.raises(OSError, match="it cannot be removed"):
            runs.release()
        monkeypatch.undo()
        assert told == ["memory is free", "released"] and runs.is_released
